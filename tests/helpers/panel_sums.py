"""Sums over one count by discrete Gauss quadrature on panels, without the package's code."""

import math

import numpy as np

from tests.helpers.noised_counts import NotServedError

#: Nodes of a panel, and the longest panel whose nodes are those of whole numbers exactly.
NODES, LONGEST_DISCRETE = 8, 4096
#: Over a panel that matters the logarithm changes by at most so much; what is so far below the
#: top does not matter.
CHANGE, DEPTH = 4.0, 44.0
#: The largest count of a private number of records.
LARGEST = 10.0**15
#: Nothing that needs more evaluations is served.
MOST_NODES = 3 * 10**7

_LEGENDRE = np.polynomial.legendre.leggauss(NODES)
_DISCRETE = {}


def discrete_gauss(length):
    """Nodes about the middle, and weights, of a sum over whole numbers in a row."""
    if length <= NODES:
        fill = np.zeros(NODES - length)
        at = np.arange(length) - (length - 1) / 2
        return np.append(at, fill), np.append(np.ones(length), fill)
    if length not in _DISCRETE:
        j = np.arange(1, NODES)
        off = np.sqrt(j**2 * (float(length) ** 2 - j**2) / (4 * (4 * j**2 - 1.0)))
        at, vectors = np.linalg.eigh(np.diag(off, 1) + np.diag(off, -1))
        _DISCRETE[length] = at, length * vectors[0] ** 2
    return _DISCRETE[length]


def nodes_of(first, last):
    """Nodes and weights of panels, each of shape `(panels, NODES)`."""
    length, middle = (last - first + 1)[:, None], ((first + last) / 2)[:, None]
    at, weight = middle + length / 2 * _LEGENDRE[0], length / 2 * _LEGENDRE[1]
    for one in np.unique(length[length <= LONGEST_DISCRETE]).astype(int).tolist():
        same = length[:, 0] == one
        off, weight[same] = discrete_gauss(one)
        at[same] = middle[same] + off
    return at, weight


class Rows:
    """Weights of different categories as ratios to an anchor's; `place` is every category's row."""

    def __init__(self, setting, last):
        self.setting, self.last = setting, last
        self.rows, self.place = np.unique(setting.alike, return_inverse=True)
        self.times = np.bincount(self.place).astype(float)
        first = setting.looks[0]
        drawn = np.where(first.noised, first.drawn, 0)[self.rows].astype(float)
        self.anchor = np.clip(drawn, 0, min(last, LARGEST))

    def alone(self, row):
        """One row, about the anchor that it has among all."""
        found = Rows.__new__(Rows)
        found.setting, found.last, found.times = self.setting, self.last, np.ones(1)
        found.rows, found.anchor = self.rows[[row]], self.anchor[[row]]
        return found

    def log_ratio(self, row, x):
        """Logarithms of weights of counts x of rows, over those of the anchors."""
        return self.setting.log_ratio(self.rows[row], x, self.anchor[row])

    def log_anchors(self):
        """Logarithm of the product of the weights of all anchors."""
        pairs = zip(self.rows.tolist(), self.anchor.tolist(), strict=True)
        each = [float(self.setting.log_weight(i, x)) for i, x in pairs]
        return float(self.times @ np.array(each))

    def panels(self):
        """First panels: graded about the ends and wherever a weight may not be smooth."""
        steps = 16 * 2.0 ** np.arange(int(math.log2(self.last / 16 + 2)) + 2)
        steps = np.concatenate([[0.0, 1.0], steps, [0.0, -1.0], -steps])
        found = []
        for i, anchor in zip(self.rows.tolist(), self.anchor.tolist(), strict=True):
            looks = [look for look in self.setting.looks if look.noised[i]]
            kinks = [float(look.drawn[i]) + add for look in looks for add in (0, 1)]
            places = np.array([0.0, self.last, anchor, *kinks])[:, None] + steps
            ends = np.array([0, self.last + 1])
            found.append(np.unique(np.append(np.clip(places, *ends), ends)))
        row = np.repeat(np.arange(len(found)), [edges.size - 1 for edges in found])
        first, end = (np.concatenate([edges[part] for edges in found]) for part in _ENDS)
        return row, first, end - 1


