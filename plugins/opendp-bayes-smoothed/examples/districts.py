"""Figure 2 (left) and Figure 4 of the paper: the smoothed δ of an election against the number of
votes, exactly by Algorithm 1.

    python districts.py [--fast] [--output districts.png]

Every voter is drawn from the distribution of some district of 2020, or of some national election
since 1920; which, an adversary chooses. Of either set only the two vertices of its hull matter. The
dotted lines are exponential fits; their slopes are printed.
"""

import argparse
import csv
import math
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import opendp_bayes_smoothed as obs

EPSILONS = (0.5, 1.0, 2.0, 7.0)
#: Where the curves coincide, one mark inside the other.
MARKS = {0.5: ("o", 11), 1.0: ("s", 8), 2.0: ("^", 6), 7.0: ("x", 4)}


def shares(rows: list[dict[str, int]]) -> np.ndarray:
    """Two-party shares, shape `(rows, 2)`."""
    votes = np.array(
        [[row["democrat_votes"], row["republican_votes"]] for row in rows], dtype=float
    )
    return votes / votes.sum(axis=1, keepdims=True)


def curve(distributions: np.ndarray, sizes: list[int], lost: float, epsilon: float) -> list[float]:
    """log10 of the smoothed δ."""
    return [
        obs.log_smoothed_delta(distributions, size, 1 - lost, epsilon) / math.log(10)
        for size in sizes
    ]


def written(output: str, head: list[str], rows: list[list[object]]) -> None:
    """The numbers of the figure, in a table beside it."""
    with Path(output).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--fast", action="store_true", help="few and small numbers of votes, the largest ε"
    )
    parser.add_argument("--output", default="districts.png")
    arguments = parser.parse_args()
    sizes = [500, 1000, 1500] if arguments.fast else [1000, 2000, 3000, 4500, 6000, 8000, 10000]
    sets = {
        "districts 2020": shares(obs.districts()),
        "elections since 1920": shares(obs.elections()),
    }
    losses = (0.002, 0.05)
    figure, axes = plt.subplots(len(losses), len(sets), squeeze=False, figsize=(11, 8))
    numbers: list[list[object]] = []
    for row, lost in zip(axes, losses, strict=True):
        for axis, (name, distributions) in zip(row, sets.items(), strict=True):
            corners = obs.vertices(distributions)
            print(
                f"{name}, {lost:.1%} lost: {len(distributions)} distributions, vertices"
                f" {corners.round(4).tolist()}"
            )
            for epsilon in EPSILONS[-1:] if arguments.fast else EPSILONS:
                logs = np.array(curve(distributions, sizes, lost, epsilon))
                slope, intercept = np.polyfit(sizes, logs, 1)
                error = float(np.max(np.abs(logs - slope * np.array(sizes) - intercept)))
                print(
                    f"  epsilon = {epsilon}: log10 delta {logs[0]:.3f} ... {logs[-1]:.3f}, slope"
                    f" {slope:.3e} per vote, largest residual {error:.3f}"
                )
                mark, width = MARKS[epsilon]
                (line,) = axis.plot(
                    sizes, logs, mark, ms=width, mfc="none", label=f"ε = {epsilon:g}"
                )
                numbers += [
                    [name, lost, epsilon, n, f"{v:.4f}"]
                    for n, v in zip(sizes, logs.tolist(), strict=True)
                ]
                axis.plot(sizes, slope * np.array(sizes) + intercept, ":", color=line.get_color())
            axis.axhline(math.log10(1 - lost), color="tab:pink", ls="--", label="DP, any finite ε")
            axis.set(
                title=f"{name}, {lost:.1%} lost", xlabel="votes", ylabel="$\\log_{10}$ smoothed δ"
            )
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    head = ["distributions", "lost", "epsilon", "votes", "log10 delta"]
    written(arguments.output, head, numbers)


if __name__ == "__main__":
    main()
