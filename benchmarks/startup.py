"""Measure how long a user waits before the command line says anything."""

import os
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter

from reporting import table

COMMANDS = (
    "--version",
    "--help",
    "release --help",
    "show --help",
    "plan --help",
    "plan --size 100 --prior 1,1 --epsilon 1",
)
REPEATS = 5


def seconds(command: Sequence[str]) -> tuple[float, float]:
    """The shortest time on the clock, and the shortest of the processor, of a process."""
    clock, processor = [], []
    for _ in range(REPEATS):
        start, before = perf_counter(), os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        after = os.times()
        clock.append(perf_counter() - start)
        processor.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(clock), min(processor)


def main() -> None:
    module = [sys.executable, "-m", "opendp_bayes_office"]
    rows = [(f"opendp-bayes {text}", *seconds([*module, *text.split()])) for text in COMMANDS]
    rows.append(("python -c pass", *seconds([sys.executable, "-c", "pass"])))
    code = "import opendp.prelude, scipy.stats"
    rows.append((f"python -c '{code}'", *seconds([sys.executable, "-c", code])))
    table(
        "Start of the command line",
        ["command", "s", "s of processor"],
        rows,
        f"The shortest of {REPEATS} runs, each a new process. Wanted: 0.3 s for --version and"
        " --help.",
    )


if __name__ == "__main__":
    main()