_ENDS = slice(None, -1), slice(1, None)


class Panels:
    """Quadratures for every row that are good for a few tilts, and for those in between."""

    def __init__(self, rows, tilts, longest=math.inf):
        self.rows, tilts = rows, np.unique(tilts)
        row, first, last = rows.panels()
        while True:
            x, weight = nodes_of(first, last)
            ratio = rows.log_ratio(row[:, None], x)
            matters, cut = self._judged(tilts, row, x, weight, ratio)
            cut |= matters & (last - first + 1 > longest)
            cut &= last - first + 1 > NODES
            if not np.any(cut):
                break
            middle = np.floor((first + last) / 2)[cut]
            first = np.concatenate([first[~cut], first[cut], middle + 1])
            last = np.concatenate([last[~cut], middle, last[cut]])
            row = np.concatenate([row[~cut], row[cut], row[cut]])
            order = np.lexsort((first, row))
            row, first, last = row[order], first[order], last[order]
            if row.size * NODES * tilts.size > MOST_NODES:
                raise NotServedError("nodes")
        used = (weight > 0) & matters[:, None]
        self.row = np.broadcast_to(row[:, None], x.shape)[used]
        self.x, self.last = x[used], last[matters]
        self.log = ratio[used] + np.log(weight[used])
        self.away = self.x - rows.anchor[self.row]
        self.starts = np.searchsorted(self.row, np.arange(rows.rows.size))

    def _judged(self, tilts, row, x, weight, ratio):
        """Which panels matter under a tilt, and which the weight changes too much on."""
        matters, cut = np.zeros(row.size, bool), np.zeros(row.size, bool)
        away, count = x - self.rows.anchor[row][:, None], np.sum(weight > 0, axis=1)
        with np.errstate(divide="ignore"):
            width = np.log(weight)
        for tilt in tilts:
            height = np.where(weight > 0, ratio + tilt * away, -np.inf)
            mass = np.max(height + width, axis=1)
            top = np.full(self.rows.rows.size, -np.inf)
            np.maximum.at(top, row, mass)
            near = mass > top[row] - DEPTH
            matters |= near
            ends = np.minimum(height[:, 0], height[np.arange(row.size), count - 1])
            inner = np.max(height, axis=1)
            sides = np.append(-np.inf, inner[:-1]), np.append(inner[1:], -np.inf)
            peak = (inner >= sides[0]) & (inner >= sides[1])
            near = near | peak | np.append(False, peak[:-1]) | np.append(peak[1:], False)
            cut |= near & (inner - ends > CHANGE)
        return matters, cut

    def alone(self, row):
        """Those of one row."""
        found, own = Panels.__new__(Panels), self.row == row
        found.rows, found.starts, found.row = (
            self.rows.alone(row),
            np.zeros(1, int),
            np.zeros(own.sum(), int),
        )
        found.x, found.log, found.away = self.x[own], self.log[own], self.away[own]
        return found

    def masses(self, tilt):
        """Probabilities of the nodes under a tilt, and the logarithm of each row's sum."""
        height = self.log + tilt * self.away
        top = np.maximum.reduceat(height, self.starts)
        masses = np.exp(height - top[self.row])
        whole = self.sums(masses)
        return masses / whole[self.row], top + np.log(whole)

    def sums(self, values):
        """Of each row, along the first axis."""
        return np.add.reduceat(values, self.starts, axis=0)

    def cumulants(self, tilt):
        """Of each row, shape `(4, rows)`: four cumulants, and the logarithms of the sums."""
        masses, log_sum = self.masses(tilt)
        mean = self.sums(masses * self.away)
        off = self.away - mean[self.row]
        second, third, fourth = (self.sums(masses * off**power) for power in (2, 3, 4))
        return np.array([mean, second, third, fourth - 3 * second**2]), log_sum

    def cumulative(self, masses):
        """The ends of panels of one row, and cumulative probabilities there."""
        place = np.searchsorted(self.x, self.last, side="right") - 1
        return self.last, np.cumsum(masses)[place]
