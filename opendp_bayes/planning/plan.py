"""A plan: what every mechanism costs and is expected to be worth in a public setting, before any
budget is spent.

It depends on public things alone: the number of records or a guess of it, the prior, the privacy
asked for, and proportions, made up or guessed.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting import enumeration, two_categories
from opendp_bayes.accounting.calibration import (
    calibrate,
    counts_in_proportion,
    relative_loss,
    smallest_scale,
)
from opendp_bayes.accounting.exact import FEASIBLE_WORK, Accounting, feasible_loss
from opendp_bayes.mathematics.simplex import log_number_of_candidates
from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    SCALES,
    Floats,
    as_distance,
    as_positive,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms import (
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    Mechanism,
    PermuteAndFlip,
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.planning.expected_error import ExpectedError, expected_error
from opendp_bayes.report.wording import described

#: Called with the name of the step, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]

#: Of two mechanisms whose errors differ by less than this part the one listed first is recommended:
#: noise on the counts, which is the simplest.
INDIFFERENCE = 0.01
#: Where records are many, `choose` keeps to the usual noise, which is unbiased, unless its error is
#: larger than the smallest by more than this part.
_PREFERENCE = 0.04
#: Probabilities of neighbours that a calibration may compare at each of its many steps: with two
#: categories, where a window is enough, and otherwise. Above, the proven bound is used. Both take a
#: few seconds.
_EXACT_WORK = (FEASIBLE_WORK, 500_000)
_EXACT_CANDIDATES_FLIP = (
    100  # the law of permute-and-flip takes longer to compute than that of an exponential mechanism
)
#: So few records are few, and so much work for the exact accounting takes about a second: where
#: `choose` compares, and what.
_FEW_RECORDS, _QUICK_WORK = 10, 500_000
#: Share of the first category where one is almost empty.
_EDGE = 0.01
_LOG_TOLERANCE = 1e-3  # of the smallest epsilon


@dataclass(frozen=True)
class PlanRow:
    """One mechanism of a plan.

    Attributes
    ----------
    mechanism : calibrated, or at scale 1 where it is `refused`.
    loss : its privacy loss at the distance of the plan, with the method by which it was obtained;
        None where it is refused.
    errors : what is expected of it for each of the plan's `proportions`, by name.
    refused : why it cannot be used; None if it can.
    """

    mechanism: Mechanism
    loss: PrivacyLoss | None
    errors: Mapping[str, ExpectedError]
    refused: str | None = None

    @property
    def score(self) -> float:
        """Expected Hellinger error at the stated proportions, or the mean over all if none were
        stated; infinite where it is refused.
        """
        if self.refused is not None:
            return math.inf
        scored = [self.errors["stated"]] if "stated" in self.errors else list(self.errors.values())
        return math.fsum(error.hellinger for error in scored) / len(scored)


@dataclass(frozen=True)
class Plan:
    """What `plan` found; plain data.

    Attributes
    ----------
    size : the public number of records; None where it is private.
    records : the number that the errors are for: `size`, or the guess of it.
    prior, d_in : what was planned for.
    budget : the loss asked for: `epsilon`, `delta` and `rho`, those given.
    proportions : proportions of the categories, by name: `"balanced"`, `"skewed"`, `"edge"`, and
        `"stated"` where some were given.
    rows : one for each mechanism, best first, and those that are refused last.
    """

    size: int | None
    records: int
    prior: tuple[float, ...]
    d_in: int
    budget: Mapping[str, float]
    proportions: Mapping[str, tuple[float, ...]]
    rows: tuple[PlanRow, ...]

    @property
    def recommended(self) -> Mechanism:
        """The calibrated mechanism with the smallest score, or within `INDIFFERENCE` of it and
        simpler.
        """
        return self.rows[0].mechanism

    @property
    def reason(self) -> str:
        """Why that one is recommended, in a sentence."""
        best, *others = self.rows
        where = (
            "at the stated proportions"
            if "stated" in self.proportions
            else "on average over balanced, skewed and edge proportions"
        )
        text = (
            f"{described(best.mechanism)} has an expected Hellinger error of {best.score:.3g}"
            f" {where}"
        )
        usable = [row for row in others if row.refused is None]
        if not usable:
            return f"{text}, and no other mechanism can be used."
        nearest = min(usable, key=lambda row: row.score)
        if nearest.score <= best.score * (1 + INDIFFERENCE):
            return (
                f"{text}; {described(nearest.mechanism)} is within {100 * INDIFFERENCE:.0f} % of it"
                f" ({nearest.score:.3g}) and no simpler."
            )
        text = f"{text}; the next best, {described(nearest.mechanism)}, has {nearest.score:.3g}"
        return (
            f"{text}, {100 * (nearest.score / best.score - 1):.0f} % more."
            if best.score
            else f"{text}."
        )

    def records_by_row(self) -> Iterator[dict[str, Any]]:
        """One flat record for each mechanism and proportions, or one for a mechanism that is
        refused.
        """
        for row in self.rows:
            common = {
                "mechanism": row.mechanism.name,
                "parameters": msgspec.json.encode(asdict(row.mechanism)).decode(),
                "scale": row.mechanism.scale if row.refused is None else None,
                "epsilon": row.loss and row.loss.epsilon,
                "delta": row.loss and row.loss.delta,
                "rho": row.loss and row.loss.rho,
                "accounting": row.loss and row.loss.method,
                "refused": row.refused,
            }
            errors: Mapping[Any, ExpectedError | None] = row.errors or {None: None}
            names = ("hellinger", "total_variation", "interval_width", "standard_error", "method")
            for proportions, error in errors.items():
                yield {
                    **common,
                    "proportions": proportions,
                    **{name: error and getattr(error, name) for name in names},
                }

    def to_frame(self) -> Any:
        """`records_by_row` as a polars frame."""
        return import_module("polars").DataFrame(
            list(self.records_by_row()), infer_schema_length=None
        )

    def to_json(self) -> str:
        """The plan as a JSON object; null stands for infinity."""
        rows = [
            {
                **asdict(row),
                "mechanism": {"name": row.mechanism.name, "parameters": asdict(row.mechanism)},
                "score": row.score,
            }
            for row in self.rows
        ]
        return msgspec.json.encode(
            {
                **asdict(self),
                "rows": rows,
                "recommended": rows[0]["mechanism"],
                "reason": self.reason,
            }
        ).decode()

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        from opendp_bayes.report.notebook import plan_html

        return plan_html(self)

    def __repr__(self) -> str:
        budget = ", ".join(f"{name}={value:.6g}" for name, value in self.budget.items())
        size = f"size={self.size}" if self.size is not None else f"guess_size={self.records}"
        return (
            f"Plan({size}, prior={list(self.prior)}, {budget}, recommended={self.recommended!r},"
            f" rows={len(self.rows)})"
        )


def plan(
    *,
    size: int | None,
    prior: ArrayLike,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
    mechanisms: Sequence[Mechanism] | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Compare the mechanisms in a public setting: their scales, losses and expected errors, and
    which one to use.

    Parameters
    ----------
    size : the public number of records, or None where it is private (add/remove neighbours). Then
        `guess_size` is needed.
    prior : the prior concentration, shape `(k,)`.
    epsilon, delta, rho : the loss, as in `calibrate`.
    d_in : records changed, or added and removed.
    proportions : the analyst's guess of the category proportions, public, shape `(k,)`. With it,
        errors are compared at these proportions.
    guess_size : a guess of a private number of records, public too; no loss depends on it.
    mechanisms : mechanism values to compare, whose scales do not matter; all of this package unless
        given.
    progress : called at each step.

    Errors are at balanced proportions, at skewed ones (1 : 4 for two categories, otherwise each
        category twice as frequent as the one before), and at
    the edge (the first category has 1 % of the records, the others are balanced).

    Raises `ValueError`/`TypeError` for arguments that are not valid or if no mechanism can be used.

    Source: `docs/choosing.md`.

    >>> from opendp_bayes import LaplaceParameters, KNormParameters, plan
    >>> found = plan(size=90, prior=[1.0, 1.0, 1.0], epsilon=1.0, mechanisms=[LaplaceParameters(1.0), KNormParameters(1.0)])
    >>> found.recommended
    KNormParameters(scale=1.0)
    >>> [round(row.errors["balanced"].hellinger, 3) for row in found.rows]
    [0.153, 0.268]
    """
    concentration, d_in = as_prior(prior), as_distance(d_in)
    relative_loss(epsilon=epsilon, delta=delta, rho=rho)
    records = _records(size, guess_size)
    shares = _proportions(concentration, records, proportions)
    considered = list(
        _default_mechanisms(size, concentration.size) if mechanisms is None else mechanisms
    )
    if not considered:
        raise ValueError(
            "mechanisms: must name at least one mechanism; leave it out for all of this package."
        )
    budget = {
        name: float(value)
        for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho))
        if value is not None
    }
    rows = []
    for number, template in enumerate(considered):
        if progress is not None:
            progress(type(template).__name__, number, len(considered))
        rows.append(_row(template, size, concentration, budget, d_in, shares, records))
    return Plan(size, records, tuple(concentration.tolist()), d_in, budget, shares, _ranked(rows))


