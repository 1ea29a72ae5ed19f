"""Keys that nobody listed: how many are found at the same δ, by the rules of this package and of
others, and with how much noise in their counts. Expected numbers, in closed form.
"""

import math

import numpy as np
from numpy.typing import NDArray
from reporting import table

from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.unlisted.laws_for_budgets import delta_of_discovery, fitted_discovery
from opendp_bayes.unlisted.thresholds import GaussianThreshold, LaplaceThreshold, Threshold

#: ε, δ, the records of Zipf's worlds, and the mean of the lognormal world's logarithms.
BUDGETS = ((1.0, 1e-8, 100_000, 1.0), (0.5, 1e-6, 100_000, 1.0), (0.1, 1e-6, 1_000_000, 3.0))
KEYS = (1, 3, 10)


def zipf(power: float, records: int) -> NDArray[np.int64]:
    """Counts of keys of which the i-th has a share in proportion to `i^-power`."""
    shares = np.arange(1, 30_001) ** -power
    counts = np.rint(records * shares / shares.sum()).astype(np.int64)
    return counts[counts > 0]


def lognormal(mean: float) -> NDArray[np.int64]:
    """Counts of 20,000 keys."""
    counts = np.rint(np.random.default_rng(0).lognormal(mean, 1.5, 20_000)).astype(np.int64)
    return counts[counts > 0]


def in_halves(epsilon: float, delta: float, keys: int) -> GaussianThreshold:
    """Gaussian noise with half of δ for the counts and half for the threshold."""
    scale, step = 1.0, 2.0
    far = 10**9
    while step > 1 + 1e-6:
        while delta_of_discovery(GaussianThreshold(scale, far), epsilon, keys=keys) > delta / 2:
            scale *= step
        scale, step = scale / step, math.sqrt(step)
    scale *= step**2
    threshold = 1
    while keys * GaussianThreshold(scale, threshold).shown(1) > delta / 2:
        threshold += 1
    return GaussianThreshold(scale, threshold)


def rules(epsilon: float, delta: float, keys: int) -> dict[str, tuple[Threshold, float]]:
    """Each rule's law, and the noise of a count that is shown, in records."""

    moved = Distance.limited(keys, largest=1)

    def fitted(name: str, epsilon: float) -> Threshold:
        return fitted_discovery(name, epsilon=epsilon, delta=delta, d_in=moved).law

    whole = {
        "optimal, counts included": fitted("optimal_threshold", epsilon),
        "Laplace": fitted("laplace_threshold", epsilon),
        "Gaussian": fitted("gaussian_threshold", epsilon),
        "Gaussian, δ in halves": in_halves(epsilon, delta, keys),
    }
    of_counts = LaplaceThreshold(2 * keys / epsilon, 1).std
    half = {
        "optimal, half of ε": fitted("optimal_threshold", epsilon / 2),
        "Laplace, half of ε": fitted("laplace_threshold", epsilon / 2),
    }
    return {name: (law, law.std) for name, law in whole.items()} | {
        name: (law, of_counts) for name, law in half.items()
    }


def expected(law: Threshold, counts: NDArray[np.int64]) -> float:
    """Keys that are shown, in expectation."""
    sizes, number = np.unique(counts, return_counts=True)
    return float(law.shown(sizes) @ number)


def found() -> None:
    for epsilon, delta, records, mean in BUDGETS:
        worlds = {f"Zipf {power}": zipf(power, records) for power in (0.8, 0.9, 1.0, 1.1)}
        worlds["lognormal"] = lognormal(mean)
        rows = []
        for keys in KEYS:
            for name, (law, noise) in rules(epsilon, delta, keys).items():
                numbers = [expected(law, counts) for counts in worlds.values()]
                rows.append([keys, name, law.least_shown(0.5), noise, *map(round, numbers)])
        table(
            f"Keys found at ε = {epsilon:g}, δ = {delta:g}",
            ["keys a person", "rule", "least count of one half", "sd of a count", *worlds],
            rows,
            f"Expected keys shown: Zipf's worlds of {records:,} records in 30,000 keys, and 20,000"
            f" keys of lognormal counts, with logarithms of mean {mean:g} and standard deviation"
            " 1.5. The optimal law is that of this package, whose threshold is the optimal"
            " selection rule and whose counts cost nothing more. Laplace is the rule of OpenDP's"
            " `laplace_threshold` and of Google's Laplace thresholds with δ as it truly is;"
            " Gaussian the least threshold that the exact profile allows; in halves, Google's"
            " Gaussian rule. With half of ε for selection and half for the counts, the optimal rule"
            " is that of Google's partition selection, and Laplace that of Tumult's groups.",
        )


def stated_by_opendp() -> None:
    rows = []
    for scale, threshold in ((1.0, 5), (1.0, 20), (2.0, 39), (10.0, 179)):
        true = delta_of_discovery(LaplaceThreshold(scale, threshold), 1 / scale)
        r = math.exp(-1 / scale)
        stated = r**threshold / (1 + r)
        rows.append([scale, threshold, f"{stated:.4g}", f"{true:.4g}", true / stated])
    table(
        "δ that OpenDP 0.16 states for a Laplace threshold",
        ["scale", "threshold", "stated", "true", "true / stated"],
        rows,
        "`laplace_threshold` states P(1 + Z > threshold) and shows counts at the threshold too.",
    )


found()
stated_by_opendp()
