"""Smoothed differential privacy as a plugin of `opendp_bayes`: mechanisms whose noise is sampling,
and their promises.

The names below are loaded when first used, so the mathematics can be used without importing OpenDP
or polars.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendp_bayes_smoothed.adversary import (
        adjusted_utility as adjusted_utility,
        database_utility as database_utility,
        divergence as divergence,
        insensitivity as insensitivity,
        likelihood_ratio_test as likelihood_ratio_test,
        log_database_utility as log_database_utility,
        smoothed_utility as smoothed_utility,
        threshold_of as threshold_of,
    )
    from opendp_bayes_smoothed.average import (
        average_profile as average_profile,
        average_profiles as average_profiles,
        smoothed_average_delta as smoothed_average_delta,
    )
    from opendp_bayes_smoothed.bounds import sampling_bound as sampling_bound
    from opendp_bayes_smoothed.distributional import distributional_delta as distributional_delta
    from opendp_bayes_smoothed.distributions import (
        preprocessed as preprocessed,
        vertices as vertices,
    )
    from opendp_bayes_smoothed.election_data import districts as districts, elections as elections
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
    from opendp_bayes_smoothed.laws import anonymous_profile as anonymous_profile
    from opendp_bayes_smoothed.losses import (
        SampleRelease as SampleRelease,
        SmoothedDP as SmoothedDP,
        SmoothedLoss as SmoothedLoss,
    )
    from opendp_bayes_smoothed.mechanisms import (
        NoisySamplingHistogram as NoisySamplingHistogram,
        SamplingHistogram as SamplingHistogram,
    )
    from opendp_bayes_smoothed.profile import (
        database_profile as database_profile,
        log_database_profile as log_database_profile,
    )
    from opendp_bayes_smoothed.release import SmoothedRelease as SmoothedRelease
    from opendp_bayes_smoothed.smoothed_dp import (
        anonymous_delta as anonymous_delta,
        composed as composed,
        log_smoothed_delta as log_smoothed_delta,
        smoothed_delta as smoothed_delta,
        smoothed_epsilon as smoothed_epsilon,
    )
    from opendp_bayes_smoothed.voting import (
        borda as borda,
        copeland as copeland,
        of_a_sample as of_a_sample,
        plurality as plurality,
        rankings as rankings,
    )

_HOME = {
    "adversary": (
        "adjusted_utility",
        "database_utility",
        "divergence",
        "insensitivity",
        "likelihood_ratio_test",
        "log_database_utility",
        "smoothed_utility",
        "threshold_of",
    ),
    "average": (
        "average_profile",
        "average_profiles",
        "smoothed_average_delta",
    ),
    "bounds": ("sampling_bound",),
    "distributional": ("distributional_delta",),
    "distributions": (
        "preprocessed",
        "vertices",
    ),
    "election_data": (
        "districts",
        "elections",
    ),
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
    "laws": ("anonymous_profile",),
    "losses": (
        "SampleRelease",
        "SmoothedDP",
        "SmoothedLoss",
    ),
    "mechanisms": (
        "NoisySamplingHistogram",
        "SamplingHistogram",
    ),
    "profile": (
        "database_profile",
        "log_database_profile",
    ),
    "release": ("SmoothedRelease",),
    "smoothed_dp": (
        "anonymous_delta",
        "composed",
        "log_smoothed_delta",
        "smoothed_delta",
        "smoothed_epsilon",
    ),
    "voting": (
        "borda",
        "copeland",
        "of_a_sample",
        "plurality",
        "rankings",
    ),
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
