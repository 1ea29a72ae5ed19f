"""The posterior of counts with additive noise where arrays of every count are too long.

Counts are independent once their weights are tilted, q(x) exp(t x), and

- a public number of records n is an integral over imaginary parts of t: `P(sum = n)` is the mean of
  `exp(-i u n) E exp(i u sum)` over u, which ends where the expectation has vanished;
- with every number equally probable, `n! / Γ(n + A)` is `(n + A) (n + A + 1)` times an integral of
  `s^n (1 - s)^(A + 1)` over s from 0 to 1; so the posterior is a mixture over real tilts, ln s, of
  independent counts with that polynomial as a weight.

Shares no code with the package.
"""

import math

import numpy as np
from scipy import optimize, special

from tests.helpers.noised_counts import NotServedError, Pairs
from tests.helpers.panel_sums import LARGEST, MOST_NODES, Panels, Rows

#: The logarithm of what is left of a characteristic function, and of an integrand, at its end.
VANISHED = 36.0
#: The most different categories.
MOST_ROWS = 300
#: Deviations below this are not distinguished; the error of an integral that is accepted; what has
#: to be left of its terms, which are right to some 1e-8.
SMALLEST, ACCEPTED, LEAST = 0.01, 2e-4, 1e-4
#: Numbers of points that a characteristic function is computed at together.
_BLOCK = 64


def _rows(setting, last):
    rows = Rows(setting, last)
    if rows.rows.size > MOST_ROWS:
        raise NotServedError("rows")
    return rows


def _moments(panels, tilt):
    """Mean of the sum of all, its deviation, and the cumulants of the rows."""
    rows = panels.rows
    cumulants, log_sum = panels.cumulants(tilt)
    mean = float(rows.times @ (cumulants[0] + rows.anchor))
    return mean, math.sqrt(max(float(rows.times @ cumulants[1]), 1e-12)), cumulants, log_sum


