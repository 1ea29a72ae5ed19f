"""Processes that use one ledger, killed or short of disk: a program of its own, because it forks.

`python -m tests.helpers.ledger_processes CHECK FOLDER NUMBER [broken]` exits with 0 if the check
holds, and with 1, and a sentence, if it does not.
"""

import fcntl
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from opendp_bayes.trusted import ledger_file as module
from opendp_bayes.trusted.account import LedgerError, Loss
from opendp_bayes.trusted.ledger import Ledger, read_accounts

STEP, UNIT = Loss(epsilon=0.125), "contributions: 1"
#: Of a disk that is full, and of a user who may not write.
SHORT, NOBODY = 40, 65534


def release_until_refused(path: Path, handed_out: Path, *, broken: bool) -> None:
    """Hand out releases, each a byte in a file, until the ledger has no room, and ask again where
    it says so. A broken one hands out before it enters.
    """
    book = Ledger(path)
    number = os.open(handed_out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def release() -> None:
        while True:
            with book.entered(STEP, UNIT):
                if broken:
                    os.write(number, b"x")
                time.sleep(random.uniform(0, 0.002))
            if not broken:
                os.write(number, b"x")

    while "ask again" in (message := refusal(release)):
        pass
    assert "would exceed" in message


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
    """What was spent, and how many releases it pays for; fails where more were handed out, or the
    total is exceeded.
    """
    account = read_accounts(path)["data"]
    spent, number = account.spent.value, handed_out.stat().st_size
    assert Fraction(spent) >= number * Fraction(STEP.value), f"{number} handed out for {spent}"
    assert spent <= account.total.value, f"{spent} of {account.total} was spent"
    return spent, number


def kills(folder: Path, number: int, *, broken: bool) -> None:
    """Kill a process at a random moment, after none, one or two releases, again and again. Fewer
    releases than half of the kills would come by chance with a probability below 1e-5.
    """
    path, handed_out = folder / "b.ledger", folder / "handed out"
    handed_out.touch()
    Ledger(path, dataset="data", epsilon=1e6)
    for _ in range(number):
        child = forked(lambda: release_until_refused(path, handed_out, broken=broken))
        wanted = handed_out.stat().st_size + random.randint(0, 2)
        while handed_out.stat().st_size < wanted:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "ended before it was killed"
            time.sleep(0.0005)
        time.sleep(random.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        checked(path, handed_out)
        restore(path)
    spent, handed = checked(path, handed_out)
    assert handed >= number / 2, "hardly anything was handed out, so this tests nothing"
    assert spent <= (handed + number) * STEP.value, "a kill spent more than the one release"


def restore(path: Path) -> None:
    """Take back a line that a kill cut off, which counts as all that was left: the system writes a
    page of 4096 bytes at a time, and a kill may come between two.
    """
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        assert read_accounts(path)["data"].remaining.epsilon == 0.0
        path.write_bytes(text[: text.rindex(b"\n") + 1])


def at_once(folder: Path, number: int, *, broken: bool) -> None:
    """Let processes spend the same total. Broken ones neither lock nor look again."""
    if broken:
        module._take = lambda number: None
        module.LedgerFile._check_same = lambda self: None  # type: ignore[method-assign]
    spent_together(folder, number, 64)


def sabotaged(folder: Path, number: int, *, broken: bool) -> None:
    """Let processes spend small totals on a slow disk, while another removes a file of locks
    beside the ledger again and again. Broken ones lock that file.
    """
    beside, write = folder / "b.ledger.lock", os.write

    def write_slowly(number: int, line: bytes) -> int:
        time.sleep(0.005)
        return write(number, line)

    os.write = write_slowly  # type: ignore[assignment]

    def remove() -> None:
        while True:
            beside.unlink(missing_ok=True)

    if broken:
        locks: dict[int, int] = {}

        def take(number: int) -> None:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise
            locks[number] = lock

        module._take, module._give = take, lambda number: os.close(locks.pop(number))
        module.LedgerFile._check_same = lambda self: None  # type: ignore[method-assign]
    saboteur = forked(remove)
    try:
        for _ in range(12):
            spent_together(folder, number, 4)
            (folder / "b.ledger").unlink()
            (folder / "handed out").unlink()
    finally:
        os.kill(saboteur, signal.SIGKILL)
        os.waitpid(saboteur, 0)


def spent_together(folder: Path, number: int, releases: int) -> None:
    """Let processes spend a total that is enough for so many releases."""
    path, handed_out = folder / "b.ledger", folder / "handed out"
    handed_out.touch()
    total = releases * STEP.value
    Ledger(path, dataset="data", epsilon=total)
    children = [
        forked(lambda: release_until_refused(path, handed_out, broken=False)) for _ in range(number)
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert checked(path, handed_out) == (total, releases)
    assert codes == [0] * number, codes


def full_disk(folder: Path, number: int, *, broken: bool) -> None:
    """Let a line be cut off by a full disk. A broken ledger cannot take its beginning back."""
    path = folder / "b.ledger"
    book = Ledger(path, dataset="data", epsilon=8.0)
    before = path.read_bytes()

    def enter() -> None:
        with book.entered(STEP, UNIT):
            pass

    def fail() -> None:
        if broken:
            os.ftruncate = _refused  # type: ignore[assignment]
        limit = len(before) + number
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        assert "cannot be written (File too large)" in refusal(enter)

    assert os.waitstatus_to_exitcode(os.waitpid(forked(fail), 0)[1]) == 0
    if broken:
        assert path.read_bytes()[: len(before)] == before
        assert book.spent.epsilon == 8.0, "a line cut off must count as all that was left"
        book.set_total(epsilon=8.5)
        assert book.remaining.epsilon == 0.5
    else:
        assert path.read_bytes() == before
        enter()
        assert book.spent == STEP


def _refused(*_: object) -> None:
    raise OSError("refused")


def read_only(folder: Path, number: int, *, broken: bool) -> None:
    """Refuse a ledger that cannot be written, and read it all the same; enter in one that can,
    where nothing can be written beside it.
    """
    path = folder / "b.ledger"
    Ledger(path, dataset="data", epsilon=8.0)
    path.chmod(0o666)
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    book = Ledger(path)
    with book.entered(STEP, UNIT):
        pass
    assert book.spent == STEP
    if os.getuid() == 0:
        os.seteuid(0)
    path.chmod(0o444)
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    assert read_accounts(path)["data"].spent == STEP
    assert "cannot be opened (Permission denied)" in refusal(lambda: Ledger(path))


if __name__ == "__main__":
    check, where, how_many, *control = sys.argv[1:]
    every = (kills, at_once, sabotaged, full_disk, read_only)
    checks = {each.__name__: each for each in every}
    try:
        checks[check](Path(where), int(how_many), broken=bool(control))
    except AssertionError as failure:
        sys.exit(f"{check}: {failure}")