def choose(fit: Callable[[Mechanism], Mechanism], size: int | None, prior: Floats) -> Mechanism:
    """What `mechanism="auto"` stands for: the calibrated mechanism with the smallest score of
    `plan`, among those that have a chance of it.

    `fit` gives a mechanism its scale. That is one kind of noise on the counts, `usual`, unless its
    scale is more than half of the records in a category or there are few records; then others are
    compared with it. For two categories floored Laplace noise is a rival wherever its scale is
    smaller. A private number of records leaves only Laplace noise, discrete. Over the settings of
    `tests/test_planning.py` its score is within 5 % of the best mechanism's. Depends on public
    things only.
    """
    best = fit(usual(size, prior.size))
    if size is None:
        return best
    few = size <= _FEW_RECORDS or size <= 2 * best.scale * prior.size
    fitted = [best]
    for template in _rivals(size, prior, few):
        try:
            mechanism = fit(template)
            mechanism.check(size=size, prior=prior)
        except ValueError:  # refused, and so no rival
            continue
        if few or mechanism.scale < best.scale:
            fitted.append(mechanism)
    if len(fitted) == 1:
        return best
    shares = _proportions(prior, size, None)
    rows = [
        PlanRow(mechanism, None, _errors(mechanism, prior, shares, size)) for mechanism in fitted
    ]
    return _ranked(rows, INDIFFERENCE if few else _PREFERENCE)[0].mechanism


