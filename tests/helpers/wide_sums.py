"""The posterior of four or five counts of many records with noise on each: sums of two counts are
tabulated as polynomials on pieces, and sums over these are quadratures on pieces of both. Shares no
code with the package.
"""

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from tests.helpers.nested_panels import log_noise
from tests.helpers.weighed_pairs import MarginalOfPanels, log_rising

#: Pieces of at most so many counts have a value for each, longer ones a polynomial.
_SHORT = 16
#: Nodes of a polynomial, and of a quadrature.
_NODES = 8
#: Pieces this far away are this much longer than the distance.
_RATIO = 3.0
#: The error of a tabulated logarithm that is accepted, and the largest piece without weight.
_ERROR, _DEPTH = 2e-6, 50.0
#: The change of a logarithm over a piece that is summed by quadrature.
_CHANGE = 4.0
#: Between the nodes, where a polynomial is tested.
_TESTED = np.array([-0.97, -0.3, 0.08, 0.92])

_AT, _WEIGHTS = legendre.leggauss(_NODES)
_TO_COEFFICIENTS = np.linalg.inv(legendre.legvander(_AT, _NODES - 1))


def _ends(order):
    """Of the polynomial that is 1 at a node and 0 at the others, the derivative at 1 less that at
    -1, for every node.
    """
    rows = [legendre.legder(row, order) for row in _TO_COEFFICIENTS.T]
    return np.array([legendre.legval(1.0, row) - legendre.legval(-1.0, row) for row in rows])


_FIRST, _THIRD = _ends(1), _ends(3)


def graded(last, places):
    """First numbers of pieces of 0 to `last`, short about places; and `last + 1`."""
    steps = _SHORT * _RATIO ** np.arange(int(np.log(last + 2) / np.log(_RATIO)) + 1)
    edges = {0, last + 1}
    for place in {int(p) for p in places if -_SHORT <= p <= last + _SHORT} | {0, last}:
        edges |= {place, place + 1}
        edges |= {int(place + sign * step) for step in steps for sign in (1, -1)}
    return np.array(sorted(edge for edge in edges if 0 <= edge <= last + 1), dtype=np.int64)


