"""The posterior of counts with additive noise where arrays of every count are too long.

Counts are independent once their weights are tilted, q(x) exp(t x), and

- a public number of records n is an integral over imaginary parts of t: `P(sum = n)` is the mean of
  `exp(-i u n) E exp(i u sum)` over u, which ends where the expectation has vanished;
- with every number equally probable, `n! / Γ(n + A)` is an integral of `s^n (1 - s)^(A - 2)` over
  s from 0 to 1, so that the posterior is a mixture over real tilts, ln s, of independent counts.

Sums over one count are discrete Gauss quadratures on panels. Shares no code with the package.
"""

import math

import numpy as np
from scipy import optimize, special

from tests.helpers.reference_of_counts import NotServedError, Pairs

#: Nodes of a panel, and the longest panel whose nodes are those of whole numbers exactly.
NODES, LONGEST_DISCRETE = 8, 4096
#: Over a panel that matters the logarithm changes by at most so much; what is so far below the
#: top does not matter; neither is the integrand of a tilt.
CHANGE, DEPTH = 4.0, 44.0
#: The logarithm of what is left of a characteristic function where it is cut off.
VANISHED = 36.0
LARGEST = 10.0**15
MOST_ROWS, MOST_WAVES = 300, 3 * 10**7
#: Deviations below this are not distinguished; the error of an integral that is accepted.
SMALLEST, ACCEPTED = 0.01, 2e-4
#: What has to be left of the terms of an integral, which are right to some 1e-8.
LEAST = 1e-4

_LEGENDRE = np.polynomial.legendre.leggauss(NODES)


def gauss(length):
    """Nodes about the middle, and weights, of a sum over so many whole numbers in a row."""
    if length <= NODES:
        return np.arange(length) - (length - 1) / 2, np.ones(length)
    size = NODES
    j = np.arange(1, size)
    off = np.sqrt(j**2 * (float(length) ** 2 - j**2) / (4 * (4 * j**2 - 1.0)))
    at, vectors = np.linalg.eigh(np.diag(off, 1) + np.diag(off, -1))
    return at, length * vectors[0] ** 2


_TABLE = {}


def nodes_of(first, last):
    """Nodes and weights of panels, shape `(panels, NODES)`; of weight 0 where there are fewer."""
    length = last - first + 1
    middle = (first + last) / 2
    at = middle[:, None] + length[:, None] / 2 * _LEGENDRE[0]
    weight = length[:, None] / 2 * _LEGENDRE[1]
    short = length <= LONGEST_DISCRETE
    for one in np.unique(length[short]).astype(int).tolist():
        if one not in _TABLE:
            own = gauss(one)
            fill = NODES - own[0].size
            _TABLE[one] = np.append(own[0], np.zeros(fill)), np.append(own[1], np.zeros(fill))
        same = length == one
        at[same] = middle[same, None] + _TABLE[one][0]
        weight[same] = _TABLE[one][1]
    return at, weight


class Rows:
    """The weights of the different categories, as ratios to that of an anchor of each."""

    def __init__(self, setting, last, only=None):
        self.setting, self.last = setting, last
        self.rows, self.place = np.unique(setting.alike, return_inverse=True)
        if only is not None:
            self.rows, self.place = self.rows[[only]], np.array([0])
        self.times = np.bincount(self.place).astype(float)
        self.alpha = setting.prior[self.rows]
        self.looks = [
            (look.law, look.scale, look.drawn[self.rows].astype(float), look.noised[self.rows])
            for look in setting.looks
        ]
        first = next(np.where(noised, d, 0) for _, _, d, noised in self.looks[:1])
        self.anchor = np.clip(first, 0, min(last, LARGEST))

    def log_ratio(self, row, x):
        """Logarithms of weights of counts x of rows, over those of the anchors."""
        return self.setting.log_ratio(self.rows[row], x, self.anchor[row])

    def log_anchors(self):
        """Logarithm of the product of the weights of all anchors."""
        pairs = zip(self.rows.tolist(), self.anchor.tolist(), strict=True)
        each = [float(self.setting.log_weight(i, x)) for i, x in pairs]
        return float(self.times @ np.array(each))


