"""Laplace noise: the law by its cells, the published tables, the samples, the messages."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import LaplaceParameters
from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import integer_noise
from opendp_bayes.mechanisms.laws import log_clamped
from tests.helpers import oracles
from tests.helpers.sweeps import pairs_of

NOISES, TOTALS = ("discrete", "floored"), ("remainder", "truncated", "bounded")
DATA = [
    *(((5, 7), 12), ((0, 6), 6), ((6, 0), 6), ((1, 0), 1), ((2, 3, 3), 8), ((0, 0, 4), 4)),
    *(((4, 0, 0), 4), ((1, 0, 2, 1), 4)),
]


@pytest.mark.parametrize(
    ("data", "noise", "total", "scale"), pairs_of(product(DATA, NOISES, TOTALS, [0.3, 1.0, 7.5]))
)
def test_law(data: tuple[oracles.Counts, int], noise: Any, total: Any, scale: float) -> None:
    counts, size = data
    stated = oracles.law_of(
        LaplaceParameters(scale=scale, noise=noise, total=total), counts, [1.0] * len(counts)
    )
    truth = oracles.laplace_law(counts, scale, noise, total)
    assert len(stated) == (
        math.comb(size + len(counts) - 1, size)
        if total == "truncated"
        else (size + 1) ** (len(counts) - (total == "remainder"))
    )
    assert oracles.largest_relative_difference(stated, truth) < 1e-12
    assert sum(stated.values()) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(("noise", "total"), list(product(NOISES, TOTALS)))
def test_law_notices_what_is_wrong(noise: Any, total: Any) -> None:
    """Negative control: scale off by 30 %, the other noise."""
    counts = (2, 5)
    stated = oracles.law_of(
        LaplaceParameters(scale=2.0, noise=noise, total=total), counts, [1.0, 1.0]
    )
    other = NOISES[noise == "discrete"]
    for wrong in (
        oracles.laplace_law(counts, s, n, total)
        for s, n in ((1.4, noise), (2.6, noise), (2.0, other))
    ):
        assert oracles.largest_relative_difference(stated, wrong) > 1e-3


def centre(scale: float, noise: Any) -> dict[int, float]:
    """Probabilities of the noise, from a law whose clamps are far away."""
    candidates, log_p = LaplaceParameters(scale=scale, noise=noise).log_pmf([500, 500], 1.0)
    return dict(zip((candidates[:, 0] - 500).tolist(), np.exp(log_p).tolist(), strict=True))


@pytest.mark.parametrize(
    ("scale", "table", "absolute"),
    [
        (2.0, [0.19673467014, 0.11932560927, 0.07237464051], [0.31606027941, 0.19170024978]),
        (1.0, [0.31606027941, 0.11627207896, 0.04277410743], [0.43233235838, 0.1590461864]),
    ],
)
def test_the_tailoring_papers_tables(scale, table, absolute):
    """Of the noise, which is the same on both sides of -1/2, and of its absolute values."""
    law = centre(scale, "floored")
    assert [law[t] for t in range(3)] == pytest.approx(table, abs=1e-11)
    assert [law[-1 - t] for t in range(3)] == pytest.approx(table, abs=1e-11)
    assert [law[t] + law[-t] for t in (1, 2)] == pytest.approx(absolute, abs=1e-11)


def test_the_mean_of_the_noise_and_what_is_clamped() -> None:
    """The floor makes the papers' noise biased by -1/2; the discrete noise is symmetric."""
    for noise, mean in (("floored", -0.5), ("discrete", 0.0)):
        assert sum(t * p for t, p in centre(5.0, noise).items()) == pytest.approx(mean, abs=1e-12)
    assert log_clamped(integer_noise.DiscreteLaplace(1.0), 3, 5, 5).tolist() == [0.0]


@pytest.mark.parametrize(("noise", "total"), list(product(NOISES, TOTALS)))
@pytest.mark.parametrize("counts", [(3, 9), (0, 5), (1, 2, 3)])
def test_samples(counts: oracles.Counts, noise: Any, total: Any) -> None:
    """The other noise is rejected too."""
    samples = LaplaceParameters(scale=1.7, noise=noise, total=total).sample(counts, 1.0, 20_000)
    assert samples.shape == (20_000, len(counts))
    other = oracles.laplace_law(counts, 1.7, NOISES[noise == "discrete"], total)
    oracles.check_draws(
        samples, lambda factor: oracles.laplace_law(counts, factor * 1.7, noise, total), other
    )


