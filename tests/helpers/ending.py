"""Programs that hold temporary files of the package and are ended: `python -m tests.helpers.ending
HOW`, with a temporary folder of its own in TMPDIR. They print how far they are.

`broken` behind it puts mistakes back: signals are not heard, nor is a fork noticed.
"""

import asyncio
import faulthandler
import gc
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from opendp_bayes.trusted import removals
from opendp_bayes.trusted.temporary_files import TemporaryFile

KEPT: list[Any] = []  # until the interpreter ends


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait() -> None:
    say("ready")
    while True:
        time.sleep(60.0)


def keep_one() -> None:
    """Make a file that stays until the process ends."""
    KEPT.append(TemporaryFile())
    KEPT[-1].path.write_text("somebody's record")


def folders() -> int:
    """Count the folders of the package; Python tries its temporary folder by a file of its own."""
    return sum(path.is_dir() for path in Path(tempfile.gettempdir()).iterdir())


# --- one process


def holding() -> None:
    keep_one()
    wait()


def busy() -> None:
    """Spend minutes in code of another language, for whose end handlers in Python wait."""
    keep_one()
    say("ready")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)


def first() -> None:
    """Outlive a signal as the first process of a container does."""
    keep_one()
    os.kill(os.getpid(), signal.SIGTERM)
    wait()


def as_first() -> None:
    """Say whether SIGTERM does there what it does by default, while there is a file."""
    os.getpid = lambda: 1
    with TemporaryFile():
        say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)


def again_and_again() -> None:
    """Make and remove files all the time."""
    tempfile.gettempdir()  # for which Python tries the folder, by a file of its own
    say("ready")
    while True:
        with TemporaryFile() as path:
            path.write_text("somebody's record")


def threads() -> None:
    """Let threads make and remove files, while the main thread holds one."""
    keep_one()
    for _ in range(3):
        threading.Thread(target=again_and_again, daemon=True).start()
    wait()


def thread_alone() -> None:
    """Let a thread make the only file, where no signal can be heard, and leave it to the exit."""
    thread = threading.Thread(target=keep_one)
    thread.start()
    thread.join()
    say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    say(folders())


def at_rest() -> None:
    """Say how SIGTERM is handled before, during and after there is a file."""
    say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    with TemporaryFile():
        say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    say(signal.set_wakeup_fd(-1))


# --- other handlers


def heard(number: int) -> None:
    say(f"heard {signal.Signals(number).name}")


def earlier_handler() -> None:
    def exited(number: int, frame: FrameType | None) -> None:
        heard(number)
        sys.exit(7)

    signal.signal(signal.SIGTERM, exited)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    holding()


def later_handler() -> None:
    """Hear a signal, and pass it on to whoever heard it before."""
    keep_one()

    def passed_on(number: int, frame: FrameType | None) -> None:
        heard(number)
        before(number, frame)

    before: Any = signal.signal(signal.SIGTERM, passed_on)
    wait()


def overtaken() -> None:
    """Take a signal over while there is a file, and hear it when there is none any more."""
    with TemporaryFile():
        signal.signal(signal.SIGTERM, lambda number, frame: heard(number))
    os.kill(os.getpid(), signal.SIGTERM)
    say(signal.getsignal(signal.SIGHUP) is signal.SIG_DFL)


def once_only() -> None:
    """Hear a signal once, and restore the default for the next one."""
    keep_one()

    def once(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        time.sleep(0.2)  # for whoever else listens
        heard(number)
        say(folders())

    signal.signal(signal.SIGTERM, once)
    wait()


def below_python() -> None:
    """Print a traceback where SIGTERM comes, and go on: Python does not know of that handler."""
    faulthandler.register(signal.SIGTERM, file=sys.stdout)
    holding()


def in_a_loop() -> None:
    """Hear signals in a loop of asyncio, which is told of them as the package's own thread is."""

    async def waiting() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        keep_one()
        loop.add_signal_handler(signal.SIGUSR1, heard, signal.SIGUSR1)
        loop.add_signal_handler(signal.SIGTERM, ended.set)
        keep_one()
        say("ready")
        await ended.wait()

    asyncio.run(waiting())
    heard(signal.SIGTERM)
    say(folders())


# --- children


def exited() -> None:
    sys.exit(3)


def left() -> None:
    os._exit(3)


def collected() -> None:
    KEPT[0].remove()
    KEPT.clear()
    gc.collect()
    sys.exit(3)


def terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def with_its_own() -> None:
    keep_one()
    assert folders() == 2
    sys.exit(3)


def killed_with_its_own() -> None:
    keep_one()
    os.kill(os.getpid(), signal.SIGKILL)


def sweeping() -> None:
    """Remove what the child before this one left."""
    assert folders() == 2
    with TemporaryFile():
        assert folders() == 2
    sys.exit(3)


def forks() -> None:
    """Fork, and see after each child whether the parent's file is there, and how many others."""
    keep_one()
    children = (exited, left, collected, terminated, with_its_own, killed_with_its_own, sweeping)
    for work in children:
        child = os.fork()
        if not child:
            work()
            os._exit(9)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        say(json.dumps([work.__name__, code, KEPT[0].path.exists(), folders()]))


def orphaned() -> None:
    """Be killed, and leave a child that was forked behind."""
    keep_one()
    forked, told = os.pipe()
    child = os.fork()
    if not child:
        os.write(told, b".")
        time.sleep(60.0)
        os._exit(9)
    os.read(forked, 1)
    say("ready")
    say(child)
    os.kill(os.getpid(), signal.SIGKILL)


def children(method: str) -> None:
    """Let children of multiprocessing keep files to their ends, beside the parent's."""
    start: Any = multiprocessing.get_context(method).Process
    keep_one()
    child = start(target=keep_one)
    child.start()
    child.join()
    say(json.dumps([child.exitcode, folders()]))
    child = start(target=holding)
    child.start()
    while folders() < 2:
        time.sleep(0.01)
    child.terminate()
    child.join()
    say(json.dumps([child.exitcode, folders()]))


def forked_children() -> None:
    children("fork")


def spawned_children() -> None:
    children("spawn")


def reading() -> None:
    time.sleep(0.5)
    say(KEPT[0].path.read_text())


def waited_for() -> None:
    """End while a child of multiprocessing, which is waited for, is to read the parent's file."""
    start: Any = multiprocessing.get_context("fork").Process
    keep_one()
    start(target=reading).start()


if __name__ == "__main__":
    if sys.argv[2:] == ["broken"]:
        removals._SIGNALS = ()
        removals._Owner.forget = lambda self: None  # type: ignore[method-assign]
        anew = removals._owner
        removals._Owner = lambda: anew  # type: ignore[assignment, misc]
    globals()[sys.argv[1]]()
