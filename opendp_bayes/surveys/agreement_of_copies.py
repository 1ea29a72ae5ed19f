"""Agreement of synthetic records with the posterior that they are of, table by table, and one
estimate from those of several synthetic data sets.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_level, as_numbers
from opendp_bayes.release_format.data import Label
from opendp_bayes.surveys.survey_tables.junction_tree import LARGEST_CLIQUE
from opendp_bayes.surveys.survey_tables.records import frame_of
from opendp_bayes.surveys.survey_tables.survey_posterior import Kind, SurveyPosterior
from opendp_bayes.surveys.survey_tables.table_posterior import TablePosterior

if TYPE_CHECKING:
    import polars as pl


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


Names = tuple[str, ...]
Labels = Mapping[str, tuple[Label, ...]]


def agreement_of_copies(
    posterior: SurveyPosterior, copies: "Iterable[pl.DataFrame]", *, kind: Kind
) -> "pl.DataFrame":
    """Compare the shares in synthetic records with the posterior that they are of, from both alone:
    a polars frame with a row for each variable, each pair, and each larger measured table.

    The columns are `table`; whether it was `measured`, or follows from what the model assumes; its
    number of `cells`, and that of `copies`; and these, of shares:

    - `std`, the posterior's standard deviation, and `combined_std`, the standard error that
      `combine_estimates` gives to the shares of all copies, null for one copy; both in the mean
      over the cells.
    - `difference`, of the mean of all copies from the posterior's, in the mean over the cells;
      `largest_difference`, that in the worst cell; and the posterior's `std_of_largest` there.
    - `difference_of_one`, of a single copy, in the mean over cells and copies; and
      `largest_of_one`.

    Pairs that were not measured are last, without those of more than 2000 cells.

    Source: `docs/surveys.md`, "What the copies may be used for".

    Parameters
    ----------
    posterior : SurveyPosterior
        Of the survey.
    copies : Iterable[DataFrame]
        The frames of its `synthetic`, or those read from the files of `write_synthetic`; they are
        looked at one after the other, so that a generator need not hold all.
    kind : Kind
        Of the copies.

    Raises
    ------
    ValueError, TypeError
        For frames that are no copies, and for another posterior.
    """
    import polars as pl

    as_choice(kind, "kind", get_args(Kind))
    if not isinstance(posterior, SurveyPosterior):
        raise TypeError(
            f"posterior={told(posterior)}: must be a SurveyPosterior, from which copies are drawn."
        )
    if not isinstance(copies, Iterable):
        raise TypeError(f"copies={told(copies)}: must be a list of frames, as `synthetic` returns.")
    labels = posterior.categories
    counts: dict[Names, list[Integers]] = {names: [] for names in _tables(posterior)}
    sizes = []
    # Labels as the text that they are in a file of CSV.
    texts = {
        name: frame_of(np.arange(len(table))[:, None], {name: table}).to_series().cast(pl.String)
        for name, table in labels.items()
    }
    for number, copy in enumerate(copies):
        levels = _levels(copy, texts, number)
        sizes.append([max(len(copy), 1)])
        for names, table in counts.items():
            table.append(_counted(levels, names, labels))
    if not sizes:
        raise ValueError("copies: must be at least one frame, as `synthetic` returns them.")
    size = np.array(sizes, dtype=np.float64)
    rows = [
        _row(posterior.marginal(*names), np.stack(table) / size, size, kind)
        for names, table in counts.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"combined_std": pl.Float64})


def _tables(posterior: SurveyPosterior) -> Iterator[Names]:
    """Yield every variable, every pair, and every measured table of more; pairs that no released
    table has together, after all others and where they are not too large to draw.
    """
    labels, implied = posterior.categories, list[Names]()
    for name in posterior.variables:
        yield (name,)
    for pair in combinations(posterior.variables, 2):
        if any(set(pair) <= set(table) for table in posterior.tables):
            yield pair
        elif len(labels[pair[0]]) * len(labels[pair[1]]) <= LARGEST_CLIQUE:
            implied.append(pair)
    yield from (table for table in posterior.tables if len(table) > 2)
    yield from implied


def _levels(
    copy: "pl.DataFrame", texts: "Mapping[str, pl.Series]", number: int
) -> dict[str, Integers]:
    """The places of the labels of a copy, by variable. Also of one that was read from CSV."""
    import polars as pl

    levels = {}
    for name, column in texts.items():
        if name not in getattr(copy, "columns", ()):
            raise ValueError(f"copies[{number}]: has no column {name!r}; give whole copies.")
        places = (
            copy[name]
            .cast(pl.String)
            .replace_strict(column, np.arange(len(column)), default=None, return_dtype=pl.UInt32)
        )
        if places.null_count():
            raise ValueError(
                f"copies[{number}]: has values of {name!r} that are none of its labels; give"
                " frames of `synthetic`, or those of the files that `write_synthetic` wrote."
            )
        levels[name] = places.to_numpy().astype(np.int64)
    return levels


def _counted(levels: Mapping[str, Integers], names: Names, labels: Labels) -> Integers:
    """Records in each cell of a table."""
    shape = [len(labels[name]) for name in names]
    cells = np.ravel_multi_index([levels[name] for name in names], shape)
    return np.bincount(cells, minlength=int(np.prod(shape)))


def _row(table: TablePosterior, shares: Floats, size: Floats, kind: Kind) -> dict[str, Any]:
    """Compare the shares in each copy, shape `(copies, cells)`, with a posterior."""
    mean, std = table.mean(), table.std()
    of_all, of_one = abs(shares.mean(axis=0) - mean), abs(shares - mean)
    worst, combined = int(of_all.argmax()), None
    if len(shares) > 1:
        variances = shares * (1 - shares) / size
        combined = float(combine_estimates(shares, variances, kind=kind).std.mean())
    return {
        "table": " × ".join(table.axes),
        "measured": table.measured,
        "cells": mean.size,
        "copies": len(shares),
        "std": float(std.mean()),
        "combined_std": combined,
        "difference": float(of_all.mean()),
        "largest_difference": float(of_all[worst]),
        "std_of_largest": float(std[worst]),
        "difference_of_one": float(of_one.mean()),
        "largest_of_one": float(of_one.max()),
    }
