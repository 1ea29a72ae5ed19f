"""Whoever meddles with the file of a ledger, or the folder it is in, makes nobody spend more."""

import math
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import ledger as module
from opendp_bayes.trusted.account import LedgerError, Loss

UNIT = "contributions: 1"
LOSS = Loss.of("epsilon", 0.75, 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a total and a release."""
    path = tmp_path / "b.ledger"
    with ob.Ledger(path, epsilon=3.0).entered(LOSS, UNIT):
        pass
    return path


def meddle(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


ENTRY_2, ENTRY_3 = (f"entry {number} does not go with" for number in (2, 3))
NOT_WRITTEN = "entry 2 has values that this package does not write"
#: Version 1 of the format, in which every later version reads what was spent.
VERSION_1 = (
    "create table entry (number integer primary key, dataset text not null, at text not null,"
    " state text not null, kind text not null, value text not null, delta text not null,"
    " unit text not null, note text not null)",
    "pragma application_id = 1869636706",
    "pragma user_version = 1",
    *(
        "insert into entry (dataset, at, state, kind, value, delta, unit, note) values"  # noqa: S608
        f" ('votes', '2026-01-02T03:04:05Z', {entry})"
        for entry in (
            "'total', 'epsilon', '3.0', '1e-06', 'contributions: 2', ''",
            "'spent', 'epsilon', '0.5', '0.0', 'contributions: 2', 'a first look'",
            "'failed', 'epsilon', '0.25', '1e-07', 'contributions: 2', ''",
            "'open', 'epsilon', '0.125', '0.0', 'contributions: 2', ''",
            "'refused', 'epsilon', '0.0625', '0.0', 'contributions: 2', ''",
            "'total', 'epsilon', '4.0', '1e-06', '', ''",
        )
    ),
)


def test_version_1_is_read(tmp_path: Path) -> None:
    meddle(tmp_path / "votes.ledger", *VERSION_1)
    ledger = ob.Ledger(tmp_path / "votes.ledger", dataset="votes")
    assert repr(ledger) == (
        "Ledger votes.ledger, votes: ε = 0.875, δ = 1e-07 of ε = 4, δ = 1e-06 is spent, ε = 3.125,"
        " δ = 9e-07 is left, for contributions: 2."
    )
    assert ledger.account.failures == 2
    with ledger.entered(Loss(epsilon=3.125), "contributions: 2"):
        pass
    assert ledger.remaining.epsilon == 0.0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update entry set value = '-0.75' where number = 2", NOT_WRITTEN),
        ("update entry set value = '-0.0' where number = 2", NOT_WRITTEN),
        ("update entry set value = 'inf' where number = 2", NOT_WRITTEN),
        ("update entry set value = 'nan' where number = 2", NOT_WRITTEN),
        ("update entry set value = '0.750' where number = 2", NOT_WRITTEN),
        ("update entry set value = 'x' where number = 2", "entry 2 could not convert"),
        ("update entry set value = x'30' where number = 2", NOT_WRITTEN),
        ("update entry set delta = '1.0' where number = 2", NOT_WRITTEN),
        ("update entry set kind = 'rho' where number = 2", ENTRY_2),
        ("update entry set kind = 'rho' where number = 1", ""),
        ("update entry set kind = 'zeta' where number = 2", "entry 2 "),
        ("update entry set state = 'free' where number = 2", NOT_WRITTEN),
        ("update entry set dataset = 'c' where number = 2", ENTRY_2),
        ("update entry set dataset = x'00' where number = 2", "entry 2 "),
        ("update entry set unit = '' where number = 3", ENTRY_3),
        ("update entry set unit = '', state = 'open' where number = 3", ENTRY_3),
        ("update entry set unit = '', state = 'failed' where number = 3", ENTRY_3),
        ("update entry set unit = 'changes: 1' where number = 3", ENTRY_3),
        ("update entry set unit = 'changes: 1', state = 'refused' where number = 3", ENTRY_3),
        ("update entry set unit = 'changes: 1', state = 'total' where number = 3", ENTRY_3),
        ("update entry set kind = 'rho', state = 'total' where number = 3", ENTRY_3),
        ("delete from entry where number = 1", ENTRY_2),
        ("alter table entry rename to entries", "no such table: entry"),
        ("pragma user_version = 2", r"is of version 2 .*versi"),
        ("pragma user_version = 0", r"is of version 0 .*versi"),
        ("pragma application_id = 0", "is no ledger; name a"),
    ],
)
def test_what_this_package_does_not_write_is_refused(path, statement, message):
    with ob.Ledger(path).entered(LOSS, UNIT):
        pass
    meddle(path, statement)
    if statement.startswith("update entry set kind = 'rho' where number = 1"):
        assert ob.Ledger(path).spent.rho == 2 * 0.75**2 / 2  # is sound: a ledger in ρ takes ε
        return
    for ask in (lambda: ob.Ledger(path), lambda: module.read_accounts(path)):
        with pytest.raises(LedgerError, match=rf"ledger .*b\.ledger: .*{message}"):
            ask()


@pytest.mark.parametrize(
    ("value", "delta"), [(math.inf, 0.0), (math.nan, 0.0), (-1.0, 0.0), (1.0, 1.5), (1.0, -1e-9)]
)
def test_a_loss_that_is_none_is_not_entered(path: Path, value: float, delta: float) -> None:
    ledger = ob.Ledger(path)
    with (
        pytest.raises(LedgerError, match="cannot be added in the ledger"),
        ledger.entered(Loss.of("epsilon", value, delta), UNIT),
    ):
        pass
    assert ledger.spent == LOSS


def test_a_ledger_that_is_not_there_is_made_only_where_its_folder_is(tmp_path: Path) -> None:
    for path, hint in ((tmp_path / "b.ledger", True), (tmp_path / "none" / "b.ledger", False)):
        with pytest.raises(LedgerError, match=r"b\.ledger: cannot be used \(") as error:
            ob.Ledger(path)
        assert ("epsilon=3.0" in str(error.value)) is hint


def test_a_damaged_file_is_refused_or_says_the_same(path: Path) -> None:
    """Whatever bytes are overwritten, no reader is told in other words than a ledger's."""
    whole, rng, refused = path.read_bytes(), random.Random(1), 0
    for _ in range(200):
        damaged = bytearray(whole)
        at = rng.randrange(len(damaged))
        damaged[at : at + 16] = rng.randbytes(16)
        path.write_bytes(damaged[: rng.choice([len(damaged), len(damaged), at])])
        try:
            list(module.read_accounts(path)["b"].lines())
        except (LedgerError, KeyError):
            refused += 1
    assert refused > 50


def test_a_file_whose_pages_are_overwritten_is_said_to_be_damaged(path: Path) -> None:
    """SQLite says so in an error of its own, and what to do is the same."""
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes(len(whole) - 100))
    with pytest.raises(LedgerError, match=r"is damaged \(.*malformed\).* Make a new one"):
        ob.Ledger(path)


