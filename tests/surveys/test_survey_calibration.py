"""Coverage where the model holds: the place of the truth among the draws is uniform."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise
from opendp_bayes.surveys.survey_tables.consistent_draws import draw
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.tables import Model, NoisyTable
from tests.helpers import oracles
from tests.helpers.every_survey import margin
from tests.helpers.sweeps import slow

LEVELS, RECORDS, CONCENTRATION = (2, 3, 2, 2), 60, 6.0
NOISE = DiscreteGaussian(4.0)
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


def places(shape: str, runs: int, noise: IntegerNoise, seed: int, narrowed: float) -> Any:
    """Where the truth is among the draws, between 0 and 1, in every run: of the probability and of
    the count in a cell of a measured table, and of the probability in one that was not; then
    the same among draws that are narrowed about their mean. Shape `(2, runs, 3)`.
    """
    rng = np.random.default_rng(seed)
    cliques, scopes = SHAPES[shape]
    names, labels = tuple("abcd"), tuple(tuple(range(k)) for k in LEVELS)
    found = []
    for _ in range(runs):
        theta = joint(cliques, rng).reshape(-1)
        counts = rng.multinomial(RECORDS, theta)
        looks = []
        for scope in scopes:
            table = margin(counts[None], LEVELS, scope)[0]
            drawn = table + noise.simulate(table.shape, rng)
            looks.append(NoisyTable(scope, DrawnCounts.of(drawn, noise)))
        model = Model(LEVELS, looks, RECORDS, CONCENTRATION)
        noisy = NoisyTables(names, labels, tuple(looks), RECORDS)
        posterior = SurveyPosterior(noisy, draw(model, 50, rng), rng, interactions=False)
        inside = scopes[int(rng.integers(len(scopes)))]
        measured = posterior.marginal(*(names[v] for v in inside))
        implied = posterior.marginal("a", "d")
        cell, other = int(rng.integers(len(measured.categories))), int(rng.integers(4))
        truths = (
            margin(theta[None], LEVELS, inside)[0, cell],
            margin(counts[None], LEVELS, inside)[0, cell],
            margin(theta[None], LEVELS, (0, 3))[0, other],
        )
        draws = (
            measured.sample(2000, 1)[:, cell],
            measured.counts.sample(2000, 1)[:, cell],
            implied.sample(2000, 1)[:, other],
        )
        found.append([place(*one, narrowed, rng) for one in zip(truths, draws, strict=True)])
    return np.array(found).transpose(2, 0, 1)


def place(truth: float, draws: Any, narrowed: float, rng: np.random.Generator) -> list[float]:
    """Among the draws, ties in random order, and among narrower ones."""
    narrow = draws.mean() + narrowed * (draws - draws.mean())
    return [(one < truth).mean() + (one == truth).mean() * rng.random() for one in (draws, narrow)]


def least_probability(found: Any) -> float:
    """Of Kolmogorov-Smirnov tests of each place, and of how far it is from the middle."""
    columns = [*found.T, *abs(2 * found - 1).T]
    return min(float(stats.kstest(column, "uniform").pvalue) for column in columns)


MANY = ((shape, 200, law, 0.4) for shape in SHAPES for law in (NOISE, DiscreteLaplace(3.0)))


@pytest.mark.parametrize(
    ("shape", "runs", "noise", "narrowed"), [("path", 5, NOISE, 0.05), *slow(MANY)]
)
def test_the_truth_is_anywhere_among_the_draws(shape, runs, noise, narrowed):
    """Among narrower draws it is mostly outside."""
    found, narrow = places(shape, runs, noise, 1, narrowed)
    assert least_probability(found) > oracles.FALSE_ALARM
    assert least_probability(narrow) < oracles.FALSE_ALARM
