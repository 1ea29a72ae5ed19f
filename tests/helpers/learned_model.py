"""The model of a learned prior without its chains: draws from the prior, and means by weights."""

from itertools import product

import numpy as np
from scipy import special, stats

from opendp_bayes.inference.learned.intensity_law import REACH, SHAPE, STEP, IntensityLaw
from opendp_bayes.inference.learned.margins import SCALES, margins_of
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.inference.learned.sweeps import Sweeps
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts


def variables_of(shape):
    """In which value of each variable every cell of a table is."""
    places = np.unravel_index(np.arange(np.prod(shape)), shape)
    return {f"v{axis}": place for axis, place in enumerate(places)}


def table(drawn, noise, shape, size=None, noised=None):
    drawn = np.asarray(drawn)
    looks = [DrawnCounts.of(drawn, noise, noised or True)]
    return NoisedTable(looks, size, variables_of(shape))


def intensities(law, margins, k, number, rng):
    """Intensities drawn from the prior, shape `(number, k)`: normal effects rounded to the lattice,
    a component for each cell, a point of it, a Gamma variate.
    """
    location = np.zeros((number, k), dtype=np.int64)
    for margin in margins:
        shares = SCALES / (1 + SCALES**2)
        tau = rng.choice(SCALES, p=shares / shares.sum(), size=number)[:, None, None]
        normal = rng.normal(size=(number, margin.walks, margin.steps))
        if margin.smooth:
            scales = np.where(np.arange(margin.steps) == 0, 1.0, tau)
            effects = np.rint(normal * scales / STEP).cumsum(axis=2)
        else:
            effects = np.rint(normal * tau / STEP)
        location += effects.reshape(number, -1)[:, margin.level].astype(np.int64)
    weights = law.prior_weights(number, rng).cumsum(axis=1)
    points = np.full((number, k), law.points.min())
    cumulative = law.kernels.cumsum(axis=1)
    for cell in range(k):
        component = (weights[:, :-1] < rng.random((number, 1))).sum(axis=1)
        level = rng.random(number)
        for one in np.unique(component[component > 0]):
            rows = np.flatnonzero(component == one)
            point = np.minimum(np.searchsorted(cumulative[one - 1], level[rows]), law.gammas - 1)
            places = np.clip(location[rows, cell], -REACH, REACH) + REACH + point
            points[rows, cell] = law.points[places]
    inside = (np.abs(location) <= REACH).all(axis=1)
    return np.exp(STEP * points[inside]) * rng.gamma(SHAPE, 1 / SHAPE, (inside.sum(), k))


def expected(of, ordered=(), draws=200_000, top=40, seed=0):
    """Expected probabilities, expected counts and the standard deviations of the former, and the
    independent draws that they are worth: draws from the prior, weighed by the likelihood, a sum
    over all counts up to `top` or of the public size.
    """
    law = IntensityLaw(of.origin(), of.largest)
    means = intensities(
        law, margins_of(of.variables, ordered), of.k, draws, np.random.default_rng(seed)
    )
    theta = means / means.sum(axis=1, keepdims=True)
    if of.size is None:
        counts = np.arange(top)
        noise = np.exp(of.log_noise(np.tile(counts, (1, of.k, 1))))[0]
        terms = stats.poisson.pmf(counts, means[..., None]) * noise
        likelihood = terms.sum(axis=2)
        given, weights = terms @ counts / likelihood, likelihood.prod(axis=1)
    else:
        rows = np.array(list(product(range(of.size + 1), repeat=of.k)))
        rows = rows[rows.sum(axis=1) == of.size]
        log_p = special.xlogy(rows[None], means[:, None]).sum(axis=2) - means.sum(axis=1)[:, None]
        log_p = log_p - special.gammaln(rows + 1.0).sum(axis=1)
        terms = np.exp(log_p + of.log_noise(rows.T[None])[0].sum(axis=0))
        weights = terms.sum(axis=1)
        given = terms @ rows / np.maximum(weights, 1e-300)[:, None]
    weights = weights / weights.sum()
    mean = weights @ theta
    spread = np.sqrt(weights @ (theta - mean) ** 2)
    return mean, weights @ given, spread, 1 / (weights**2).sum()


def by_chains(of, ordered=(), chains=16, sweeps=1500, dropped=150, seed=0, weighted=True):
    """The same expected values of each chain, shapes `(chains, k)`; without the weights of states,
    if that is wanted.
    """
    rng = np.random.default_rng(seed)
    law = IntensityLaw(of.origin(), of.largest)
    drawn = Sweeps(of, law, margins_of(of.variables, ordered), chains, rng)
    drawn.settle(dropped)
    found, log_weights = [], []
    for _ in range(sweeps):
        drawn.sweep()
        draw = drawn.drawn()
        means = rng.standard_gamma(SHAPE + draw.counts) * draw.scale
        found.append([means / means.sum(axis=1, keepdims=True), draw.counts])
        log_weights.append(draw.log_weight)
    weights = special.softmax(np.array(log_weights) * weighted, axis=0)
    return np.einsum("sc,sqck->qck", weights, found)


def ranks(shape, noise, public, rng, *, taken_for=None, sweeps=300, ordered=()):
    """Posterior probabilities of less than the truth, for data from the model itself: of the
    probability and the count of a cell, and of the number of records where that is private.

    The posterior takes the noise for `taken_for`, by default what it is.
    """
    k, origin = int(np.prod(shape)), np.log(5.0)
    margins = margins_of(variables_of(shape), ordered)
    largest = 10**6
    prior = IntensityLaw(origin, largest)
    means = intensities(prior, margins, k, 8, rng)[0]
    truth = rng.poisson(means)
    drawn = truth + noise.simulate(truth.shape, rng)
    of = table(drawn, taken_for or noise, shape, int(truth.sum()) if public else None)
    law = IntensityLaw(origin, of.largest)
    chains = Sweeps(of, law, margins, 4, rng)
    cell, below, log_weights = int(rng.integers(k)), [], []
    ties = rng.random((3, 1))  # once, so that ranks of whole numbers are uniform too
    wanted = np.array([means[cell] / means.sum(), truth[cell], truth.sum()])
    chains.settle(sweeps // 3)
    for _ in range(sweeps - sweeps // 3):
        chains.sweep()
        draw = chains.drawn()
        lam = rng.standard_gamma(SHAPE + draw.counts) * draw.scale
        values = np.stack(
            [lam[:, cell] / lam.sum(axis=1), draw.counts[:, cell], draw.counts.sum(axis=1)]
        )
        below.append((values < wanted[:, None]) + ties * (values == wanted[:, None]))
        log_weights.append(draw.log_weight)
    found = np.einsum("sc,sqc->q", special.softmax(log_weights), below)
    return found[:2] if public else found
