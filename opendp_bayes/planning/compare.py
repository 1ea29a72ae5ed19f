"""Results of a plan: the mechanisms compared, with their losses and expected errors."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import Table
from opendp_bayes.display.wording import at_most, change, described
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.planning.expected_error import INDIFFERENCE, ExpectedError, mean_error, preferred

if TYPE_CHECKING:
    import polars as pl

#: The headings of a mechanism and its loss.
_LOSSES = "Mechanism, best first", "Scale", "ε", "ρ (zCDP)"
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


@dataclass(frozen=True)
class Plan:
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
    def usable(self) -> tuple[PlanRow, ...]:
        """The rows of the mechanisms that can be used, best first."""
        return tuple(row for row in self.rows if row.refused is None)

    @property
    def recommended(self) -> Mechanism:
        """The calibrated mechanism with the smallest score, or within `INDIFFERENCE` of it and
        simpler.
        """
        return self.rows[0].mechanism

    @property
    def reason(self) -> str:
        """Explain in a sentence why that mechanism is recommended."""
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
                    **{figure: error and getattr(error, figure) for figure in names},
                }

    def to_frame(self) -> "pl.DataFrame":
        """`records_by_row` as a polars frame."""
        import polars as pl

        return pl.DataFrame(list(self.records_by_row()), infer_schema_length=None)

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

    def sheet(self, *, brief: bool = False) -> Sheet:
        """Sheet of the plan: losses and expected errors of the mechanisms that can be used, those
        that cannot, and the recommendation. `brief` : in one table, Hellinger errors and the width
        of an interval.
        """
        tables = (_brief_table(self),) if brief else _full_tables(self)
        errors = [error for row in self.usable for error in row.errors.values()]
        notes = [self._setting]
        if brief:
            notes.append(
                "Errors are expected Hellinger distances, from 0 to 1, and widths those of 95 %"
                " intervals; * marks what is simulated."
            )
        elif any(error.method == "simulated" for error in errors):
            notes.append("* simulated; the others are sums over all outcomes.")
        budget = ", ".join(
            f"{_SYMBOLS[measure]} = {value:.6g}" for measure, value in self.budget.items()
        )
        refused = dict.fromkeys(
            (type(row.mechanism).__name__, row.refused) for row in self.rows if row.refused
        )
        notes += (f"{mechanism} cannot be used. {reason}" for mechanism, reason in refused)
        return Sheet(tables, (*notes, f"Recommended: {self.reason}"), f"Plan for {budget}")

    @property
    def _setting(self) -> str:
        records = (
            f"{self.records} records, a public number"
            if self.size is not None
            else f"A private number of records, guessed to be {self.records}"
        )
        prior = ", ".join(f"{alpha:.6g}" for alpha in self.prior)
        neighbours = change(Distance.of(self.d_in), self.size)
        return f"{records}, prior ({prior}). Neighbours differ by {neighbours}."

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        return self.sheet(brief=True)._repr_html_()

    def __str__(self) -> str:
        return str(self.sheet(brief=True))

    def __repr__(self) -> str:
        budget = ", ".join(f"{measure}={value:.6g}" for measure, value in self.budget.items())
        size = f"size={self.size}" if self.size is not None else f"guess_size={self.records}"
        prior = shortly(self.prior, len(self.prior))
        return (
            f"Plan({size}, prior=[{prior}], {budget}, recommended={self.recommended!r},"
            f" rows={len(self.rows)})"
        )


def _brief_table(plan: Plan) -> Table:
    """Losses and Hellinger errors."""
    errors = [f"Error,\n{proportion}" for proportion in plan.proportions]
    first = next(iter(plan.proportions))
    rows = [
        (*_loss(row), *_errors(row, "hellinger"), _errors(row, "interval_width")[0])
        for row in plan.usable
    ]
    return Table((*_LOSSES, *errors, f"Width,\n{first}"), rows)


def _full_tables(plan: Plan) -> tuple[Table, ...]:
    """Losses, and a table for every kind of error."""
    rows: list[tuple[str, ...]] = [
        (*_loss(row), row.loss.method if row.loss else "") for row in plan.usable
    ]
    tables = [Table((*_LOSSES, "Accounting"), rows)]
    for title, figure in (
        ("Expected Hellinger error", "hellinger"),
        ("Expected total variation, of predictions of the next record", "total_variation"),
        ("Expected width of a 95 % interval, noise included", "interval_width"),
    ):
        headings = title, *(shares.capitalize() for shares in plan.proportions)
        rows = [(_kind_of(row), *_errors(row, figure)) for row in plan.usable]
        tables.append(Table(headings, rows))
    return tuple(tables)


def _loss(row: PlanRow) -> tuple[str, ...]:
    """The mechanism, its scale, ε and ρ."""
    bounds = () if row.loss is None else (at_most(row.loss.epsilon), at_most(row.loss.rho))
    return _kind_of(row), f"{row.mechanism.scale:.4g}", *bounds


def _kind_of(row: PlanRow) -> str:
    """The kind of a mechanism and its parameters other than the scale, in few words."""
    parameters = asdict(row.mechanism).items()
    set_ones = [pair for pair in parameters if pair[0] != "scale" and pair[1] is not None]
    texts = (x if isinstance(x, str) else f"{parameter}={x:.4g}" for parameter, x in set_ones)
    return type(row.mechanism).__name__ + (f"({', '.join(texts)})" if set_ones else "")


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
