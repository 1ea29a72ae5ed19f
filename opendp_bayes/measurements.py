"""Constructors of measurements: a mechanism on a posterior, with its privacy map. As `dp.m` in
OpenDP, they are in `ob.m`.
"""

import importlib
import typing

import numpy as _np
import numpy.typing as _npt

from opendp_bayes.mathematics.validation import Integers as _Integers
from opendp_bayes.mechanisms.protocol import Mechanism as _Mechanism
from opendp_bayes.mechanisms.setting import Setting as _Setting
from opendp_bayes.queries.constructors import (
    make_gaussian_parameters as make_gaussian_parameters,
    make_hellinger_exponential as make_hellinger_exponential,
    make_knorm_parameters as make_knorm_parameters,
    make_laplace_parameters as make_laplace_parameters,
    make_mechanism as make_mechanism,
    make_permute_and_flip as make_permute_and_flip,
    make_smooth_hellinger_exponential as make_smooth_hellinger_exponential,
    then_gaussian_parameters as then_gaussian_parameters,
    then_hellinger_exponential as then_hellinger_exponential,
    then_knorm_parameters as then_knorm_parameters,
    then_laplace_parameters as then_laplace_parameters,
    then_mechanism as then_mechanism,
    then_permute_and_flip as then_permute_and_flip,
    then_smooth_hellinger_exponential as then_smooth_hellinger_exponential,
)
from opendp_bayes.trusted.boundary import require_features as _require_features
from opendp_bayes.trusted.measurements import drawer as _drawer

if typing.TYPE_CHECKING:
    from opendp_bayes.unlisted.discovered_counts import (
        make_discovery as make_discovery,
        then_discovery as then_discovery,
    )


def measured_sampler(
    mechanism: _Mechanism, *, size: int | None, prior: _npt.ArrayLike
) -> typing.Callable[[_npt.ArrayLike, _npt.ArrayLike, int], _Integers]:
    """Return the sampler that a measurement of `mechanism` has, for `audit(..., sample=)`.

    The result is called as `mechanism.sample` is, with counts, prior and the number of releases. It
    returns these, shape `(draws, k)`.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    size : int or None
        The public number of records, or None where it is private.
    prior : array_like
        The prior concentration, shape `(k,)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or do not fit the mechanism.
    ValueError
        Without the OpenDP features that a measurement needs.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> from opendp_bayes.measurements import measured_sampler
    >>> from opendp_bayes_research import audit
    >>> mechanism, setting = LaplaceParameters(2.0), {"size": 10, "prior": [1.0, 1.0]}
    >>> sampler = measured_sampler(mechanism, **setting)
    >>> audit(mechanism, sample=sampler, draws=2000, **setting).passed
    True
    """
    _require_features("measured_sampler")
    setting = _Setting.of(mechanism, size, prior)
    draw = _drawer(setting)

    def sample(counts: _npt.ArrayLike, prior: _npt.ArrayLike, draws: int) -> _Integers:
        noisy_counts = draw(_np.asarray(counts, dtype=_np.int64), draws)
        return setting.projected(noisy_counts)

    return sample


#: Loaded when first used, as in the package: listed categories need none of it.
_LATE = ("make_discovery", "then_discovery")


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("opendp_bayes.unlisted.discovered_counts"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
