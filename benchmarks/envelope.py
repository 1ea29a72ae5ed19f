"""Errors of the posterior of counts with noise over its whole envelope, by region.

`python benchmarks/envelope.py FILE 100 230` computes the blocks of 50 random settings from 100 up
to 230 that FILE, one line of JSON for each setting, has not yet; without blocks, and in the end, it
prints the table of what FILE has. A block takes about two minutes.
"""

import json
import signal
import sys
from pathlib import Path

import numpy as np
from reporting import table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.envelope import compared, random_setting, regions  # noqa: E402

#: Settings of a block; processor seconds for one of them, with its reference.
SETTINGS, LONGEST = 50, 6
ERROR = 1e-3
COLUMNS = {
    "mean": ("mean", "count mean", "total mean"),
    "std": ("std", "count std", "total std"),
    "probability": ("cdf", "count cdf", "total cdf"),
    "log evidence": ("evidence",),
}


def measured(block: int, seed: int) -> dict:
    """What is known of one setting."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        setting, errors = compared(block, seed)
        about = setting.about
    except (ValueError, TimeoutError, MemoryError) as reason:
        about, errors = random_setting(np.random.default_rng([block, seed])).about, None
        about["slow" if isinstance(reason, TimeoutError) else "refused"] = str(reason)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"block": block, "seed": seed, "about": about, "errors": errors}


def too_slow(*_: object) -> None:
    raise TimeoutError("too slow")


def line(name: str, found: list[dict]) -> list:
    """A row of the table."""
    served = [one for one in found if one["errors"] is not None]
    worst = [
        max((one["errors"].get(kind, 0.0) for one in served for kind in kinds), default=0.0)
        for kinds in COLUMNS.values()
    ]
    above = sum(not max(one["errors"].values()) <= ERROR for one in served)
    seconds = max((one["about"]["seconds"] for one in served), default=0.0)
    return [name, len(served), *(f"{value:.1e}" for value in worst), above, seconds]


def main() -> None:
    path = Path(sys.argv[1])
    known = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    if len(sys.argv) > 2:
        signal.signal(signal.SIGPROF, too_slow)
        done = {(one["block"], one["seed"]) for one in known}
        for block in range(*map(int, sys.argv[2:4])):
            for seed in range(SETTINGS):
                if (block, seed) in done:
                    continue
                known.append(measured(block, seed))
                with path.open("a") as file:
                    file.write(json.dumps(known[-1]) + "\n")
    names = dict.fromkeys(name for one in known for name in regions(one["about"]))
    rows = [line("all", known)]
    rows += [line(n, [o for o in known if n in regions(o["about"])]) for n in sorted(names)]
    slow, refused = (sum(name in one["about"] for one in known) for name in ("slow", "refused"))
    table(
        "Errors over the envelope",
        ["region", "settings", *COLUMNS, "above 1e-3", "s, longest"],
        rows,
        f"The largest errors in {len(known)} random settings, written by"
        " `python benchmarks/envelope.py FILE FROM TO`. A row counts those that a reference served;"
        f" {slow} took longer than {LONGEST} s of the processor with their reference, {refused}"
        " were refused, and no reference served the others. Means and standard deviations are off"
        " by so many standard deviations. Noise is below the mean count where its scale is less"
        " than a tenth of it, and above where it is more than ten times as large. A prior is sparse"
        " where its median is below 0.1, and large where it is above 100. Times are of the"
        " posterior, on the processor.",
    )


if __name__ == "__main__":
    main()