@pytest.mark.parametrize("noise", NOISES)
def test_samples_with_a_private_total(noise: Any) -> None:
    """Each count plus noise, not below 0; nothing above."""
    samples = LaplaceParameters(1.7, noise=noise, total="private").sample((3, 0), 1.0, draws=20_000)
    assert samples.sum(axis=1).max() > 3
    for index, count in enumerate((3, 0)):

        def law(factor: float, count: int = count) -> dict[int, float]:
            cells = oracles.noise_law(noise, factor * 1.7)
            below = sum(p for z, p in cells.items() if count + z <= 0)
            return {0: below, **{count + z: p for z, p in cells.items() if count + z > 0}}

        oracles.check_draws(samples[:, index], law)


@pytest.mark.parametrize("noise", ["discrete", "floored"])
def test_samples_have_noise_of_their_scale(noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kind and exactly of the scale of the map, for each noised count of each release."""
    asked: list[tuple[str, Fraction, int]] = []
    for kind in ("discrete", "floored"):

        def draws(scale: Fraction, size: int, kind: str = kind) -> Any:
            asked.append((kind, scale, size))
            return np.arange(1, size + 1)

        monkeypatch.setattr(integer_noise, f"{kind}_laplaces", draws)
    samples = LaplaceParameters(0.3, noise).sample([10, 20, 30], 1.0, draws=2)
    assert samples.tolist() == [[11, 22, 27], [13, 24, 23]]
    assert asked == [(noise, Fraction(0.3), 4)]


def test_noise_is_independent_between_counts() -> None:
    samples = LaplaceParameters(2.0, total="private").sample([500, 500], 1.0, draws=20_000) - 500
    cell = oracles.noise_law("discrete", 2.0)
    law = {(a, b): cell[a] * cell[b] for a, b in product(range(-60, 61), repeat=2)}
    assert not oracles.rejects(Counter(map(tuple, samples.tolist())), law)


@pytest.mark.parametrize(
    ("noise", "total", "scale"),
    pairs_of(product(NOISES, (*TOTALS, "private"), [*SCALES, 1e-3, 1e9, 1e18])),
)
def test_samples_at_any_scale(noise: Any, total: Any, scale: float) -> None:
    """Every scale gives counts, from a point to the uniform law."""
    samples = LaplaceParameters(scale=scale, noise=noise, total=total).sample(
        [3, 4], 1.0, draws=200
    )
    assert np.all(samples >= 0)
    if total != "private":
        assert np.all(samples <= 7)
    if scale >= 1e9:
        # Half of the noise is negative; outside with probability 1e-17.
        assert 40 <= np.sum(samples[:, 0] == 0) <= 160


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [*SCALES, 1e-3, 1e9])
def test_law_at_any_scale(noise: Any, scale: float) -> None:
    _, log_p = LaplaceParameters(scale=scale, noise=noise).log_pmf([1, 2], 1.0)
    assert not np.any(np.isnan(log_p))
    assert np.exp(log_p).sum() == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(
    ("total", "counts"),
    [
        ("remainder", [[0, 2, 5], [7, 1, 0], [4, 4, 0]]),
        ("truncated", [[0, 2, 5], [7, 0, 0], [4, 3, 0]]),
        ("bounded", [[0, 2], [7, 1], [4, 4]]),
        ("private", [[0, 2], [9, 1], [4, 4]]),
    ],
)
def test_project(total: Any, counts: list[list[int]]) -> None:
    """What was drawn of a count that is not noised does not matter: it takes what is left."""
    noised = np.array([[-3, 2], [9, 1], [4, 4]])
    completed = LaplaceParameters(1.0).law(7, np.ones(3)).completed(noised, 7)
    assert completed.tolist() == [[-3, 2, 8], [9, 1, -3], [4, 4, -1]]
    drawn = completed if len(counts[0]) == 3 else noised
    size = None if total == "private" else 7
    assert LaplaceParameters(1.0, total=total).project(drawn, size).tolist() == counts


@pytest.mark.parametrize(
    ("total", "size", "k", "moved"),
    [
        *(("remainder", 10, 2, 1), ("remainder", 10, 3, 2), ("truncated", 10, 2, 1)),
        *(("bounded", 10, 2, 2), ("private", None, 2, 1), ("private", None, 3, 1)),
    ],
)
def test_map_is_rounded_up(total: Any, size: int | None, k: int, moved: int) -> None:
    """That of the counts that move, each by `d_in`, with half of its squared loss as rho."""
    for scale in (3.0, 0.1, 1e-3, 0.7, 7e9):
        for d_in in (1, 3, 10**6):
            loss = LaplaceParameters(scale, total=total).proven_loss(
                d_in, size=size, prior=np.ones(k)
            )
            each = d_in / Fraction(scale)
            bounds = moved * each, 2 * moved * each, moved * each**2 / 2
            for value, least in zip((loss.epsilon, loss.range, loss.rho), bounds, strict=True):
                assert least <= Fraction(value) <= least * (1 + Fraction(1, 2**50))
            assert Fraction(loss.epsilon) <= bounds[0] * (1 + Fraction(1, 2**52))
