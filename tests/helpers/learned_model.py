"""The model of a learned prior without its chains: draws from the prior, and means by weights."""

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of, picked
from opendp_bayes.inference.learned.cells import Cells
from opendp_bayes.inference.learned.intensity_law import SMOOTH, STEP, HamiltonianChains
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from tests.helpers import oracles


def variables_of(shape):
    """In which value of each variable every cell of a table is."""
    places = np.unravel_index(np.arange(np.prod(shape)), shape)
    return {f"v{axis}": place for axis, place in enumerate(places)}


def table(drawn, noise, shape, size=None, noised=None, of=NoisedTable):
    drawn = np.asarray(drawn)
    looks = [DrawnCounts.of(drawn, noise, noised or True)]
    return of(looks, size, variables_of(shape))


def laws(cells, number, rng):
    """Weights drawn from their prior, shape `(number, p)`, and the logarithms of their weights."""
    smooth = rng.integers(len(SMOOTH), size=number)
    x = rng.standard_normal((number, cells.shown.size))
    for at, one in enumerate(SMOOTH):
        root = np.linalg.inv(np.linalg.cholesky(cells.precision(one)))
        x[smooth == at] = cells.centre + x[smooth == at] @ root
    total = np.exp(np.minimum(special.logsumexp(x, axis=1), 60.0))
    return special.softmax(x, axis=1), stats.poisson.logpmf(cells.kind.size, total)


def intensities(cells, weights, rng):
    """Given weights, a row for each: effects, a point of the lattice, a Gamma variate."""
    number, k = len(weights), cells.kind.size
    location = np.zeros((number, k))
    for margin in cells.margins:
        tau = np.abs(rng.standard_cauchy((number, 1)))
        c = tau * margin.reach * rng.standard_normal((number, margin.reach.size))
        location += margin.effects(c)[:, margin.level] / STEP
    reach = cells._origin - 1 if cells.margins else 0
    # The sum of three evenly spread numbers has the law of a quadratic spline.
    location = np.clip(location, -reach, reach) + (rng.random((2, number, k)) - 0.5).sum(axis=0)
    start = cells._origin + np.rint(location if cells.margins else 0 * location).astype(int)
    value = picked(weights, np.arange(number)[:, None], rng.random((number, k)))
    point = np.where(value > 0, cells._places[start + np.maximum(value, 1) - 1], 0)
    return cells._means[point] * rng.standard_gamma(cells._shapes[point]) / cells._shapes[point]


def expected(of, ordered=(), draws=200_000, top=40, seed=0):
    """Expected probabilities, expected counts and the standard deviations of the former, and the
    independent draws that they are worth: draws from the prior, weighed by the likelihood, a sum
    over all counts up to `top` or of the public size.
    """
    cells, rng = Cells(of, ordered), np.random.default_rng(seed)
    weights, log_weights = laws(cells, draws, rng)
    means = intensities(cells, weights, rng)
    theta = means / means.sum(axis=1, keepdims=True)
    if of.size is None:
        counts = np.arange(top)
        noise = np.exp(of.log_noise(np.tile(counts, (1, of.k, 1))))[0]
        terms = stats.poisson.pmf(counts, means[..., None]) * noise
        likelihood = terms.sum(axis=2)
        given, weights = terms @ counts / (likelihood + 1e-300), likelihood.prod(axis=1)
    else:
        rows = np.array(oracles.data_sets(of.size, of.k))
        log_p = special.xlogy(rows[None], means[:, None]).sum(axis=2) - means.sum(axis=1)[:, None]
        log_p = log_p - special.gammaln(rows + 1.0).sum(axis=1)
        terms = np.exp(log_p + of.log_noise(rows.T[None])[0].sum(axis=0))
        weights = terms.sum(axis=1)
        given = terms @ rows / np.maximum(weights, 1e-300)[:, None]
    weights = weights * np.exp(log_weights)
    weights = weights / weights.sum()
    mean = weights @ theta
    spread = np.sqrt(weights @ (theta - mean) ** 2)
    return mean, weights @ given, spread, 1 / (weights**2).sum()


def begun(of, ordered, chains, moves, rng):
    """Cells, and chains of them that have forgotten where they began."""
    cells = Cells(of, ordered)
    for _ in range(4):
        found = HamiltonianChains(cells, chains, rng)
        found.move(-(-moves // 5), adapt=True)
        cells.begin_at(found, rng)
    found = HamiltonianChains(cells, chains, rng)
    found.move(-(-moves // 5), adapt=True)
    return cells, found


def by_chains(of, ordered=(), chains=16, sweeps=1500, dropped=150, seed=0, weighted=True):
    """The same of each chain, shapes `(chains, k)`; without weights of states, if wanted."""
    rng = np.random.default_rng(seed)
    cells, moved = begun(of, ordered, chains, dropped, rng)
    found, log_weights = [], []
    for _ in range(sweeps):
        moved.move(1)
        draw, _ = cells.drawn(moved, rng)
        means = rng.standard_gamma(draw.mean / draw.scale) * draw.scale
        found.append([means / means.sum(axis=1, keepdims=True), draw.counts])
        log_weights.append(draw.log_weight)
    weights = special.softmax(np.array(log_weights) * weighted, axis=0)
    return np.einsum("sc,sqck->qck", weights, found)


@dataclass(frozen=True, eq=False)
class Fixed(NoisedTable):
    """A table whose lattices do not depend on what was drawn."""

    @property
    def largest(self):
        return 2000

    def origin(self):
        return np.log(5.0)


def ranks(shape, noise, public, rng, *, taken_for=None, sweeps=100, ordered=()):
    """Posterior probabilities of less than the truth, for data from the model itself: of the
    probability and the count of a cell, and of the number of records where that is private.

    The posterior takes the noise for `taken_for`, by default what it is. No count is above 1000.
    """
    k = int(np.prod(shape))
    prior = Cells(table(np.zeros(k, dtype=int), noise, shape, of=Fixed), ordered)
    truth = np.full(k, 2000)
    while truth.max() > 1000:
        weights, log_weights = laws(prior, 2000, rng)
        means = intensities(prior, weights[[one_of(log_weights, rng)]], rng)[0]
        truth = rng.poisson(means)
    drawn = truth + noise.simulate(truth.shape, rng)
    size = int(truth.sum()) if public else None
    made = table(drawn, taken_for or noise, shape, size, of=Fixed)
    cells, chains = begun(made, ordered, 4, 60, rng)
    cell, below, log_weights = int(rng.integers(k)), [], []
    ties = rng.random((3, 1))  # once, so that ranks of whole numbers are uniform too
    wanted = np.array([means[cell] / means.sum(), truth[cell], truth.sum()])
    for _ in range(sweeps):
        chains.move(1)
        draw, _ = cells.drawn(chains, rng)
        lam = rng.standard_gamma(draw.mean / draw.scale) * draw.scale
        values = np.stack(
            [lam[:, cell] / lam.sum(axis=1), draw.counts[:, cell], draw.counts.sum(axis=1)]
        )
        below.append((values < wanted[:, None]) + ties * (values == wanted[:, None]))
        log_weights.append(draw.log_weight)
    found = np.einsum("sc,sqc->q", special.softmax(log_weights), below)
    return found[:2] if public else found