class Panels:
    """Quadratures for every row, good for tilts from the lowest to the highest of a few."""

    def __init__(self, rows, tilts, longest=math.inf):
        self.rows = rows
        row, first, last = self._start()
        tilts = np.unique(tilts)
        while True:
            x, weight = nodes_of(first, last)
            ratio = rows.log_ratio(row[:, None], x)
            with np.errstate(divide="ignore"):
                log_weight = np.where(weight > 0, np.log(weight), -np.inf)
            matters, cut = np.zeros(row.size, bool), np.zeros(row.size, bool)
            count = np.sum(weight > 0, axis=1)
            for tilt in tilts:
                height = ratio + tilt * (x - rows.anchor[row][:, None])
                height = np.where(weight > 0, height, -np.inf)
                mass = np.max(height + log_weight, axis=1)
                top = np.full(rows.rows.size, -np.inf)
                np.maximum.at(top, row, mass)
                near = mass > top[row] - DEPTH
                ends = height[:, 0], height[np.arange(row.size), count - 1]
                inner = np.max(height, axis=1)
                peak = (inner >= np.append(-np.inf, inner[:-1])) & (
                    inner >= np.append(inner[1:], -np.inf)
                )
                near |= peak | np.append(False, peak[:-1]) | np.append(peak[1:], False)
                change = inner - np.minimum(*ends)
                cut |= near & (change > CHANGE)
                matters |= mass > top[row] - DEPTH
            cut |= matters & (last - first + 1 > longest)
            cut &= last - first + 1 > NODES
            if not np.any(cut):
                break
            middle = np.floor((first + last) / 2)[cut]
            row = np.concatenate([row[~cut], row[cut], row[cut]])
            first, last = (
                np.concatenate([first[~cut], first[cut], middle + 1]),
                np.concatenate([last[~cut], middle, last[cut]]),
            )
            order = np.lexsort((first, row))
            row, first, last = row[order], first[order], last[order]
            if row.size * NODES * tilts.size > MOST_WAVES:
                raise NotServedError("nodes")
        used = (weight > 0) & matters[:, None]
        self.row = np.broadcast_to(row[:, None], x.shape)[used]
        self.x, self.log = x[used], (ratio + log_weight)[used]
        self.away = self.x - rows.anchor[self.row]
        self.starts = np.searchsorted(self.row, np.arange(rows.rows.size))
        self.first, self.last, self.owner = first[matters], last[matters], row[matters]

    def _start(self):
        edges = []
        rows = self.rows
        end = rows.last
        steps = 16 * 2.0 ** np.arange(int(math.log2(end / 16 + 2)) + 2)
        steps = np.append(np.append(0.0, 1.0), steps)
        for row in range(rows.rows.size):
            places = [0.0, end, rows.anchor[row]]
            places += [
                d[row] + add for _, _, d, noised in rows.looks if noised[row] for add in (0, 1)
            ]
            found = np.concatenate([p + sign * steps for p in places for sign in (1, -1)])
            found = np.unique(np.clip(found, 0, end + 1))
            edges.append(np.unique(np.concatenate([found, [0, end + 1]])))
        row = np.repeat(np.arange(len(edges)), [e.size - 1 for e in edges])
        return (
            row,
            np.concatenate([e[:-1] for e in edges]),
            np.concatenate([e[1:] - 1 for e in edges]),
        )

    def masses(self, tilt):
        """Probabilities of the nodes under a tilt, and the logarithm of each row's sum."""
        height = self.log + tilt * self.away
        top = np.maximum.reduceat(height, self.starts)
        masses = np.exp(height - top[self.row])
        whole = np.add.reduceat(masses, self.starts)
        return masses / whole[self.row], top + np.log(whole)

    def sums(self, values):
        return np.add.reduceat(values, self.starts)

    def moments(self, tilt):
        """Means less the anchors and variances of the rows, and logarithms of their sums."""
        masses, log_z = self.masses(tilt)
        mean = self.sums(masses * self.away)
        return mean, self.sums(masses * (self.away - mean[self.row]) ** 2), log_z, masses


