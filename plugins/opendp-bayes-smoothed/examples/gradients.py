"""Figure 2 (right) and Figure 5 of the paper: one step of SGD on 8-bit gradients, as the average of T = sqrt(n) of n records.

    python gradients.py [--fast] [--output gradients.png]

For one database the profile is computed from the exact law of the average: no trials. The expectation over databases has no such structure (the
profile is a maximum over neighbours of a function of all 256 counts), so it is estimated over random databases, with a 99 % interval. The adversary's
choice of distributions is tried at all records from the first, all from the second, and half from each.
"""

import argparse
import math

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import opendp_bayes_smoothed as obs

LEVELS = 256


def quantised(law: object) -> np.ndarray:
    """Probabilities of the 256 values (i - 128) / 256: that of the cell above each, given that the gradient is in (-0.5, 0.5] (Definition 5)."""
    edges = (np.arange(LEVELS + 1) - 128) / 256
    cells = np.diff(law.cdf(edges))
    return cells / cells.sum()


SETTINGS = {
    "Figure 2: N(0, 0.12²), N(0.2, 0.12²)": (stats.norm(0, 0.12), stats.norm(0.2, 0.12)),
    "N(0, 0.15²), N(0.2, 0.15²)": (stats.norm(0, 0.15), stats.norm(0.2, 0.15)),
    "N(0, 0.1²), N(0.2, 0.1²)": (stats.norm(0, 0.1), stats.norm(0.2, 0.1)),
    "N(0, 0.12²), L(0, 0.12²)": (stats.norm(0, 0.12), stats.laplace(0, 0.12 / math.sqrt(2))),
    "L(0, 0.12²), L(0.2, 0.12²)": (stats.laplace(0, 0.12 / math.sqrt(2)), stats.laplace(0.2, 0.12 / math.sqrt(2))),
}


def expected_profile(rng: np.random.Generator, laws: list[np.ndarray], root: int, trials: int, epsilon: float) -> tuple[float, float]:
    """The largest mean profile over the three choices of distributions, for n = root² records, and half its 99 % interval."""
    size = root * root
    best = (-1.0, 0.0)
    for first in (0, size // 2, size):
        deltas = []
        for _ in range(trials):
            records = np.concatenate([rng.choice(LEVELS, first, p=laws[0]), rng.choice(LEVELS, size - first, p=laws[1])])
            deltas.append(obs.average_profile(records, LEVELS, 1 / root, epsilon))
        best = max(best, (float(np.mean(deltas)), 2.576 * float(np.std(deltas, ddof=1)) / math.sqrt(trials)))
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="one setting, few and small databases")
    parser.add_argument("--output", default="gradients.png")
    arguments = parser.parse_args()
    roots, trials, epsilons = ([2, 3], 3, [1.0]) if arguments.fast else ([2, 3, 4, 5, 6, 7, 8], 30, [1.0, 2.0])
    settings = dict(list(SETTINGS.items())[:1]) if arguments.fast else SETTINGS
    rng = np.random.default_rng(1)
    columns = min(3, len(settings))
    figure, axes = plt.subplots(
        math.ceil(len(settings) / columns), columns, squeeze=False, figsize=(5 * columns, 4 * math.ceil(len(settings) / columns))
    )
    for axis, (name, distributions) in zip(axes.flat, settings.items(), strict=False):
        laws = [quantised(law) for law in distributions]
        sizes = [root * root for root in roots]
        for epsilon in epsilons:
            values = np.array([expected_profile(rng, laws, root, trials, epsilon) for root in roots])
            slope = np.polyfit(sizes, np.log10(values[:, 0]), 1)[0]
            print(
                f"{name}, epsilon = {epsilon}: n = {sizes}, delta = {[float(f'{value:.3g}') for value in values[:, 0]]}, slope {slope:.3e}",
                flush=True,
            )
            axis.errorbar(sizes, values[:, 0], yerr=values[:, 1], fmt="o-", ms=4, capsize=3, label=f"smoothed, ε = {epsilon:g}")
        axis.plot(sizes, [1 / root for root in roots], color="tab:pink", ls="--", label="DP, any finite ε")
        axis.set(title=name, xlabel="n", ylabel="δ", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    for axis in list(axes.flat)[len(settings) :]:
        axis.remove()
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)


if __name__ == "__main__":
    main()
