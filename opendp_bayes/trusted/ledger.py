"""`Ledger`: what was spent on which data set, in a file that is kept across runs: a database of
SQLite, which locks it, and completes an entry or leaves none of it.

A release is entered with its whole loss, on the disk, before data are read, and settled afterwards.
So whatever a crash leaves behind counts at least what was handed out, and nothing is locked
meanwhile.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

from opendp_bayes.mathematics.validation import as_delta, as_positive
from opendp_bayes.trusted.account import Account, Entry, Kind, LedgerError, Loss, State, as_name
from opendp_bayes.trusted.boundary import Unchanging

#: In the head of every ledger's file, where SQLite has a place for them.
_APPLICATION, _VERSION = 0x6F706462, 1
#: Numbers are texts with every digit. The order is that of their numbers.
_TABLE = """create table entry (number integer primary key, dataset text not null, at text not null,
 state text not null, kind text not null, value text not null, delta text not null,
 unit text not null, note text not null)"""
#: The least bytes of a database that has anything in it, and what SQLite says of other files.
_SMALLEST, _NO_DATABASE = 512, "file is not a database"
#: Seconds that a process waits for others, none of which needs more than milliseconds.
_PATIENCE = 60.0


class Intent:
    """A release that is entered and has not ended.

    Parameters
    ----------
    loss : Loss
        What it costs; whoever makes it may lower it.

    Attributes
    ----------
    is_reading
        Whether data may have been read, so that a failure from now on uses budget.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.is_reading = False


