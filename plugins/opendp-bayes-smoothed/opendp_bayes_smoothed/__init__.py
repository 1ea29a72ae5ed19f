"""Smoothed differential privacy as a plugin of `opendp_bayes`: mechanisms whose noise is sampling,
and their promises.

The names below are loaded when first used, so the mathematics can be used without importing OpenDP
or polars.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendp_bayes_smoothed.distributions import vertices as vertices
    from opendp_bayes_smoothed.expectation import smoothed_value as smoothed_value
    from opendp_bayes_smoothed.framework import (
        make_noisy_sampling_histogram as make_noisy_sampling_histogram,
        make_sampling_average as make_sampling_average,
        make_sampling_histogram as make_sampling_histogram,
        smoothed as smoothed,
        then_noisy_sampling_histogram as then_noisy_sampling_histogram,
        then_sampling_average as then_sampling_average,
        then_sampling_histogram as then_sampling_histogram,
    )
    from opendp_bayes_smoothed.losses import SmoothedDP as SmoothedDP, SmoothedLoss as SmoothedLoss
    from opendp_bayes_smoothed.mechanisms import (
        NoisySamplingHistogram as NoisySamplingHistogram,
        SamplingHistogram as SamplingHistogram,
    )
    from opendp_bayes_smoothed.profile import database_profile as database_profile
    from opendp_bayes_smoothed.smoothed_dp import (
        composed as composed,
        smoothed_delta as smoothed_delta,
        smoothed_epsilon as smoothed_epsilon,
    )

_HOME = {
    "distributions": ("vertices",),
    "expectation": ("smoothed_value",),
    "framework": (
        "make_noisy_sampling_histogram",
        "make_sampling_average",
        "make_sampling_histogram",
        "smoothed",
        "then_noisy_sampling_histogram",
        "then_sampling_average",
        "then_sampling_histogram",
    ),
    "losses": ("SmoothedDP", "SmoothedLoss"),
    "mechanisms": ("NoisySamplingHistogram", "SamplingHistogram"),
    "profile": ("database_profile",),
    "smoothed_dp": ("composed", "smoothed_delta", "smoothed_epsilon"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'opendp_bayes_smoothed' has no attribute {name!r}")
    value = getattr(import_module(f"opendp_bayes_smoothed.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