def test_a_page_that_forgets_its_last_entry_is_said_to_be_damaged(path: Path) -> None:
    """By one byte less budget would have been spent, and SQLite reads on."""
    damaged = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as database:
        of_page, entries = (
            database.execute(query).fetchone()[0]
            for query in ("pragma page_size", "select count(*) from entry")
        )
    number = of_page + 3  # of the second page, where the rows are, two bytes after its kind
    assert damaged[number : number + 2] == bytes([0, entries])
    damaged[number + 1] -= 1
    path.write_bytes(damaged)
    with pytest.raises(LedgerError, match="is damaged"):
        ob.Ledger(path)


JSON = b'{"ledger":1,"at":"2026-01-01T00:00:00Z","dataset":"b","total":{"epsilon":3.0}}\n'


@pytest.mark.parametrize("text", [b"vote\nyes\n" * 100, b"x", JSON * 9])
def test_a_file_of_others_is_refused_and_stays(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text)
    asks = (
        lambda: ob.Ledger(path),
        lambda: ob.Ledger(path, epsilon=1.0),
        lambda: module.read_accounts(path),
    )
    for ask in asks:
        with pytest.raises(LedgerError, match="is no ledger; name a"):
            ask()
        assert path.read_bytes() == text
        assert os.listdir(tmp_path) == ["people.csv"]


def test_a_database_of_others_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    meddle(path, "create table person (name text)", "insert into person values ('Ada')")
    before = path.read_bytes()
    for total in ({}, {"epsilon": 1.0}):
        with pytest.raises(LedgerError, match="is no ledger"):
            ob.Ledger(path, **total)
        assert path.read_bytes() == before


def test_an_empty_file_becomes_a_ledger_by_a_total_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.ledger"
    path.touch()
    with pytest.raises(LedgerError, match="is no ledger"):
        ob.Ledger(path)
    assert ob.Ledger(path, epsilon=1.0).remaining.epsilon == 1.0


