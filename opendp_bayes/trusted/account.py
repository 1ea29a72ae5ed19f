"""Accounts of data sets: totals and losses as the lines of a ledger, added up exactly.

A ledger is a text of JSON lines. A line sets the total of a data set or says what was spent on it;
the last total counts. Order is that of the lines, whatever their times say.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import msgspec

from opendp_bayes.mathematics.rounding import round_down, round_up
from opendp_bayes.mathematics.telling import depth_told, told
from opendp_bayes.mathematics.validation import each_once

VERSION = 1
#: How every line begins, and so the part of one that a crash left.
_START = b'{"ledger":'
_ONCE = each_once("", "nobody knows which of the two holds, so keep the larger")
#: A line stays so short that it is written in one piece, and a table of them readable.
LONGEST = 200
Kind = Literal["epsilon", "rho"]
#: A privacy unit as `unit_in_words` writes it.
_UNIT = re.compile(r"(contributions|changes): (\d+)(?:, identifier: (.+))?")


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
        one = (self.epsilon is None) != (self.rho is None)
        positive = all(math.copysign(1, number) > 0 for number in (self.value, self.delta))
        return one and positive and 0 <= self.value < math.inf and 0 <= self.delta < 1

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


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of a ledger: either the `total` of a data set, or a loss that was `spent` on it, or
    that a release was `refused` after its data were read.

    Attributes
    ----------
    ledger : version of the format.
    at : time in UTC by the clock of the machine, for readers alone.
    dataset : name that the user gave the data.
    unit : the privacy unit that losses are for.
    note : purpose in the user's words.
    """

    ledger: int
    at: str
    dataset: str
    total: Loss | None = None
    spent: Loss | None = None
    refused: bool = False
    unit: str = ""
    note: str = ""


class _Version(msgspec.Struct):
    ledger: int


@dataclass(frozen=True)
class Account:
    """Sum of the losses of one data set, and its total.

    Attributes
    ----------
    total : as the last entry set it.
    unit : the privacy unit of all that is spent; None while neither a total nor a loss has one.
    entries : the lines of the data set, each with what was left after it; None in place of a torn
        one.
    """

    dataset: str
    total: Loss
    unit: str | None = None
    entries: tuple[tuple[Entry | None, Loss], ...] = ()
    _spent: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))

    def __str__(self) -> str:
        unit = "" if self.unit is None else f", for {unit_said(self.unit)}"
        left = f"{self.remaining} is left{unit}"
        return f"{self.dataset}: {self.spent} of {self.total} is spent, {left}."

    @property
    def spent(self) -> Loss:
        """The sum of the losses, rounded up."""
        value, delta = self._spent
        return Loss.of(self.total.kind, round_up(value), round_up(delta))

    @property
    def remaining(self) -> Loss:
        """The total less what was spent, rounded down, and at least 0."""
        left = (max(limit - spent, Fraction(0)) for limit, spent in self._limits())
        value, delta = (round_down(part) + 0.0 for part in left)  # no -0.0
        return Loss.of(self.total.kind, value, delta)

    @property
    def refusals(self) -> int:
        """The number of releases that were refused after data were read."""
        return sum(entry is not None and entry.refused for entry, _ in self.entries)

    def check_unit(self, unit: str) -> None:
        """Raise `LedgerError` where losses are for another privacy unit."""
        if self.unit not in (None, unit):
            raise LedgerError(
                f"the ledger's losses of {self.dataset!r} are for {unit_said(self.unit)}, and one"
                f" for {unit_said(unit)} cannot be added to them. Use that privacy unit, with an"
                " identifier of the same name in every file, or name another data set with a total"
                " of its own."
            )

    def check(self, loss: Loss, unit: str) -> None:
        """Raise `LedgerError` where this loss cannot be added to the account or exceeds what is
        left.
        """
        self.check_unit(unit)
        added = loss.within(self.total.kind) if loss.is_sound else None
        if added is None:
            raise LedgerError(
                f"a loss of {loss} cannot be added in the ledger, which keeps {self.dataset!r} in"
                f" {self.total.kind}. Give the Context a finite privacy loss in"
                f" {self.total.kind}, or keep the ledger in rho, which takes both."
            )
        if any(s + a > limit for (limit, s), a in zip(self._limits(), added, strict=True)):
            left = self.remaining
            advice = f"; ask for at most {left.exactly}"
            if not left.value:
                advice = ", and nothing is left: only a larger total allows more"
            elif loss.delta and not left.delta:
                advice += ", without a delta: none of that is left"
            raise LedgerError(
                f"this release, of {loss}, would exceed what the ledger has left for"
                f" {self.dataset!r} of its total of {self.total}. Nothing was released or spent"
                f"{advice}."
            )

    def with_entry(self, entry: Entry | None) -> "Account":
        """The account after one more entry. None is a torn line, of which nobody knows what it
        said: it counts as all that was left.
        """
        after = self
        if entry is None:
            value, delta = map(max, self._limits())
            after = replace(self, _spent=(value, delta))
        elif entry.total is not None:
            after = replace(self, total=entry.total, unit=entry.unit or self.unit)
        elif entry.spent is not None:
            added = entry.spent.within(self.total.kind) or (Fraction(0), Fraction(0))
            spent = self._spent[0] + added[0], self._spent[1] + added[1]
            after = replace(self, unit=entry.unit, _spent=spent)
        return replace(after, entries=(*self.entries, (entry, after.remaining)))

    def _limits(self) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
        """The total and what was spent, of ε or ρ and of δ."""
        value, delta = self._spent
        return (Fraction(self.total.value), value), (Fraction(self.total.delta), delta)


