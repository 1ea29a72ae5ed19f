"""Ledgers: in Contexts, at once, killed, and where nothing can be written."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import ledger as module
from opendp_bayes.trusted.account import Loss
from opendp_bayes.trusted.cells import Cells
from tests.helpers.command_line import run
from tests.helpers.sources import ROOT
from tests.helpers.sweeps import slow

UNIT = dp.unit_of(contributions=1)
DATA = pl.DataFrame({"vote": [True] * 60 + [False] * 40, "person": [str(i) for i in range(100)]})
VOTE = {"column": "vote", "nulls": False}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "b.ledger"


def checked_apart(
    check: str, folder: Path, number: int, *control: str
) -> "subprocess.CompletedProcess[str]":
    """Run a check of `ledger_processes` in this folder."""
    folder.chmod(0o755)
    command = [sys.executable, "-m", "tests.helpers.ledger_processes", check, str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    output = {"check": False, "capture_output": True, "text": True}
    return subprocess.run([*command, str(number), *control], cwd=ROOT, env=environment, **output)


def opened(ledger, loss=dp.loss_of(epsilon=9.0), unit=UNIT, frame=DATA):  # noqa: B008 - a value
    return ob.context(frame, privacy_unit=unit, privacy_loss=loss, ledger=ledger)


def test_every_release_of_a_context_is_entered(path):
    ledger = ob.Ledger(path, dataset="census", epsilon=3.0, note="first look")
    context = opened(ledger)
    release = ob.posterior(context.query(epsilon=0.5), **VOTE).release()
    noisy = {**VOTE, "mechanism": ob.LaplaceParameters(scale=4.0, total="private")}
    questions = {"a": VOTE, "b": noisy}
    survey = ob.survey(context.query(epsilon=1.0), questions).release()
    with pytest.warns(FutureWarning, match="signed"):
        context.query(epsilon=0.25).select(dp.len()).release().collect()  # OpenDP's own
    entries = ledger.account.entries
    assert [entry.state for entry in entries] == ["total", "spent", "spent", "spent"]
    spent = [entry.loss.epsilon for entry in entries[1:]]
    assert spent == [release.epsilon, survey.loss.epsilon, 0.25]
    assert [entry.note for entry in entries] == ["", *["first look"] * 3]
    assert {entry.unit for entry in entries[1:]} == {"contributions: 1"}
    again = ob.Ledger(path)
    assert (again.dataset, again.spent, again.total.epsilon) == ("census", ledger.spent, 3.0)


def test_refuses_before_data_are_read_what_exceeds_the_total(path, tmp_path):
    data = tmp_path / "data.parquet"
    DATA.write_parquet(data)
    context = opened(ob.Ledger(path, epsilon=1.0), frame=pl.scan_parquet(data))
    ob.posterior(context.query(epsilon=0.75), **VOTE).release()
    before = path.read_bytes()
    data.unlink()
    query = ob.posterior(context.query(epsilon=0.5), **VOTE)
    with pytest.raises(ob.LedgerError, match=r"ε = 0\.5, .* at most epsilon=0\.25\."):
        query.release()
    assert path.read_bytes() == before
    assert context.current_privacy_loss() == 0.75  # nor debited


def test_a_release_is_entered_before_its_data_are_read(path, monkeypatch):
    """With its whole loss, and as one that has no end."""
    ledger, found = ob.Ledger(path, epsilon=1.0), []
    query = ob.posterior(opened(ledger).query(epsilon=0.5), **VOTE)
    count = Cells.counts

    def counts(self, groups):
        found.append([(entry.state, entry.loss.value) for entry in ledger.account.entries])
        return count(self, groups)

    monkeypatch.setattr(Cells, "counts", counts)
    query.release()
    assert found == [[("total", 1.0), ("open", 0.5)]]
    assert ledger.account.entries[-1].state == "spent"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_reading", [False, True])
@pytest.mark.parametrize("dry", [False, True])
def test_what_becomes_of_an_entry_and_what_it_cost(path, dry, is_reading, fails):
    """A loss that is lowered before data are read counts, whatever becomes of the release."""
    ledger = ob.Ledger(path, rho=3.0, delta=0.5)
    unit = "contributions: 1"
    with (
        suppress(ZeroDivisionError),
        ledger.entered(Loss(rho=1.0, delta=0.25), unit, dry=dry) as it,
    ):
        it.loss, it.is_reading = Loss(rho=0.75, delta=0.125), is_reading
        1 / (not fails)
    state = ("failed" if is_reading else "refused") if fails else "refused" if dry else "spent"
    entry = ledger.account.entries[-1]
    assert (entry.state, entry.loss) == (state, Loss(rho=0.75, delta=0.125))
    paid = state != "refused"
    assert ledger.spent == (entry.loss if paid else Loss(rho=0.0))


def test_nothing_is_handed_out_without_its_entry(path, monkeypatch):
    context = opened(ob.Ledger(path, epsilon=1.0))
    query = ob.posterior(context.query(epsilon=0.5), **VOTE)
    path.unlink()
    with pytest.raises(ob.LedgerError, match=r"cannot be used \(No such"):
        query.release()
    assert not path.exists()  # a ledger that is gone is not begun anew
    assert context.current_privacy_loss() == 0.0
    ledger, count = ob.Ledger(path, epsilon=1.0), Cells.counts

    def counts(self, groups):
        path.unlink()
        ob.Ledger(path, epsilon=1.0)
        return count(self, groups)

    monkeypatch.setattr(Cells, "counts", counts)
    with pytest.raises(ob.LedgerError, match="replaced since the release"):
        query.release()
    assert context.current_privacy_loss() == 0.5, "it was made"
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("is_open", [False, True])
def test_an_entry_of_the_same_number_may_be_another(path, tmp_path, is_open):
    """One of this data set that has ended, or one of another data set that has not."""
    ledger = ob.Ledger(path, dataset="a", epsilon=2.0)
    other = ob.Ledger(tmp_path / "other", dataset="b" if is_open else "a", epsilon=2.0)
    with other.entered(Loss(epsilon=0.25), "contributions: 1"):
        open_there = other.path.read_bytes()

    def release() -> None:
        with ledger.entered(LOSS, "contributions: 1"):
            path.write_bytes(open_there if is_open else other.path.read_bytes())

    with pytest.raises(ob.LedgerError, match="replaced since the release"):
        release()
    ((_, entry),) = (of.entries for of in module.read_accounts(path).values())
    assert (entry.state, entry.loss.epsilon) == ("open" if is_open else "spent", 0.25)


def test_what_was_entered_and_cannot_be_settled_is_not_handed_out(path, monkeypatch):
    ledger = ob.Ledger(path, epsilon=1.0)
    monkeypatch.setattr(module, "_PATIENCE", 0.1)

    def release() -> None:
        with ledger.entered(LOSS, "contributions: 1"):
            holder.execute("begin immediate")

    with (
        closing(sqlite3.connect(path, isolation_level=None)) as holder,
        pytest.raises(ob.LedgerError, match=r"cannot be used \(database is locked"),
    ):
        release()
    assert ledger.spent == LOSS
    assert ledger.account.entries[-1].state == "open"
    assert "no end" in run("ledger", path)


def test_a_loss_in_rho_has_no_place_in_a_ledger_in_epsilon(path):
    query = opened(ob.Ledger(path, epsilon=1.0), dp.loss_of(rho=0.5)).query(rho=0.1)
    with pytest.raises(ob.LedgerError, match="in rho, which takes both"):
        ob.posterior(query, **VOTE).release()


def test_different_units_are_told_apart(path):
    ledger = ob.Ledger(path, epsilon=9.0)
    person = dp.unit_of(contributions=1, identifier="person")
    query = opened(ledger, unit=person).query(epsilon=0.5).truncate_per_group(1)
    ob.posterior(query, **VOTE).release()
    assert ledger.account.unit == "contributions: 1, identifier: person"
    for unit, size in ((UNIT, None), (dp.unit_of(changes=2), 100)):
        query = opened(ledger, unit=unit).query(epsilon=0.5)
        with pytest.raises(ob.LedgerError, match="1, identifier: person, and one"):
            ob.posterior(query, **VOTE, size=size).release()


def test_units_with_bounds_are_told_by_their_numbers(path):
    bounds = [dp.polars.Bound(by=["person"], per_group=1), dp.polars.Bound(by=[], per_group=4)]
    ledger = ob.Ledger(path, epsilon=9.0)
    for given in (bounds, bounds[::-1]):
        unit = dp.unit_of(contributions=given)
        ob.posterior(opened(ledger, unit=unit).query(epsilon=0.5), **VOTE).release()
        told = "contributions: (by= per_group=4), (by=person per_group=1)"
        assert ledger.account.unit == told
    assert len(ledger.account.entries) == 3


def test_totals_are_set_and_changed(path):
    ledger = ob.Ledger(path, dataset="a", epsilon=1.0)
    assert ob.Ledger(path, dataset="a", epsilon=1).total == ledger.total
    with pytest.raises(ValueError, match=r"epsilon=2\.0: .*total of 'a' .* ε = 1"):
        ob.Ledger(path, dataset="a", epsilon=2)
    ledger.set_total(epsilon=2, delta=1e-6)
    assert ob.Ledger(path).remaining == Loss(epsilon=2.0, delta=1e-6)
    for given in ({}, {"rho": 1.0}):
        with pytest.raises(ValueError, match="epsilon=None: must be given, because"):
            ledger.set_total(**given)
    ob.Ledger(path, dataset="b", rho=1.0)
    with pytest.raises(ob.LedgerError, match="2 data sets, 'a', 'b'; say"):
        ob.Ledger(path)
    with pytest.raises(ob.LedgerError, match="no data set 'c', but"):
        ob.Ledger(path, dataset="c")
    assert len(ledger.account.entries) == 2


def test_a_new_data_set_is_called_after_its_file(path):
    assert ob.Ledger(path, rho=1.0).dataset == "b"
    assert ob.Ledger(path, rho=1.0).dataset == "b"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, r"epsilon=0: .*greater than 0"),
        ({"rho": float("inf")}, ValueError, "rho=inf: must be finite"),
        ({"epsilon": "3"}, TypeError, "epsilon='3': must be a number"),
        ({"epsilon": 1, "rho": 1}, ValueError, "epsilon, rho: both are given"),
        ({"delta": 0.1}, ValueError, r"delta=0\.1: goes with epsilon or rho"),
        ({"epsilon": 1, "delta": 1}, ValueError, r"delta=1: .*0 and below"),
        ({"epsilon": 1, "dataset": ""}, ValueError, "dataset='': must be one line"),
        ({"epsilon": 1, "note": "a\nb"}, ValueError, r"note='a\\nb': must be one line"),
        ({}, ob.LedgerError, r"cannot be used \(No .*a total"),
    ],
)
def test_refuses_arguments(path, arguments, error, message):
    with pytest.raises(error, match=message):
        ob.Ledger(path, **arguments)
    assert not path.exists()


def test_a_ledger_is_where_it_was_opened_and_nothing_else_is_one(tmp_path):
    with pytest.raises(ob.LedgerError, match=r"cannot be used \(No such"):
        ob.Ledger(tmp_path / "none" / "b.ledger", epsilon=1.0)
    assert not (tmp_path / "none").exists()
    with pytest.raises(ob.LedgerError, match=r"cannot be used \(unable to open"):
        ob.Ledger(tmp_path)
    with pytest.raises(TypeError, match=r"ledger='b.ledger': .*a Ledger"):
        opened("b.ledger")


def test_a_ledger_is_where_it_was_opened_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = ob.Ledger("b.ledger", epsilon=1.0)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ob.Ledger("b.ledger", epsilon=1.0)
    with ledger.entered(Loss(epsilon=0.75), "u"):
        pass
    assert module.read_accounts(tmp_path / "b.ledger")["b"].spent.value == 0.75
    assert module.read_accounts(tmp_path / "elsewhere/b.ledger")["b"].spent.value == 0.0


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone is not that of the process")
def test_times_of_entries_are_in_utc_wherever_it_runs(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        before = datetime.now(timezone.utc)
        (entry,) = ob.Ledger(path, epsilon=1.0).account.entries
    time.tzset()
    said = datetime.strptime(entry.at, "%Y-%m-%dT%H:%M:%S%z")
    assert abs(said - before) < timedelta(hours=1)


def test_a_clock_that_goes_back_changes_nothing(path, monkeypatch):
    ledger = ob.Ledger(path, epsilon=2.0)
    monkeypatch.setattr(module, "_now", lambda: "1970-01-01T00:00:00Z")
    ledger.set_total(epsilon=1.0)
    with ledger.entered(Loss(epsilon=0.75), "u"):
        pass
    assert ledger.remaining.epsilon == 0.25
    assert repr(ledger) == (
        "Ledger b.ledger, b: ε = 0.75 of ε = 1 is spent, ε = 0.25 is left, for u."
    )
    shown = run("ledger", path)
    first, second, third, _ = map(str.split, shown.splitlines()[2:])
    assert [first[3:], second[1:], third[1:]] == [
        ["total:", "ε", "=", "2", "ε", "=", "2"],
        ["1970-01-01", "00:00", "total:", "ε", "=", "1", "ε", "=", "1"],
        ["1970-01-01", "00:00", "release", "ε", "=", "0.75", "ε", "=", "0.25"],
    ]


def test_threads_spend_no_more_than_the_total(path):
    ledger = ob.Ledger(path, epsilon=1.0)
    made = []

    def work() -> None:
        query = ob.posterior(opened(ledger).query(epsilon=0.25), **VOTE)
        with suppress(ob.LedgerError):
            made.append(query.release())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), ledger.remaining.epsilon) == (4, 0.0)


@pytest.mark.parametrize(("loss", "releases"), [(0.25, 2), (0.75, 1)])
def test_an_entry_waits_for_another_that_has_looked_at_what_is_left(
    path, monkeypatch, loss, releases
):
    """Whoever has read the account and has not written yet is the first, and may leave nothing."""
    threads = []
    book, read = ob.Ledger(path, epsilon=1.0), module._accounts

    def enter() -> None:
        with (
            suppress(ob.LedgerError),
            book.entered(Loss.of("epsilon", loss, 0.0), "contributions: 1"),
        ):
            pass

    def looked(database):
        accounts = read(database)
        if not threads:
            threads.append(threading.Thread(target=enter))
            threads[0].start()
            threads[0].join(0.3)
        return accounts

    monkeypatch.setattr(module, "_accounts", looked)
    enter()
    threads[0].join()
    assert [entry.state for entry in book.account.entries] == ["total", *["spent"] * releases]


LOSS = Loss.of("epsilon", 0.75, 0.0)


def test_a_ledger_that_was_moved_meanwhile_takes_no_entry(path):
    def move_while_another_enters() -> None:
        with ob.Ledger(path).entered(LOSS, "contributions: 1"):
            path.rename(path.with_suffix(".old"))

    ob.Ledger(path, epsilon=1.0)
    with pytest.raises(ob.LedgerError, match=r"cannot be used \(No such"):
        move_while_another_enters()
    assert not path.exists()
    assert ob.Ledger(path.with_suffix(".old")).spent == LOSS


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.parametrize(
    ("check", "number", "control"),
    [
        *(("kills", 8, ()), ("at_once", 4, ()), ("full_disk", 512, ())),
        *slow([("kills", 1000, ()), ("at_once", 16, ())]),
        *slow([("full_disk", 0, ()), ("full_disk", 4096, ())]),
    ],
)
def test_survives(tmp_path, check, number, control):
    done = checked_apart(check, tmp_path, number, *control)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no such permissions")
def test_is_refused_where_it_cannot_be_written():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # which others may enter, unlike pytest's
        done = checked_apart("read_only", Path(folder), 0)
        Path(folder).chmod(0o755)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.parametrize(("check", "number"), [("kills", 20), ("at_once", 8)])
def test_the_checks_notice_a_broken_ledger(tmp_path, check, number):
    """Negative control. A kill finds the broken one between reading and its entry in about half of
    the cases, so that 20 miss it with a probability of about 1e-6. Without a transaction two of
    eight processes come between the check and the entry.
    """
    done = checked_apart(check, tmp_path, number, "broken")
    assert done.returncode == 1
    assert "begun for" in done.stderr or "was spent" in done.stderr
