"""Figure 2 (right) and Figure 5 of the paper: one step of SGD on 8-bit gradients, as the average of
T = sqrt(n) of n records.

    python gradients.py [--fast] [--output gradients.png]

For one database the profile is computed from the exact law of the average: no trials. Its
expectation is that of a maximum over neighbours, a function of all 256 counts, which no structure
sums. So with 8 bits that part is estimated over random databases, 8 for a choice of distributions,
with a 99 % interval; the adversary's choice of distributions is tried at all records from the
first, all from the second, and half from each. With 2 bits the last panel has it exactly, by
Algorithm 1.
"""

import argparse
import math

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from paper import of_a_sample, smoothed, write_table
from scipy import stats

LEVELS = 256
EPSILONS = (1.0, 2.0)


def quantised(law: object, levels: int = LEVELS) -> np.ndarray:
    """Probabilities of the values (i - 128) / 256: that of the cell above each, given that the
    gradient is in (-0.5, 0.5] (Definition 5).
    """
    cells = np.diff(law.cdf(np.linspace(-0.5, 0.5, levels + 1)))
    return cells / cells.sum()


SETTINGS = {
    "Figure 2: N(0, 0.12²), N(0.2, 0.12²)": (stats.norm(0, 0.12), stats.norm(0.2, 0.12)),
    "N(0, 0.15²), N(0.2, 0.15²)": (stats.norm(0, 0.15), stats.norm(0.2, 0.15)),
    "N(0, 0.1²), N(0.2, 0.1²)": (stats.norm(0, 0.1), stats.norm(0.2, 0.1)),
    "N(0, 0.12²), L(0, 0.12²)": (stats.norm(0, 0.12), stats.laplace(0, 0.12 / math.sqrt(2))),
    "L(0, 0.12²), L(0.2, 0.12²)": (
        stats.laplace(0, 0.12 / math.sqrt(2)),
        stats.laplace(0.2, 0.12 / math.sqrt(2)),
    ),
}


def sums(records: list[int], most: int) -> np.ndarray:
    """The laws of the sum of 0 to `most` of the records, drawn without replacement; a row each."""
    ways = np.zeros((most + 1, most * (LEVELS - 1) + 1))
    ways[0, 0] = 1
    for value in records:
        ways[1:, value:] += ways[:-1, : ways.shape[1] - value].copy()
    return ways / [[math.comb(len(records), t)] for t in range(most + 1)]


def profiles(records: list[int], samples: int) -> list[float]:
    """`δ_ε(x)` of the average of a sample, for each ε: over all records that could have changed and
    all values they could have had instead. A record of value v is drawn with probability T/n, and
    then adds v to the sum of T - 1 of the others.
    """
    worst, share = [0.0] * len(EPSILONS), samples / len(records)
    for value in set(records):
        others = list(records)
        others.remove(value)
        law = sums(others, samples)
        laws = np.tile((1 - share) * law[samples], (LEVELS, 1))
        for other in range(LEVELS):
            laws[other, other:] += share * law[samples - 1, : law.shape[1] - other]
        for i, factor in enumerate(map(math.exp, EPSILONS)):
            for gain in (laws[value] - factor * laws, laws - factor * laws[value]):
                worst[i] = max(worst[i], float(np.maximum(gain, 0).sum(axis=1).max()))
    return worst


def expected_profiles(
    rng: np.random.Generator, laws: list[np.ndarray], root: int, trials: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each ε the largest mean profile over the three choices of distributions, for n = root²
    records, and half its 99 % interval.
    """
    size = root * root
    means, halves = [], []
    for first in (0, size // 2, size):
        deltas = np.array(
            [
                profiles(
                    [
                        *rng.choice(LEVELS, first, p=laws[0]).tolist(),
                        *rng.choice(LEVELS, size - first, p=laws[1]).tolist(),
                    ],
                    root,
                )
                for _ in range(trials)
            ]
        )
        means.append(deltas.mean(axis=0))
        halves.append(2.576 * deltas.std(axis=0, ddof=1) / math.sqrt(trials))
    worst = np.argmax(means, axis=0), range(len(EPSILONS))
    return np.array(means)[worst], np.array(halves)[worst]


def panel(
    axis: plt.Axes, name: str, roots: list[int], values: np.ndarray, halves: np.ndarray
) -> list[list[object]]:
    """One plot, and its rows of numbers: `values` and `halves` have shape `(sizes, epsilons)`."""
    rows: list[list[object]] = []
    sizes = [root * root for root in roots]
    for i, epsilon in enumerate(EPSILONS):
        slope = np.polyfit(sizes, np.log10(values[:, i]), 1)[0]
        print(
            f"{name}, epsilon = {epsilon}: n = {sizes}, delta ="
            f" {[float(f'{v:.3g}') for v in values[:, i]]}, slope {slope:.3e}",
            flush=True,
        )
        axis.errorbar(
            sizes,
            values[:, i],
            yerr=halves[:, i],
            fmt=("o-", "s--")[i],
            ms=5,
            capsize=3,
            label=f"smoothed, ε = {epsilon:g}",
        )
        rows += [
            [name, epsilon, n, f"{value:.4g}", f"{half:.2g}"]
            for n, value, half in zip(sizes, values[:, i], halves[:, i], strict=True)
        ]
    axis.plot(
        sizes, [1 / root for root in roots], color="tab:pink", ls=":", label="DP, any finite ε"
    )
    axis.set(title=name, xlabel="n", ylabel="δ", yscale="log")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    return rows


def of_two_bits(root: int, epsilon: float) -> float:
    """The smoothed δ of the average of four values, exactly."""
    corners = [quantised(law, 4).tolist() for law in next(iter(SETTINGS.values()))]
    average = of_a_sample(lambda h: sum(value * x for value, x in enumerate(h)), 4, root)
    return smoothed(average, corners, root * root, epsilon)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="one setting, few and small databases")
    parser.add_argument("--output", default="gradients.png")
    arguments = parser.parse_args()
    roots, exact_roots, trials = (
        ([2, 3], [2, 3], 3) if arguments.fast else ([2, 3, 4, 5, 6], [2, 3, 4, 5], 8)
    )
    settings = dict(list(SETTINGS.items())[:1]) if arguments.fast else SETTINGS
    rng, numbers = np.random.default_rng(1), list[list[object]]()
    columns = min(3, len(settings) + 1)
    rows = math.ceil((len(settings) + 1) / columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=(5 * columns, 4 * rows))
    for axis, (name, distributions) in zip(axes.flat, settings.items(), strict=False):
        laws = [quantised(law) for law in distributions]
        estimates = np.array([expected_profiles(rng, laws, root, trials) for root in roots])
        numbers += panel(axis, name, roots, estimates[:, 0], estimates[:, 1])
    exact = np.array([[of_two_bits(root, epsilon) for epsilon in EPSILONS] for root in exact_roots])
    numbers += panel(
        list(axes.flat)[len(settings)],
        "2 bits, exactly: N(0, 0.12²), N(0.2, 0.12²)",
        exact_roots,
        exact,
        np.zeros_like(exact),
    )
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    write_table(
        arguments.output, ["distributions", "epsilon", "n", "delta", "half interval"], numbers
    )


if __name__ == "__main__":
    main()