def _tilt_for(rows, goal, tilt=0.0):
    """The tilt under which the sum has this mean, and panels for it."""
    low, high, step = -math.inf, math.inf, None
    for turn in range(200):
        panels = Panels(rows, [tilt])
        mean, deviation, *_ = _moments(panels, tilt)
        off = goal - mean
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
        self.rows = rows = _rows(setting, float(n))
        self.tilt, panels = _tilt_for(rows, n)
        for _ in range(2):  # anchors where the counts are
            cumulants, _ = panels.cumulants(self.tilt)
            rows.anchor = np.clip(np.rint(cumulants[0] + rows.anchor), 0, n)
            self.tilt, panels = _tilt_for(rows, n, self.tilt)
        widest = max(np.ptp(part) for part in np.split(panels.x, panels.starts[1:]))
        length = 2 * widest + 16 * _moments(panels, self.tilt)[1] + 16
        length = min(length, 2.0 * n + 2) if rows.times.sum() == 2 else length
        # An odd number of steps around the circle, all of which make the mean exact.
        self._step = 2 * math.pi / (2 * math.ceil(length / 2) + 1)
        end = self._end(panels)
        self.panels = Panels(rows, [self.tilt], 6 / end)
        self.u = np.arange(0, end + self._step, self._step)
        self.u = self.u[self.u <= math.pi]
        if self.u.size * self.panels.x.size > MOST_NODES:
            raise NotServedError("integral")
        self._solve()

    def _end(self, panels):
        """Where the characteristic function of the sum has vanished, at most π."""
        u = 3 / max(_moments(panels, self.tilt)[1], 1e-3)
        while u < math.pi:
            fine = Panels(self.rows, [self.tilt], 6 / u)
            masses, _ = fine.masses(self.tilt)
            value = np.abs(fine.sums(masses * np.exp(1j * u * fine.away)))
            with np.errstate(divide="ignore"):
                if float(self.rows.times @ np.log(np.minimum(value, 1.0))) < -VANISHED:
                    return u
            u *= 1.4
        return math.pi

    def _solve(self):
        """The density of the sum at n, and mean and variance of every count given it."""
        rows, panels = self.rows, self.panels
        _, _, (self._centre, *_), log_sum = _moments(panels, self.tilt)
        self._log_phi, first, second = self._characteristic(panels)
        off = self.setting.size - float(rows.times @ rows.anchor)  # of the sum of what is away
        shift = off - float(rows.times @ self._centre)
        self._log_whole = rows.times @ self._log_phi - 1j * self.u * shift
        self._weight = np.full(self.u.size, self._step / math.pi)
        self._weight[0] /= 2
        terms = np.exp(self._log_whole) * self._weight
        if float(np.sum(terms.real)) < LEAST * float(np.sum(np.abs(terms))):
            raise NotServedError("digits")
        self.density, self._mean, self._variance = _integrals(terms, first, second)
        self._check_half(terms, first, second)
        self._mean += self._centre
        self.log_evidence = (
            math.log(self.density)
            + float(rows.times @ log_sum)
            - self.tilt * off
            + rows.log_anchors()
            + float(self.setting.log_size(self.setting.size))
        )

    def _characteristic(self, panels):
        """Of every row: the logarithm of its characteristic function about the mean, and what it
        makes of `x - mean` and its square; each of shape `(rows, u)`.
        """
        masses, _ = panels.masses(self.tilt)
        centred = panels.away - self._centre[panels.row]
        found = []
        for u in np.split(self.u, range(_BLOCK, self.u.size, _BLOCK)):
            wave = masses[:, None] * np.exp(1j * centred[:, None] * u)
            phi = panels.sums(wave)
            phi = np.where(np.abs(phi) < 1e-15, 1e-15, phi)
            first, second = (panels.sums(wave * centred[:, None] ** p) / phi for p in (1, 2))
            found.append((np.log(phi), first, second))
        return (np.concatenate(each, axis=1) for each in zip(*found, strict=True))

    def _check_half(self, terms, first, second):
        """Check that every other point gives the same integrals."""
        half = np.where(np.arange(self.u.size) % 2, 0.0, 2.0)
        density, mean, variance = _integrals(terms * half, first, second)
        unit = np.maximum(np.sqrt(np.maximum(self._variance, 0)), SMALLEST)
        error = max(
            abs(density / self.density - 1),
            float(np.max(np.abs(mean - self._mean) / unit)),
            float(np.max(np.abs(variance - self._variance) / unit**2)),
        )
        if self.u[-1] < math.pi - 1.5 * self._step and error > ACCEPTED:
            raise NotServedError("half of the points give another integral")

    def count(self, i):
        row = self.rows.place[i]
        return self.rows.anchor[row] + self._mean[row], math.sqrt(max(self._variance[row], 0))

    def theta(self, i):
        mean, std = self.count(i)
        alpha, whole = self.setting.prior[i], self.setting.prior.sum() + self.setting.size
        a, b = alpha + mean, np.delete(self.setting.prior, i).sum() + self.setting.size - mean
        inner = (a * b - std**2) / (whole**2 * (whole + 1))  # θ (1 - θ) of a Beta, averaged
        return a / whole, math.sqrt(inner + (std / whole) ** 2)

    def pairs(self, i):
        """On nodes of panels that are no longer than the Beta is wide."""
        a = self.setting.prior[i] + self.count(i)[0]
        whole = self.setting.prior.sum() + self.setting.size
        panels, w = self._law(i, math.sqrt(a * max(whole - a, 1e-3 * whole) / whole))
        return panels.x, np.full(w.size, float(self.setting.size)), w

    def _law(self, i, width):
        """Panels of one category, no longer than a width, and probabilities of their nodes."""
        row = self.rows.place[i]
        rest = self._log_whole - self._log_phi[row]
        if rest[-1].real > rest[0].real - 25 and self.u[-1] < math.pi - 2 * self._step:
            raise NotServedError("others")
        longest = max(min(width, 6 / self.u[-1]), 1.0)
        panels = Panels(self.rows.alone(row), [self.tilt], longest)
        centred = panels.x - self.rows.anchor[row] - self._centre[row]
        if centred.size * self.u.size > MOST_NODES / 10:
            raise NotServedError("pairs")
        found = np.zeros(centred.size)
        for at in range(0, self.u.size, _BLOCK):
            some = slice(at, at + _BLOCK)
            terms = np.exp(rest[some] + 1j * self.u[some] * centred[:, None])
            found += terms.real @ self._weight[some]
        w = panels.masses(self.tilt)[0] * np.maximum(found, 0)
        if abs(w.sum() / self.density - 1) > 2e-5:
            raise NotServedError("resolution")
        return panels, w / w.sum()

    def steps(self, i):
        panels, w = self._law(i, 0.5 * self.count(i)[1])
        return panels.cumulative(w)


def _integrals(terms, first, second):
    """The density, and the mean and variance of each count less its tilted mean."""
    density = float(np.sum(terms.real))
    mean = (first @ terms).real / density
    return density, mean, (second @ terms).real / density - mean**2