class Ledger(Unchanging):
    """A file of what was spent on a data set, kept across runs, that no release may take over its
    total; `ob.context(frame, ..., ledger=ledger)` enters every release of the Context.

    Losses add up as in OpenDP's Contexts: ε to ε, ρ to ρ, and δ to δ, but exactly, so that nothing
    is lost to rounding. A ledger in ρ takes ε too, as ε²/2. All losses of a data set are for one
    privacy unit, that of the first.

    A release is entered before its data are read. It counts as spent where it is made, where it
    fails afterwards, and where its process ends before it says what became of it. Whatever name
    leads to the file, it is one ledger; a copy of it is another, with the same rest.

    Raises `LedgerError`, a `ValueError`, for a file that cannot be used, and `ValueError` or
    `TypeError` for arguments that do not fit it.

    Parameters
    ----------
    path : str or os.PathLike[str]
        The file, a database of SQLite. It is made if a total is given and it is not there.
    dataset : str, optional
        Your name of the data. Give the same name to the same people's records, whichever file or
        frame holds them. By default the only one in the file, or for a new file its name without
        the extension.
    epsilon, rho : float, optional
        The total in ε or in ρ, of which one sets up a new data set. Without either it must be in
        the file; with one that is not the total there, it is refused (`set_total`).
    delta : float, optional
        The total of δ; 0 unless given.
    note : str, default ""
        Purpose, which the entries of releases repeat.

    Examples
    --------
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
    ) -> None:
        mine = vars(self)
        mine.update(path=Path(path).resolve(), note=as_name(note, "note") if note else "")
        name = None if dataset is None else as_name(dataset, "dataset")
        total = _as_total(epsilon, rho, delta)
        with _transaction(self.path, write=total is not None, new=total is not None) as database:
            accounts = _accounts(database)
            name = name or self._only(accounts) or as_name(self.path.stem, "dataset")
            mine["dataset"] = name
            if total is not None and name not in accounts:
                self._enter(database, Entry(_now(), "total", total))
                return
            account = self._account(accounts)
            if total not in (None, account.total):
                raise ValueError(
                    f"{total.kind}={total.value}: the total of {self.dataset!r} in {self.path} is"
                    f" {account.total}. Leave it out, or change the total by `set_total`."
                )

    @property
    def account(self) -> Account:
        """Account of the data set, read anew from the file."""
        return self._account(read_accounts(self.path))

    @property
    def total(self) -> Loss:
        """The total that was set last: `epsilon` or `rho`, and `delta`."""
        return self.account.total

    @property
    def spent(self) -> Loss:
        """Sum of what was spent, rounded up; of releases that have no end, too."""
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
        epsilon, rho : float, optional
            The new total, in that of the two in which the ledger is kept. It may be less than what
            was spent: then nothing is left.
        delta : float, optional
            The new total of δ; 0 unless given.

        Raises
        ------
        ValueError
            For a total that is missing or in the other of the two.
        """
        total = _as_total(epsilon, rho, delta)
        with _transaction(self.path) as database:
            account = self._account(_accounts(database))
            if total is None or total.kind != account.total.kind:
                raise ValueError(
                    f"{account.total.kind}=None: must be given, because {self.path} keeps"
                    f" {self.dataset!r} in it."
                )
            self._enter(database, Entry(_now(), "total", total))

    @contextmanager
    def entered(self, loss: Loss, unit: str, *, dry: bool = False) -> Iterator[Intent]:
        """Enter a loss, let the block make a release of it, and enter what became of that. A `dry`
        block is to make none, so that what it has entered is spent where it fails alone.

        Raises
        ------
        LedgerError
            Before the block where the loss would exceed the total, and after it where the entry is
            gone or cannot be written: then the release is not to be handed out.
        """
        with _transaction(self.path) as database:
            self._account(_accounts(database)).check(loss, unit)
            number = self._enter(database, Entry(_now(), "open", loss, unit, self.note))
        intent, state = Intent(loss), "failed"
        try:
            yield intent
            state = "refused" if dry else "spent"
        finally:
            if not intent.is_reading and state == "failed":
                state = "refused"
            with _transaction(self.path) as database:
                settled = database.execute(
                    "update entry set state = ?, kind = ?, value = ?, delta = ?"
                    " where number = ? and dataset = ? and state = 'open'",
                    [state, *_texts(intent.loss), number, self.dataset],
                ).rowcount
            if not settled:
                raise LedgerError(
                    f"ledger {self.path}: was replaced since the release was entered, so it is not"
                    " handed out. Let nothing but this package write there, and ask again."
                )

    def __repr__(self) -> str:
        return f"Ledger {self.path.name}, {self.account}"

    def _enter(self, database: sqlite3.Connection, entry: Entry) -> int | None:
        return database.execute(
            "insert into entry (dataset, at, state, kind, value, delta, unit, note)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            [self.dataset, entry.at, entry.state, *_texts(entry.loss), entry.unit, entry.note],
        ).lastrowid

    def _account(self, accounts: dict[str, Account]) -> Account:
        if self.dataset in accounts:
            return accounts[self.dataset]
        raise LedgerError(
            f"ledger {self.path}: has no data set {self.dataset!r}, but {_listed(accounts)}. Check"
            " the name, or set up the data set by giving its total."
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

    Raises
    ------
    LedgerError
        For a file that is no ledger.
    """
    with _transaction(path, write=False) as database:
        return _accounts(database)


# --- the database


@contextmanager
def _transaction(
    path: Path, *, write: bool = True, new: bool = False
) -> Iterator[sqlite3.Connection]:
    """A block that reads a ledger and, with `write`, writes all that it enters or nothing.

    The journal's folder is synchronised too (`extra`): a journal that a power failure brought back
    would undo an entry. Raises `LedgerError` for what is no ledger, and where the system fails.
    """
    with _errors(path):
        if new:
            path.touch()  # with the rights that the user has set
        if 0 < path.stat().st_size < _SMALLEST:  # which SQLite takes for an empty one
            raise sqlite3.DatabaseError(_NO_DATABASE)
        where = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(where, uri=True, timeout=_PATIENCE, isolation_level=None)
        ) as database:
            database.execute("pragma synchronous = extra")
            database.execute("begin immediate" if write else "begin")
            if new and _one(database, "select count(*) from sqlite_master") == 0:
                database.execute(_TABLE)
                database.execute(f"pragma application_id = {_APPLICATION}")
                database.execute(f"pragma user_version = {_VERSION}")
            _check(database)
            yield database
            database.execute("commit")


def _check(database: sqlite3.Connection) -> None:
    """Raise for a database that is no ledger, has another version or is damaged."""
    for pragma, wanted, problem in (
        ("application_id", _APPLICATION, _NO_LEDGER),
        ("user_version", _VERSION, _OTHER_VERSION),
        ("quick_check(1)", "ok", _DAMAGED),
    ):
        if (value := _one(database, f"pragma {pragma}")) != wanted:
            raise _UnusableFileError(problem.format(value))


_NO_LEDGER = "is no ledger; name a file that ob.Ledger or `opendp-bayes ledger` made."
_START_ANEW = (
    "Make a new one under another name, with a total that is surely left of the one before."
)
_DAMAGED = f"is damaged ({{}}); nobody knows what was spent. {_START_ANEW}"
_OTHER_VERSION = (
    f"is of version {{}} of the format, and this package reads version {_VERSION}. Use the package"
    " version that wrote it, or a newer one."
)


class _UnusableFileError(Exception):
    """A fault of a file, without its name."""


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Raise `LedgerError` with the name of a file for what is wrong with it, or goes wrong."""
    try:
        yield
        return
    except _UnusableFileError as error:
        problem = str(error)
    except (OSError, sqlite3.OperationalError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"cannot be used ({reason}), so nothing is released."
        if isinstance(error, FileNotFoundError) and path.parent.exists():
            problem += " A ledger is made by giving it a total, as in epsilon=3.0."
    except sqlite3.Error as error:
        problem = _NO_LEDGER if str(error) == _NO_DATABASE else _DAMAGED.format(error)
    raise LedgerError(f"ledger {path}: {problem}")


def _accounts(database: sqlite3.Connection) -> dict[str, Account]:
    """The accounts of all data sets, in the order in which they were set up.

    Raises, with the number of the entry, for what this package does not write.
    """
    entries: dict[str, list[Entry]] = {}
    for number, dataset, *row in database.execute(
        "select number, dataset, at, state, kind, value, delta, unit, note from entry"
        " order by number"
    ):
        entries_of_account = entries.setdefault(dataset, [])
        try:
            entry = _entry(row)
            _check_entry(entries_of_account, entry)
        except (TypeError, ValueError) as error:
            raise _UnusableFileError(f"is damaged: entry {number} {error}. {_START_ANEW}") from None
        entries_of_account.append(entry)
    return {
        dataset: Account(dataset, tuple(entries_of_account))
        for dataset, entries_of_account in entries.items()
    }


def _entry(row: list[Any]) -> Entry:
    at, state, kind, value, delta, unit, note = row
    loss = Loss.of(kind, float(value), float(delta))
    is_written = loss.is_sound and [kind, value, delta] == _texts(loss)
    if not (is_written and state in get_args(State) and all(type(text) is str for text in row)):
        raise ValueError("has values that this package does not write")
    return Entry(at, state, loss, unit, note)


def _check_entry(earlier_entries: list[Entry], entry: Entry) -> None:
    """Raise `ValueError` for an entry that does not go with those before it."""
    kind = (earlier_entries or [entry])[0].loss.kind
    unit = next((earlier.unit for earlier in earlier_entries if earlier.unit), entry.unit)
    is_total = entry.state == "total"
    in_kind = entry.loss.kind == kind if is_total else entry.loss.within(kind) is not None
    fits = in_kind and (is_total or bool(earlier_entries))
    if not fits or (entry.unit != unit and (entry.is_paid or entry.unit)):
        raise ValueError(
            "does not go with those before it, which are a total, and losses in its measure for one"
            " privacy unit"
        )


def _texts(loss: Loss) -> list[str]:
    return [loss.kind, repr(loss.value), repr(loss.delta)]


def _one(database: sqlite3.Connection, query: str) -> Any:
    return database.execute(query).fetchone()[0]


# --- arguments


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
    return Loss.of(kind, value, 0.0 if delta is None else as_delta(delta) + 0.0)  # no -0.0


def _listed(accounts: dict[str, Account]) -> str:
    return ", ".join(map(repr, accounts)) or "none"


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
