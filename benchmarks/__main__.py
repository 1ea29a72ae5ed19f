"""Run every benchmark, each in a process of its own, and write RESULTS.md. `timing` is left out: it
sleeps for an hour, and `make bench-timing` runs it.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.reporting import MARKDOWN, wrapped

HERE = Path(__file__).parent
NAMES = (
    "startup",
    "office",
    "counting",
    "memory",
    "hellinger",
    "release",
    "groups",
    "pooling",
    "tables",
    "knorm",
    "flip",
    "sampler",
    "accounting",
    "planning",
    "inference",
    "wide",
    "discovered_values",
    "smoothed",
    "keys_found",
)
PACKAGES = ("opendp", "polars", "numpy", "scipy")

VERSIONS = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
INTRODUCTION = f"""\
Written by `make bench` on a machine with 2 cores: Python {sys.version.split()[0]}, {VERSIONS}.
Every time is the shortest of several, and what a row compares was measured in turn. Ratios tell
more than milliseconds."""


def main() -> None:
    results = HERE / "RESULTS.md"
    results.write_text(f"# Benchmarks\n\n{wrapped(INTRODUCTION)}\n\n")
    for name in NAMES:
        subprocess.run(  # noqa: S603
            [sys.executable, HERE / f"{name}.py", *sys.argv[1:]],
            check=True,
            env=os.environ | {MARKDOWN: str(results)},
        )
    results.write_text(results.read_text().rstrip() + "\n")


main()
