"""Processes that use one ledger, killed or short of disk: a program of its own, because it forks.

`python -m tests.helpers.ledger_processes CHECK FOLDER NUMBER [broken]` exits with 0 if the check
holds, and with 1, and a sentence, if it does not.
"""

import os
import random
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from opendp_bayes.trusted import ledger as module
from opendp_bayes.trusted.account import LedgerError, Loss
from opendp_bayes.trusted.ledger import Ledger, read_accounts

STEP, UNIT = Loss(epsilon=0.125), "contributions: 1"
#: Of a user who may not write.
NOBODY = 65534


def release_until_refused(path: Path, handed_out: Path, *, broken: bool) -> None:
    """Hand out releases until the ledger has no room; a broken one reads before the entry."""
    book = Ledger(path)
    number = os.open(handed_out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def release() -> None:
        while True:
            if broken:
                os.write(number, b"x")
                time.sleep(random.uniform(0, 0.002))
            with book.entered(STEP, UNIT) as intent:
                intent.is_reading = True
                if not broken:
                    os.write(number, b"x")  # what reading may tell
                    time.sleep(random.uniform(0, 0.002))

    assert "would exceed" in refusal(release)


def refusal(work: Callable[[], object]) -> str:
    """The message of a refusal; fails where there is none."""
    try:
        work()
    except LedgerError as error:
        return str(error)
    raise AssertionError("was not refused")


def forked(work: Callable[[], None]) -> int:
    """Start a process that does the work; exits with 1 where that fails."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def checked(path: Path, handed_out: Path) -> tuple[float, int]:
    """What was spent and how many releases it pays; fails where more were begun."""
    account = read_accounts(path)["data"]
    number = handed_out.stat().st_size
    spent = read_accounts(path)["data"].spent.value
    assert Fraction(spent) >= number * Fraction(STEP.value), f"{number} begun for {spent}"
    assert spent <= account.total.value, f"{spent} of {account.total} was spent"
    return spent, number


def kills(folder: Path, number: int, *, broken: bool) -> None:
    """Kill one of four processes, again and again: what had begun to read is paid for."""
    path, handed_out = folder / "b.ledger", folder / "handed out"
    handed_out.touch()
    Ledger(path, dataset="data", epsilon=1e6)
    start: Any = lambda: forked(  # noqa: E731 - called again for each that was killed
        lambda: release_until_refused(path, handed_out, broken=broken)
    )
    children = [start() for _ in range(4)]
    try:
        for _ in range(number):
            wanted = handed_out.stat().st_size + random.randint(0, 2)
            while handed_out.stat().st_size < wanted:
                assert os.waitpid(children[0], os.WNOHANG) == (0, 0), "ended before it was killed"
                time.sleep(0.0005)
            time.sleep(random.uniform(0, 0.02))
            child = children.pop(0)
            os.kill(child, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            if broken:  # the others stand still while it is counted
                stopped(children, lambda: checked(path, handed_out))
            else:
                checked(path, handed_out)
            children.append(start())
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    spent, handed = checked(path, handed_out)
    assert handed >= number / 2, "hardly anything was handed out, so this tests nothing"
    killed = number + len(children)
    assert spent <= (handed + killed) * STEP.value, "a kill spent more than the one release"
    assert read_accounts(path)["data"].failures <= killed, "more have no end than were killed"


def stopped(children: list[int], work: Callable[[], object]) -> None:
    """Do some work while processes stand still, none of them within a transaction for long."""
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    children.clear()
    work()


def at_once(folder: Path, number: int, *, broken: bool) -> None:
    """Let processes spend the same total. Broken ones look before they lock."""
    if broken:
        module._transaction = unlocked
    path, handed_out = folder / "b.ledger", folder / "handed out"
    handed_out.touch()
    total = 64 * STEP.value
    Ledger(path, dataset="data", epsilon=total)
    children = [
        forked(lambda: release_until_refused(path, handed_out, broken=False)) for _ in range(number)
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert checked(path, handed_out) == (total, 64)
    assert codes == [0] * number, codes


@contextmanager
def unlocked(path: Path, **_: bool) -> Iterator[sqlite3.Connection]:
    """Each statement is a transaction of its own."""
    database = sqlite3.connect(path, timeout=600.0, isolation_level=None)
    try:
        if not database.execute("select count(*) from sqlite_master").fetchone()[0]:
            database.execute(module._TABLE)
            database.execute(f"pragma application_id = {module._APPLICATION}")
            database.execute(f"pragma user_version = {module._VERSION}")
        yield database
    finally:
        database.close()


def full_disk(folder: Path, number: int, *, broken: bool) -> None:
    """Let the disk be full after so many bytes more: nothing is released, and the file stays."""
    path = folder / "b.ledger"
    book = Ledger(path, dataset="data", epsilon=8.0)
    before = path.read_bytes()

    def enter() -> None:
        with book.entered(STEP, UNIT):
            raise AssertionError("was released")

    def fail() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        assert "cannot be used (" in refusal(enter)

    assert os.waitstatus_to_exitcode(os.waitpid(forked(fail), 0)[1]) == 0
    assert book.spent.epsilon == 0.0
    assert path.read_bytes() == before
    with book.entered(STEP, UNIT):
        pass
    assert book.spent == STEP


def read_only(folder: Path, number: int, *, broken: bool) -> None:
    """Refuse a release where the ledger cannot be written, and read it all the same."""
    path = folder / "b.ledger"
    with Ledger(path, dataset="data", epsilon=8.0).entered(STEP, UNIT):
        pass
    for of_file, of_folder in ((0o444, 0o555), (0o666, 0o555)):
        path.chmod(of_file)
        folder.chmod(of_folder)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        assert read_accounts(path)["data"].spent == STEP
        message = refusal(lambda: Ledger(path).entered(STEP, UNIT).__enter__())
        assert "cannot be used (" in message, message
        if os.getuid() == 0:
            os.seteuid(0)


if __name__ == "__main__":
    check, where, how_many, *control = sys.argv[1:]
    every = (kills, at_once, full_disk, read_only)
    checks = {each.__name__: each for each in every}
    try:
        checks[check](Path(where), int(how_many), broken=bool(control))
    except AssertionError as failure:
        sys.exit(f"{check}: {failure}")
