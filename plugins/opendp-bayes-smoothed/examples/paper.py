"""The definitions of the paper beside the δ of its mechanisms: other notions of privacy, the
adversary, and mechanisms given by the law of their outcome. By enumeration and in floats, for few
records; and the votes of the figures.

A law is a function from the counts of a database, a tuple, to the probabilities of the outcomes.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

import opendp_bayes_smoothed as obs

Counts = tuple[int, ...]
Law = Callable[[Counts], np.ndarray]


def elections() -> dict[str, list[int]]:
    """National votes for the Democratic and the Republican candidate, by year.

    Totals as they are commonly printed, after Dave Leip, "Atlas of U.S. Presidential Elections",
    which the paper cites; a transcription, not a certified record: sources differ by how the votes
    of minor parties for the same candidate are counted. For 1932 to 2004 they were compared with a
    second printed table in thousands of votes: all are within 0.1 % of it, but for 1952 (0.4 %).
    """
    return _votes("votes.csv")


def districts() -> dict[str, list[int]]:
    """Democratic and Republican votes of 2020, by districts that choose electors.

    A stand-in for the paper's list of all, of which it prints only DC (94.46 %): DC, the districts
    of Maine and Nebraska, and the states with the largest and the smallest shares. Every state left
    out is between Wyoming and Vermont, so the hull is that of all. A transcription, not checked
    against the canvasses.
    """
    return _votes("votes_of_districts.csv")


def _votes(name: str) -> dict[str, list[int]]:
    with (Path(__file__).parent / name).open(encoding="utf-8") as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    return {district: [int(x) for x in cells if x.isdigit()] for district, *cells in rows}


def write_table(figure: str, head: list[str], rows: list[list[object]]) -> None:
    """Write the numbers of a figure in a table beside it."""
    with Path(figure).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


@cache
def histograms(size: int, k: int) -> list[Counts]:
    """All counts of so many records of k categories."""
    return [h for h in product(range(size + 1), repeat=k) if sum(h) == size]


def neighbours(counts: Counts) -> Iterator[Counts]:
    """The counts with one record changed."""
    for i, j in permutations(range(len(counts)), 2):
        if counts[i]:
            yield tuple(x - (category == i) + (category == j) for category, x in enumerate(counts))


def of_a_sample(outcome: Callable[[Counts], object], k: int, samples: int) -> Law:
    """The law of a function of the histogram of records drawn without replacement, such as the
    winner of an election some of whose votes are lost.
    """
    samples_of_size = histograms(samples, k)
    kinds = list(dict.fromkeys(map(outcome, samples_of_size)))

    @cache
    def law(counts: Counts) -> np.ndarray:
        result = dict.fromkeys(kinds, 0.0)
        for h in samples_of_size:
            result[outcome(h)] += math.prod(map(math.comb, counts, h))
        return np.array(list(result.values())) / math.comb(sum(counts), samples)

    return law


def divergence(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    """`max_S P(S) - e^ε Q(S)`."""
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0).sum())


def profile(law: Law, counts: Counts, epsilon: float) -> float:
    """`δ_ε(x)`, Definition 2."""
    pairs = [(law(counts), law(neighbour)) for neighbour in neighbours(counts)]
    return max(max(divergence(p, q, epsilon), divergence(q, p, epsilon)) for p, q in pairs)


def smoothed(
    law: Law, distributions: Sequence[Sequence[float]], size: int, epsilon: float
) -> float:
    """The smoothed δ, Definition 3."""

    def delta(counts: Counts) -> float:
        return min(1.0, profile(law, counts, epsilon))

    return obs.smoothed_value(delta, distributions, size)


def threshold(epsilon: float) -> float:
    """The confidence in one of two values whose likelihood ratio is `e^ε`."""
    return 1 / (1 + math.exp(-epsilon))


def utility(laws: Sequence[Sequence[float]], t: float) -> float:
    """The adversary's adjusted utility (Eq. 3): row X is the law of the output if the record
    that he does not know is X.
    """
    p = np.asarray(laws, dtype=float)
    p = p[:, p.sum(axis=0) > 0]
    confidence = p.max(axis=0) / p.sum(axis=0)
    return float(np.max(p @ np.maximum(confidence - t, 0)) / (1 - t))


def distributional(
    law: Law, distributions: Sequence[Sequence[float]], size: int, epsilon: float
) -> float:
    """Definition 4: the δ of the best simulator, which sees all records but one. Its outcomes are
    to be (ε, δ)-close to the mechanism's on all, whatever the missing record is and whatever
    distributions the others are drawn from. A linear program in the simulator's probabilities, the
    gains of every outcome, and δ.
    """
    k, factor = len(distributions[0]), math.exp(epsilon)
    other_records = histograms(size - 1, k)
    choices = combinations_with_replacement(distributions, size - 1)
    others = np.array(
        [[law_of[h] for h in other_records] for law_of in (_independent(c, k) for c in choices)]
    )
    laws = [
        np.array([law((*h[:x], h[x] + 1, *h[x + 1 :])) for h in other_records]) for x in range(k)
    ]
    outcomes = laws[0].shape[1]
    truth = np.concatenate([(others @ rows).ravel() for rows in laws])
    seen = np.tile(np.kron(others, np.eye(outcomes)), (k, 1))  # times the simulator, flattened
    gains, none = np.eye(len(truth)), np.zeros((len(truth), len(truth)))
    totals = np.kron(np.eye(len(truth) // outcomes), np.ones(outcomes))
    column = np.zeros((len(truth), 1))
    above = np.block(
        [
            [-factor * seen, -gains, none, column],
            [seen, none, -gains, column],
            [totals @ seen * 0, totals, totals * 0, -np.ones((len(totals), 1))],
            [totals @ seen * 0, totals * 0, totals, -np.ones((len(totals), 1))],
        ]
    )
    limits = np.concatenate([-truth, factor * truth, np.zeros(2 * len(totals))])
    sums = np.kron(np.eye(len(other_records)), np.ones(outcomes))
    sums = np.hstack([sums, np.zeros((len(other_records), above.shape[1] - sums.shape[1]))])
    aim = np.eye(above.shape[1])[-1]
    return float(linprog(aim, above, limits, sums, np.ones(len(other_records))).fun)


def _independent(rows: Sequence[Sequence[float]], k: int) -> dict[Counts, float]:
    """The law of the histogram of independent records, one from each distribution."""
    law = {(0,) * k: 1.0}
    for row in rows:
        grown: dict[Counts, float] = defaultdict(float)
        for h, p in law.items():
            for x, q in enumerate(row):
                grown[(*h[:x], h[x] + 1, *h[x + 1 :])] += p * q
        law = grown
    return law