def _rivals(size: int, prior: Floats, few: bool) -> Iterator[Mechanism]:
    """What `choose` compares with the usual noise, which is at least as good as all others with 3
    categories or more unless records are few.
    """
    if few or prior.size == 2:
        yield LaplaceParameters(1.0, "floored")
    if few:
        yield LaplaceParameters(1.0, "floored", "bounded")
        if (
            not _QUICK_WORK < _work(size, prior) <= FEASIBLE_WORK
        ):  # otherwise the exact accounting takes too long; beyond, the proven bound is used
            yield HellingerExponential(1.0)
        if _affordable(PermuteAndFlip(1.0), size, prior) == "exact":
            yield PermuteAndFlip(1.0)


def usual(size: int | None, k: int) -> Mechanism:
    """At scale 1, K-norm noise where the number of records is public and k is at least 3, otherwise
    discrete Laplace noise.
    """
    if size is None:
        return LaplaceParameters(1.0, total="private")
    return KNormParameters(1.0) if k > 2 else LaplaceParameters(1.0)


def smallest_epsilon(
    error: float,
    *,
    size: int | None,
    prior: ArrayLike,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
) -> float:
    """The smallest ε, within 0.1 %, at which `mechanism="auto"` has a score of at most `error`;
    arguments of `plan`.

    Raises `ValueError` unless `0 < error < 1`, and where it takes more than ε = 1000.

    >>> from opendp_bayes import smallest_epsilon
    >>> round(smallest_epsilon(0.05, size=1000, prior=[1.0, 1.0]), 2)
    0.92
    """
    error = _as_error(error)
    concentration, records = as_prior(prior), _records(size, guess_size)
    shares = _proportions(concentration, records, proportions)

    def enough(log_epsilon: float) -> bool:
        return (
            _automatic_score(
                size, concentration, math.exp(log_epsilon), as_distance(d_in), shares, records
            )
            <= error
        )

    low, high = math.log(1e-9), math.log(1e3)
    if not enough(high):
        raise ValueError(
            f"error={error!r}: is not reached with {records} records at any ε up to 1000; ask for a"
            " larger error or take more records."
        )
    while high - low > _LOG_TOLERANCE:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.exp(high)


