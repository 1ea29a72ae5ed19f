"""Constructors of measurements: a mechanism on a posterior, with its privacy map. As `dp.m` in
OpenDP, they are in `ob.m`.
"""

import importlib
import typing

from opendp_bayes.queries.constructors import (
    make_gaussian_parameters as make_gaussian_parameters,
    make_hellinger_exponential as make_hellinger_exponential,
    make_knorm_parameters as make_knorm_parameters,
    make_laplace_parameters as make_laplace_parameters,
    make_mechanism as make_mechanism,
    make_permute_and_flip as make_permute_and_flip,
    make_smooth_hellinger_exponential as make_smooth_hellinger_exponential,
    measured_sampler as measured_sampler,
    then_gaussian_parameters as then_gaussian_parameters,
    then_hellinger_exponential as then_hellinger_exponential,
    then_knorm_parameters as then_knorm_parameters,
    then_laplace_parameters as then_laplace_parameters,
    then_mechanism as then_mechanism,
    then_permute_and_flip as then_permute_and_flip,
    then_smooth_hellinger_exponential as then_smooth_hellinger_exponential,
)

if typing.TYPE_CHECKING:
    from opendp_bayes.unlisted.discovered_counts import (
        make_discovery as make_discovery,
        then_discovery as then_discovery,
    )


#: Loaded when first used, as in the package: listed categories need none of it.
_LATE = ("make_discovery", "then_discovery")


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("opendp_bayes.unlisted.discovered_counts"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
