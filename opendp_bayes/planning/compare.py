"""Results of a plan: the mechanisms compared, with their losses and expected errors."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table
from opendp_bayes.display.wording import at_most, change, described
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.planning.expected_error import INDIFFERENCE, ExpectedError, mean_error, preferred

if TYPE_CHECKING:
    import polars as pl

#: The headings of a mechanism and its loss.
_LOSSES = "Mechanism, best first", "Scale", "ε", "ρ"
#: What is expected of a mechanism, and how that was found.
_FIGURES = ("hellinger", "interval_width", "standard_error", "method")
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


@dataclass(frozen=True)
class PlanRow:
    """One mechanism of a plan.

    Attributes
    ----------
    mechanism : Mechanism
        Calibrated, or at scale 1 where it is `refused`.
    loss : PrivacyLoss or None
        Its privacy loss at the distance of the plan, with the method by which it was obtained; None
        where it is refused.
    errors : Mapping[str, ExpectedError]
        What is expected of it for each of the plan's `proportions`, by name.
    refused : str or None
        Why it cannot be used; None if it can.
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
        return mean_error(
            {proportion: error.hellinger for proportion, error in self.errors.items()}
        )


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """Results of `plan`; plain data.

    Attributes
    ----------
    size : int or None
        The public number of records; None where it is private.
    records : int
        The number that the errors are for: `size`, or the guess of it.
    prior, d_in : tuple[float, ...], int or Distance
        What was planned for.
    budget : Mapping[str, float]
        The loss asked for: `epsilon`, `delta` and `rho`, those given.
    proportions : Mapping[str, tuple[float, ...]]
        Proportions of the categories, by name: `"balanced"`, `"skewed"`, `"edge"`, and `"stated"`
        where some were given.
    rows : tuple[PlanRow, ...]
        One for each mechanism, best first, and those that are refused last.
    """

    size: int | None
    records: int
    prior: tuple[float, ...]
    d_in: int | Distance
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
        """Explain why that mechanism is recommended."""
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
        nearest = min(others, key=lambda row: row.score, default=best)
        if nearest is best or nearest.refused is not None:
            return f"{text}, and no other mechanism can be used."
        return (
            f"{text}; the next best, {described(nearest.mechanism)}, has {nearest.score:.3g}."
            f" Within {100 * INDIFFERENCE:.0f} % of each other the simpler one is recommended."
        )

    def to_frame(self) -> "pl.DataFrame":
        """A polars frame with a row for each mechanism and proportions, or one for a mechanism that
        is refused: its parameters, scale and loss, and all expected errors.
        """
        import polars as pl

        records: list[dict[str, Any]] = []
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
            for proportions, error in errors.items():
                figures = {figure: error and getattr(error, figure) for figure in _FIGURES}
                records.append({**common, "proportions": proportions, **figures})
        return pl.DataFrame(records, infer_schema_length=None)

    def sheet(self) -> Sheet:
        """Sheet of the plan: losses, expected errors and the width of an interval of the mechanisms
        that can be used, those that cannot, and the recommendation.
        """
        budget = ", ".join(
            f"{_SYMBOLS[measure]} = {value:.6g}" for measure, value in self.budget.items()
        )
        refused = dict.fromkeys(
            (type(row.mechanism).__name__, row.refused) for row in self.rows if row.refused
        )
        records = (
            f"{self.records} records, a public number"
            if self.size is not None
            else f"A private number of records, guessed to be {self.records}"
        )
        prior = ", ".join(f"{alpha:.6g}" for alpha in self.prior)
        neighbours = change(Distance.of(self.d_in), self.size)
        notes = (
            f"{records}, prior ({prior}). Neighbours differ by {neighbours}.",
            "ρ is that of zero-concentrated privacy (zCDP). Errors are expected Hellinger"
            " distances, from 0 to 1, and widths those of 95 % intervals; * marks what is"
            " simulated.",
            *(f"{mechanism} cannot be used. {reason}" for mechanism, reason in refused),
            f"Recommended: {self.reason}",
        )
        return Sheet((_table(self),), notes, f"Plan for {budget}")


def _table(plan: Plan) -> Table:
    """Losses, Hellinger errors, and the width of an interval at the first proportions."""
    proportions = list(plan.proportions)
    rows = [
        (
            _kind_of(row.mechanism),
            f"{row.mechanism.scale:.4g}",
            at_most(row.loss.epsilon),
            at_most(row.loss.rho),
            *_errors(row, "hellinger"),
            _errors(row, "interval_width")[0],
        )
        for row in plan.rows
        if row.loss is not None
    ]
    errors = (f"Error,\n{proportion}" for proportion in proportions)
    return Table((*_LOSSES, *errors, f"Width,\n{proportions[0]}"), rows)


def _kind_of(mechanism: Mechanism) -> str:
    """The kind of a mechanism and its parameters other than the scale, in few words."""
    texts = [
        value if isinstance(value, str) else f"{parameter}={value:.4g}"
        for parameter, value in asdict(mechanism).items()
        if parameter != "scale" and value is not None
    ]
    return type(mechanism).__name__ + (f" ({', '.join(texts)})" if texts else "")


def _errors(row: PlanRow, figure: str) -> tuple[str, ...]:
    """One kind of error for each of the proportions; a star says that it is simulated."""
    return tuple(
        f"{getattr(error, figure):.4f}{'*' if error.method == 'simulated' else ''}"
        for error in row.errors.values()
    )


def ranked(rows: list[PlanRow]) -> tuple[PlanRow, ...]:
    """Rank the rows by score, but first the simplest whose score is within `INDIFFERENCE` of the
    smallest.
    """
    scores = [row.score for row in rows]
    if math.isinf(min(scores)):
        raise ValueError(f"mechanisms: none can be used; the first of them, {rows[0].refused}")
    first = rows[preferred(scores)]
    return (first, *sorted((row for row in rows if row is not first), key=lambda row: row.score))