def smallest_size(
    error: float,
    *,
    epsilon: float,
    prior: ArrayLike,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    private: bool = False,
) -> int:
    """The smallest number of records from which on `mechanism="auto"` has a score of at most
    `error`; arguments of `plan`.

    `private` : whether the number is private (add/remove neighbours). With very few records the
    prior outweighs them and the score is small too; that is passed over. Beyond, the score
    decreases up to the rounding of counts, within which the result is smallest. Raises `ValueError`
    unless `0 < error < 1`, and where it takes more than 10^12 records.

    >>> from opendp_bayes import smallest_size
    >>> smallest_size(0.05, epsilon=1.0, prior=[1.0, 1.0])
    798
    """
    error, epsilon = _as_error(error), as_positive(epsilon, "epsilon")
    concentration, d_in = as_prior(prior), as_distance(d_in)

    def score(records: int) -> float:
        shares = _proportions(concentration, records, proportions)
        return _automatic_score(
            None if private else records, concentration, epsilon, d_in, shares, records
        )

    low, high, before = 0, 1, -math.inf
    while (now := score(high)) > error or now > before:
        if high >= LARGEST_CONCENTRATION:
            raise ValueError(
                f"error={error!r}: is not reached at epsilon={epsilon!r} with up to 10^12 records;"
                " ask for a larger error or epsilon."
            )
        low, high, before = (
            high if now > error else low,
            min(2 * high, int(LARGEST_CONCENTRATION)),
            now,
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if score(middle) <= error else (middle, high)
    return high


def _automatic_score(
    size: int | None,
    prior: Floats,
    epsilon: float,
    d_in: int,
    shares: Mapping[str, Any],
    records: int,
) -> float:
    loss = relative_loss(epsilon=epsilon)
    mechanism = choose(
        lambda template: smallest_scale(
            template, lambda value: loss(value, size, prior, d_in, "exact")
        ),
        size,
        prior,
    )
    return PlanRow(mechanism, None, _errors(mechanism, prior, shares, records)).score


def _as_error(error: float) -> float:
    error = as_positive(error, "error")
    if error >= 1:
        raise ValueError(f"error={error!r}: must be below 1, the largest Hellinger distance.")
    return error


def _records(size: int | None, guess_size: int | None) -> int:
    if (size is None) == (guess_size is None):
        raise ValueError(
            f"size={size!r}, guess_size={guess_size!r}: give the public number of records, or"
            " size=None and a guess of the private one."
        )
    return as_size(guess_size, "guess_size") if size is None else as_size(size)


def _default_mechanisms(size: int | None, k: int) -> Iterator[Mechanism]:
    """The simplest first. K-norm noise on two categories is discrete Laplace noise."""
    if size is not None:
        yield LaplaceParameters(1.0)
        if k > 2:
            yield KNormParameters(1.0)
        yield LaplaceParameters(1.0, total="bounded")
        yield LaplaceParameters(1.0, "floored")
        yield LaplaceParameters(1.0, "floored", "bounded")
    else:
        yield LaplaceParameters(1.0, total="private")
        yield LaplaceParameters(1.0, "floored", "private")
        yield KNormParameters(1.0)
    yield HellingerExponential(1.0)
    yield HellingerExponential(1.0, "local")
    yield SmoothHellingerExponential(1.0)
    yield PermuteAndFlip(1.0)


def _proportions(
    prior: Floats, records: int, stated: ArrayLike | None
) -> dict[str, tuple[float, ...]]:
    k = prior.size
    shares = {
        "balanced": np.full(k, 1 / k),
        "skewed": np.array([0.2, 0.8]) if k == 2 else np.exp2(np.arange(k)) / (2.0**k - 1),
        "edge": np.append(_EDGE, np.full(k - 1, (1 - _EDGE) / (k - 1))),
    }
    if stated is not None:
        counts_in_proportion(records, prior, stated)  # which refuses what is not proportions
        shares["stated"] = np.asarray(stated, dtype=np.float64) / np.sum(stated)
    return {name: tuple(share.tolist()) for name, share in shares.items()}


def _row(
    template: Mechanism,
    size: int | None,
    prior: Floats,
    budget: Mapping[str, Any],
    d_in: int,
    shares: Mapping[str, Any],
    records: int,
) -> PlanRow:
    template = replace(template, scale=1.0)
    try:
        replace(template, scale=SCALES[0]).check(size=size, prior=prior)
        accounting = _affordable(template, size, prior)
        mechanism = calibrate(
            template,
            size=size,
            prior=prior,
            d_in=d_in,
            accounting=accounting,
            proportions=shares.get("stated"),
            **budget,
        )
        mechanism.check(size=size, prior=prior)
    except ValueError as error:
        return PlanRow(template, None, {}, str(error))
    loss = feasible_loss(
        mechanism,
        size=size,
        prior=prior,
        d_in=d_in,
        delta=budget.get("delta", 0.0),
        accounting=accounting,
    )
    return PlanRow(mechanism, loss, _errors(mechanism, prior, shares, records))


def _errors(
    mechanism: Mechanism, prior: Floats, shares: Mapping[str, Any], records: int
) -> dict[str, ExpectedError]:
    counts = {name: counts_in_proportion(records, prior, share) for name, share in shares.items()}
    return {name: expected_error(mechanism, at, prior) for name, at in counts.items()}


def _affordable(mechanism: Mechanism, size: int | None, prior: Floats) -> Accounting:
    """`"exact"` where each step of a calibration takes little time."""
    if size is None or isinstance(mechanism, (LaplaceParameters, KNormParameters)):
        return "exact"
    if isinstance(mechanism, PermuteAndFlip) and log_number_of_candidates(
        size, prior.size
    ) > math.log(_EXACT_CANDIDATES_FLIP):
        return "proven"
    return "exact" if _work(size, prior) <= _EXACT_WORK[prior.size > 2] else "proven"


def _work(size: int, prior: Floats) -> int:
    """About how many probabilities of neighbours the exact accounting of an exponential mechanism
    compares.
    """
    if prior.size == 2:
        return two_categories.work(size, (float(prior[0]), float(prior[1])))
    return enumeration.work(size, tuple(prior.tolist()), 1)


def _ranked(rows: list[PlanRow], indifference: float = INDIFFERENCE) -> tuple[PlanRow, ...]:
    """By score, but first the simplest whose score is within `indifference` of the smallest."""
    smallest = min(row.score for row in rows)
    if math.isinf(smallest):
        raise ValueError(f"mechanisms: none can be used; the first of them, {rows[0].refused}")
    first = next(row for row in rows if row.score <= smallest * (1 + indifference))
    return (first, *sorted((row for row in rows if row is not first), key=lambda row: row.score))