def _tilt_for(rows, goal, tilt=0.0):
    """The tilt under which the sum has this mean, and panels for it."""
    low, high, step = -math.inf, math.inf, None
    for turn in range(200):
        panels = Panels(rows, [tilt])
        mean, variance, _, _ = panels.moments(tilt)
        off = goal - float(rows.times @ (mean + rows.anchor))
        deviation = math.sqrt(max(float(rows.times @ variance), 1e-12))
        if abs(off) < 0.3 * deviation or abs(off) < 1e-3 or high - low < 1e-14 * abs(tilt):
            return tilt, panels
        low, high = (tilt, high) if off > 0 else (low, tilt)
        newton = tilt + off / max(deviation, 0.3) ** 2
        if math.isinf(high - low):
            step = abs(newton - tilt) if step is None else 3 * step
            tilt += math.copysign(step if turn % 2 else min(step, abs(newton - tilt)), off)
        else:
            tilt = newton if low < newton < high and turn % 3 else (low + high) / 2
    raise NotServedError("tilt")


class Public(Pairs):
    """A public number of records: an integral over imaginary tilts."""

    def __init__(self, setting):
        self.setting, n = setting, setting.size
        self.rows = rows = Rows(setting, float(n))
        if rows.rows.size > MOST_ROWS:
            raise NotServedError("rows")
        tilt, panels = _tilt_for(rows, n)
        for _ in range(2):  # anchors where the counts are
            masses, _log = panels.masses(tilt)
            rows.anchor = np.clip(np.rint(panels.sums(masses * panels.x)), 0, n)
            tilt, panels = _tilt_for(rows, n, tilt)
        self.tilt = tilt
        wide = [np.ptp(part) for part in np.split(panels.x, panels.starts[1:])]
        _mean, variance, _, _ = panels.moments(tilt)
        length = 2 * max(wide) + 16 * math.sqrt(rows.times @ variance) + 16
        length = min(length, 2.0 * n + 2) if rows.times.sum() == 2 else length
        # An odd number of steps around the circle, all of which make the mean exact.
        self.step = 2 * math.pi / (2 * math.ceil(length / 2) + 1)
        last, panels = self._end(panels)
        panels = Panels(rows, [tilt], 6 / last)
        self.panels = panels
        self.u = np.arange(0, last + self.step, self.step)
        self.u = self.u[self.u <= math.pi]
        if self.u.size * panels.x.size > MOST_WAVES:
            raise NotServedError("integral")
        self._solve()

    def _end(self, panels):
        """Where the characteristic function of the sum has vanished, at most π."""
        u = 1e-9
        rows, _found, _below = self.rows, math.pi, 0
        masses, _ = panels.masses(self.tilt)
        mean = panels.sums(masses * panels.away)
        away = panels.away - mean[panels.row]
        variance = panels.sums(masses * away**2)
        u = 3 / math.sqrt(max(float(rows.times @ variance), 1e-6))
        while u < math.pi:
            fine = Panels(rows, [self.tilt], 6 / u)
            m, _ = fine.masses(self.tilt)
            phase = np.exp(1j * u * fine.away)
            value = np.abs(np.add.reduceat(m * phase, fine.starts))
            with np.errstate(divide="ignore"):
                log = float(rows.times @ np.log(np.minimum(value, 1.0)))
            if log < -VANISHED:
                return u, fine
            u *= 1.4
        return math.pi, panels

    def _solve(self):
        rows, panels, n = self.rows, self.panels, self.setting.size
        masses, log_z = panels.masses(self.tilt)
        mean = panels.sums(masses * panels.away)
        self._masses = masses
        off = n - float(rows.times @ rows.anchor)  # of the sum of what is away
        log_phi = np.empty((rows.rows.size, self.u.size), dtype=complex)
        first = np.empty_like(log_phi)
        second = np.empty_like(log_phi)
        centred = panels.away - mean[panels.row]
        for at in range(0, self.u.size, 64):
            u = self.u[at : at + 64]
            wave = masses[:, None] * np.exp(1j * centred[:, None] * u)
            phi = np.add.reduceat(wave, panels.starts, axis=0)
            small = np.abs(phi) < 1e-15
            phi = np.where(small, 1e-15, phi)
            log_phi[:, at : at + 64] = np.log(phi)
            first[:, at : at + 64] = (
                np.add.reduceat(wave * centred[:, None], panels.starts, axis=0) / phi
            )
            second[:, at : at + 64] = (
                np.add.reduceat(wave * centred[:, None] ** 2, panels.starts, axis=0) / phi
            )
        shift = off - float(rows.times @ mean)
        self._log_whole = rows.times @ log_phi - 1j * self.u * shift
        self._log_phi, self._centre = log_phi, mean
        weight = np.full(self.u.size, self.step / math.pi)
        weight[0] /= 2
        self._weight = weight
        whole = np.exp(self._log_whole)
        if float(np.sum((whole * weight).real)) < LEAST * float(np.sum(np.abs(whole) * weight)):
            raise NotServedError("digits")
        half = np.where(np.arange(self.u.size) % 2, 0.0, 2 * weight)
        half = _integrals(whole * half, first, second)
        self.density, self._mean, self._variance = _integrals(whole * weight, first, second)
        unit = np.maximum(np.sqrt(np.maximum(self._variance, 0)), SMALLEST)
        self.error = max(
            abs(half[0] / self.density - 1),
            float(np.max(np.abs(half[1] - self._mean) / unit)),
            float(np.max(np.abs(half[2] - self._variance) / unit**2)),
        )
        if self.u[-1] < math.pi - 1.5 * self.step and self.error > ACCEPTED:
            raise NotServedError("half of the points give another integral")
        self._mean += mean
        self.log_evidence = (
            math.log(self.density)
            + float(rows.times @ log_z)
            - self.tilt * off
            + rows.log_anchors()
            + float(self.setting.log_size(n))
        )

    def count(self, i):
        row = self.rows.place[i]
        return self.rows.anchor[row] + self._mean[row], math.sqrt(max(self._variance[row], 0))

    def theta(self, i):
        mean, std = self.count(i)
        alpha, whole = self.setting.prior[i], self.setting.prior.sum() + self.setting.size
        others = np.delete(self.setting.prior, i).sum() + (self.setting.size - mean)
        # E θ(1 - θ) of a Beta, averaged
        a, b = alpha + mean, others
        inner = (a * b - std**2) / (whole**2 * (whole + 1))
        return a / whole, math.sqrt(inner + (std / whole) ** 2)

    def pairs(self, i):
        """On nodes of panels that are no longer than the Beta is wide."""
        return self._law(i, self._width(i))[:3]

    def _width(self, i):
        a = self.setting.prior[i] + self.count(i)[0]
        whole = self.setting.prior.sum() + self.setting.size
        return math.sqrt(a * max(whole - a, 1e-3 * whole) / whole)

    def _law(self, i, width):
        """Nodes, numbers of records and weights, and the panels of one category."""
        row = self.rows.place[i]
        rest = self._log_whole - self._log_phi[row]
        if rest[-1].real > rest[0].real - 25 and self.u[-1] < math.pi - 2 * self.step:
            raise NotServedError("others")
        panels, _anchor = _one(self.rows, row, [self.tilt], min(width, 6 / self.u[-1]))
        centred = panels.x - self.rows.anchor[row] - self._centre[row]
        if centred.size * self.u.size > MOST_WAVES / 10:
            raise NotServedError("pairs")
        found = np.zeros(centred.size)
        for at in range(0, self.u.size, 64):
            u = self.u[at : at + 64]
            terms = np.exp(rest[at : at + 64] + 1j * u * centred[:, None])
            found += (terms.real) @ self._weight[at : at + 64]
        w = panels.masses(self.tilt)[0] * np.maximum(found, 0)
        if abs(w.sum() / self.density - 1) > 2e-5:
            raise NotServedError("resolution")
        return panels.x, np.full(w.size, float(self.setting.size)), w / w.sum(), panels

    def steps(self, i):
        """Counts, and their cumulative probabilities: at the ends of panels."""
        x, _, w, panels = self._law(i, 0.5 * self.count(i)[1])
        return panels.last, np.cumsum(w)[np.searchsorted(x, panels.last, side="right") - 1]


