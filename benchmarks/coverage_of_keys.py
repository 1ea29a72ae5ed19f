"""Measure how often intervals of keys that nobody listed hold the truth, in ten worlds, and write
that section of docs/research/coverage.md. It takes about seven minutes of one processor.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from reporting import section

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.worlds_of_keys import WORLDS, Held, World, run  # noqa: E402

RUNS = 12
TITLE = "## Values that nobody listed\n"
TEXT = f"""
Intervals of 95 % of the [posterior of what a threshold shows](../unlisted.md#the-posterior), in
percent of the keys that are shown, under three priors of their counts: flat, learned from what is
shown, and learned with the number of hidden records, bought with a fifth of ε. Counts of keys are
Poisson draws of the intensities of a world, {RUNS} times. "Near" are counts at most 4 records above
the threshold, or a standard deviation of the noise; the bias is by how many of its own standard
deviations the sum of all counts is expected too high. Keys of one world are not independent; of the
counts of 300, 2000 and 2 · 10⁴ independent keys in all the standard error is 1.3, .5 and .2
percent. Written by `python benchmarks/coverage_of_keys.py`.

"""
HEADER = (
    "world",
    "ε, δ",
    "keys shown",
    "near",
    "counts",
    "counts near",
    "shares of counts",
    "shares of intensities",
    "sum, bias",
)


def line(world: World, found: Sequence[tuple[Held, Held, Held]]) -> str:
    """A row of the table."""

    def three(of: Callable[[Sequence[Held]], str], first: int = 0) -> str:
        return ", ".join(of([one[prior] for one in found]) for prior in range(first, 3))

    def share(what: str, number: str) -> Callable[[Sequence[Held]], str]:
        def percent(some: Sequence[Held]) -> str:
            held, of = (sum(getattr(one, name) for one in some) for name in (what, number))
            return f"{100 * held / of:.1f}" if of >= 20 else "–"

        return percent

    learned = [one[2] for one in found]
    keys, near = (sum(getattr(one, name) for one in learned) for name in ("keys", "keys_near"))
    cells = (
        world.name,
        f"{world.epsilon:g}, {world.delta:.0e}".replace("e-0", "e-"),
        f"{keys / len(found):.0f}",
        f"{100 * near / keys:.0f} %",
        three(share("counts", "keys")),
        three(share("near", "keys_near")),
        three(share("shares", "keys")),
        three(share("probabilities", "keys"), 1),
        three(lambda some: f"{sum(one.sum_bias for one in some) / len(some):+.1f}"),
    )
    return f"| {' | '.join(cells)} |"


def write(lines: Sequence[str]) -> None:
    """Write the section."""
    table = [f"| {' | '.join(HEADER)} |", "|" + "---|" * len(HEADER), *lines]
    section(ROOT / "docs" / "research" / "coverage.md", TITLE, TEXT + "\n".join(table) + "\n")


if __name__ == "__main__":
    write([line(one, [run(one, number) for number in range(RUNS)]) for one in WORLDS.values()])