class Private(Pairs):
    """Every number of records being equally probable, or a geometric prior on it: an integral over
    real tilts.

    Under each tilt the sum of the other counts is three points with its first four cumulants, which
    makes expectations of polynomials in it exact up to the fourth degree, as all moments here are.
    """

    def __init__(self, setting):
        self.setting, self._known = setting, {}
        self._first, self._more = _geometric(setting.records_prior)
        self.rows = _rows(setting, LARGEST)
        self.concentration = float(setting.prior.sum())
        w, step = self._places(*self._peak())
        self._tilts = self._tilt(w)
        self.panels = self._panels_for(w)
        if self.panels.x.size * w.size > MOST_NODES:
            raise NotServedError("nodes")
        found = [self._value(each, self.panels) for each in w]
        logs, self._cumulants = (np.array([each[at] for each in found]) for at in (0, 2))
        self._share, times = np.exp(logs - logs.max()), self.rows.times
        self._sums = self._cumulants @ times  # cumulants of the number of records, (tilts, 4)
        self._sums[:, 0] += times @ self.rows.anchor
        a = self._sums[:, 0] + self.concentration
        self._two = a * (a + 1) + self._sums[:, 1]  # E (n + A)(n + A + 1)
        self._norm = float(self._share @ self._two)
        self._check_half()
        self.log_evidence = (
            math.log(self._norm * step)
            + float(logs.max())
            - math.log(self.concentration)  # Γ(A) / Γ(A + 1)
            + self.rows.log_anchors()
            + self._first
        )

    def _tilt(self, w):
        """ln s, of `s = 1 / (1 + e^w)`."""
        return self._more - np.logaddexp(0.0, w)

    def _value(self, w, panels=None):
        """The logarithm of the integrand, its derivative, and cumulants of the rows."""
        tilt, whole = self._tilt(w), self.concentration
        panels = panels or Panels(self.rows, [tilt])
        mean, _, cumulants, log_sum = _moments(panels, tilt)
        times = self.rows.times
        # `(1 - s)^A ds`
        measure = (whole + 1) * w - (whole + 2) * np.logaddexp(0, w)
        log = measure + times @ log_sum + tilt * (times @ self.rows.anchor)
        return float(log), (whole + 1) - (mean + whole + 2) * special.expit(w), cumulants

    def _peak(self):
        """Where the integrand is highest, by the sign of its slope, and about its width."""
        grid = np.linspace(-34, 34, 18)
        slopes = np.array([self._value(w)[1] for w in grid])
        down = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
        if down.size != 1:
            raise NotServedError("peaks")
        ends = grid[down[0]], grid[down[0] + 1]
        peak = optimize.brentq(lambda w: self._value(w)[1], *ends, xtol=1e-13, rtol=1e-13)
        top, width = self._value(peak)[0], 1.0
        while width > 1e-9 and min(self._value(peak + s * width)[0] for s in (-1, 1)) < top - 2:
            width /= 2
        return peak, width

    def _places(self, peak, width):
        """Places at equal steps, up to where the integrand has vanished, and the step."""
        step, top, ends = 0.2 * width, self._value(peak)[0], []
        for sign in (-1, 1):
            reach = 32 * step
            while self._value(peak + sign * reach)[0] > top - VANISHED:
                reach *= 2
            ends.append(sign * reach / step)
        if ends[1] - ends[0] > 2000:
            raise NotServedError("long integral")
        return peak + step * np.arange(math.floor(ends[0]), ends[1] + 1), step

    def _panels_for(self, w):
        """Panels for all places, made for so many that those in between have theirs, too."""
        between = np.linspace(w[0], w[-1], 64)[1:-1]
        right = np.array([self._value(each)[0] for each in between])
        seen = right > right.max() - 20
        for number in (24, 96, 384):
            panels = Panels(self.rows, self._tilt(np.linspace(w[0], w[-1], number)))
            found = np.array([self._value(each, panels)[0] for each in between[seen]])
            if np.max(np.abs(found - right[seen])) < 1e-4:
                return panels
        raise NotServedError("tilts in between")

    def _check_half(self):
        """Check that every other tilt gives the same weight, mean and square of the number."""
        n, variance = self._sums[:, 0], self._sums[:, 1]
        for part in (self._two, self._two * n, self._two * (n**2 + variance)):
            if abs(2 * (self._share[::2] @ part[::2]) / (self._share @ part) - 1) > ACCEPTED:
                raise NotServedError("half of the points give another integral")

    def pairs(self, i):
        row = self.rows.place[i]
        if row not in self._known:
            self._known[row] = self._pairs(row, math.inf, 3)
        return self._known[row]

    def _pairs(self, row, longest, points, least=0.0):
        """Counts, numbers of records and weights of nodes on panels, without the lightest."""
        seen, own, panels = self._given(row, longest)
        rest = (self._sums - self._cumulants[:, :, row])[seen]
        rest[:, 0] -= self.rows.anchor[row]
        x, n, w = [], [], []
        for masses, share, cumulants in zip(own, self._share[seen], rest, strict=True):
            for place, weight in zip(*_points(*cumulants, points), strict=True):
                whole = panels.x + place + self.concentration
                each = masses * (share * weight / self._norm) * whole * (whole + 1)
                keep = each > least
                x.append(panels.x[keep])
                n.append((panels.x + place)[keep])
                w.append(each[keep])
        x, n, w = map(np.concatenate, (x, n, w))
        return x, n, w / w.sum()

    def _given(self, row, longest):
        """Which tilts matter, and under each of them probabilities of nodes of one category."""
        seen = np.flatnonzero(self._share * self._two > 1e-12 * self._norm)
        tilts, panels = self._tilts[seen], self.panels.alone(row)
        if longest < math.inf:
            few = [*tilts[:: max(1, tilts.size // 12)].tolist(), tilts[-1]]
            panels = Panels(panels.rows, few, max(longest, 1.0))
            if panels.x.size * tilts.size > MOST_NODES / 10:
                raise NotServedError("pairs")
        return seen, np.array([panels.masses(tilt)[0] for tilt in tilts]), panels

    def theta_cdf(self, i, values, complements):
        """As of all, and that two points instead of three make no difference."""
        found = [self._cdf(i, values, complements, points) for points in (3, 2)]
        if np.max(np.abs(found[1] - found[0]), initial=0.0) > 3e-4:
            raise NotServedError("points")
        return found[0]

    def _cdf(self, i, values, complements, points):
        row = self.rows.place[i]
        rest = self._sums - self._cumulants[:, :, row]
        mean = float(self._share @ self._sums[:, 0] / self._share.sum()) + self.concentration
        a = self.setting.prior[i] + self.count(i)[0]
        self._check_sum(row, rest, self.theta(i))
        # The widths of the Beta, and of what the sum of the others makes of its mean.
        beside = a / mean * math.sqrt(max(float(np.median(rest[:, 1])), 0.0))
        width = math.hypot(math.sqrt(max(a * (1 - a / mean), 1e-3 * a)), beside)
        x, n, w = self._pairs(row, width, points, 1e-9)
        if x.size > 2e4:
            raise NotServedError("pairs")
        mean, deviation = self.theta(i)
        of_pairs = w @ ((x + self.setting.prior[i]) / (n + self.concentration)) / w.sum()
        if abs(of_pairs - mean) > 1e-3 * deviation:
            raise NotServedError("pairs have another mean")
        return self.below(i, (x, np.maximum(n, x), w), values, complements)

    def _check_sum(self, row, rest, theta):
        """Check that the sum of the others is of many, or matters little."""
        others = rest[:, 0] - self.rows.anchor[row] + self.concentration
        shift = math.sqrt(float(np.max(rest[:, 1] / others**2))) * theta[0] / theta[1]
        one = np.max(self._cumulants[:, 1], axis=1) / np.maximum(rest[:, 1], 1e-300)
        if shift > 0.1 and np.max(one) > 0.15:
            raise NotServedError("the sum of a few")

    def steps(self, i):
        row = self.rows.place[i]
        seen, own, panels = self._given(row, 0.5 * self.count(i)[1])
        mean, variance = (self._sums[:, at] - self._cumulants[:, at, row] for at in (0, 1))
        a = panels.x + (mean - self.rows.anchor[row])[seen][:, None] + self.concentration
        w = own * (a * (a + 1) + variance[seen][:, None])
        places, found = panels.cumulative(self._share[seen] @ w / self._norm)
        # Under one tilt the law may be far narrower than between one tilt and the next.
        share = np.where(seen % 2, 2.0, 0.0) * self._share[seen]
        half = panels.cumulative(share @ w / self._norm)[1]
        if np.max(np.abs(half - found)) > ACCEPTED:
            raise NotServedError("half of the points give another law")
        return places, found

    def total_steps(self):
        raise NotServedError("the law of the number")


def _geometric(records_prior):
    """`ln P(0)` and `ln P(1) / P(0)` of a geometric prior that begins at 0, or of none."""
    if records_prior is None:
        return 0.0, 0.0
    if records_prior.dist.name != "geom" or records_prior.support()[0] != 0:
        raise NotServedError("a prior of the number")
    first, second = records_prior.logpmf([0, 1])
    return float(first), float(second - first)


def _points(mean, variance, third, fourth, number):
    """Points and weights of a law with these cumulants, as those of a Gamma beyond them."""
    if variance < 1e-20:
        return np.array([mean]), np.ones(1)
    skew, excess = third / variance**1.5, fourth / variance**2
    matrix = np.diag([0.0, skew, 2 * skew])
    matrix[0, 1] = matrix[1, 0] = 1.0
    matrix[1, 2] = matrix[2, 1] = math.sqrt(max(excess + 2 - skew**2, 1e-9))
    at, vectors = np.linalg.eigh(matrix[:number, :number])
    return mean + math.sqrt(variance) * at, vectors[0] ** 2