def _one(rows, row, tilts, longest):
    """Panels of one category, about the anchor that it has among all."""
    alone = Rows(rows.setting, rows.last, row)
    alone.anchor = rows.anchor[[row]]
    return Panels(alone, tilts, max(longest, 1.0)), alone


def _integrals(whole, first, second):
    """Of the density, and of the mean and variance of each count less its tilted mean."""
    density = float(np.sum(whole.real))
    mean = (first @ whole).real / density
    return density, mean, (second @ whole).real / density - mean**2


class Private(Pairs):
    """Every number of records being equally probable: an integral over real tilts.

    The integrand has `(1 - s)^A` and polynomials in the counts, so that it exists for every A.
    """

    def __init__(self, setting):
        self.setting = setting
        # A geometric prior is a tilt more.
        self._first, self._more = _geometric(setting.size_prior)
        self.rows = rows = Rows(setting, LARGEST)
        if rows.rows.size > MOST_ROWS:
            raise NotServedError("rows")
        self.concentration = float(setting.prior.sum())
        peak, width = self._peak()
        self._integrate(peak, width * 0.2)

    def _tilt(self, w):
        return self._more - np.logaddexp(0.0, w)

    def _measure(self, w):
        """Logarithm of `(1 - s)^A ds`, for `s = 1 / (1 + e^w)`."""
        whole = self.concentration
        return (whole + 1) * w - (whole + 2) * np.logaddexp(0, w)

    def _value(self, w, panels=None):
        tilt = self._tilt(w)
        panels = panels or Panels(self.rows, [tilt])
        mean, variance, log_z, masses = panels.moments(tilt)
        rows = self.rows
        # The sum of anchors, tilted; the derivative in w of all.
        log = self._measure(w) + rows.times @ log_z + tilt * (rows.times @ rows.anchor)
        n = rows.times @ (mean + rows.anchor)
        slope = (self.concentration + 1) - (n + self.concentration + 2) * special.expit(w)
        return float(log), float(slope), mean, variance, masses

    def _peak(self):
        """Where the logarithm of the integrand is highest: where its slope changes its sign."""
        grid = np.linspace(-34, 34, 18)
        slopes = np.array([self._value(w)[1] for w in grid])
        down = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
        if down.size != 1:
            raise NotServedError("peaks")
        low, high = grid[down[0]], grid[down[0] + 1]
        low = optimize.brentq(lambda w: self._value(w)[1], low, high, xtol=1e-13, rtol=1e-13)
        top = self._value(low)[0]
        width = 1.0
        while (
            width > 1e-9 and min(self._value(low - width)[0], self._value(low + width)[0]) < top - 2
        ):
            width /= 2
        return low, width

    def _integrate(self, peak, step):
        rows, whole = self.rows, self.concentration
        top, ends = self._value(peak)[0], []
        for sign in (-1, 1):
            reach = 32 * step
            while self._value(peak + sign * reach)[0] > top - 36:
                reach *= 2
            ends.append(peak + sign * reach)
        w = np.arange(math.floor((ends[0] - peak) / step), (ends[1] - peak) / step + 1)
        if w.size > 2000:
            raise NotServedError("long integral")
        w = peak + step * w
        tilts = self._tilt(w)
        self.panels = panels = self._panels_for(w)
        if panels.x.size * tilts.size > MOST_WAVES:
            raise NotServedError("nodes")
        logs, means, variances, thirds, fourths = [], [], [], [], []
        for each, _tilt in zip(w, tilts, strict=True):
            log, _, mean, variance, masses = self._value(each, panels)
            centred = panels.away - mean[panels.row]
            logs.append(log)
            means.append(mean + rows.anchor)
            variances.append(variance)
            thirds.append(panels.sums(masses * centred**3))
            fourths.append(panels.sums(masses * centred**4))
        logs, self._tilts = np.array(logs), tilts
        top = logs.max()
        share = np.exp(logs - top)
        x, v, third, fourth = map(np.array, (means, variances, thirds, fourths))
        times = rows.times
        n, nv = x @ times, v @ times
        n3 = third @ times
        n4 = (fourth - 3 * v**2) @ times + 3 * nv**2
        # Of the weight, of the mean number and of its square.
        two = (n + whole) * (n + whole + 1) + nv
        checked = (two, two * n, two * (n**2 + nv))
        self.error = max(abs(2 * (share[::2] @ part[::2]) / (share @ part) - 1) for part in checked)
        if self.error > ACCEPTED:
            raise NotServedError("half of the points give another integral")
        self._n, self._nv, self._x, self._v = n, nv, x, v
        self._third, self._fourth, self._n3 = third, fourth, n3
        self._cumulant4 = (fourth - 3 * v**2) @ times
        a = n + whole
        # E (n + A)(n + A + 1), and with further factors, by central moments of n.
        two = a * (a + 1) + nv
        self.log_evidence = (
            float(math.log(share @ two * step) + top - special.gammaln(whole + 1))
            + special.gammaln(whole)
            + rows.log_anchors()
            + self._first
        )
        norm = share @ two
        self._share, self._norm = share, norm
        centre = float(share @ (two * n) / norm)
        d = n - centre
        one = 2 * a + 1
        # (a + e)(a + e + 1) = two - nv + one e + e², e of central moments nv, n3, n4
        base = a * (a + 1)
        mean_off = base * d + one * nv + d * nv + n3
        mean = float(share @ mean_off / norm)
        square = base * (d**2 + nv) + one * (2 * d * nv + n3) + d**2 * nv + 2 * d * n3 + n4
        self._total = centre + mean, math.sqrt(max(float(share @ square / norm) - mean**2, 0))
        alpha = rows.alpha
        self._theta1 = share @ ((alpha + x) * (a[:, None] + 1) + v) / norm
        # Of θ less its mean m, times (n + A)(n + A + 1): (α + x - m (n + A))² and less.
        m = self._theta1
        off = alpha + x - m * a[:, None]
        square = off**2 + v * (1 - m) ** 2 + m**2 * (nv[:, None] - v)
        self._theta_var = share @ (square + (alpha + x) * (1 - 2 * m) + m**2 * a[:, None]) / norm
        # counts: (x + e_i), n = x_i + others
        e_mean = base[:, None] * x + one[:, None] * v + x * nv[:, None] + third
        self._count = share @ e_mean / norm
        off = x - self._count
        cross = base[:, None] * (off**2 + v) + one[:, None] * (2 * off * v + third)
        cross += off**2 * nv[:, None] + 2 * off * third + fourth + v * (nv[:, None] - v)
        self._count_var = share @ cross / norm

    def _panels_for(self, w):
        """Panels for all of these, made for so many that those in between have theirs, too."""
        between = np.linspace(w[0], w[-1], 64)[1:-1]
        right = np.array([self._value(each)[0] for each in between])
        seen = right > right.max() - 20
        for number in (24, 96, 384):
            places = np.linspace(w[0], w[-1], number)
            panels = Panels(self.rows, self._tilt(places))
            found = np.array([self._value(each, panels)[0] for each in between[seen]])
            if np.max(np.abs(found - right[seen])) < 1e-4:
                return panels
        raise NotServedError("tilts in between")

    def total(self):
        return self._total

    def total_steps(self):
        raise NotServedError("the law of the number")

    def count(self, i):
        row = self.rows.place[i]
        return self._count[row], math.sqrt(max(self._count_var[row], 0.0))

    def theta(self, i):
        row = self.rows.place[i]
        return self._theta1[row], math.sqrt(self._theta_var[row])

    def _given(self, row, longest):
        """For each tilt that matters its share, and probabilities of nodes of one category."""
        seen = self._share > 1e-9 * self._share.max()
        tilts = self._tilts[seen]
        few = [*tilts[:: max(1, tilts.size // 12)].tolist(), tilts[-1]]
        panels, _ = _one(self.rows, row, few, longest)
        own = np.array([panels.masses(tilt)[0] for tilt in tilts])
        return seen, own, panels

    def steps(self, i):
        """Counts, and their cumulative probabilities: at the ends of panels."""
        row = self.rows.place[i]
        seen, own, panels = self._given(row, 0.5 * self.count(i)[1])
        rest, spread = self._rest(row)
        a = panels.x + rest[seen][:, None] + self.concentration
        w = self._share[seen] @ (own * (a * (a + 1) + spread[seen][:, None])) / self._norm
        return panels.last, np.cumsum(w)[np.searchsorted(panels.x, panels.last, side="right") - 1]

    def _rest(self, row):
        """Means and variances of the sums of the other counts, under every tilt."""
        return self._n - self._x[:, row], self._nv - self._v[:, row]

    def pairs(self, i, points=3):
        """The sum of the others, under each tilt, is a few points with its first moments."""
        row = self.rows.place[i]
        rest, spread = self._rest(row)
        mean = float(self._share @ (self._n * 1.0) / self._share.sum()) + self.concentration
        a = self.setting.prior[i] + self.count(i)[0]
        beta = (
            a / math.sqrt(max(a, 1e-3))
            if mean <= 0
            else math.sqrt(max(a * (1 - a / mean), 1e-3 * a))
        )
        beside = a / mean * math.sqrt(max(float(np.median(spread)), 0.0))
        shift = math.sqrt(float(np.max(spread / (rest + self.concentration) ** 2)))
        shift *= self.theta(i)[0] / self.theta(i)[1]
        alike = np.max(self._v, axis=1) / np.maximum(spread, 1e-300)
        if shift > 0.1 and np.max(alike) > 0.15:
            raise NotServedError("the sum of a few")
        seen, own, panels = self._given(row, math.hypot(beta, beside))
        third = self._n3 - self._third[:, row]
        fourth = self._cumulant4 - (self._fourth - 3 * self._v**2)[:, row]
        x, n, w = [], [], []
        rest, spread, third, fourth = rest[seen], spread[seen], third[seen], fourth[seen]
        for at, share in enumerate(self._share[seen]):
            places, weights = _points(rest[at], spread[at], third[at], fourth[at], points)
            keep = own[at] * share * (rest[at] + self.concentration) ** 2 > 1e-9 * self._norm
            keep |= own[at] > 1e-4
            for place, weight in zip(places, weights, strict=True):
                whole = panels.x[keep] + place
                two = (whole + self.concentration) * (whole + self.concentration + 1)
                x.append(panels.x[keep])
                n.append(whole)
                w.append(own[at][keep] * share * weight * two)
        x, n, w = map(np.concatenate, (x, n, w))
        keep = w > 1e-8 * w.sum()
        if keep.sum() > 2e4:
            raise NotServedError("pairs")
        return x[keep], n[keep], w[keep] / w.sum()

    def few_pairs(self, i):
        return self.pairs(i)

    def theta_cdf(self, i, values, complements):
        """As of all, and that two points instead of three make no difference."""
        found = super().theta_cdf(i, values, complements)
        self_few, alpha = self.pairs(i, 2), self.setting.prior[i]
        x, n, w = self_few
        a, b = alpha + x, np.delete(self.setting.prior, i).sum() + (n - x)
        coarse = [
            special.betainc(a, b, v) if v <= 0.5 else special.betaincc(b, a, c)
            for v, c in zip(values, complements, strict=True)
        ]
        coarse = np.reshape(coarse, (-1, w.size)) @ w
        if np.max(np.abs(coarse - found), initial=0.0) > 3e-4:
            raise NotServedError("points")
        return found


def _geometric(size_prior):
    """`ln P(0)` and `ln P(1) / P(0)` of a geometric prior that begins at 0, or of none."""
    if size_prior is None:
        return 0.0, 0.0
    if size_prior.dist.name != "geom" or size_prior.support()[0] != 0:
        raise NotServedError("a prior of the number")
    first, second = size_prior.logpmf([0, 1])
    return float(first), float(second - first)


def _points(mean, variance, third, fourth, number):
    """Points and weights of a law with these moments, as those of a Gamma beyond them."""
    if variance <= 1e-12 * max(mean, 1e-12) ** 2 or variance < 1e-20:
        return np.array([mean]), np.ones(1)
    deviation = math.sqrt(variance)
    skew, excess = third / deviation**3, fourth / variance**2
    matrix = np.diag([0.0, skew, 2 * skew])
    matrix[0, 1] = matrix[1, 0] = 1.0
    matrix[1, 2] = matrix[2, 1] = math.sqrt(max(excess + 2 - skew**2, 1e-9))
    at, vectors = np.linalg.eigh(matrix[:number, :number])
    places = mean + deviation * at
    if places[0] < 0:
        places = np.maximum(places, 0.0)
    return places, vectors[0] ** 2
