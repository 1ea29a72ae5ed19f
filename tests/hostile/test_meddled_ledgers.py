"""Whoever meddles with the file of a ledger, or the folder it is in, makes nobody spend more."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.account import LedgerError, Loss, accounts_of
from opendp_bayes.trusted.ledger import read_accounts
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


def test_who_waited_for_a_ledger_that_was_replaced_enters_in_the_new_one(tmp_path):
    path = tmp_path / "b.ledger"

    def enter() -> None:
        with ob.Ledger(path).entered(LOSS, UNIT):
            pass

    waiting = threading.Thread(target=enter)

    def release() -> None:
        with ob.Ledger(path).entered(LOSS, UNIT):
            waiting.start()
            time.sleep(0.1)  # it has opened the old one
            replaced(path)

    ledger = ob.Ledger(path, epsilon=1.0)
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
    """Nobody can know it: `docs/composing.md` says so."""
    first = ob.Ledger(tmp_path / "b.ledger", epsilon=1.0)
    (tmp_path / "c.ledger").write_bytes((tmp_path / "b.ledger").read_bytes())
    for ledger in (first, ob.Ledger(tmp_path / "c.ledger")):
        with ledger.entered(LOSS, UNIT):
            pass
        assert ledger.spent == LOSS
