"""Presets by the papers' names: the scales of their definitions, and their checks."""

import math

import numpy as np
import pytest

from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes_research import papers
from tests.helpers import oracles
from tests.helpers.argument_rows_of_papers import PRESETS

ONES = [1.0, 1.0]


def test_every_preset_has_rows() -> None:
    assert {preset.__name__ for preset in PRESETS} == set(papers.__all__)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_laplace(epsilon: float) -> None:
    """The papers' loss of the scale; of lap for two categories it is half of what they ask for."""
    for k in (2, 3, 7):
        improved = papers.ilap(epsilon, k).proven_loss(1, size=10, prior=[1.0] * k)
        assert improved.epsilon == pytest.approx(epsilon)
        assert papers.lap(epsilon, k).scale == k / epsilon
    assert papers.lap(1.0, 2).proven_loss(1, size=10, prior=ONES).epsilon == 0.5


@pytest.mark.parametrize("counts", [(1, 0, 1), (2, 3, 1), (0, 0, 4), (1, 2, 0, 1), (3, 2)])
def test_truncated_laplace(counts: tuple[int, ...]) -> None:
    """Summed over the noise: n records are released, and the loss is that of lap."""
    k, ones = len(counts), [1.0] * len(counts)
    mechanism, plain = papers.lap_truncated(1.0, k), papers.lap(1.0, k)
    stated = oracles.law_of(mechanism, counts, ones)
    assert {sum(released) for released in stated} == {sum(counts)}
    truth = oracles.laplace_law(counts, float(k), "floored", "truncated")
    assert oracles.largest_relative_difference(stated, truth) < 1e-12
    loss = mechanism.proven_loss(1, size=sum(counts), prior=np.array(ones))
    assert loss == plain.proven_loss(1, size=sum(counts), prior=np.array(ones))
    # The negative control: what is not truncated has another law from three categories on.
    other = oracles.law_of(plain, counts, ones)
    assert (oracles.largest_relative_difference(other, truth) < 1e-12) == (k == 2)


def test_truncated_laplace_exponential_and_beta_are_where_their_bounds_are() -> None:
    """Its exact loss, over all neighbours, is at most the one that is stated."""
    for k, size in ((2, 6), (3, 4), (4, 3)):
        mechanism = papers.lap_truncated(1.0, k)
        laws = {tuple(x): mechanism.log_pmf(x, 1.0)[1] for x in candidates(size, k).tolist()}
        worst = max(
            float(np.abs(laws[x] - laws[y]).max())
            for x in laws
            for y in laws
            if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2
        )
        stated = mechanism.proven_loss(1, size=size, prior=np.ones(k)).epsilon
        assert 0.9 * stated < worst <= stated * (1 + 1e-12)
    mechanism = papers.ehd(0.5, 10, [0.1, 0.1])
    proven = mechanism.proven_loss(1, size=10, prior=np.array([0.1, 0.1]))
    assert proven.epsilon == pytest.approx(0.5)
    # With the papers' constant, two categories of a uniform prior would be calibrated otherwise.
    assert papers.ehd(1.0, 100, ONES).scale < 2 * math.sqrt(1 - math.pi / 4)
    assert papers.ehdl(0.5).scale == pytest.approx(4.0)
    for gamma in (0.1, 1.0):
        assert papers.ehds(0.5, gamma).scale == pytest.approx(4 * (1 + gamma))
    mechanism = papers.beta(2.0, 1e-3, 50)
    assert mechanism.beta is not None
    tail = 51 * math.exp(-2.0 / (2 * math.expm1(mechanism.beta)))
    assert tail == pytest.approx(1e-3 / 2)
    assert mechanism.scale == 1.0


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: papers.lap(0.0, 2), ValueError, r"epsilon=0.0: must be finite and greater"),
        (lambda: papers.lap(1.0, 1), ValueError, r"k=1: .*at least 2"),
        (lambda: papers.ilap(1.0, 2.5), TypeError, r"k=2.5: .*an integer"),
        (lambda: papers.ilap(1.0, True), TypeError, r"k=True: .*an integer"),
        (lambda: papers.ehds(1.0, -1.0), ValueError, r"gamma=-1.0: must be finite"),
        (lambda: papers.beta(1.0, 1.0, 10), ValueError, r"delta=1.0: .*between 0 and 1"),
        (lambda: papers.beta(1.0, 0.1, 0), ValueError, r"size=0: must be between 1"),
    ],
)
def test_refusals(call, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
