"""Small surveys at random, and how far chains are from the list of their data sets."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import softmax

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.sampling.markov_chain import r_hat_and_ess
from opendp_bayes.mechanisms.integer_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FlooredLaplace,
    IntegerNoise,
)
from opendp_bayes.surveys.survey_tables.consistent_draws import ConsistentDraws, draw
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.tables import Model, NoisyTable
from tests.helpers.every_survey import (
    Floats,
    Integers,
    Scope,
    SmallSurvey,
    cliques_and_separators,
    margin,
    weighed,
)

LAWS: tuple[Callable[[float], IntegerNoise], ...] = (
    DiscreteGaussian,
    DiscreteLaplace,
    FlooredLaplace,
)
SCOPES: list[Scope] = [part for k in (1, 2, 3) for part in combinations(range(3), k)]
#: Where the number of records is private, data sets have at most this many, by their cells; more
#: have a probability of about 1e-6 or less, or another survey is drawn.
LARGEST = {2: 60, 4: 30, 8: 11}
#: A function is compared where so many effective draws are expected to differ from its commonest
#: value: the mean of fewer is not normal out to the threshold.
FEWEST = 50


@dataclass(frozen=True, eq=False)
class RandomSurvey:
    """A survey of which `drawn` was drawn; `learned` lists those of every concentration."""

    survey: SmallSurvey
    drawn: tuple[Floats, ...]
    learned: bool

    def __repr__(self) -> str:
        tables = zip(self.survey.scopes, self.survey.noise, self.drawn, strict=True)
        looks = "; ".join(f"{scope} {noise} {y.tolist()}" for scope, noise, y in tables)
        concentration = "learned" if self.learned else f"{self.survey.concentration:.3g}"
        return f"n {self.survey.size}, concentration {concentration}: {looks}"

    def possible(self) -> tuple[list[SmallSurvey], Floats]:
        """The survey with each concentration that it may have, and their prior."""
        if not self.learned:
            return [self.survey], np.ones(1)
        largest = max(2 ** len(clique) for clique in self.survey.cliques)
        each = 0.05 * 2 ** (np.arange(11) / 2)
        log_prior = np.log(each / 0.5) - 2 * np.log1p(each / 0.5)  # log-logistic, in steps of ln
        surveys = [replace(self.survey, concentration=float(largest * one)) for one in each]
        return surveys, softmax(log_prior)


@dataclass(frozen=True, eq=False)
class Listed:
    """Data sets and concentrations that the posterior has, with their probabilities."""

    survey: SmallSurvey
    rows: Integers
    concentration: Floats
    p: Floats

    def moments_of_probabilities(self) -> tuple[Floats, Floats]:
        """Means and standard deviations of the probabilities of all variables' cells. Given a data
        set, the expected probability is that of one more record, and its square's of two more.
        """
        one, two = np.ones((2, len(self.rows), self.rows.shape[1]))
        survey = self.survey
        for sign, scopes in ((1, survey.cliques), (-1, (*survey.separators, ()))):
            for scope in scopes:
                counts = margin(self.rows, survey.levels, scope)
                total = counts + self.concentration[:, None] / counts.shape[1]
                cells = margin(np.eye(self.rows.shape[1], dtype=int), survey.levels, scope)
                found = total[:, cells.argmax(axis=1)]
                one *= found**sign
                two *= (found * (found + 1)) ** sign
        mean = self.p @ one
        return mean, np.sqrt(np.maximum(self.p @ two - mean**2, 0))


def random_survey(rng: np.random.Generator) -> RandomSurvey:
    """Up to three tables of binary variables, any noise, up to eight records, and a draw."""
    while True:
        found = _random(rng)
        exact = listed(found)
        most = LARGEST[exact.rows.shape[1]]
        if found.survey.size is not None or exact.p[exact.rows.sum(axis=1) == most].sum() < 1e-6:
            return found


def _random(rng: np.random.Generator) -> RandomSurvey:
    asked = [SCOPES[at] for at in rng.integers(len(SCOPES), size=rng.integers(2, 4))]
    used = sorted({v for scope in asked for v in scope})
    scopes = tuple(tuple(used.index(v) for v in scope) for scope in asked)
    levels = (2,) * len(used)
    private = rng.random() < 0.4
    size = int(rng.integers(6 if private else 9))
    widest = 1.2 if private and len(used) == 3 else 5.0
    noise = tuple(
        LAWS[rng.integers(3)](float(np.exp(rng.uniform(np.log(0.3), np.log(widest)))))
        for _ in scopes
    )
    theta = rng.dirichlet(np.full(2 ** len(used), rng.choice([0.2, 1.0, 5.0])))
    truth = rng.multinomial(size, theta)
    far = rng.random() < 0.3
    drawn = []
    for scope, law in zip(scopes, noise, strict=True):
        table = margin(truth[None], levels, scope)[0]
        y = 1.0 * (table + law.simulate(table.shape, rng))
        if far:
            y = y + rng.integers(-6, 3 if private else 7, table.size)
        if not private and rng.random() < 0.2:  # one cell is the rest
            y[rng.integers(y.size)] = np.nan
        drawn.append(y)
    survey = SmallSurvey(
        levels,
        *cliques_and_separators(len(used), scopes),
        scopes,
        noise,
        None if private else size,
        float(np.exp(rng.uniform(np.log(0.3), np.log(40)))),
    )
    return RandomSurvey(survey, tuple(drawn), rng.random() < 0.3)


@lru_cache(maxsize=1)
def listed(found: RandomSurvey) -> Listed:
    """The posterior by listing every data set, but those of a probability below 1e-12."""
    surveys, prior = found.possible()
    most = LARGEST[2 ** len(found.survey.levels)]
    tables, logs = zip(*(weighed(one, found.drawn, most) for one in surveys), strict=True)
    p = softmax(np.array(logs) + np.log(prior)[:, None])
    which, at = np.nonzero(p > 1e-12)
    concentrations = np.array([one.concentration for one in surveys])
    return Listed(found.survey, tables[0][at], concentrations[which], p[which, at])


def model_of(survey: SmallSurvey, drawn: Sequence[Any], concentration: float | None) -> Model:
    """The model of a survey of which this was drawn; cells that were not are NaN."""
    looks = tuple(
        NoisyTable(scope, DrawnCounts.of(np.nan_to_num(y), noise, ~np.isnan(y)))
        for scope, y, noise in zip(survey.scopes, drawn, survey.noise, strict=True)
    )
    return Model(survey.levels, looks, survey.size, concentration)


def chains_for(
    found: RandomSurvey, effective: int, seed: int
) -> tuple[ConsistentDraws, SurveyPosterior]:
    """Draws of tables, and the posterior that they make."""
    survey, rng = found.survey, np.random.default_rng(seed)
    model = model_of(survey, found.drawn, None if found.learned else survey.concentration)
    draws, names = draw(model, effective, rng), tuple("abc"[: len(survey.levels)])
    noisy = NoisyTables(names, ((0, 1),) * len(names), tuple(model.looks), survey.size)
    return draws, SurveyPosterior(noisy, draws, rng, interactions=False)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x * 1.0,
    "square": lambda x: x**2.0,
    "P(0)": lambda x: (x == 0) * 1.0,
    "P(1)": lambda x: (x == 1) * 1.0,
    "P(2)": lambda x: (x == 2) * 1.0,
}


def deviations(
    exact: Listed, draws: ConsistentDraws, posterior: SurveyPosterior
) -> Iterator[tuple[str, float]]:
    """What is compared, and the standard errors by which the chains miss it: means, squares and
    probabilities of the counts of every clique and of the number of records, and means of the
    probabilities of all variables together, measured or not.
    """
    survey = exact.survey
    for scope in (*survey.cliques, ()):
        counts = margin(exact.rows, survey.levels, scope)
        yield from of_counts(scope, counts, exact.p, draws.counts(scope))
    theta = posterior.marginal(*posterior.variables)
    effective, found = theta.diagnostics.ess, theta.mean()
    for cell, (mean, std) in enumerate(zip(*exact.moments_of_probabilities(), strict=True)):
        if effective[cell] * min(mean, 1 - mean) > FEWEST:
            yield f"p[{cell}]", float((found[cell] - mean) / std * np.sqrt(effective[cell]))


def of_counts(
    scope: Scope, counts: Integers, p: Floats, chains: Any
) -> Iterator[tuple[str, float]]:
    """The standard errors by which chains of a table miss counts in data sets of probability `p`:
    means, squares and probabilities.
    """
    assert chains is not None
    assert chains.shape[-1] == counts.shape[1]
    for cell, x in enumerate(counts.T):
        commonest = np.argmax(np.bincount(x, p))
        for what, function in FUNCTIONS.items():
            values = function(x)
            mean = p @ values
            other = p[values != function(commonest)].sum()
            if other < 1e-3:
                continue
            drawn = function(chains[..., cell])
            effective = r_hat_and_ess(drawn[..., None])[1][0]
            if effective * min(other, 1 - other if what[0] == "P" else 1) > FEWEST:
                std = np.sqrt(p @ (values - mean) ** 2)
                off = float((drawn.mean() - mean) / std * np.sqrt(effective))
                yield f"{what} of n{scope}[{cell}]", off
