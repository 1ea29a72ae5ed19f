"""Figures 1 and 3 of the paper: every presidential election from 1920 to 2020, had a small share of
the ballots been lost at random.

    python elections.py [--fast] [--output elections.png]

δ(x) is the database-dependent privacy profile of the published counts of the top two candidates;
the utility is the adversary's, with threshold t. Both are certified upper bounds. The differential
privacy of the same release is δ = T/n, nearly 1.
"""

import argparse
import csv
import math
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import opendp_bayes_smoothed as obs

SETTINGS = [(0.002, 0.51), (0.002, 0.5), (0.002, 0.6), (0.0001, 0.51), (0.0001, 0.5), (0.0001, 0.6)]


def series(lost: float, threshold: float) -> list[tuple[int, int, float, float]]:
    """`(year, votes, log10 δ, log10 u)` of every election."""
    epsilon = math.log(threshold / (1 - threshold))
    rows = []
    for row in obs.elections():
        counts = [row["democrat_votes"], row["republican_votes"]]
        logs = [
            function(counts, 1 - lost, epsilon) / math.log(10)
            for function in (obs.log_database_profile, obs.log_database_utility)
        ]
        rows.append((row["year"], sum(counts), *logs))
    return rows


def written(output: str, head: list[str], rows: list[list[object]]) -> None:
    """The numbers of the figure, in a table beside it."""
    with Path(output).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="only the setting of Figure 1")
    parser.add_argument("--output", default="elections.png")
    arguments = parser.parse_args()
    settings = SETTINGS[:1] if arguments.fast else SETTINGS
    columns = min(3, len(settings))
    figure, axes = plt.subplots(
        math.ceil(len(settings) / columns),
        columns,
        squeeze=False,
        figsize=(4.6 * columns, 3.8 * math.ceil(len(settings) / columns)),
    )
    numbers: list[list[object]] = []
    for axis, (lost, threshold) in zip(axes.flat, settings, strict=True):
        rows = series(lost, threshold)
        numbers += [[lost, threshold, y, n, f"{d:.3f}", f"{u:.3f}"] for y, n, d, u in rows]
        years = [year for year, *_ in rows]
        # The utility is within a few per cent of δ(x): a cross in an open circle.
        axis.plot(years, [row[2] for row in rows], "o-", ms=7, lw=0.8, mfc="none", label="δ(x)")
        axis.plot(
            years, [row[3] for row in rows], "x", ms=4, color="black", label="adversary's utility"
        )
        axis.plot(
            years,
            [-math.log10(votes) for _, votes, *_ in rows],
            color="tab:pink",
            ls="--",
            label="1 / n",
        )
        axis.set(
            title=f"{lost:.2%} lost, t = {threshold:.0%}", xlabel="election", ylabel="$\\log_{10}$"
        )
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
        print(
            f"lost {lost:.2%}, t = {threshold:.0%}: log10 delta from"
            f" {max(row[2] for row in rows):.2f} to {min(row[2] for row in rows):.2f}"
        )
        if (lost, threshold) == SETTINGS[0]:
            for year, votes, delta, utility in rows:
                print(
                    f"  {year}  n = {votes:>11,}  delta = 1e{delta:.2f}  utility = 1e{utility:.2f}"
                )
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    head = ["lost", "threshold", "year", "votes", "log10 delta", "log10 utility"]
    written(arguments.output, head, numbers)


if __name__ == "__main__":
    main()
