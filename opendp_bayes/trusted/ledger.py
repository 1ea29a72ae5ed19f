"""`Ledger`: what was spent on which data set, in a file that is kept across runs.

An entry is on the disk before its release is handed out, so that whatever a crash leaves behind
counts at least what was handed out. The lock of the file lets one release happen at a time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opendp.mod import Metric

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_positive
from opendp_bayes.trusted.account import (
    VERSION,
    Account,
    Entry,
    Kind,
    LedgerError,
    Loss,
    accounts_of,
    as_name,
)
from opendp_bayes.trusted.boundary import Unchanging
from opendp_bayes.trusted.budget import unit_in_words
from opendp_bayes.trusted.interrupts import deferred_interrupts
from opendp_bayes.trusted.ledger_file import locked, text_of


class Ledger(Unchanging):
    """A file of what was spent on a data set, kept across runs, that no release may take over its
    total; `ob.context(frame, ..., ledger=ledger)` enters every release of the Context.

    Parameters
    ----------
    path : the file, one JSON object a line. It is made if a total is given and it is not there.
    dataset : your name of the data. Give the same name to the same people's records, whichever file
        or frame holds them. By default the only one in the file, or for a new file its name
        without the extension.
    epsilon, rho : the total in ε or in ρ, of which one sets up a new data set. Without either it
        must be in the file; with one that is not the total there, it is refused (`set_total`).
    delta : the total of δ; 0 unless given.
    note : purpose, which every entry repeats.
    unit : the privacy unit that all losses are for, `dp.unit_of(...)`; by default that of the
        first.

    Losses add up as in OpenDP's Contexts: ε to ε, ρ to ρ, and δ to δ, but exactly, so that nothing
    is lost to rounding. A ledger in ρ takes ε too, as ε²/2. All losses of a data set are for one
    privacy unit.

    A release holds the file locked from before its data are read until its entry is on the disk.
    Others wait; Ctrl-C ends the wait. Whatever name leads to the file, it is one ledger; a copy of
    it is another, with the same rest.

    Raises `LedgerError`, a `ValueError`, for a file that cannot be used, and `ValueError` or
    `TypeError` for arguments that do not fit it.

    >>> import tempfile
    >>> import opendp_bayes as ob
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = ob.Ledger(f"{folder.name}/budget.ledger", dataset="census", epsilon=3.0)
    >>> ledger.spent.epsilon, ledger.remaining.epsilon
    (0.0, 3.0)
    >>> folder.cleanup()
    """

    path: Path
    dataset: str
    note: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dataset: str | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float | None = None,
        note: str = "",
        unit: tuple[Metric, Any] | None = None,
    ) -> None:
        mine = vars(self)
        mine.update(path=Path(path).resolve(), note=as_name(note, "note") if note else "")
        given = None if dataset is None else as_name(dataset, "dataset")
        total, words = _as_total(epsilon, rho, delta), "" if unit is None else _as_words(unit)
        if total is None:
            accounts = self._accounts()
            mine["dataset"] = self._named(accounts, given)
            if words:
                self._account(accounts).check_unit(words)
            return
        with locked(self.path, new=True) as file:
            accounts = _accounts_of(self.path, file.text)
            found = given or self._only(accounts) or as_name(self.path.stem, "dataset")
            mine["dataset"] = found
            known = accounts.get(self.dataset)
            if known is None:
                file.append(Entry(VERSION, _now(), self.dataset, total=total, unit=words))
                return
            if words:
                known.check_unit(words)
            if known.total != total:
                raise ValueError(
                    f"{total.kind}={total.value}: the total of {self.dataset!r} in {self.path} is"
                    f" {known.total}. Leave it out, or change the total by `set_total`."
                )

    @property
    def account(self) -> Account:
        """Account of the data set, read anew from the file."""
        return self._account(self._accounts())

    @property
    def total(self) -> Loss:
        """The total that was set last: `epsilon` or `rho`, and `delta`."""
        return self.account.total

    @property
    def spent(self) -> Loss:
        """Sum of what was spent, rounded up."""
        return self.account.spent

    @property
    def remaining(self) -> Loss:
        """Rest of the total, rounded down, and at least 0."""
        return self.account.remaining

    def set_total(
        self, *, epsilon: float | None = None, rho: float | None = None, delta: float | None = None
    ) -> None:
        """Change the total of the data set, for every release from now on.

        Parameters
        ----------
        epsilon, rho : the new total, in that of the two in which the ledger is kept. It may be less
            than what was spent: then nothing is left.
        delta : the new total of δ; 0 unless given.

        Raises `ValueError` for a total that is missing or in the other of the two.
        """
        total = _as_total(epsilon, rho, delta)
        with locked(self.path) as file:
            account = self._account(_accounts_of(self.path, file.text))
            if total is None or total.kind != account.total.kind:
                raise ValueError(
                    f"{account.total.kind}=None: must be given, because {self.path} keeps"
                    f" {self.dataset!r} in it."
                )
            file.append(Entry(VERSION, _now(), self.dataset, total=total))

    def check(self, loss: Loss, unit: str) -> None:
        """Raise `LedgerError` where a release of this loss would be refused now."""
        self.account.check(loss, unit)

    @contextmanager
    def entered(self, loss: Loss, unit: str) -> Iterator[None]:
        """Enter a loss after the block, which makes a release of it, and before that is handed out.

        Raises `LedgerError` before the block where the loss would exceed the total, and after it
        where the entry cannot be written: then the release is not to be handed out. Nothing is
        entered where the block fails.
        """
        with deferred_interrupts(), locked(self.path) as file:
            self._account(_accounts_of(self.path, file.text)).check(loss, unit)
            yield
            file.append(Entry(VERSION, _now(), self.dataset, spent=loss, unit=unit, note=self.note))

    def enter_refusal(self) -> None:
        """Enter that a release was refused after its data were read, which spends nothing."""
        with deferred_interrupts(), locked(self.path) as file:
            self._account(_accounts_of(self.path, file.text))
            file.append(Entry(VERSION, _now(), self.dataset, refused=True, note=self.note))

    def __repr__(self) -> str:
        return f"Ledger {self.path.name}, {self.account}"

    def _accounts(self) -> dict[str, Account]:
        with locked(self.path) as file:
            return _accounts_of(self.path, file.text)

    def _account(self, accounts: dict[str, Account]) -> Account:
        self._named(accounts, self.dataset)
        return accounts[self.dataset]

    def _named(self, accounts: dict[str, Account], dataset: str | None) -> str:
        """The name of a data set in the file, the only one by default."""
        found = dataset or self._only(accounts)
        if found in accounts:
            return found
        raise LedgerError(
            f"ledger {self.path}: has no data set {found!r}, but {_listed(accounts)}. Check the"
            " name, or set up the data set by giving its total."
        )

    def _only(self, accounts: dict[str, Account]) -> str | None:
        if len(accounts) > 1:
            raise LedgerError(
                f"ledger {self.path}: keeps {len(accounts)} data sets, {_listed(accounts)}; say"
                " which: by --dataset, as `dataset` in Python, or under [ledger] of data.toml."
            )
        return next(iter(accounts), None)


def read_accounts(path: Path) -> dict[str, Account]:
    """The accounts of all data sets in a file, which need not be writable.

    Raises `LedgerError` for a file that is no ledger.
    """
    return _accounts_of(path, text_of(path))


def _accounts_of(path: Path, text: bytes) -> dict[str, Account]:
    try:
        return accounts_of(text)
    except LedgerError as error:
        raise LedgerError(f"ledger {path}: {error}") from None


def _as_total(epsilon: Any, rho: Any, delta: Any) -> Loss | None:
    """The total in these arguments, None where there is none."""
    if epsilon is None and rho is None:
        if delta is not None:
            raise ValueError(f"delta={delta!r}: goes with epsilon or rho; give one of them too.")
        return None
    if epsilon is not None and rho is not None:
        raise ValueError("epsilon, rho: both are given; give the total in one of them.")
    kind: Kind = "epsilon" if rho is None else "rho"
    value = as_positive(epsilon if rho is None else rho, kind)
    if delta is not None and not (type(delta) in (int, float) and 0 <= delta < 1):
        raise ValueError(f"delta={delta!r}: must be a number, at least 0 and below 1.")
    return Loss.of(kind, value, float(delta or 0))


def _as_words(unit: Any) -> str:
    """The privacy unit that OpenDP makes, as entries have it."""
    if not (isinstance(unit, tuple) and len(unit) == 2 and isinstance(unit[0], Metric)):
        raise TypeError(
            f"unit={told(unit)}: must be what OpenDP makes, as in dp.unit_of(contributions=1)."
        )
    return unit_in_words(*unit)


def _listed(accounts: dict[str, Account]) -> str:
    return ", ".join(map(repr, accounts)) or "none"


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
