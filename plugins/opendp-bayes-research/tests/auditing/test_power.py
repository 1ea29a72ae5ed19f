"""How surely an audit notices a scale that is too small, from probabilities alone."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from opendp_bayes.mechanisms import HellingerExponential
from opendp_bayes_research import audit
from opendp_bayes_research.auditing.audited_draws import chi_square_p_value
from opendp_bayes_research.auditing.results import Audit
from opendp_bayes_research.auditing.stated_law import Law, at_outcomes
from tests.helpers.sweeps import slow
from tests.helpers.wrong_scales import CONFIDENCE, DRAWS, LISTED

#: Quick to compute; the others take seconds.
QUICK = {"discrete Laplace", "floored Laplace", "EHD"}


class Cells(NamedTuple):
    """Of the chi-square test: what the law expects, and the probabilities of the sampler."""

    expected: NDArray[np.float64]
    drawn: NDArray[np.float64]

    @classmethod
    def of(cls, stated: Law, true: Law) -> "Cells":
        """The rare outcomes together, until 20 are expected."""
        expected = DRAWS * np.exp(stated[1])
        drawn = np.exp(at_outcomes(stated[0], *true))
        cells = [(0.0, 0.0)]
        for i in np.argsort(expected, kind="stable"):
            cells[-1] = (cells[-1][0] + expected[i], cells[-1][1] + drawn[i])
            if cells[-1][0] >= 20:
                cells.append((0.0, 0.0))
        rest = cells.pop()
        cells[-1] = (cells[-1][0] + rest[0], cells[-1][1] + rest[1])
        return cls(*np.array(cells).T)

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the statistic, `sum (N - e)^2 / e` for multinomial N, by factorial
        moments: `E N^(i) M^(j) = n^(i + j) p^i q^j` for falling powers of two cells' numbers.
        """
        n, (e, p) = DRAWS, self
        two, three, four = (math.perm(n, power) for power in (2, 3, 4))
        mean = float(((n * p * (1 - p) + (n * p - e) ** 2) / e).sum())

        def pairs(i: int, j: int) -> float:
            """The sum over two different cells."""
            sums = [float((p**power / e).sum()) for power in (i, j)]
            return sums[0] * sums[1] - float((p ** (i + j) / e**2).sum())

        covariances = (
            (four - two**2) * pairs(2, 2)
            + 2 * (three - two * n) * pairs(2, 1)
            + (two - n**2) * pairs(1, 1)
        )
        fourth = four * p**4 + 6 * three * p**3 + 7 * two * p**2 + n * p
        return mean, covariances + float(((fourth - (two * p**2 + n * p) ** 2) / e**2).sum())

    def unnoticed(self, level: float) -> float:
        """An upper bound on the probability that the test passes, by Cantelli's inequality."""
        critical = stats.chi2.isf(level, self.expected.size - 1)
        mean, variance = self.moments()
        return float(variance / (variance + (mean - critical) ** 2)) if mean > critical else 1.0


def caught(found: Audit, factor: float) -> float:
    """A lower bound on the probability that one of the fits of an audit like this one fails, whose
    draws are independent, if the scale of the sampler is so much of the stated one.
    """
    right: Any = found.mechanism
    wrong = replace(right, scale=right.scale * factor)

    def unnoticed(counts):
        laws = (of.log_pmf(counts, found.prior) for of in (right, wrong))
        return Cells.of(*laws).unnoticed(found.level)

    return 1 - math.prod(unnoticed(counts) for pair in found.drawn for counts in pair)


@pytest.mark.parametrize("name", slow(LISTED, but=QUICK))
def test_a_scale_a_fifth_too_small_is_caught(name: str) -> None:
    """In at least 98 % of audits at the default number of draws; the smallest scale, of 5, 10, 15
    and 20 % too small, that is in 95 % is the one in `docs/research/audit.md`.
    """
    mechanism, size, prior, smallest = LISTED[name]
    made = audit(mechanism, size=size, prior=prior, draws=1000)
    assert caught(made, 0.8) >= 0.98
    percents = [5, 10, 15, 20]
    found = [caught(made, 1 - percent / 100) >= 0.95 for percent in percents]
    assert percents[found.index(True)] == smallest
    assert found == sorted(found)
    assert caught(made, 1.0) == 0  # negative control


def test_mean_and_variance_are_those_of_draws_and_of_an_audit() -> None:
    """And the cells those of the audit's own test."""
    rng = np.random.default_rng(0)
    mechanism, counts, prior = HellingerExponential(0.5), (3, 7), (1.0, 1.0)
    stated, true = (replace(mechanism, scale=s).log_pmf(counts, prior) for s in (0.5, 0.48))
    cells = Cells.of(stated, true)
    numbers = rng.multinomial(DRAWS, cells.drawn / cells.drawn.sum(), 20_000)
    seen = ((numbers - cells.expected) ** 2 / cells.expected).sum(axis=1)
    mean, variance = cells.moments()
    assert seen.mean() == pytest.approx(mean, rel=0.01)
    assert seen.var() == pytest.approx(variance, rel=0.05)
    drawn = np.repeat(stated[0], rng.multinomial(DRAWS, np.exp(stated[1])), axis=0)
    numbers = np.array([(drawn == outcome).all(axis=1).sum() for outcome in stated[0]])
    own = Cells.of(stated, (stated[0], np.log(numbers / DRAWS)))
    statistic = ((own.drawn * DRAWS - own.expected) ** 2 / own.expected).sum()
    expected = stats.chi2.sf(statistic, own.expected.size - 1)
    assert chi_square_p_value(drawn, stated) == pytest.approx(expected, rel=1e-6)
    found = audit.__kwdefaults__
    assert (found["draws"], found["confidence"]) == (DRAWS, CONFIDENCE)
