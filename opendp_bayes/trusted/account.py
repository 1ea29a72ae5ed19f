"""Accounts of data sets: totals and losses as the entries of a ledger, added up exactly.

An entry sets the total of a data set, or says what a release of it costs and what became of that;
the last total counts. Order is that of the entries, whatever their times say.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import msgspec

from opendp_bayes.mathematics.rounding import round_down, round_up
from opendp_bayes.mathematics.validation import as_text

#: The longest name and note, so that a table of them is readable.
LONGEST = 200
Kind = Literal["epsilon", "rho"]
#: What an entry is: a total, or a release that has not ended, was made, failed after data may have
#: been read, or was refused before.
State = Literal["total", "open", "spent", "failed", "refused"]


class LedgerError(ValueError):
    """A release that a ledger refuses, or a ledger that cannot be used. The message does not depend
    on the data.
    """


class Loss(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A privacy loss or a total: ε or ρ, and the δ that goes with it."""

    epsilon: float | None = None
    rho: float | None = None
    delta: float = 0.0

    @classmethod
    def of(cls, kind: Kind, value: float, delta: float) -> "Loss":
        """The loss of this kind, ε or ρ."""
        return cls(**{kind: value}, **({"delta": delta} if delta else {}))

    @property
    def kind(self) -> Kind:
        return "rho" if self.epsilon is None else "epsilon"

    @property
    def value(self) -> float:
        """The number of ε or ρ, whichever it is."""
        value = self.rho if self.epsilon is None else self.epsilon
        return math.nan if value is None else value

    @property
    def is_sound(self) -> bool:
        """True if there is ε or ρ, not both, and neither they nor δ are negative, not even -0.0,
        or infinite.
        """
        one_kind = (self.epsilon is None) != (self.rho is None)
        positive = all(math.copysign(1, number) > 0 for number in (self.value, self.delta))
        return one_kind and positive and 0 <= self.value < math.inf and 0 <= self.delta < 1

    def within(self, kind: Kind) -> tuple[Fraction, Fraction] | None:
        """The loss in ε or in ρ, and its δ, exactly; None where a ρ has no ε to be added.

        A loss of (ε, δ) is one of (ε²/2, δ) in ρ. Source: Bun and Steinke, "Concentrated
        differential privacy", Proposition 1.4.
        """
        value, delta = Fraction(self.value), Fraction(self.delta)
        if kind == self.kind:
            return value, delta
        return (value**2 / 2, delta) if kind == "rho" else None

    @property
    def exactly(self) -> str:
        """The loss as arguments, with every digit."""
        delta = f", delta={self.delta!r}" if self.delta else ""
        return f"{self.kind}={self.value!r}{delta}"

    def __str__(self) -> str:
        delta = f", δ = {self.delta:.6g}" if self.delta else ""
        return f"{'ε' if self.kind == 'epsilon' else 'ρ'} = {self.value:.6g}{delta}"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a ledger.

    Attributes
    ----------
    at : str
        Time in UTC by the clock of the machine, for readers alone.
    state : State
        What it is.
    loss : Loss
        The total, or the loss of a release.
    unit : str
        The privacy unit that losses are for; of a total it may be empty.
    note : str
        Purpose in the user's words.
    """

    at: str
    state: State
    loss: Loss
    unit: str = ""
    note: str = ""

    @property
    def is_paid(self) -> bool:
        """True for what counts as spent: a release without an end may have been handed out."""
        return self.state in ("open", "spent", "failed")


@dataclass(frozen=True)
class Account:
    """The entries of one data set, of which the first is a total, and what they add up to."""

    dataset: str
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        unit = "" if self.unit is None else f", for {self.unit}"
        left = f"{self.remaining} is left{unit}"
        return f"{self.dataset}: {self.spent} of {self.total} is spent, {left}."

    @property
    def total(self) -> Loss:
        """The total that was set last."""
        return next(entry.loss for entry in reversed(self.entries) if entry.state == "total")

    @property
    def unit(self) -> str | None:
        """The privacy unit of all losses; None while neither a total nor a loss has one."""
        return next((entry.unit for entry in self.entries if entry.unit), None)

    @property
    def spent(self) -> Loss:
        """The sum of the losses, rounded up."""
        value, delta = self._sums[-1]
        return Loss.of(self.total.kind, round_up(value), round_up(delta))

    @property
    def remaining(self) -> Loss:
        """The total less what was spent, rounded down, and at least 0."""
        return _left(self.total, self._sums[-1])

    @property
    def failures(self) -> int:
        """The number of releases that failed after data may have been read, or have no end."""
        return sum(entry.state in ("open", "failed") for entry in self.entries)

    def lines(self) -> Iterator[tuple[Entry, Loss]]:
        """Every entry with what was left after it."""
        total = self.entries[0].loss
        for entry, sums in zip(self.entries, self._sums, strict=True):
            total = entry.loss if entry.state == "total" else total
            yield entry, _left(total, sums)

    def check(self, loss: Loss, unit: str) -> None:
        """Raise `LedgerError` where this loss cannot be added to the account, as one for another
        privacy unit cannot, or exceeds what is left.
        """
        if self.unit not in (None, unit):
            raise LedgerError(
                f"the ledger's losses of {self.dataset!r} are for the privacy unit {self.unit}, and"
                f" one for {unit} cannot be added to them. Use that privacy unit, with an"
                " identifier of the same name in every file, or name another data set with a total"
                " of its own."
            )
        total, added = self.total, loss.within(self.total.kind) if loss.is_sound else None
        if added is None:
            raise LedgerError(
                f"a loss of {loss} cannot be added in the ledger, which keeps {self.dataset!r} in"
                f" {total.kind}. Give the Context a finite privacy loss in"
                f" {total.kind}, or keep the ledger in rho, which takes both."
            )
        limits = Fraction(total.value), Fraction(total.delta)
        if any(map(lambda a, b, limit: a + b > limit, self._sums[-1], added, limits)):
            rest = self.remaining
            remedy = (
                f"ask for at most {rest.exactly}" if rest.value else "only a higher total helps"
            )
            raise LedgerError(
                f"this release, of {loss}, would exceed what the ledger has left for"
                f" {self.dataset!r} of its total of {total}. Nothing was released or spent;"
                f" {remedy}."
            )

    @property
    def _sums(self) -> list[tuple[Fraction, Fraction]]:
        """Sums of what was spent after each entry."""
        value = delta = Fraction(0)
        sums = []
        for entry in self.entries:
            if entry.is_paid:
                added = entry.loss.within(self.total.kind) or (Fraction(0), Fraction(0))
                value, delta = value + added[0], delta + added[1]
            sums.append((value, delta))
        return sums


def _left(total: Loss, spent: tuple[Fraction, Fraction]) -> Loss:
    value, delta = Fraction(total.value) - spent[0], Fraction(total.delta) - spent[1]
    parts = (round_down(max(left, Fraction(0))) + 0.0 for left in (value, delta))  # no -0.0
    return Loss.of(total.kind, *parts)


def as_name(value: object, argument: str) -> str:
    """Check a name or a note: one line of text."""
    text = as_text(value, argument)
    if not (0 < len(text) <= LONGEST and text.isprintable()):
        raise ValueError(
            f"{argument}={text[:LONGEST]!r}: must be one line of 1 to {LONGEST} characters."
        )
    return text
