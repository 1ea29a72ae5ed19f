"""Shares of many tables at once, beside the engine of each table."""

from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.many_tables import shares_of_tables
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee

LAPLACE = DiscreteLaplace(10.0)

SETTINGS = {
    "few records": (LAPLACE, (1.0, 1.0), [[-3, 1], [0, 0], [-40, 25], [8, -12]]),
    "as many as the noise": (LAPLACE, (1.0, 1.0), [[26, 42], [105, 114], [7, 615], [160, 20]]),
    "many records": (LAPLACE, (1.0, 1.0), [[372, 16367], [815, 2218], [100_000, 3]]),
    "hardly any noise": (DiscreteLaplace(0.05), (1.0, 1.0), [[25, 101], [3, 14], [0, 7]]),
    "priors that differ": (LAPLACE, (0.5, 5.0), [[174, 65], [68, -33], [4, 90]]),
    "Gaussian": (DiscreteGaussian(14.0), (1.0, 1.0), [[-2, 147], [30, 31], [4000, 90]]),
    "Gaussian, narrow": (DiscreteGaussian(0.3), (0.5, 0.5), [[6, 187], [3, 35]]),
    "floored": (FlooredLaplace(5.0), (1.0, 1.0), [[82, 474], [36, 35], [-9, 4]]),
    "three": (LAPLACE, (1.0,) * 3, [[97, -6, -1], [96, -30, 60], [0, 1, 2]]),
    "eight": (DiscreteLaplace(5.0), (1.0,) * 8, [[4, 64, -3, 14, 19, 232, 8, 2]]),
    "eight, wide": (DiscreteLaplace(20.0), (1.0,) * 8, [[7, 58, -16, 75, 129, 1, 35, -19]]),
}


def of_each(noise: Any, prior: Any, drawn: Any, level: float) -> Any:
    """Means, deviations and ends by an engine for each table."""
    engines = [CountsGivenNoise.of([DrawnCounts.of(row, noise)], prior) for row in drawn]
    laws = [engine.probabilities for engine in engines]
    return np.array([(x.mean(), x.std(), *x.interval(level)) for x in laws]).swapaxes(0, 1)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_they_are_those_of_each_table(setting: Any) -> None:
    """Within 1e-2 of a deviation, ends too; what ignores the noise is not."""
    noise, prior, drawn = setting
    found, known = shares_of_tables(DrawnCounts.of(drawn, noise), np.array(prior), 0.9)
    right = of_each(noise, prior, drawn, 0.9)
    assert known.all()
    off = np.abs(found - right) / right[1]
    assert off[:2].max() < 4e-3
    assert off.max() < 1e-2
    if noise.scale > 1:
        counts = np.maximum(drawn, 0) + np.array(prior)
        naive = counts / counts.sum(axis=1, keepdims=True)
        assert (np.abs(naive - right[0]) / right[1]).max() > 2e-2


@pytest.mark.parametrize(
    ("noise", "prior", "drawn"),
    [
        (LAPLACE, (0.1, 1.0), (30, 40)),
        (LAPLACE, (20.0, 20.0), (30, 40)),
        (LAPLACE, (1.0, 1.0), (-7000, 40)),
        (LAPLACE, (1.0, 1.0), (10**9, 40)),
        (DiscreteLaplace(1e5), (1.0, 1.0), (30, 40)),
        (DiscreteLaplace(300.0), (3.0,) * 8, (300,) * 8),
    ],
)
def test_what_is_not_served_is_said(noise: Any, prior: Any, drawn: Any) -> None:
    """Priors and noise out of reach, draws that are impossible, and priors that decide alone."""
    _, known = shares_of_tables(DrawnCounts.of([drawn], noise), np.array(prior), 0.95)
    assert not known.any()


def groups(number: int, prior: float = 1.0, first: tuple[int, int] = (30, 50)) -> GroupedRelease:
    drawn = (first, *((10 + at % 50, 60 - at % 40) for at in range(1, number)))
    return GroupedRelease(
        groups=tuple(range(number)),
        noisy_counts=drawn,
        categories=("yes", "no"),
        prior=(prior, prior),
        mechanism=ob.LaplaceParameters(10.0, total="private"),
        guarantee=guarantee(None),
    )


def test_a_draw_that_is_impossible_is_refused_among_many() -> None:
    with pytest.raises(ValueError, match="noisy_counts: are from -9000 to 50"):
        groups(25, first=(-9000, 50)).to_frame()
