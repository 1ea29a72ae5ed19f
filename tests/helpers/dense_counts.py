"""Noised counts by arrays with an entry for every count; shares no code with the package."""

import math

import numpy as np
from scipy import optimize, special

from tests.helpers.noised_counts import NEGLIGIBLE, Pairs


class Dense(Pairs):
    """Arrays with an entry for every count up to `largest`, convolved: directly, so that every
    entry has all its digits, or by Fourier transforms, with as many digits as `digits` says.

    With a private number of records each block of numbers has a tilt of its own.
    """

    def __init__(self, setting, largest=None, direct=True):
        self.setting, self._direct = setting, direct
        self._largest = setting.size if setting.size is not None else largest
        self._x = np.arange(self._largest + 1.0)
        self._rows = np.unique(setting.alike)
        self._times = np.array([np.sum(setting.alike == i) for i in self._rows])
        anchor = np.clip(setting.looks[0].drawn[self._rows], 0, self._largest).astype(float)
        pairs = list(zip(self._rows.tolist(), anchor.tolist(), strict=True))
        self._logs = np.array([setting.log_ratio(i, self._x, near) for i, near in pairs])
        anchors = np.array([float(setting.log_weight(i, near)) for i, near in pairs])
        self.digits = math.inf
        self._known = {}
        sizes = np.array([float(setting.size)]) if setting.size is not None else self._x
        self._log_total = self._searched(sizes)
        top = self._log_total[1].max()
        self._relative = float(special.logsumexp(self._log_total[1]))
        self.log_evidence = self._relative + float(self._times @ anchors)
        self.end = float(self._log_total[1][-1] - top) if setting.size is None else -math.inf
        seen = self._log_total[1] > top - 34
        self._blocks = [(n[seen[at]], tilt) for at, n, tilt in self._used if np.any(seen[at])]

    def _tilt(self, goal):
        """The tilt under which the mean of the sum is the goal."""

        def off(tilt):
            w = special.softmax(self._logs + tilt * self._x, axis=1)
            return float(self._times @ (w @ self._x)) - goal

        reach = 1e-3
        while off(reach) < 0 and reach < 1e8:
            reach *= 4
        below = -1e-3
        while off(below) > 0 and below > -1e8:
            below *= 4
        if off(reach) < 0 or off(below) > 0:
            return reach if off(reach) < 0 else below
        return optimize.brentq(off, below, reach, xtol=1e-12 * max(reach, -below), rtol=1e-10)

    def _searched(self, sizes):
        """Numbers of records and the logarithms of their weights, from tilts that reach them."""
        logs, self._used = np.full(sizes.size, -np.inf), []
        weight = self.setting.log_size(sizes)
        left = np.isfinite(weight)
        mean = float(self._times @ (special.softmax(self._logs, axis=1) @ self._x))
        goals = [float(sizes[np.argmin(np.abs(sizes - mean))])]
        while goals:
            tilt = self._tilt(goals.pop())
            found = self._sum(tilt, None)[: sizes[-1].astype(int) + 1]
            log_z = self._log_z(tilt)
            with np.errstate(divide="ignore"):
                own = np.log(np.maximum(found, 0))[sizes.astype(int)]
            least = -600 if self._direct else math.log(1e-7)
            near = left & (own > own[left].max() + least)
            if sizes.size == 1:
                self.digits = -math.log10(1e-15 / math.exp(max(own[0], -690)))
                near = left.copy()
            logs[near] = (own + log_z - tilt * sizes + weight)[near]
            self._used.append((np.flatnonzero(near), sizes[near], tilt))
            left &= ~near
            if np.any(left) and len(self._used) < 60:
                goals.append(float(sizes[left][np.sum(left) // 2]))
        return sizes, logs

    def _log_z(self, tilt):
        return float(self._times @ special.logsumexp(self._logs + tilt * self._x, axis=1))

    def _sum(self, tilt, without):
        """The law of the sum of all counts, or of all but one of them, on `0..largest`."""
        laws = special.softmax(self._logs + tilt * self._x, axis=1)
        times = self._times.copy()
        if without is not None:
            times[self._rows == without] -= 1
        if self._direct:
            found = np.zeros(self._x.size)
            found[0] = 1.0
            for law, number in zip(laws, times, strict=True):
                for _ in range(number):
                    found = np.convolve(found, law)[: self._x.size]
            return found
        length = 1 << (4 * self._x.size - 1).bit_length()
        whole = np.ones(length // 2 + 1, dtype=complex)
        for law, number in zip(laws, times, strict=True):
            whole *= np.fft.rfft(law, length) ** number
        return np.fft.irfft(whole, length)

    def pairs(self, i):
        i = int(self.setting.alike[i])
        if i not in self._known:
            self._known[i] = self._pairs(i)
        return self._known[i]

    def _pairs(self, i):
        found, row = [], int(np.flatnonzero(self._rows == i)[0])
        for sizes, tilt in self._blocks:
            rest = np.maximum(self._sum(tilt, i), 0)
            own = special.softmax(self._logs[row] + tilt * self._x)
            n = sizes.astype(int)
            log_scale = self._log_z(tilt) - tilt * sizes + self.setting.log_size(sizes)
            for each, scale in zip(n, np.exp(log_scale - self._relative), strict=True):
                w = own[: each + 1] * rest[each::-1][: each + 1] * scale
                seen = w > NEGLIGIBLE / self._x.size
                found.append((self._x[: each + 1][seen], np.full(seen.sum(), each), w[seen]))
        x, n, w = (np.concatenate(column) for column in zip(*found, strict=True))
        return x, n.astype(float), w / w.sum()
