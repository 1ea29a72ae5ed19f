"""Ctrl-C during a release: OpenDP runs in a thread of its own, which no signal reaches.

OpenDP's core calls Python, and a `KeyboardInterrupt` in the code between the two ends the
interpreter. Python raises it in the main thread alone, which waits here.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

R = TypeVar("R")
#: Seconds after which a handler of SIGINT has its turn, such as that of Spark, which ends its jobs.
_A_MOMENT = 0.2


class ReleaseInterrupted(KeyboardInterrupt):
    """Ctrl-C came while a release was made, which was debited.

    `release` is that release. In a notebook or at a prompt it is `sys.last_value.release`.
    """

    def __init__(self, release: Any) -> None:
        super().__init__(
            "the release had been made and debited; it is the attribute release of this exception,"
            " at a prompt `sys.last_value.release`."
        )
        self.release = release


def uninterrupted(release: Callable[[], R]) -> R:
    """Call a function that makes a release, and return the release. Ctrl-C waits for its end.

    Raises
    ------
    ReleaseInterrupted
        If Ctrl-C came meanwhile. It is a plain `KeyboardInterrupt` if the function failed.
    """
    if threading.current_thread() is not threading.main_thread():
        return release()
    executor, is_interrupted = ThreadPoolExecutor(1), False
    executor.submit(bool).result()  # nothing is lost while the thread starts
    future = executor.submit(release)
    executor.shutdown(wait=False)
    while not future.done():
        try:
            wait([future], _A_MOMENT)  # polars has locks restarted, which see no signal then
        except KeyboardInterrupt:
            is_interrupted = True
    if not is_interrupted:
        return future.result()
    if future.exception() is None:
        raise ReleaseInterrupted(future.result())
    raise KeyboardInterrupt