def test_nothing_lies_beside_a_ledger_while_a_release_is_made(tmp_path: Path) -> None:
    with ob.Ledger(tmp_path / "b.ledger", epsilon=1.0).entered(LOSS, UNIT):
        assert os.listdir(tmp_path) == ["b.ledger"]
    assert os.listdir(tmp_path) == ["b.ledger"]


def test_no_lock_is_held_while_a_release_is_made(path: Path) -> None:
    with ob.Ledger(path).entered(LOSS, UNIT), ob.Ledger(path).entered(LOSS, UNIT):
        assert ob.Ledger(path).spent.epsilon == 2.25
        with (
            pytest.raises(LedgerError, match=r"at most epsilon=0\.75"),
            ob.Ledger(path).entered(Loss(epsilon=0.8), UNIT),
        ):
            raise AssertionError


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_all_names_of_a_file_are_one_ledger(tmp_path: Path) -> None:
    path, other, link = (tmp_path / f"{name}.ledger" for name in "bcd")
    ledger = ob.Ledger(path, epsilon=1.0)
    os.link(path, other)
    link.symlink_to(other)
    with ob.Ledger(other).entered(LOSS, UNIT):
        for name in (path, other, link):
            with (
                pytest.raises(LedgerError, match="would exceed"),
                ob.Ledger(name).entered(LOSS, UNIT),
            ):
                raise AssertionError
    assert ledger.spent == module.read_accounts(link)["b"].spent == LOSS


@pytest.mark.parametrize("name", ["a b.ledger", "a?mode=memory.ledger", "a%20#.ledger", "ä.ledger"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    ob.Ledger(tmp_path / name, epsilon=1.0, dataset="a")
    assert os.listdir(tmp_path) == [name]
    assert ob.Ledger(tmp_path / name).remaining.epsilon == 1.0


def test_a_copy_is_another_ledger(tmp_path: Path) -> None:
    """Nobody can know it: `docs/budgets.md` says so."""
    first = ob.Ledger(tmp_path / "b.ledger", epsilon=1.0)
    (tmp_path / "c.ledger").write_bytes((tmp_path / "b.ledger").read_bytes())
    for ledger in (first, ob.Ledger(tmp_path / "c.ledger")):
        with ledger.entered(LOSS, UNIT):
            pass
        assert ledger.spent == LOSS


# --- what the system is asked for
@pytest.mark.skipif(sys.platform == "win32", reason="has other rights")
def test_who_may_read_a_ledger_is_what_the_user_has_set(tmp_path: Path) -> None:
    """Others who release from the same data share it."""
    before = os.umask(0o007)
    try:
        ob.Ledger(tmp_path / "b.ledger", epsilon=1.0)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b.ledger").stat().st_mode) == 0o660


def test_a_ledger_that_is_not_there_is_made_by_a_total_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.ledger"
    for ask in (lambda: ob.Ledger(path), lambda: module.read_accounts(path)):
        with pytest.raises(LedgerError, match="giving it a total"):
            ask()
        assert not path.exists()


def test_every_entry_is_on_the_disk_before_it_goes_on(path, monkeypatch):
    """SQLite is asked to wait for the disk, and for the folder in which its journal was."""
    asked: list[str] = []
    transaction = module._transaction

    @contextmanager
    def watched(*arguments: object, **options: bool) -> Iterator[sqlite3.Connection]:
        with transaction(*arguments, **options) as database:
            asked.append(database.execute("pragma synchronous").fetchone()[0])
            asked.append(database.execute("pragma journal_mode").fetchone()[0])
            yield database

    monkeypatch.setattr(module, "_transaction", watched)
    with ob.Ledger(path).entered(LOSS, UNIT):
        assert asked[-2:] == [3, "delete"]
    assert asked == [3, "delete"] * 3


@contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Another process holds the lock for so long."""
    program = (
        "import sqlite3, sys, time; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('begin exclusive'); print('now', flush=True); time.sleep(float(sys.argv[2]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path, str(seconds)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"now\n"
        yield
        child.kill()


def test_a_ledger_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(path, 1.0), ob.Ledger(path).entered(LOSS, UNIT):
        pass
    assert ob.Ledger(path).spent.epsilon == 1.5
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    with held(path, 60.0), pytest.raises(LedgerError, match="database is locked"):
        ob.Ledger(path)
