"""Plan the discovery of categories that nobody listed: which counts each law shows, and with how
much noise, before any data are read.
"""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from opendp_bayes.accounting.calibration import planned_distance
from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table
from opendp_bayes.display.wording import at_most, change, described
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.unlisted.laws_for_budgets import fitted_discovery, loss_of_discovery
from opendp_bayes.unlisted.threshold_profile import MOST_KEYS
from opendp_bayes.unlisted.thresholds import LAWS, Discovery, GaussianThreshold

if TYPE_CHECKING:
    import polars as pl

#: The probabilities at which the least counts are shown.
_SHARES = {"shown_half": 0.5, "shown_95": 0.95, "shown_99": 0.99}


@dataclass(frozen=True)
class DiscoveryRow:
    """One law of a plan.

    Attributes
    ----------
    name : str
        Of the law.
    discovery : Discovery or None
        The law with its threshold, and the noise of the rest; None where it is refused.
    loss : PrivacyLoss or None
        Its privacy loss at the distance of the plan; None where it is refused.
    refused : str or None
        Why it cannot be used; None if it can.
    """

    name: str
    discovery: Discovery | None
    loss: PrivacyLoss | None
    refused: str | None = None

    def least_shown(self, share: float) -> int:
        """The least count that is shown with at least the probability `share`.

        Raises
        ------
        ValueError
            Where the law is refused, and unless `0 < share < 1`.
        """
        if self.discovery is None:
            raise ValueError(f"{self.name}: cannot be used: {self.refused}")
        return self.discovery.law.least_shown(share)


@dataclass(frozen=True, repr=False)
class DiscoveryPlan(Shown):
    """Results of `plan_discovery`; plain data.

    Attributes
    ----------
    budget : dict[str, float]
        The loss asked for: `epsilon` or `rho`, and `delta`.
    d_in, rest : int or Distance, float
        What was planned for.
    rows : tuple[DiscoveryRow, ...]
        One for each law, that under which the smallest count is shown in half of all releases
        first, and those that are refused last.
    """

    budget: dict[str, float]
    d_in: int | Distance
    rest: float
    rows: tuple[DiscoveryRow, ...]

    @property
    def recommended(self) -> Discovery:
        """The law of the first row, which `mechanism="auto"` takes."""
        discovery = self.rows[0].discovery
        assert discovery is not None  # noqa: S101  # as plan_discovery checks
        return discovery

    def to_frame(self) -> "pl.DataFrame":
        """A polars frame with a row for each law: `law`, its `threshold`, and the least counts that
        are shown with a probability of at least .5, .95 and .99. Then come the standard deviations
        of the noise of a count and of the rest, `epsilon`, `delta`, `rho`, and why the law is
        `refused`.
        """
        import polars as pl

        numbers = dict.fromkeys(("noise_std", "rest_std", "epsilon", "delta", "rho"), pl.Float64)
        counts = dict.fromkeys(("threshold", *_SHARES), pl.Int64)
        types = {"law": pl.String, **counts, **numbers, "refused": pl.String}
        return pl.DataFrame(list(map(_record, self.rows)), schema=types)

    def sheet(self) -> Sheet:
        """Sheet of the plan: which counts each law shows, its noise and loss."""
        used = [_record(row) for row in self.rows if row.discovery is not None]
        value, sign = ("rho", "ρ") if "rho" in self.budget else ("epsilon", "ε")
        headings = (
            "Law, best first",
            "Shown\nin half",
            "in 95\nof 100",
            "in 99\nof 100",
            "Std of\nnoise",
            *(["Std of\nrest"] if self.rest else []),
            sign,
            "δ",
        )
        rows = [
            (
                record["law"].removesuffix("_threshold"),
                *(str(record[heading]) for heading in _SHARES),
                *(
                    f"{record[heading]:.3g}"
                    for heading in ("noise_std", "rest_std")
                    if record[heading]
                ),
                at_most(record[value]),
                at_most(record["delta"]),
            )
            for record in used
        ]
        best = self.rows[0]
        notes = (
            f"Neighbours differ by {change(Distance.of(self.d_in), None)}. Categories that nobody"
            " listed are to be discovered.",
            "A category with at least so many is shown with that probability, whatever it is.",
            *(f"{row.name} cannot be used. {row.refused}" for row in self.rows if row.refused),
            f"Recommended: {described(self.recommended.law)} shows categories from"
            f" {best.least_shown(0.5)} on in half of all releases.",
        )
        budget = f"{sign} = {self.budget[value]:.6g}, δ = {self.budget['delta']:.6g}"
        return Sheet((Table(headings, rows),), notes, f"Plan for {budget}")


def plan_discovery(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float,
    d_in: int | Distance = 1,
    rest: float = 0.0,
) -> DiscoveryPlan:
    """Compare the laws by which categories that nobody listed are discovered: the counts that each
    shows, and its noise, before any data are read.

    Parameters
    ----------
    epsilon, rho : float, optional
        The privacy loss, positive, one of the two; `rho` is of zero-concentrated privacy.
    delta : float
        The δ that goes with it, between 0 and 1.
    d_in : int or Distance, default 1
        The records that one privacy unit has, two for each that it changes, at least 1; or a
        `Distance` of the counts. Where people are counted, each in at most m categories, that is
        `Distance.limited(m, largest=1)`.
    rest : float, default 0.0
        The share of ε or ρ that buys the number of all records that are not shown; 0 for none.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and where no law fits.

    Examples
    --------
    >>> from opendp_bayes import plan_discovery
    >>> found = plan_discovery(epsilon=1.0, delta=1e-8)
    >>> [(row.name, row.least_shown(0.5), row.least_shown(0.95)) for row in found.rows[:2]]
    [('optimal_threshold', 19, 21), ('laplace_threshold', 20, 22)]
    """
    distance = planned_distance(d_in)
    budget_asked: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta}
    best = fitted_discovery("auto", **budget_asked, d_in=distance, rest=rest)
    rows = []
    for law_name in LAWS:
        try:
            if distance.records > MOST_KEYS and law_name != GaussianThreshold.name:
                raise ValueError(
                    f"beyond {MOST_KEYS} records or categories of a unit, others show far less."
                )
            discovery = (
                best
                if best.law.name == law_name
                else fitted_discovery(law_name, **budget_asked, d_in=distance, rest=rest)
            )
        except ValueError as error:
            reason = str(error).removeprefix(f"name={law_name!r}: ")
            rows.append(DiscoveryRow(law_name, None, None, reason))
            continue
        of_rho = rho is not None
        loss = loss_of_discovery(
            discovery, distance, concentrated=of_rho, delta=0.0 if of_rho else delta
        )
        rows.append(DiscoveryRow(law_name, discovery, loss))
    rows.sort(key=lambda row: math.inf if row.refused else row.least_shown(0.5))
    budget = {measure: float(value) for measure, value in budget_asked.items() if value is not None}
    return DiscoveryPlan(budget, distance.stated, float(rest), tuple(rows))


def _record(row: DiscoveryRow) -> dict[str, Any]:
    """A row of the frame."""
    if row.discovery is None or row.loss is None:
        return {"law": row.name, "refused": row.refused}
    law, noise = row.discovery.law, row.discovery.rest
    losses = asdict(row.loss)
    return {
        "law": row.name,
        "threshold": law.threshold,
        **{heading: law.least_shown(share) for heading, share in _SHARES.items()},
        "noise_std": law.std,
        "rest_std": None if noise is None else typical_std(noise),
        **{heading: losses[heading] for heading in ("epsilon", "delta", "rho")},
        "refused": None,
    }
