"""Whoever meddles with the file of a ledger, or the folder it is in, makes nobody spend more."""

import json
import os
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import ledger_file
from opendp_bayes.trusted.account import LedgerError, Loss, accounts_of
from opendp_bayes.trusted.ledger import read_accounts
from opendp_bayes.trusted.ledger_file import locked
from tests.helpers.checked_apart import checked_apart

TOTAL = b'{"ledger":1,"at":"2026-01-01T00:00:00Z","dataset":"b","total":{"epsilon":3.0}}'
START = b'{"ledger":1,"at":"2026-01-01T00:00:00Z","dataset":"b",'
UNIT = "contributions: 1"
LOSS = Loss.of("epsilon", 0.75, 0.0)


def spent(*lines: bytes) -> float:
    return accounts_of(b"\n".join((TOTAL, *lines)) + b"\n")["b"].spent.value


@pytest.mark.parametrize(
    "rest",
    [
        b'"spent":{"epsilon":2.5},"spent":{"epsilon":0.001},"unit":"u"}',
        b'"spent":{"epsilon":2.5},"sp\\u0065nt":{"epsilon":0.001},"unit":"u"}',
        b'"spent":{"epsilon":2.5,"epsilon":0.001},"unit":"u"}',
        b'"spent":{"epsilon":2.5,"delta":0.5,"delta":0.0},"unit":"u"}',
        b'"spent":{"epsilon":2.5},"unit":"u","unit":"v"}',
        b'"spent":{"epsilon":2.5},"unit":"u","dataset":"c"}',
        b'"total":{"epsilon":3.0},"total":{"epsilon":300.0}}',
        b'"refused":true,"refused":true}',
        b'"spent":{"epsilon":2.5},"unit":"u","ledger":1}',
    ],
)
def test_a_name_twice_in_one_object_is_refused(rest):
    """Of the two, readers take the one or the other: a loss of 2.5 counted as one of 0.001."""
    with pytest.raises(LedgerError, match=r"line 2: '\w+' is there twice .* keep the larger"):
        spent(START + rest)


def test_what_is_there_once_is_read():
    """The negative control, with blanks and an order that this package does not write."""
    line = json.dumps({"unit": "u", "spent": {"epsilon": 2.5}, **json.loads(START[:-1] + b"}")})
    assert spent(line.encode()) == 2.5


@pytest.mark.parametrize("number", [b"-0.0", b"-0e5", b"-1e-400"])
@pytest.mark.parametrize("field", ["spent", "total", "delta"])
def test_a_negative_zero_is_refused(number, field):
    loss = {
        "spent": b'"spent":{"epsilon":%b},"unit":"u"}',
        "total": b'"total":{"epsilon":%b}}',
        "delta": b'"spent":{"epsilon":0.5,"delta":%b},"unit":"u"}',
    }[field]
    with pytest.raises(LedgerError, match=r"line 2: .* at least 0, not -0\.0"):
        spent(START + loss % number)
    assert spent(START + (loss % b"0.0")) <= 0.5


def test_a_line_of_many_brackets_is_refused():
    for end in (b"", b"]" * 100_000 + b"}"):
        with pytest.raises(LedgerError, match="line 2: has objects or lists too deep"):
            spent(b'{"ledger":1,"x":' + b"[" * 100_000 + end)


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_who_removes_locks_lets_four_processes_spend_no_more_than_the_total(tmp_path):
    done = checked_apart("sabotaged", tmp_path, 4)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_a_lock_beside_the_ledger_would(tmp_path):
    """Negative control."""
    done = checked_apart("sabotaged", tmp_path, 4, "broken")
    assert done.returncode == 1
    assert "handed out for" in done.stderr or "was spent" in done.stderr


