"""Coverage where the model holds: probabilities from the prior, records from them, noise, and the
place of the truth among the draws, which is uniform.
"""

from typing import Any

import numpy as np
import oracles
import pytest
from every_survey import margin
from scipy import stats

from opendp_bayes.inference.survey_tables.consistent_draws import draw
from opendp_bayes.inference.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.inference.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.inference.survey_tables.tables import Look, Model
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise

LEVELS, RECORDS, CONCENTRATION = (2, 3, 2, 2), 60, 6.0
#: Cliques in an order in which each meets those before in a separator, and what is measured.
SHAPES: dict[str, tuple[Any, Any]] = {
    "path": (((0, 1), (1, 2), (2, 3)), ((0, 1), (1, 2), (2, 3))),
    "star": (((0, 1), (1, 2), (1, 3)), ((0, 1), (1, 2), (1, 3))),
    "cycle": (((0, 1, 2), (3,)), ((0, 1), (1, 2), (0, 2), (3,))),
    "hierarchy": (((0, 1, 2), (2, 3)), ((0,), (0, 1), (0, 1, 2), (2, 3))),
}


def joint(cliques: Any, rng: np.random.Generator) -> Any:
    """Probabilities of all variables from the hyper-Dirichlet prior."""
    found, known = np.ones((1,) * len(LEVELS)), set()
    for clique in cliques:
        shape = [LEVELS[v] if v in clique else 1 for v in range(len(LEVELS))]
        gamma = rng.standard_gamma(CONCENTRATION / np.prod(shape), shape)
        own = tuple(v for v in clique if v not in known)
        found = found * gamma / gamma.sum(axis=own, keepdims=True)
        known |= set(clique)
    return found


def places(shape: str, runs: int, noises: tuple[IntegerNoise, ...], seed: int) -> Any:
    """Where the truth is among the draws, between 0 and 1, in every run: of the probability and of
    the count in a cell of a measured table, and of the probability in one that was not. The noise
    of the releases is the first; inference takes it for the last.
    """
    rng = np.random.default_rng(seed)
    cliques, scopes = SHAPES[shape]
    found = []
    for _ in range(runs):
        theta = joint(cliques, rng).reshape(-1)
        counts = rng.multinomial(RECORDS, theta)
        looks = []
        for scope in scopes:
            table = margin(counts[None], LEVELS, scope)[0]
            drawn = table + noises[0].simulate(table.shape, rng)
            looks.append(Look(scope, drawn * 1.0, noises[-1], np.ones(table.size, dtype=bool)))
        model = Model(LEVELS, looks, RECORDS, CONCENTRATION)
        names = tuple("abcd")
        noisy = NoisyTables(names, tuple(tuple(range(k)) for k in LEVELS), tuple(looks), RECORDS)
        posterior = SurveyPosterior(noisy, draw(model, 100, rng), rng)
        inside = scopes[int(rng.integers(len(scopes)))]
        measured = posterior.marginal(*(names[v] for v in inside))
        implied = posterior.marginal("a", "d")
        cell, other = int(rng.integers(len(measured.categories))), int(rng.integers(4))
        for truth, draws in (
            (margin(theta[None], LEVELS, inside)[0, cell], measured.sample(2000, 1)[:, cell]),
            (margin(counts[None], LEVELS, inside)[0, cell],
             measured.counts.sample(2000, 1)[:, cell]),
            (margin(theta[None], LEVELS, (0, 3))[0, other], implied.sample(2000, 1)[:, other]),
        ):  # fmt: skip
            below, at = (draws < truth).mean(), (draws == truth).mean()
            found.append(below + at * rng.random())
    return np.array(found).reshape(runs, -1)


def least_probability(found: Any) -> float:
    """Of three Kolmogorov-Smirnov tests."""
    return min(float(stats.kstest(column, "uniform").pvalue) for column in found.T)


def test_the_truth_is_anywhere_among_the_draws() -> None:
    assert least_probability(places("path", 16, (DiscreteGaussian(4.0),), 1)) > oracles.FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("noise", [DiscreteGaussian(4.0), DiscreteLaplace(3.0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_truth_is_anywhere_among_the_draws_in_many_runs(
    shape: str, noise: IntegerNoise
) -> None:
    assert least_probability(places(shape, 200, (noise,), 2)) > oracles.FALSE_ALARM


def test_noise_that_is_not_believed_is_noticed() -> None:
    noises = (DiscreteGaussian(12.0), DiscreteGaussian(1.0))
    assert least_probability(places("path", 16, noises, 1)) < oracles.FALSE_ALARM
