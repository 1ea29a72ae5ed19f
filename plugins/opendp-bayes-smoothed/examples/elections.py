"""Figures 1 and 3 of the paper: every presidential election from 1920 to 2020, had a small share of
the ballots been lost at random.

    python elections.py [--fast] [--output elections.png]

δ(x) is the database-dependent privacy profile of the published counts of the top two candidates, a
certified upper bound; the utility is the adversary's, with threshold t. The differential privacy of
the same release is δ = T/n, nearly 1.
"""

import argparse
import math

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from paper import elections, write_table
from scipy.special import logsumexp
from scipy.stats import hypergeom

import opendp_bayes_smoothed as obs

SETTINGS = [(0.002, 0.51), (0.002, 0.5), (0.002, 0.6), (0.0001, 0.51), (0.0001, 0.5), (0.0001, 0.6)]


def log_utilities(a: int, b: int, samples: int, epsilon: float) -> np.ndarray:
    """Logarithms of the utility of the outcomes that speak for x, with counts a and b, and against
    its neighbour x', with a - 1 and b + 1: if x is true and if x' is.

    With r the likelihood ratio the excess of the confidence is `(1 - e^ε r) / (1 + r)`. r is
    below `e^-ε` from some k on; within a few thousand more the probabilities vanish.
    """
    factor = math.exp(epsilon)
    first = a * (factor * (b + 1) - (b + 1 - samples)) / (a + factor * (b + 1))
    k = math.floor(first) + 1 + np.arange(5000)
    k = k[(k >= samples - b) & (k <= min(a, samples))]
    r = (a - k) / a * ((b + 1) / (b + 1 - samples + k))
    logs = hypergeom.logpmf(k, a + b, a, samples)
    with np.errstate(divide="ignore"):
        excess = np.log(np.maximum(1 - factor * r, 0) / (1 + r))
        return logsumexp([logs + excess, logs + excess + np.log(r)], axis=1)


def log_utility(counts: list[int], samples: int, epsilon: float) -> float:
    """The larger over the neighbours of x, and over which of the two is true."""
    return max(
        float(
            np.logaddexp(log_utilities(a, b, *rest), log_utilities(b + 1, a - 1, *rest)[::-1]).max()
        )
        for a, b in (counts, counts[::-1])
        for rest in [(samples, epsilon)]
    )


def series(lost: float, threshold: float) -> list[tuple[int, int, float, float]]:
    """`(year, votes, log10 δ, log10 u)` of every election."""
    epsilon = math.log(threshold / (1 - threshold))
    rows = []
    for year, counts in elections().items():
        delta = obs.database_profile(counts, 1 - lost, epsilon, log=True)
        samples = obs.SamplingHistogram(rate=1 - lost).samples(sum(counts))
        logs = np.array([delta, log_utility(counts, samples, epsilon)]) / math.log(10)
        rows.append((int(year), sum(counts), *logs.tolist()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="only the setting of Figure 1")
    parser.add_argument("--output", default="elections.png")
    arguments = parser.parse_args()
    settings = SETTINGS[:1] if arguments.fast else SETTINGS
    shape = math.ceil(len(settings) / 3), min(3, len(settings))
    size = (4.6 * shape[1], 3.8 * shape[0])
    figure, axes = plt.subplots(*shape, squeeze=False, figsize=size)
    numbers: list[list[object]] = []
    for axis, (lost, threshold) in zip(axes.flat, settings, strict=True):
        rows = series(lost, threshold)
        numbers += [[lost, threshold, y, n, f"{d:.3f}", f"{u:.3f}"] for y, n, d, u in rows]
        years, votes, deltas, utilities = map(np.array, zip(*rows, strict=True))
        # The utility is within a few per cent of δ(x): a cross in an open circle.
        axis.plot(years, deltas, "o-", ms=7, lw=0.8, mfc="none", label="δ(x)")
        axis.plot(years, utilities, "x", ms=4, color="black", label="adversary's utility")
        axis.plot(years, -np.log10(votes), color="tab:pink", ls="--", label="1 / n")
        axis.set(
            title=f"{lost:.2%} lost, t = {threshold:.0%}", xlabel="election", ylabel="$\\log_{10}$"
        )
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
        print(
            f"lost {lost:.2%}, t = {threshold:.0%}: log10 delta from {deltas.max():.2f} to"
            f" {deltas.min():.2f}"
        )
        if (lost, threshold) == SETTINGS[0]:
            for year, n, delta, own in rows:
                print(f"  {year}  n = {n:>11,}  delta = 1e{delta:.2f}  utility = 1e{own:.2f}")
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    head = ["lost", "threshold", "year", "votes", "log10 delta", "log10 utility"]
    write_table(arguments.output, head, numbers)


if __name__ == "__main__":
    main()