class Table:
    """A logarithm of weights of 0 to `last`: values of short pieces, polynomials of long ones."""

    def __init__(self, last, places, of):
        """`of` takes whole numbers, shape `(m,)`."""
        self.last, self.edges = last, graded(last, places)
        self._known = {}
        while True:
            first, length = self.edges[:-1], np.diff(self.edges)
            self._long = length > _SHORT
            self._middle = first + (length - 1) / 2
            self._half = length / 2
            self._fit(of)
            wide = np.flatnonzero(self._long)
            tested = np.rint(self._middle[wide, None] + self._half[wide, None] * _TESTED)
            tested = np.clip(tested, first[wide, None], (first + length - 1)[wide, None])
            off = np.abs(self._values(of, tested) - self(tested)).max(axis=1, initial=0.0)
            bad = wide[off > _ERROR]
            if not bad.size:
                return
            self.edges = np.sort(np.append(self.edges, first[bad] + length[bad] // 2))

    def _values(self, of, points):
        """Computed once for every number."""
        points = points.astype(np.int64)
        new = np.array([x for x in np.unique(points).tolist() if x not in self._known])
        if new.size:
            self._known.update(zip(new.tolist(), of(new).tolist(), strict=True))
        found = [self._known[x] for x in points.ravel().tolist()]
        return np.array(found, dtype=float).reshape(points.shape)

    def _fit(self, of):
        first, length = self.edges[:-1], np.diff(self.edges)
        self._coefficients = np.zeros((first.size, max(_NODES, _SHORT)))
        wide = np.flatnonzero(self._long)
        at = np.cos((2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES))
        points = np.rint(self._middle[wide, None] + self._half[wide, None] * at)
        points = np.clip(points, first[wide, None], (first + length - 1)[wide, None])
        at = (points - self._middle[wide, None]) / self._half[wide, None]
        values = self._values(of, points)
        matrices = legendre.legvander(at, _NODES - 1)
        found = np.linalg.solve(matrices, values[..., None])[..., 0]
        self._coefficients[wide[:, None], np.arange(_NODES)] = found
        short = np.flatnonzero(~self._long)
        offset = np.arange(_SHORT)
        points = np.minimum(first[short, None] + offset, (first + length - 1)[short, None])
        self._coefficients[short[:, None], offset] = self._values(of, points)

    def __call__(self, x):
        """At numbers, whole ones in short pieces."""
        x = np.asarray(x, dtype=float)
        piece = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, self.edges.size - 2)
        at = (x - self._middle[piece]) / self._half[piece]
        rows = self._coefficients[piece]
        found = legendre.legval(at, np.moveaxis(rows[..., :_NODES], -1, 0), tensor=False)
        short = ~self._long[piece]
        offset = (x - self.edges[piece]).astype(np.int64)
        own = np.take_along_axis(rows, np.clip(offset, 0, _SHORT - 1)[..., None], -1)[..., 0]
        return np.where(short, own, found)


def nodes_of(first, last):
    """Points and weights of sums over pieces, flat, with the piece of each; exact for polynomials
    of degree 7, by the formula of Euler and Maclaurin.
    """
    length = last - first + 1
    long = length > _SHORT
    half, middle = length[long, None] / 2, (first + last)[long, None] / 2
    points = middle + half * _AT
    weights = half * _WEIGHTS - _FIRST / (24 * half) + 7 * _THIRD / (5760 * half**3)
    owner = np.repeat(np.flatnonzero(~long), length[~long])
    counts = np.repeat(first[~long], length[~long])
    starts = np.repeat(np.cumsum(length[~long]) - length[~long], length[~long])
    counts = counts + np.arange(counts.size) - starts
    return (
        np.append(counts.astype(float), points.ravel()),
        np.append(np.ones(counts.size), weights.ravel()),
        np.append(owner, np.repeat(np.flatnonzero(long), _NODES)),
    )


def refined(log_weight, edges):
    """Pieces, first and last, of which those that hold weight are short enough for a quadrature."""
    first, last = edges[:-1], edges[1:] - 1
    while True:
        at = np.column_stack([first, (first + last) // 2, last])
        heights = log_weight(at.astype(float))
        flat = heights.ravel()
        left, right = np.append(-np.inf, flat[:-1]), np.append(flat[1:], -np.inf)
        peak = ((flat >= left) & (flat >= right)).reshape(-1, 3).any(axis=1)
        top = heights.max(axis=1)
        near = peak | np.append(False, peak[:-1]) | np.append(peak[1:], False)
        holds = near | (top > top.max() - _DEPTH)
        change = top - heights.min(axis=1)
        cut = holds & (change > _CHANGE) & (last - first >= _SHORT)
        if not cut.any():
            kept = top > top.max() - _DEPTH
            return first[kept], last[kept]
        begin, length = first[cut, None], (last - first + 1)[cut, None]
        starts = (begin + length * np.arange(4) // 4).ravel()
        ends = np.append(starts[1:], 0)
        ends[3::4] = last[cut] + 1
        first, last = np.append(first[~cut], starts), np.append(last[~cut], ends - 1)
        order = np.argsort(first)
        first, last = first[order], last[order]


def log_sum(one, other, total):
    """The logarithm of the sum over x of weights of x and of `total - x`."""
    mirrored = total + 1 - other.edges
    edges = np.unique(np.concatenate([one.edges, mirrored, [0, total + 1]]))
    edges = edges[(edges >= 0) & (edges <= total + 1)]

    def log_weight(x):
        return one(x) + other(total - x)

    points, weights, _ = nodes_of(*refined(log_weight, edges))
    return float(special.logsumexp(log_weight(points), b=weights))


class OfWideSums(MarginalOfPanels):
    """Marginal of the first of four or five categories, with a public size."""

    def __init__(self, law, scale, drawn, prior, size):
        places = [{d, d + 1} for d in drawn]
        counts = [
            Table(size, near, lambda x, d=d, a=a: log_noise(law, scale, d - x) + log_rising(x, a))
            for near, d, a in zip(places, drawn, prior, strict=True)
        ]

        def sum_of(i, j):
            near = {p + q for p in places[i] | {0} for q in places[j] | {0}}
            return near, Table(
                size, near, lambda m: np.array([log_sum(counts[i], counts[j], x) for x in m])
            )

        near, one = sum_of(1, 2)
        more, other = sum_of(3, 4) if len(prior) == 5 else (places[3], counts[3])
        rest = {size - p - q for p in near | {0} for q in more | {0}}
        joint = Table(
            size,
            places[0] | rest,
            lambda x: counts[0](x) + [log_sum(one, other, size - own) for own in x],
        )
        first, last = refined(joint, joint.edges)
        # As fine as the Betas of the first are wide.
        while True:
            length = last - first + 1
            a = prior[0] + (first + last) / 2
            wide = np.sqrt(a * (size + sum(prior) - a) / (size + sum(prior)))
            cut = (length > _SHORT) & (length > wide)
            if not cut.any():
                break
            middle = (first + length // 2)[cut]
            first, last = np.append(first, middle), np.append(last, last[cut])
            last[: cut.size][cut] = middle - 1
        points, weights, _ = nodes_of(first, last)
        super().__init__(prior, size, points, joint(points) + np.log(weights))
