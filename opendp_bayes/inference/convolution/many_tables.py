"""Shares of many tables at once, whose numbers of records are private and every one equally
probable: Poisson counts with noise and Dirichlet shares, by correlations over logarithms of rates,
in arrays without an engine for each table.

`n! = integral of t^n exp(-t)` makes the counts independent: the likelihood of a share `s` is the
integral over t of `G(t s) H(t (1 - s))`. G is the probability of what was drawn of a Poisson count
of this rate, and H that of all others together. Over logarithms of rates that is a
correlation, one transform for each share; what is known of the sum of the others is one transform
for each category (`docs/research/how-it-works.md`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from opendp_bayes.inference.convolution.sums import cubic
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts, nodes_of
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise, typical_mean, typical_std

#: The smallest entry of a prior that is served, its largest sum, and the one up to which it moves
#: no table by more than `_FAR` deviations of the noise.
_SMALLEST, _LARGEST, _WEAK, _FAR = 0.5, 30.0, 4.0, 4.0
#: Noise, rates and sums are followed down to `exp(-_DEPTH)`.
_DEPTH = 18.0
#: The longest step of logarithms of rates, and the part of a Poisson count's deviation that one is.
_STEP, _PART = 0.15, 0.45
#: Counts behind a drawn one are so much nearer than by default; about how many there are.
_OF_NODES, _NODES = 1 / 3, 256
#: What has lost its digits, of the largest entry of a transform, and what it may hold of a law.
_DIGITS, _LOST = 1e-14, 1e-4
#: The largest part of a law at one point of its lattice, and at its ends.
_PEAK, _END = 0.45, 1e-5
#: Numbers that one array holds, and the most for one law, and for the sums of one table.
_BLOCK, _MOST, _MOST_SUMS = 1 << 20, 1 << 22, 1 << 16
#: Exponents of factors of powers, at most; and noise of a probability below `exp(-_IMPOSSIBLE)`.
_LARGEST_POWER, _IMPOSSIBLE = 300.0, 600.0
_TINY = 1e-300

#: Counts, or sums, and logarithms of their weights, a row for each law.
Nodes = tuple[Floats, Floats]


def shares_of_tables(
    noisy: DrawnCounts, prior: Floats, level: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Means, standard deviations, lower and upper ends of intervals of probability `level` of all
    shares, shape `(4, tables, k)`, and the tables of which they are known, shape `(tables,)`.

    They are within 1e-2 of the standard deviation, and mostly within 1e-3.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(tables, k)`.
    prior : ndarray
        Concentration of the prior, shape `(k,)`.
    level : float
        Between 0 and 1.
    """
    shares, noise = np.empty((4, *noisy.drawn.shape)), noisy.noise
    served = prior.min() >= _SMALLEST and prior.sum() <= _LARGEST
    served &= prior.size * (2 * noise.reach(_DEPTH) + 2) <= _MOST_SUMS
    is_known = served & (noisy.drawn.max(axis=1) <= _MOST * max(noise.scale / 2, 1))
    is_known &= noisy.drawn.min(axis=1) >= -noise.reach(_IMPOSSIBLE)
    if is_known.any():
        some = noisy.chosen(is_known)
        shares[:, is_known], is_known[is_known] = _shares_of_served(some, prior, level)
    return shares, is_known


