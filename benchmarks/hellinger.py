"""Cost and error of Hellinger distances beside the three-gammaln formula, and cost of the
sensitivities.
"""

from math import isqrt

import numpy as np
from flint import arb, ctx
from reporting import milliseconds, per_call, table
from scipy.special import gammaln

from opendp_bayes.mechanisms import hellinger_distance, local_sensitivity, smooth_sensitivity

DISTANCES = 1_000_000
CALLS = 20


def three_gammaln(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The formula of the papers, in floating point."""

    def log_beta(c: np.ndarray) -> np.ndarray:
        return gammaln(c).sum(axis=-1) - gammaln(c.sum(axis=-1))

    return np.sqrt(
        np.maximum(1 - np.exp(log_beta((a + b) / 2) - (log_beta(a) + log_beta(b)) / 2), 0)
    )


def exact(a: np.ndarray, b: np.ndarray) -> arb:
    """Compute the Hellinger distance by its formula, to 300 bits."""

    def log_beta(c: list[arb]) -> arb:
        return sum((x.lgamma() for x in c), arb(0)) - sum(c, arb(0)).lgamma()

    first, second = [arb(x) for x in a.tolist()], [arb(x) for x in b.tolist()]
    middle = [(x + y) / 2 for x, y in zip(first, second, strict=True)]
    return (-(log_beta(middle) - (log_beta(first) + log_beta(second)) / 2).expm1()).sqrt()


def many_counts(rng: np.random.Generator, size: int, k: int, shape: str) -> np.ndarray:
    weights = np.ones(k) if shape == "even" else 1 / np.arange(1, k + 1)
    return rng.multinomial(size, weights / weights.sum())


def distances(rng: np.random.Generator) -> None:
    rows = []
    for size, k in ((10**3, 2), (10**6, 2), (10**9, 2), (10**6, 10), (10**6, 100)):
        a = 1.0 + rng.multinomial(size, np.full(k, 1 / k))
        b = 1.0 + rng.multinomial(size, rng.dirichlet(np.ones(k), size=2 * DISTANCES // k))
        ours, naive = milliseconds(
            lambda a=a, b=b: hellinger_distance(a, b), lambda a=a, b=b: three_gammaln(a, b)
        )
        rows.append([f"{size:.0e}", k, len(b), ours, naive, ours / naive])
    table(
        "Many Hellinger distances to one posterior",
        ["n", "k", "distances", "ours, ms", "three gammaln, ms", "ratio"],
        rows,
        f"Wanted: {DISTANCES:,} distances with k=2 in less than 500 ms.",
    )


def errors(rng: np.random.Generator) -> None:
    ctx.prec = 300
    rows = []
    for power in range(2, 10):
        size, far, near = 10**power, [], []
        for pairs, step in (
            (near, lambda: 1),
            (far, lambda size=size: rng.integers(1, 2 * isqrt(size))),
        ):
            for _ in range(200):
                x, moved = rng.integers(0, size // 2), step()
                pairs.append(([1.0 + x, 1.0 + size - x], [1.0 + x + moved, 1.0 + size - x - moved]))
        row: list[object] = [f"1e{power}"]
        for pairs in (near, far):
            a, b = (np.array(side) for side in zip(*pairs, strict=True))
            truth = [exact(first, second) for first, second in zip(a, b, strict=True)]
            for formula in (hellinger_distance, three_gammaln):
                found = zip(formula(a, b).tolist(), truth, strict=True)
                row.append(f"{max(float(abs(arb(h) / t - 1)) for h, t in found):.1e}")
        rows.append(row)
    table(
        "Largest relative error of a Hellinger distance, k=2",
        [
            "n",
            "one record, ours",
            "one record, three gammaln",
            "up to 2 sqrt(n) records, ours",
            "up to 2 sqrt(n) records, three gammaln",
        ],
        rows,
        "Against python-flint to 300 bits, over 200 pairs of posteriors one record apart and 200 a"
        " random number of records apart. From an error of 1 on no digit is right.",
    )


def sensitivities(rng: np.random.Generator) -> None:
    rows = []
    for shape in ("even", "1/i"):
        for size, k in (
            (10**5, 3),
            (10**5, 1000),
            (10**8, 3),
            (10**8, 1000),
            (10**10, 1000),
            (10**8, 10_000),
        ):
            counts = many_counts(rng, size, k, shape)
            (local,) = milliseconds(
                per_call(lambda counts=counts: local_sensitivity(counts, 1.0), CALLS)
            )
            options: list[dict[str, float]] = [{"gamma": 1.0}, {"gamma": 0.1}, {"beta": 0.1}]
            smooth = milliseconds(
                *(
                    lambda counts=counts, option=option: smooth_sensitivity(counts, 1.0, **option)
                    for option in options
                ),
                repeats=3,
            )
            rows.append([shape, f"{size:.0e}", k, local / CALLS, *smooth])
    table(
        "Local and smooth sensitivity of one data set",
        [
            "frequencies",
            "n",
            "k",
            "LS, ms",
            "S(gamma=1), ms",
            "S(gamma=0.1), ms",
            "S(beta=0.1), ms",
        ],
        rows,
        "Wanted: LS below 1 ms at k=1000, S(gamma=1) below 50 ms at n=1e8, k=1000. The papers'"
        " definition of S goes over every data set, C(n + k - 1, k - 1) of them.",
    )


def main() -> None:
    rng = np.random.default_rng(0)
    distances(rng)
    errors(rng)
    sensitivities(rng)


if __name__ == "__main__":
    main()
