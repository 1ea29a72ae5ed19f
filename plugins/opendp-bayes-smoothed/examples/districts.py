"""Figure 2 (left) and Figure 4 of the paper: the smoothed δ of an election against the number of
votes, exactly by Algorithm 1.

    python districts.py [--fast] [--output districts.png]

Every voter is drawn from the distribution of some district of 2020, or of some national election
since 1920; which, an adversary chooses. Of either set only the two vertices of its hull matter. The
dotted lines are exponential fits; their slopes are printed. All takes some minutes.
"""

import argparse
import math

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from paper import districts, elections, write_table

import opendp_bayes_smoothed as obs

#: Where the curves of an ε coincide, one mark inside the other.
MARKS = {0.5: ("o", 11), 1.0: ("s", 8), 2.0: ("^", 6), 7.0: ("x", 4)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--fast", action="store_true", help="few and small numbers of votes, the largest ε"
    )
    parser.add_argument("--output", default="districts.png")
    arguments = parser.parse_args()
    sizes = [500, 1000, 1500] if arguments.fast else [1000, 2000, 3000, 4500, 6000, 8000, 10000]
    sets = {"districts 2020": districts(), "elections since 1920": elections()}
    losses = (0.002, 0.05)
    figure, axes = plt.subplots(len(losses), len(sets), squeeze=False, figsize=(11, 8))
    numbers: list[list[object]] = []
    for row, lost in zip(axes, losses, strict=True):
        for axis, (name, votes) in zip(row, sets.items(), strict=True):
            shares = [[a / (a + b), b / (a + b)] for a, b in votes.values()]
            print(
                f"{name}, {lost:.1%} lost: {len(shares)} distributions, vertices"
                f" {obs.vertices(shares).round(4).tolist()}"
            )
            for epsilon in [7.0] if arguments.fast else MARKS:
                logs = np.array(
                    [obs.smoothed_delta(shares, n, 1 - lost, epsilon, log=True) for n in sizes]
                ) / math.log(10)
                slope, intercept = np.polyfit(sizes, logs, 1)
                error = float(np.max(np.abs(logs - slope * np.array(sizes) - intercept)))
                print(
                    f"  epsilon = {epsilon}: log10 delta {logs[0]:.3f} ... {logs[-1]:.3f}, slope"
                    f" {slope:.3e} per vote, largest residual {error:.3f}",
                    flush=True,
                )
                mark, width = MARKS[epsilon]
                (line,) = axis.plot(
                    sizes, logs, mark, ms=width, mfc="none", label=f"ε = {epsilon:g}"
                )
                axis.plot(sizes, slope * np.array(sizes) + intercept, ":", color=line.get_color())
                numbers += [
                    [name, lost, epsilon, n, f"{v:.4f}"] for n, v in zip(sizes, logs, strict=True)
                ]
            axis.axhline(math.log10(1 - lost), color="tab:pink", ls="--", label="DP, any finite ε")
            axis.set(
                title=f"{name}, {lost:.1%} lost", xlabel="votes", ylabel="$\\log_{10}$ smoothed δ"
            )
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    write_table(
        arguments.output, ["distributions", "lost", "epsilon", "votes", "log10 delta"], numbers
    )


if __name__ == "__main__":
    main()