def accounts_of(text: bytes) -> dict[str, Account]:
    """Add up the lines of a ledger, by data set.

    A line that a crash cut off counts as all that was left of every data set before it, until a
    later line sets a higher total. Raises `LedgerError`, with the number of the line, for anything
    else that this package does not write, a name twice in one object among them.
    """
    accounts: dict[str, Account] = {}
    for number, entry in _entries(text):
        if entry is None:
            accounts = {name: one.with_entry(None) for name, one in accounts.items()}
            continue
        if entry.dataset not in accounts:
            if entry.total is None:
                raise LedgerError(f"line {number}: is about {entry.dataset!r}, which has no total.")
            accounts[entry.dataset] = Account(entry.dataset, entry.total)
        _check_kind(number, accounts[entry.dataset], entry)
        accounts[entry.dataset] = accounts[entry.dataset].with_entry(entry)
    return accounts


def line_of(entry: Entry) -> bytes:
    """The entry as a line, with its line feed."""
    return msgspec.json.encode(entry) + b"\n"


def unit_said(unit: str) -> str:
    """A privacy unit in plain words, or as the entries have it.

    >>> unit_said("contributions: 1")
    '1 record added or removed'
    >>> unit_said("changes: 2, identifier: person")
    'all records of 2 values of person changed'
    """
    found = _UNIT.fullmatch(unit)
    if found is None:
        return f"the privacy unit {unit}"
    kind, number, identifier = found.groups()
    many = "" if number == "1" else "s"
    of = f"{number} record{many}"
    if identifier is not None:
        of = f"all records of {number} value{many} of {identifier}"
    return f"{of} {'changed' if kind == 'changes' else 'added or removed'}"


def as_name(value: object, argument: str) -> str:
    """Check a name or a note: one line of text."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}={told(value)}: must be a str.")
    if not (0 < len(value) <= LONGEST and value.isprintable()):
        raise ValueError(
            f"{argument}={value[:LONGEST]!r}: must be one line of 1 to {LONGEST} characters."
        )
    return value


def _entries(text: bytes) -> Iterator[tuple[int, Entry | None]]:
    """The lines with their numbers, None for one that was cut off."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        whole = line.strip(b"\0 \r")
        if not whole and (not line or line.isspace()):
            continue
        try:
            with depth_told(f"line {number}", LedgerError):
                version = msgspec.json.decode(whole, type=_Version).ledger
        except (msgspec.DecodeError, UnicodeDecodeError):
            if not (whole.startswith(_START) or _START.startswith(whole)):
                raise LedgerError(
                    f"line {number}: is no line of a ledger; name a file that ob.Ledger or"
                    " `opendp-bayes ledger` made."
                ) from None
            yield number, None
            continue
        if version != VERSION:
            raise LedgerError(
                f"line {number}: is of version {version} of the format, and this package reads"
                f" version {VERSION}. Use the package version that wrote it, or a newer one."
            )
        yield number, _entry(number, whole)


def _entry(number: int, line: bytes) -> Entry:
    try:
        entry = msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LedgerError(f"line {number}: is no line of a ledger: {error}.") from None
    try:
        json.loads(line, object_pairs_hook=_ONCE, parse_int=str)
    except ValueError as error:
        raise LedgerError(f"line {number}: {error}") from None
    losses = [loss for loss in (entry.total, entry.spent) if loss is not None]
    if len(losses) != int(not entry.refused) or not all(loss.is_sound for loss in losses):
        raise LedgerError(
            f"line {number}: must have either total or spent, with either epsilon or rho, finite"
            " and at least 0, not -0.0, and a delta below 1 if any, or else refused."
        )
    return entry


def _check_kind(number: int, account: Account, entry: Entry) -> None:
    loss = entry.total or entry.spent
    if entry.total is not None and entry.total.kind != account.total.kind:
        problem = f"sets a total in {entry.total.kind}"
    elif loss is not None and loss.within(account.total.kind) is None:
        problem = f"spends in {loss.kind}"
    elif (entry.spent is not None or entry.unit) and account.unit not in (None, entry.unit):
        problem = f"goes by the unit {entry.unit}, after {account.unit},"
    else:
        return
    raise LedgerError(
        f"line {number}: {problem} on {account.dataset!r}, which is kept in {account.total.kind}."
    )