def _shares_of_served(
    noisy: DrawnCounts, prior: Floats, level: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """`shares_of_tables` of those that are served."""
    (tables, k), whole = noisy.drawn.shape, float(prior.sum())
    values, row_of = np.unique(noisy.drawn, return_inverse=True)
    rates, row_of = _Rates.of(_counts_behind(noisy.noise, values)), row_of.reshape(tables, k)
    if k == 2 and whole <= _WEAK:
        alpha, others = prior.tolist()
        first, is_known = _shares(rates, rates, row_of[:, 0], row_of[:, 1], alpha, others, level)
        mean, deviation, lower, upper = first
        return np.stack([first, [1 - mean, deviation, 1 - upper, 1 - lower]], axis=2), is_known
    shares, is_known = np.empty((4, tables, k)), np.ones(tables, dtype=np.bool_)
    rates_of_others = _Rates.of(_sums_behind(noisy, prior, is_known))
    for category, alpha in enumerate(prior.tolist()):
        beside = np.arange(category, tables * k, k)
        shares[..., category], is_sure = _shares(
            rates, rates_of_others, row_of[:, category], beside, alpha, whole - alpha, level
        )
        is_known &= is_sure
    return shares, is_known


@dataclass(frozen=True, eq=False)
class _Rates:
    """Laws of logarithms of Poisson rates, times the root of the rate: a row for each, on a
    lattice of step `2^-level` from `start` on, with its points in `laws` from `begin` on.
    """

    level: Integers
    start: Integers
    points: Integers
    begin: Integers
    laws: Floats

    @classmethod
    def of(cls, parts: Iterable[Nodes]) -> "_Rates":
        """Those of counts `x` with weights `w`, `sum of w exp((x + 1/2) u - exp(u))`."""
        level, start, points, laws = zip(*map(_lattices, parts), strict=True)
        sizes = np.concatenate(points)
        return cls(
            np.concatenate(level),
            np.concatenate(start),
            sizes,
            np.cumsum(sizes) - sizes,
            np.concatenate(laws),
        )

    def on_lattice(self, rows: Integers, level: int) -> tuple[Integers, Floats]:
        """Starts and masses of rows that have one level, on a lattice that is no finer."""
        steps = np.arange(self.points[rows].max())
        inside = steps < self.points[rows, None]
        laws = np.where(inside, self.laws[np.where(inside, self.begin[rows, None] + steps, 0)], 0.0)
        finer = 1 << int(self.level[rows[0]] - level)
        if finer == 1:
            return self.start[rows], laws
        first, offset = np.divmod(self.start[rows], finer)
        points = (steps.size + finer - 1) // finer + 1
        whole = np.zeros((rows.size, points * finer))
        np.put_along_axis(whole, offset[:, None] + steps, laws, axis=1)
        parts = whole.reshape(rows.size, points, finer)
        masses = np.zeros((rows.size, points + 3))  # handed to the nearest four points
        for more, weight in enumerate(cubic(1 + np.arange(finer) / finer)):
            masses[:, more : more + points] += parts @ weight
        return first - 1, masses


def _lattices(nodes: Nodes) -> tuple[Integers, Integers, Integers, Floats]:
    """Level, start and number of points of the lattice of each row, and what is on them."""
    x, log_weight = nodes
    y = x + 0.5
    height = log_weight + y * np.log(y) - y
    depth = np.maximum(_DEPTH + height - height.max(axis=1, keepdims=True), 0.0)
    far = depth / (y + 0.5)
    low = np.log(y) - np.where(far < 0.3, 1.3 * np.sqrt(2 * far), 1 + far)
    high = np.log(y + np.sqrt(2 * depth * y) + depth)
    peak = np.take_along_axis(x, height.argmax(axis=1)[:, None], axis=1)[:, 0]
    step = np.minimum(_STEP, _PART / np.sqrt(np.maximum(peak, 1.0)))
    level = np.ceil(-np.log2(step)).astype(np.int64)
    step = 2.0**-level
    start = np.floor(np.where(depth > 0, low, np.inf).min(axis=1) / step).astype(np.int64)
    end = np.ceil(np.where(depth > 0, high, -np.inf).max(axis=1) / step).astype(np.int64)
    points = np.where((end - start + 1) * x.shape[1] <= _MOST, end - start + 1, 0)
    laws, begin = np.empty(points.sum()), np.cumsum(points) - points
    middle = (x.max(axis=1) + x.min(axis=1)) / 2
    wide = (x.max(axis=1) - middle) * step
    for rows in _blocks((2 * np.sqrt(points)).astype(np.int64) * x.shape[1]):
        # `exp(x u)` of the points is a product of a few times a few.
        most = int(points[rows].max())
        few = np.arange(int(np.clip(_LARGEST_POWER / wide[rows].max(), 1, np.sqrt(most))))
        many = np.arange(0, most, few.size)
        u = start[rows, None] * step[rows, None] + many * step[rows, None]
        logs = x[rows, None] * u[..., None] + log_weight[rows, None]
        top = logs.max(axis=2, keepdims=True)
        steps = few * step[rows, None]
        powers = np.exp((x[rows] - middle[rows, None])[..., None] * steps[:, None])
        value = np.log(np.exp(logs - top) @ powers) + top + (middle[rows, None] * steps)[:, None]
        u = u[..., None] + steps[:, None]
        value = (value + u / 2 - np.exp(u)).reshape(rows.size, -1)
        value = np.exp(value - value.max(axis=1, keepdims=True))
        inside = np.arange(value.shape[1]) < points[rows, None]
        laws[(begin[rows, None] + np.arange(value.shape[1]))[inside]] = value[inside]
    return level, start, points, laws


def _blocks(sizes: Integers) -> Iterator[Integers]:
    """Rows that are about as large, in blocks of so many numbers; without those of size 0."""
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    while order.size:
        number = max(_BLOCK // int(sizes[order[0]]), 1)
        yield order[:number]
        order = order[number:]


def _edges(last: int) -> Integers:
    """First numbers of cells from 0 on, half as long as a Poisson count's deviation."""
    edges = [0]
    while edges[-1] <= last:
        edges.append(edges[-1] + max(1, int(edges[-1] ** 0.5 / 2)))
    return np.array(edges)


def _counts_behind(noise: IntegerNoise, values: Integers) -> Iterator[Nodes]:
    """Counts that may be behind each drawn value, ascending; two stand for each cell."""
    for some in np.array_split(values, values.size * _NODES // _BLOCK + 1):
        x, _, size = nodes_of(some, noise, _DEPTH, part=_OF_NODES).transpose(0, 2, 1)
        log_weight = noise.log_mass(some[:, None] - x) - special.gammaln(x + 1)
        yield x, log_weight + np.log(np.maximum(size, _TINY))


def _sums_behind(noisy: DrawnCounts, prior: Floats, is_known: NDArray[np.bool_]) -> Iterator[Nodes]:
    """Records in all other categories, table by table and category by category; `is_known` becomes
    False for tables whose sums have lost their digits, or that the prior moves too far.
    """
    noise, k, whole = noisy.noise, prior.size, float(prior.sum())
    reach, others = noise.reach(_DEPTH), np.append(whole - prior, whole)[:, None]
    length = 2 * reach + 1
    lattice = fft.next_fast_len(k * length, real=True)
    width = typical_std(noise) * np.sqrt(k)
    for rows in np.array_split(np.arange(is_known.size), is_known.size * k * lattice // _BLOCK + 1):
        noisy_counts = noisy.drawn[rows]
        low = np.maximum(noisy_counts - reach, 0)
        x = low[..., None] + np.arange(length)
        total = np.maximum(noisy_counts.sum(axis=1) - k * typical_mean(noise), 0.0)
        # With this tilt sums have their digits where the number of records is likely.
        tilt = -(whole - 1) / (total + 2 * width + whole / 2)
        logs = noise.log_mass(noisy_counts[..., None] - x) + tilt[:, None, None] * x
        logs += special.gammaln(x + prior[:, None]) - special.gammaln(x + 1)
        logs -= logs.max(axis=2, keepdims=True)
        waves = np.moveaxis(fft.rfft(np.exp(logs), lattice), 1, 0)
        beside = all_but_one(waves, np.multiply)
        sums = fft.irfft(np.concatenate([beside, beside[-1:] * waves[-1]]), lattice)
        sums[sums < _DIGITS * sums.max(axis=2, keepdims=True)] = 0.0
        lowest = low.sum(axis=1) - np.vstack([low.T, np.zeros((1, rows.size), dtype=np.int64)])
        numbers = lowest[..., None] + np.arange(lattice)
        factor = -tilt[:, None] * numbers - special.gammaln(numbers + others[..., None])
        orders = special.gammaln(numbers + 1.0)
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + factor
        log_p, lost = logs + orders, np.log(_DIGITS * sums.max(axis=2, keepdims=True)) + factor
        mass = special.logsumexp(log_p, axis=2, keepdims=True)
        lost, p = np.exp(lost + orders - mass) * (numbers + 1), np.exp(log_p - mass)
        at_end = (sums[..., 1:] > 0) != (sums[..., :-1] > 0)
        lost = (np.minimum(lost[..., 1:], lost[..., :-1]) * at_end).max(axis=(0, 2)) > _LOST
        is_known[rows] &= (np.abs((p[-1] * numbers[-1]).sum(axis=1) - total) < _FAR * width) & ~lost
        log_p -= log_p.max(axis=2, keepdims=True)
        yield _binned(*(x[:-1].swapaxes(0, 1).reshape(-1, lattice) for x in (numbers, logs, log_p)))


def _binned(numbers: Integers, logs: Floats, log_p: Floats) -> Nodes:
    """Two numbers for each cell of those that are probable, with its mean and variance."""
    edges = _edges(int(numbers.max()))
    middles = np.maximum((edges[:-1] + edges[1:] - 1) / 2, 0.5)
    row, column = np.nonzero(log_p > -_DEPTH)
    seen, logs = numbers[row, column], logs[row, column]
    cell = np.searchsorted(edges, seen, side="right") - 1
    first = cell[np.searchsorted(row, np.arange(len(numbers)))]
    cells = int((cell - first[row]).max()) + 1
    # Within a cell a number weighs as much as if its rate were the middle.
    logs = logs + seen * np.log(middles[cell]) - middles[cell]
    top = np.full(len(numbers), -np.inf)
    np.maximum.at(top, row, logs)
    masses, key = np.exp(logs - top[row]), row * cells + cell - first[row]
    size, away = len(numbers) * cells, seen - middles[cell]
    mass, *moments = (np.bincount(key, masses * away**i, size) for i in range(3))
    mean, square = (x / np.maximum(mass, _TINY) for x in moments)
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    middle = middles[np.minimum(first[:, None] + np.arange(cells), middles.size - 1)].ravel()
    x = np.maximum([middle + mean - deviation, middle + mean + deviation], 0.0)
    with np.errstate(divide="ignore"):
        log_weight = np.log(mass / 2) + np.repeat(top, cells) + middle - x * np.log(middle)
    shape = 2, len(numbers), cells
    return np.concatenate([*x.reshape(shape)], axis=1), np.concatenate(
        [*log_weight.reshape(shape)], axis=1
    )


def _shares(
    rates: _Rates,
    rates_of_others: _Rates,
    first: Integers,
    second: Integers,
    alpha: float,
    others: float,
    level: float,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean, deviation and ends of the share of a category, whose rates are `rates[first]`, beside
    others, whose are `rates_of_others[second]`, shape `(4, rows)`; and where they are known.
    """
    shares, is_known = np.empty((4, first.size)), np.zeros(first.size, dtype=np.bool_)
    levels = np.column_stack([rates.level[first], rates_of_others.level[second]])
    points = rates.points[first], rates_of_others.points[second]
    sizes = np.where(np.minimum(*points) > 0, sum(points), 0)
    for pair in np.unique(levels, axis=0):
        alike, level_of = np.flatnonzero((levels == pair).all(axis=1)), int(pair.min())
        for some in _blocks(sizes[alike]):
            rows = alike[some]
            start, laws = rates.on_lattice(first[rows], level_of)
            begin, beside = rates_of_others.on_lattice(second[rows], level_of)
            before, after = beside.shape[1], laws.shape[1]
            waves = fft.rfft(laws, lattice := fft.next_fast_len(before + after, real=True))
            waves *= np.conj(fft.rfft(beside, lattice))
            masses = np.roll(fft.irfft(waves, lattice), before, axis=1)[:, : before + after]
            places = (start - begin)[:, None] + np.arange(-before, after)
            logits = np.asarray(places * 2.0**-level_of, dtype=np.float64)
            weights = (alpha - 0.5) * special.log_expit(logits)
            weights += (others - 0.5) * special.log_expit(-logits)
            masses = np.maximum(masses, 0.0) * np.exp(weights)
            masses /= np.maximum(masses.sum(axis=1, keepdims=True), _TINY)
            shares[:, rows] = _summary(masses, logits, level)
            ends = masses[:, [0, -1]].max(axis=1)
            is_known[rows] = (masses.max(axis=1) < _PEAK) & (ends < _END)
    return shares, is_known


def _summary(masses: Floats, logits: Floats, level: float) -> Floats:
    """Mean, deviation and ends of shares with masses at logits, in equal steps; `(4, rows)`."""
    shares, rows = special.expit(logits), np.arange(len(masses))
    mean = (masses * shares).sum(axis=1)
    deviation = np.sqrt((masses * (shares - mean[:, None]) ** 2).sum(axis=1))
    # Integrals of cubics from each point to the next.
    wide = np.pad(masses, ((0, 0), (1, 1)))
    between = (13 * (wide[:, 1:-2] + wide[:, 2:-1]) - wide[:, :-3] - wide[:, 3:]) / 24
    up_to = np.pad(np.cumsum(np.maximum(between, 0.0), axis=1), ((0, 0), (1, 0)))
    up_to /= up_to[:, -1:]
    results = [mean, deviation]
    for wanted in ((1 - level) / 2, (1 + level) / 2):
        cell = np.clip((up_to < wanted).sum(axis=1) - 1, 0, masses.shape[1] - 2)
        low, high, rise, fall = (x[rows, cell + i] for x in (up_to, masses) for i in (0, 1))
        third, second = 2 * (low - high) + rise + fall, 3 * (high - low) - 2 * rise - fall
        fraction = (wanted - low) / np.maximum(high - low, _TINY)
        for _ in range(4):
            off = ((third * fraction + second) * fraction + rise) * fraction + low - wanted
            slope = np.maximum((3 * third * fraction + 2 * second) * fraction + rise, _TINY)
            fraction = np.clip(fraction - off / slope, 0.0, 1.0)
        results.append(special.expit(logits[rows, cell] + fraction * (logits[:, 1] - logits[:, 0])))
    return np.array(results)
