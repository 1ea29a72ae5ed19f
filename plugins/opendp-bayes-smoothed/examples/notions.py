"""Table 2 of the paper in numbers: what notions of privacy that differ in who chooses the database,
the outcome and the record that changes say of one mechanism, the histogram of 4 of 20 records.

    python notions.py [--fast] [--output notions.png]

Records have one of two values and are drawn from (.5, .5) or (.7, .3); which, an adversary chooses.
Where a notion has no δ, what is shown is the probability that the loss exceeds ε. All are sums over
every database and every outcome.
"""

import argparse
import math
from collections.abc import Callable

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import paper

SIZE, SAMPLES = 20, 4
CORNERS = np.array([[0.5, 0.5], [0.7, 0.3]])
HISTOGRAM = paper.of_a_sample(lambda h: h, 2, SAMPLES)
#: Outcomes by the first count of the database, a row for each.
LAWS = np.array([HISTOGRAM((x, SIZE - x)) for x in range(SIZE + 1)])


def log_ratios(x: int, y: int) -> np.ndarray:
    """`ln (P_x / P_y)` of the outcomes that x can have."""
    possible = LAWS[x] > 0
    with np.errstate(divide="ignore"):
        return np.log(LAWS[x, possible]) - np.log(LAWS[y, possible])


def differential(epsilon: float) -> float:
    """The adversary chooses the database, the outcome and the record."""
    return max(paper.profile(HISTOGRAM, (x, SIZE - x), epsilon) for x in range(SIZE + 1))


def smoothed(epsilon: float) -> float:
    """The database is drawn; the rest is chosen."""
    return paper.smoothed(HISTOGRAM, CORNERS, SIZE, epsilon)


def distributional(epsilon: float) -> float:
    """The adversary knows the distributions alone."""
    return max(0.0, paper.distributional(HISTOGRAM, CORNERS.tolist(), SIZE, epsilon))


def bayesian(epsilon: float) -> float:
    """The database is chosen, what its changed record becomes is drawn: the largest probability,
    over the record and the outcome, of a loss above ε (Triastcyn and Faltings, 2020).
    """
    worst = 0.0
    for x in range(SIZE + 1):
        for y, value in ((x - 1, 1), (x + 1, 0)):  # of the changed record
            if 0 <= y <= SIZE:
                possible = LAWS[x][LAWS[x] > 0]
                lost = float(possible[log_ratios(x, y) > epsilon].sum())
                worst = max(worst, float(CORNERS[:, value].max()) * lost)
    return worst


def random(epsilon: float) -> float:
    """Database and record are drawn: the largest probability that the loss of some outcome exceeds
    ε (Hall, Rinaldo and Wasserman, 2011).
    """
    worst = 0.0
    for first in range(SIZE):  # of the other records, drawn from the first distribution
        others = np.ones(1)
        for p in [CORNERS[0, 0]] * first + [CORNERS[1, 0]] * (SIZE - 1 - first):
            others = np.convolve(others, [1 - p, p])
        exceeded = [
            max(log_ratios(x, x + 1).max(), log_ratios(x + 1, x).max()) > epsilon
            for x in range(SIZE)
        ]
        for p, q in CORNERS:
            worst = max(worst, float(2 * p * q * (others @ exceeded)))
    return worst


def divergences() -> dict[str, float]:
    """Notions of an average over outcomes: the largest Rényi divergence of order 2, which bounds
    concentrated privacy from below; and the μ of Gaussian privacy, finite only where no outcome of
    one database is impossible for another.
    """
    pairs = [(x, y) for x in range(SIZE + 1) for y in (x - 1, x + 1) if 0 <= y <= SIZE]
    second = max(float(np.log(LAWS[x][LAWS[x] > 0] @ np.exp(log_ratios(x, y)))) for x, y in pairs)
    certain = any(np.isinf(log_ratios(x, y)).any() for x, y in pairs)
    return {
        "Rényi, order 2": second,
        "concentrated": second,
        "Gaussian, μ": math.inf if certain else math.nan,
    }


NOTIONS: dict[str, tuple[str, str, str, Callable[[float], float]]] = {
    "smoothed": ("drawn", "chosen", "chosen", smoothed),
    "differential": ("chosen", "chosen", "chosen", differential),
    "Bayesian": ("chosen", "drawn", "drawn", bayesian),
    "random": ("drawn", "chosen", "drawn", random),
    "distributional": ("unknown", "chosen", "chosen", distributional),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="few ε")
    parser.add_argument("--output", default="notions.png")
    arguments = parser.parse_args()
    epsilons = [0.5, 1.0] if arguments.fast else [i / 20 for i in range(41)]
    figure, axis = plt.subplots(figsize=(7, 4.4))
    numbers: list[list[object]] = []
    for name, (database, outcome, record, delta) in NOTIONS.items():
        values = [delta(epsilon) for epsilon in epsilons]
        axis.semilogy(epsilons, np.maximum(values, 1e-8), ".-", ms=4, label=name)
        numbers += [
            [name, database, outcome, record, epsilon, f"{value:.6g}"]
            for epsilon, value in zip(epsilons, values, strict=True)
        ]
        print(f"{name}: delta = {delta(0.5):.4g} at epsilon = 0.5")
    for name, loss in divergences().items():
        numbers.append([name, "chosen", "averaged", "chosen", loss, 0])
        print(f"{name}: {loss}")
    axis.set(
        title=f"histogram of {SAMPLES} of {SIZE} records",
        xlabel="ε",
        ylabel="δ, or P(loss > ε)",
        ylim=(1e-8, 1),
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)
    head = ["notion", "database", "outcome", "record", "epsilon", "delta"]
    paper.write_table(arguments.output, head, numbers)


if __name__ == "__main__":
    main()
