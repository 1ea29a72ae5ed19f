"""One estimate from those of several synthetic data sets."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, as_choice, as_level, as_numbers

#: A variance, in medians of all copies, from which on an analysis is taken to have failed.
_FAILED = 1000


@dataclass(frozen=True, eq=False)
class CombinedEstimate(UnderflowIsZero):
    """An estimate from several synthetic data sets, with their differences taken into account.

    Attributes
    ----------
    estimate : ndarray
        The mean of the estimates, a number or an array.
    variance : ndarray
        Of the estimate.
    degrees_of_freedom : ndarray
        Of the t distribution that intervals are of.
    """

    estimate: Floats
    variance: Floats
    degrees_of_freedom: Floats

    @property
    def std(self) -> Floats:
        """Standard error."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Both ends of the confidence intervals of probability `level`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        reach = scipy.stats.t.ppf((1 + as_level(level)) / 2, self.degrees_of_freedom) * self.std
        return self.estimate - reach, self.estimate + reach


def combine_estimates(
    estimates: ArrayLike, variances: ArrayLike, *, kind: Literal["population", "predictive"]
) -> CombinedEstimate:
    """Put together the estimates that the same analysis gives for several synthetic data sets.

    Warns where the variance of one copy is far above those of the others, as if its analysis had
    failed.

    Source: Rubin, "Multiple imputation for nonresponse in surveys" (1987), eqs. 3.1.2 to 3.1.6;
    Raghunathan, Reiter and Rubin, "Multiple imputation for statistical disclosure limitation"
    (2003), section 2.

    Parameters
    ----------
    estimates : array_like
        One for each data set, shape `(copies,)`, or rows of several, `(copies, ...)`.
    variances : array_like
        The squares of their standard errors, as the analysis states them, of that shape.
    kind : {"population", "predictive"}
        Of `SurveyPosterior.synthetic`. Let v be the mean of the variances and b the variance of the
        m estimates. `"population"` has the variance `v + (1 + 1/m) b`, as missing data have.
        `"predictive"` has `(1 + 1/m) b - v`, because new records vary once more, and at least v:
        near 0 that difference is mostly chance, and has hardly any degrees of freedom.

    Raises
    ------
    ValueError
        For less than two copies, shapes that differ, numbers that are not finite and negative
        variances.

    Examples
    --------
    >>> combine_estimates([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], kind="population").variance.round(4)
    np.float64(1.8333)
    >>> combine_estimates([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], kind="predictive").variance.round(4)
    np.float64(0.8333)
    """
    as_choice(kind, "kind", ("population", "predictive"))
    points, spreads = as_numbers(estimates, "estimates"), as_numbers(variances, "variances")
    if points.shape != spreads.shape or points.ndim == 0 or len(points) < 2:
        raise ValueError(
            f"estimates, variances: have the shapes {points.shape} and {spreads.shape}; must be"
            " the same, with a row for each of at least two copies."
        )
    if not (np.all(np.isfinite(points)) and np.all(np.isfinite(spreads)) and np.all(spreads >= 0)):
        raise ValueError("variances: must be at least 0, and they and the estimates finite.")
    usual = np.median(spreads, axis=0)
    if np.any((spreads.max(axis=0) > _FAILED * usual) & (usual > 0)):
        warn(
            "variances: of some copy are more than 1000 times their median, as where an analysis"
            " failed on it, such as a logistic regression of separated records; use one that does"
            " not, such as a penalised one."
        )
    within, copies = spreads.mean(axis=0), len(points)
    between = (1 + 1 / copies) * points.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0, within / between, np.inf)
    if kind == "population":
        return CombinedEstimate(
            points.mean(axis=0), within + between, (copies - 1) * (1 + ratio) ** 2
        )
    freedom = (copies - 1) * (1 - np.minimum(ratio, 0.5)) ** 2
    return CombinedEstimate(points.mean(axis=0), np.maximum(between - within, within), freedom)