def test_nothing_lies_beside_a_ledger(tmp_path):
    with ob.Ledger(tmp_path / "b.ledger", epsilon=1.0).entered(LOSS, UNIT):
        assert os.listdir(tmp_path) == ["b.ledger"]
    assert os.listdir(tmp_path) == ["b.ledger"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_all_names_of_a_file_are_one_ledger(tmp_path):
    """Of two hard links each used to have a lock, and both could spend the same rest."""
    path, other, link = (tmp_path / f"{name}.ledger" for name in "bcd")
    ledger = ob.Ledger(path, epsilon=1.0)
    os.link(path, other)
    link.symlink_to(other)
    refused = []

    def enter(name: Path) -> None:
        try:
            with ob.Ledger(name).entered(LOSS, UNIT):
                pass
        except LedgerError as error:
            refused.append(str(error))

    with ob.Ledger(other).entered(LOSS, UNIT):
        waiting = [threading.Thread(target=enter, args=(name,)) for name in (path, other, link)]
        for thread in waiting:
            thread.start()
    for thread in waiting:
        thread.join()
    assert len(refused) == 3
    assert all("would exceed" in message for message in refused)
    assert ledger.spent == read_accounts(link)["b"].spent == LOSS


def replaced(path: Path) -> None:
    """Put a copy in the place of a file, as editors do."""
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def test_what_a_ledger_that_was_replaced_meanwhile_cannot_enter_is_not_handed_out(tmp_path):
    path = tmp_path / "b.ledger"
    handed_out = []

    def release() -> None:
        with ob.Ledger(path).entered(LOSS, UNIT):
            replaced(path)
        handed_out.append(LOSS)

    ledger = ob.Ledger(path, epsilon=1.0)
    with pytest.raises(LedgerError, match=r"was replaced .* not handed out.* nothing is entered"):
        release()
    assert (handed_out, ledger.spent.value) == ([], 0.0)


def test_who_waited_for_a_ledger_that_was_replaced_enters_in_the_new_one(tmp_path, monkeypatch):
    path, take = tmp_path / "b.ledger", ledger_file._take
    ledger, old_one_is_open = ob.Ledger(path, epsilon=1.0), threading.Event()

    def taking(number: int) -> None:
        if threading.current_thread() is waiting:
            old_one_is_open.set()
        take(number)

    def enter() -> None:
        with ledger.entered(LOSS, UNIT):
            pass

    waiting = threading.Thread(target=enter)
    monkeypatch.setattr(ledger_file, "_take", taking)

    def release() -> None:
        with ob.Ledger(path).entered(LOSS, UNIT):
            waiting.start()
            assert old_one_is_open.wait(600.0)
            replaced(path)

    with pytest.raises(LedgerError, match="was replaced"):
        release()
    waiting.join()
    assert ledger.spent == LOSS


def test_what_somebody_wrote_without_the_lock_stops_the_release(tmp_path):
    path = tmp_path / "b.ledger"

    def release() -> None:
        with ledger.entered(LOSS, UNIT), path.open("ab") as file:
            file.write(START + b'"spent":{"epsilon":0.5},"unit":"contributions: 1"}\n')

    ledger = ob.Ledger(path, epsilon=1.0)
    with pytest.raises(LedgerError, match="written to since"):
        release()
    assert ledger.spent.value == 0.5


def test_a_copy_is_another_ledger(tmp_path):
    """Nobody can know it: `docs/budgets.md` says so."""
    first = ob.Ledger(tmp_path / "b.ledger", epsilon=1.0)
    (tmp_path / "c.ledger").write_bytes((tmp_path / "b.ledger").read_bytes())
    for ledger in (first, ob.Ledger(tmp_path / "c.ledger")):
        with ledger.entered(LOSS, UNIT):
            pass
        assert ledger.spent == LOSS


# --- what the system is asked for


def test_an_entry_and_the_name_of_a_new_ledger_are_on_the_disk_before_it_goes_on(
    tmp_path, monkeypatch
):
    synced, fsync = [], os.fsync

    def seen(number: int) -> None:
        synced.append(os.fstat(number).st_ino)
        fsync(number)

    monkeypatch.setattr(os, "fsync", seen)
    path = tmp_path / "b.ledger"
    ledger = ob.Ledger(path, epsilon=1.0)
    assert set(synced) == {path.stat().st_ino, tmp_path.stat().st_ino}
    synced.clear()
    with ledger.entered(LOSS, UNIT):
        assert synced == []
    assert synced == [path.stat().st_ino]


def test_a_disk_that_takes_a_line_in_pieces_takes_all_or_none_of_it(tmp_path, monkeypatch):
    write, left = os.write, [1000]

    def pieces(number: int, line: bytes) -> int:
        if not left[0]:
            raise OSError(28, os.strerror(28))
        left[0] -= 1
        return write(number, line[:7])

    path = tmp_path / "b.ledger"
    monkeypatch.setattr(os, "write", pieces)
    ledger = ob.Ledger(path, epsilon=1.0)
    with ledger.entered(LOSS, UNIT):
        pass
    assert ledger.spent.epsilon == 0.75
    before, left[0] = path.read_bytes(), 3
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.set_total(epsilon=2.0)
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="has other rights")
def test_who_may_read_a_ledger_is_what_the_user_has_set(tmp_path):
    """Others who release from the same data share it."""
    before = os.umask(0o007)
    try:
        ob.Ledger(tmp_path / "b.ledger", epsilon=1.0)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b.ledger").stat().st_mode) == 0o660


def test_a_ledger_that_is_not_there_is_made_by_a_total_alone(tmp_path):
    path = tmp_path / "b.ledger"
    for ask in (lambda: ob.Ledger(path), lambda: read_accounts(path)):
        with pytest.raises(LedgerError, match="A ledger is made by giving it a total"):
            ask()
        assert not path.exists()


def test_a_ledger_is_read_between_two_entries(tmp_path):
    """Half of a line would count as all that is left."""
    path = tmp_path / "b.ledger"
    ob.Ledger(path, epsilon=1.0)
    found: list[float] = []
    reader = threading.Thread(
        target=lambda: found.append(read_accounts(path)["b"].remaining.value), daemon=True
    )
    with locked(path) as file:
        os.write(file.number, START[:30])
        reader.start()
        reader.join(0.3)
        assert found == []
        os.ftruncate(file.number, len(file.text))
    reader.join(60.0)
    assert found == [1.0]


def test_a_child_that_has_the_file_open_does_not_keep_its_lock(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "b.ledger"
    ob.Ledger(path, epsilon=1.0)
    with locked(path) as file:
        of_child = os.dup(file.number)  # as a process has it that is forked here
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(of_child)


def test_ctrl_c_ends_the_wait_for_a_ledger_that_somebody_holds(tmp_path):
    """And enters nothing. Where it did not, the lock would be given back after three seconds."""
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "b.ledger"
    ledger = ob.Ledger(path, epsilon=1.0)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        strike = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        give_back = threading.Timer(3.0, fcntl.flock, (other, fcntl.LOCK_UN))
        strike.start()
        give_back.start()
        with pytest.raises(KeyboardInterrupt), ledger.entered(LOSS, UNIT):
            pass
        give_back.cancel()
        give_back.join()
    assert ledger.spent.epsilon == 0.0
