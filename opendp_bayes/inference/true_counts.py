"""What the true counts are, given a release: their posterior where it can be computed exactly, by
listing or by convolution.

Every class here, `markov_chain.Chains` and `importance.Weighted` answers two questions: the
distribution of one category's probability (`marginal`), and draws of the counts (`sample`). The
probabilities given the counts are Dirichlet, so nothing else is needed.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import optimize, special

from opendp_bayes.inference.beta_mixture import BetaMixture
from opendp_bayes.inference.cells import cell_of, five_percent_cells, graded_edges, halved_to
from opendp_bayes.inference.likelihood import IndependentNoise
from opendp_bayes.mathematics.validation import Floats, Integers

#: Largest public size for which every count is listed when there are two categories; above, counts
#: are taken in cells.
_LARGEST_LISTED_SIZE = 1 << 15
#: A convolution leaves out counts whose weight is below `exp(-_DEPTH)` of the largest.
_DEPTH = 40.0
#: The longest window of counts of one category that is convolved.
LARGEST_WINDOW = 1 << 14
_LARGEST_BLOCK = 1 << 22
_SMALL = 8
#: Where the number of records is private, the sum of the other categories is taken in at least so
#: many cells, none of which is wider than 5 %.
_REST_CELLS = 128
#: What one pair of a count and such a cell costs, in multiplications.
_PAIR_WORK = 150

#: The logarithm of a weight of each number of records, elementwise.
SizeWeight = Callable[[Integers], Floats]

Generator = np.random.Generator


class TrueCounts(Protocol):
    """The posterior distribution of the counts that a release was made from."""

    def marginal(self, category: int) -> BetaMixture:
        """The posterior of the probability of one category."""
        ...

    def sample(self, size: int, rng: Generator) -> Integers:
        """Draws of the counts, shape `(size, k)`."""
        ...


def log_prior_weight(counts: Integers, alpha: float | Floats) -> Floats:
    """`ln G(x + alpha) - ln x!` up to a constant: what one category contributes to the
    Dirichlet-multinomial probability of the counts.

    As a logarithm of a beta function, which does not lose the difference of the two in the rounding
    of each.
    """
    counts, alpha = np.broadcast_arrays(np.asarray(counts, dtype=np.float64), alpha)
    weight, curved = np.zeros(counts.shape), alpha != 1
    x, a = counts[curved], alpha[curved]
    weight[curved] = np.where(a < 1, 1.0, -1.0) * special.betaln(
        x + np.minimum(a, 1), np.abs(a - 1)
    )
    return weight


def log_size_weight(sizes: Integers, prior: Floats) -> Floats:
    """`ln n! - ln G(n + A)`, what the number of records contributes to it, up to a constant."""
    return -log_prior_weight(sizes, float(prior.sum()))


class TwoCategories:
    """Two categories and a public size: a weight for every count of the first, or for cells of
    counts.
    """

    def __init__(
        self, log_likelihood: Callable[[Integers], Floats], released: int, prior: Floats, size: int
    ) -> None:
        self._prior, self._size = prior, size
        if size <= _LARGEST_LISTED_SIZE:
            self._edges = np.arange(size + 2)
        else:
            edges = graded_edges(size, around=[released])
            # A cell is at most as long as two standard deviations of what the data tell, or 1/2000
            # of the range.
            deviation = np.sqrt((edges[:-1] + 1.0) * (size - edges[:-1] + 1.0) / size)
            self._edges = halved_to(edges, np.maximum(2 * deviation, size / 2000))
        lengths = np.diff(self._edges)
        self._counts = self._edges[:-1] + (lengths - 1) // 2
        counts = np.column_stack([self._counts, size - self._counts])
        log_weights = (
            log_likelihood(counts) + log_prior_weight(counts, prior).sum(axis=1) + np.log(lengths)
        )
        self._weights = special.softmax(log_weights)
        self._released = released

    def marginal(self, category: int) -> BetaMixture:
        lengths = np.diff(self._edges)
        counts = np.column_stack([self._counts, self._size - self._counts])
        if category == 1:
            mirrored = self.marginal(0)
            return BetaMixture(mirrored.b, mirrored.a, mirrored.weights)
        if self._size <= _LARGEST_LISTED_SIZE:
            group = cell_of(
                self._counts,
                graded_edges(
                    self._size, around=[self._released, int(self._weights @ self._counts)]
                ),
            )
        else:
            group = np.arange(lengths.size)
        spread = (lengths.astype(np.float64) ** 2 - 1) / 12 / (self._size + self._prior.sum()) ** 2
        return BetaMixture.grouped(
            self._prior[0] + counts[:, 0],
            self._prior[1] + counts[:, 1],
            self._weights,
            group,
            spread,
        )

    def sample(self, size: int, rng: Generator) -> Integers:
        cells = rng.choice(self._weights.size, size=size, p=self._weights)
        first = rng.integers(self._edges[cells], self._edges[cells + 1])
        return np.column_stack([first, self._size - first])


class Listed:
    """Every data set, shape `(c, k)`, with its weight, or draws with equal weights."""

    def __init__(self, counts: Integers, log_weights: Floats, prior: Floats) -> None:
        self._counts, self._prior = counts, prior
        self._weights = special.softmax(log_weights)

    def marginal(self, category: int) -> BetaMixture:
        return marginal_of_draws(self._counts, self._weights, self._prior, category)

    def sample(self, size: int, rng: Generator) -> Integers:
        return self._counts[rng.choice(len(self._counts), size=size, p=self._weights)]


def marginal_of_draws(
    counts: Integers, weights: Floats, prior: Floats, category: int
) -> BetaMixture:
    """The mixture of `Beta(alpha_i + x_i, A - alpha_i + n - x_i)` over weighted rows of counts,
    shape `(m, k)`.
    """
    own = counts[:, category]
    return _pairs(own, counts.sum(axis=1) - own, weights, prior, category)


def _pairs(
    own: Integers, rest: Floats | Integers, weights: Floats, prior: Floats, category: int
) -> BetaMixture:
    """The same from the count of the category and that of all others.

    Components are grouped by cells of the count. Where the number of records differs it is the
    expected probability that is divided into cells, in units of the expected number of records;
    only counts below `_SMALL`, whose Betas have shapes of their own, keep cells of the other count
    as well.
    """
    a, b = prior[category] + own, prior.sum() - prior[category] + rest
    sizes = own + rest
    if np.all(sizes == sizes[0]):
        group = cell_of(own, graded_edges(int(own.max()), around=[int(weights @ own)]))
    else:
        expected = a / (a + b)
        unit = float(weights @ sizes) + prior.sum()
        cells = np.floor(expected * unit).astype(np.int64)
        group = cell_of(
            cells, graded_edges(math.ceil(unit), around=[int(weights @ expected * unit)])
        )
        for small, other in ((own, rest), (rest, own)):
            apart = (
                group.max()
                + _SMALL * (1 + five_percent_cells(other))
                + np.floor(small).astype(np.int64)
            )
            group = np.where(small < _SMALL, apart, group)
    return BetaMixture.grouped(a, b, weights, group)


class Convolved:
    """Independent noise on each count: the weights factor over the categories but for their sum, so
    sums of categories are convolutions.

    A window of counts of every category, from `first` on, with weights; the sum of the categories
    has the further weight `exp(log_weight_of_size)` unless it is public.
    """

    def __init__(
        self,
        first: list[int],
        log_weights: list[Floats],
        prior: Floats,
        size: int | None,
        log_weight_of_size: SizeWeight,
    ) -> None:
        self._first, self._prior, self._size, self._log_weight_of_size = (
            first,
            prior,
            size,
            log_weight_of_size,
        )
        self._weights = [np.exp(weight - weight.max()) for weight in log_weights]
        # A transform as long as the sum of all windows holds every partial sum.
        self._length = 1 << (sum(weight.size for weight in self._weights) - 1).bit_length()
        self._transforms = [np.fft.rfft(weight, self._length) for weight in self._weights]

    @classmethod
    def of(
        cls,
        likelihood: IndependentNoise,
        prior: Floats,
        size: int | None,
        log_size_prior: SizeWeight,
    ) -> "Convolved | None":
        """`size` is the public number of records, or None; then n has the prior weight
        `exp(log_size_prior(n))`. None if a window would be too long."""
        released, k = likelihood.released, prior.size
        known = np.array(likelihood.known)
        rest = max(int(size or 0) - int(released[known].sum()), 0)
        centres = [int(released[i]) if known[i] else rest for i in range(k)]
        # A count above this costs more than 60 scales over having no records at all, whatever the
        # prior.
        last = size if size is not None else int(released.sum()) + math.ceil(60 * likelihood.scale)
        nodes, log_weights = [], []
        for i, centre in enumerate(centres):
            edges = graded_edges(last, around=[min(centre, last)])
            nodes.append(edges[:-1] + (np.diff(edges) - 1) // 2)
            log_weights.append(
                likelihood.log_factor(i, nodes[i])
                + log_prior_weight(nodes[i], prior[i])
                + np.log(np.diff(edges))
            )

        def log_weight_of_size(sizes: Integers) -> Floats:
            return np.asarray(log_size_weight(sizes, prior) + log_size_prior(sizes))

        tilt = _tilt(nodes, log_weights, size, log_weight_of_size)
        first, final = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
        for i in range(k):
            tilted = log_weights[i] + tilt * nodes[i]
            seen = np.flatnonzero(tilted > tilted.max() - _DEPTH)
            # One cell more on either side; within 32 of 0, of `last` and of the centre a cell is a
            # single count.
            first[i], final[i] = (
                nodes[i][max(seen[0] - 1, 0)],
                nodes[i][min(seen[-1] + 1, nodes[i].size - 1)],
            )
        if size is not None:
            for i in range(k):
                others = np.arange(k) != i
                first[i], final[i] = (
                    max(first[i], size - final[others].sum()),
                    min(final[i], size - first[others].sum()),
                )
        if np.any(final - first >= LARGEST_WINDOW) or np.any(final < first):
            return None
        windows = [np.arange(first[i], final[i] + 1) for i in range(k)]
        exact = [
            likelihood.log_factor(i, window) + log_prior_weight(window, prior[i]) + tilt * window
            for i, window in enumerate(windows)
        ]
        return cls(
            first.tolist(),
            exact,
            prior,
            size,
            lambda sizes: log_weight_of_size(sizes) - tilt * sizes,
        )

    @property
    def work(self) -> int:
        """Multiplications that the marginals of all categories take together, about 2e-9 seconds
        each.
        """
        k, counts = self._prior.size, sum(weight.size for weight in self._weights)
        return k * k * self._length + (
            0 if self._size is not None else _PAIR_WORK * _REST_CELLS * counts
        )

    def marginal(self, category: int) -> BetaMixture:
        likely = np.flatnonzero(self._weights[category] > 1e-14)
        own, own_weights = self._first[category] + likely, self._weights[category][likely]
        first_rest, rest = self._sum_of([i for i in range(self._prior.size) if i != category])
        if self._size is not None:
            place = self._size - own - first_rest
            inside = (place >= 0) & (place < rest.size)
            weights = np.where(inside, own_weights * rest[np.clip(place, 0, rest.size - 1)], 0.0)
            return _pairs(own, self._size - own, weights / weights.sum(), self._prior, category)
        # The number of records is not known: pairs of a count and of what the others sum to, the
        # latter in cells.
        seen = np.flatnonzero(rest > 1e-14 * rest.max())
        even, narrow = (
            np.arange(seen.size) // -(-seen.size // _REST_CELLS),
            five_percent_cells(first_rest + seen),
        )
        cell = np.cumsum((np.diff(even, prepend=0) > 0) | (np.diff(narrow, prepend=narrow[0]) > 0))
        share = np.bincount(cell, rest[seen])
        values = first_rest + np.bincount(cell, rest[seen] * seen) / share
        log_weights = self._log_weight_of_size(np.rint(own[:, None] + values).astype(np.int64))
        weights = own_weights[:, None] * share * np.exp(log_weights - log_weights.max())
        own_grid, rest_grid = np.broadcast_arrays(own[:, None], values)
        return _pairs(
            own_grid.ravel(),
            rest_grid.ravel(),
            weights.ravel() / weights.sum(),
            self._prior,
            category,
        )

    def sample(self, size: int, rng: Generator) -> Integers:
        k = self._prior.size
        counts = np.empty((size, k), dtype=np.int64)
        if self._size is None:
            first, total = self._sum_of(list(range(k)))
            sizes = first + np.arange(total.size)
            log_weights = self._log_weight_of_size(sizes)
            weights = total * np.exp(log_weights - log_weights.max())
            remaining = rng.choice(sizes, size=size, p=weights / weights.sum())
        else:
            remaining = np.full(size, self._size)
        for category in range(k - 1):
            first_rest, rest = self._sum_of(list(range(category + 1, k)))
            counts[:, category] = self._draw(category, remaining, first_rest, rest, rng)
            remaining = remaining - counts[:, category]
        counts[:, -1] = remaining
        return counts

    def _draw(
        self, category: int, total: Integers, first_rest: int, rest: Floats, rng: Generator
    ) -> Integers:
        """The count of a category for draws in which it and the later ones sum to `total`."""
        weights = self._weights[category]
        own = self._first[category] + np.arange(weights.size)
        # Draws with the same total have the same law: one row for each.
        totals, row = np.unique(total, return_inverse=True)
        uniform, drawn = rng.random(total.size), np.empty(total.size, dtype=np.int64)
        block = max(1, _LARGEST_BLOCK // weights.size)
        for start in range(0, totals.size, block):
            place = totals[start : start + block, None] - own - first_rest
            inside = (place >= 0) & (place < rest.size)
            cumulative = np.cumsum(
                np.where(inside, weights * rest[np.clip(place, 0, rest.size - 1)], 0.0), axis=1
            )
            for here in np.flatnonzero((row >= start) & (row < start + block)):
                line = cumulative[row[here] - start]
                drawn[here] = np.searchsorted(line, uniform[here] * line[-1], side="right")
        return own[np.minimum(drawn, weights.size - 1)]

    def _sum_of(self, categories: list[int]) -> tuple[int, Floats]:
        """The smallest sum of some categories and the weights of it and the following ones, to
        1e-16 of the largest.
        """
        product = np.prod([self._transforms[i] for i in categories], axis=0)
        length = sum(self._weights[i].size - 1 for i in categories) + 1
        weights = np.maximum(np.fft.irfft(product, self._length)[:length], 0.0)
        return sum(self._first[i] for i in categories), weights


def _tilt(
    nodes: list[Integers],
    log_weights: list[Floats],
    size: int | None,
    log_weight_of_size: SizeWeight,
) -> float:
    """The t for which weights times `exp(t x)` put the mean of the sum where it is: at the size, or
    where the weight of the size is stationary.

    Weights times `exp(t x)` are the same law once the sum is given, but then their windows and the
    largest sums are where the probability is.
    """

    def excess(tilt: float) -> float:
        means = [
            special.softmax(weight + tilt * x) @ x
            for x, weight in zip(nodes, log_weights, strict=True)
        ]
        total = float(np.sum(means))
        if size is not None:
            return total - size
        below, above = log_weight_of_size(np.array([math.floor(total), math.floor(total) + 1]))
        return tilt - (above - below) if math.isfinite(above - below) else tilt

    reach = 1.0
    while excess(-reach) > 0 or excess(reach) < 0:
        reach *= 4
        if reach > 1e4:
            return 0.0
    return float(optimize.brentq(excess, -reach, reach, xtol=1e-9))
