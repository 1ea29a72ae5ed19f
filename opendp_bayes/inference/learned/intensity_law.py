r"""The law of the intensities of cells or keys, learned from what was drawn of all of them: a
Poisson process of negative binomials on a lattice, by Hamiltonian Monte Carlo.

There are as many of each intensity as a Poisson draw, with an expectation of a_j at the points
ln λ_j of a lattice, each of which stands for a Gamma law about λ_j; counts are Poisson, so that
they are negative binomial given the point. With p_j(d) the probability of what was drawn of one,
and s_j that of being seen at all, 1 unless some are hidden,

    ln p(drawn | a) = sum_d ln sum_j a_j p_j(d) - sum_j a_j s_j .

`x = ln a` is smooth: its second differences are normal with a standard deviation that is one of six
and learned, too. Draws are by Hamiltonian Monte Carlo (Neal, "MCMC using Hamiltonian dynamics",
2011) in normal coordinates y about the most probable x of each smoothness, and chains move between
these with y as it is.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_negative_binomial
from opendp_bayes.mathematics.validation import Floats, Integers

#: Step of the lattice of ln λ.
STEP = 0.125
#: Variances of λ relative to its square: the least of a point, and that of a point's counts, which
#: have a variance of their own.
_NARROW, _WIDE = 1 / 256, 1 / 64
#: Standard deviations of second differences of x; of first ones, of its values, and of those that
#: have no neighbours.
SMOOTH = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_SLOPE, _LEVEL, _ALONE = 0.3, 30.0, 3.0
#: No expected number is more than the exponential of this, or below a number that is no sum.
_MOST, _TINY = 60.0, 1e-300
#: Steps of a move, and which share of the moves should be accepted.
_STEPS, _ACCEPTED = 8, 0.8
_MOST_NEWTON = 200
_NONE: Floats = np.empty(0)


class Points:
    """Points of the lattice of ln λ from one logarithm to another.

    Attributes
    ----------
    means, shapes : ndarray
        Of the Gamma laws that they stand for, shape `(p,)`.
    """

    def __init__(self, lowest: float, highest: float) -> None:
        self.means: Floats = np.exp(np.arange(lowest, highest + STEP, STEP))
        self.shapes: Floats = 1 / np.maximum(_NARROW, _WIDE - 1 / self.means)

    def pmf(self, counts: ArrayLike) -> Floats:
        """Probabilities of counts, shape `(p, n)`."""
        n = np.asarray(counts, dtype=np.float64)
        return np.exp(log_negative_binomial(n, self.shapes[:, None], self.means[:, None]))

    def pmf_of_cells(self, begins: Integers) -> Floats:
        """Probabilities of counts of 1 or more in cells that begin at some whole numbers, the last
        where the last cell ends, shape `(p, cells)`.
        """
        shape, mean = self.shapes[:, None], self.means[:, None]
        up_to = special.betainc(shape, np.maximum(begins, 1.0), shape / (shape + mean))
        return np.maximum(np.diff(up_to, axis=1), 0.0)


class IntensityLaw:
    """The law of x, and perhaps of other coordinates u that are about standard normal.

    One sum over all points, that of `a s` at first, is known so well that its likelihood is a
    ridge, which is curved in x. So all is done in `t`, where it is straight: `x = t + c`, with the
    c that makes `ln(a s) = mean(t) + ln(about)`. That has a constant determinant.

    Parameters
    ----------
    like : ndarray
        Probabilities of what was drawn, a row for each kind, shape `(d, p)`.
    number : ndarray
        Of each kind, shape `(d,)`.
    shown : ndarray
        Chances to be seen, shape `(p,)`.
    alone : int, default 0
        So many of the first points are no neighbours of any.
    """

    #: The place in `SMOOTH` of the last, and where the other coordinates begin.
    roughest, start = len(SMOOTH) - 1, _NONE

    def __init__(self, like: Any, number: Floats, shown: Floats, alone: int = 0) -> None:
        self.like, self.number, self.shown, self._alone = like, number, shown, alone
        #: Of what the sum over all points is about known, and what that is.
        self.ridge, self.about = shown, max(number.sum(), 1.0)
        #: The mean of x before all else is known.
        self.centre = math.log(self.about / shown.size)

    def precision(self, smooth: float) -> Floats:
        """Inverse covariance of x before all else is known, for a standard deviation of its second
        differences; the rougher, the nearer to its mean, which nothing else would hold.
        """
        unit = np.eye(self.shown.size)
        second, first = (np.diff(unit[self._alone :], times, axis=0) for times in (2, 1))
        second, first = second / smooth, first / max(_SLOPE, 3 * smooth)
        level = np.where(np.arange(len(unit)) < self._alone, 1 / _ALONE, max(1.0, smooth) / _LEVEL)
        return second.T @ second + first.T @ first + np.diag(level**2)

    def x(self, t: Floats) -> tuple[Floats, Floats]:
        """x at t, and the gradient of what is added to t; shapes `(..., p)`."""
        top = t.max(axis=-1, keepdims=True)
        ridge_part = np.exp(t - top) * self.ridge
        whole = ridge_part.sum(axis=-1, keepdims=True)
        added = math.log(self.about) + t.mean(axis=-1, keepdims=True) - np.log(whole) - top
        return t + added, 1 / t.shape[-1] - ridge_part / whole

    @staticmethod
    def weights(x: Floats) -> Floats:
        """Expected numbers."""
        return np.exp(np.minimum(x, _MOST))

    def of_rest(self, a: Floats) -> Any:
        """The curvature in x that a rest adds."""
        return 0.0

    def likelihood(self, a: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Minus its logarithm, shape `(...)`, with gradients in a and u."""
        seen = a @ self.like.T + _TINY
        loss = a @ self.shown - np.log(seen) @ self.number
        return loss, self.shown - (self.number / seen) @ self.like, u

    def loss(
        self, t: Floats, precision: Floats, u: Floats = _NONE
    ) -> tuple[Floats, Floats, Floats]:
        """Minus the log-posterior up to a constant, shape `(...)`, and its gradients; without u,
        where these begin.
        """
        x, added = self.x(t)
        a = self.weights(x)
        loss, slope, of_others = self.likelihood(a, u)
        away = x - self.centre
        pull = np.squeeze(away[..., None, :] @ precision, axis=-2)
        slope = a * slope + pull
        loss = loss + (pull * away).sum(axis=-1) / 2
        return loss, slope + slope.sum(axis=-1, keepdims=True) * added, of_others

    def curvature(self, t: Floats, precision: Floats) -> Floats:
        """About the second derivative of `loss` in t, positive definite, shape `(p, p)`."""
        (x, added), unit = self.x(t), np.eye(t.size)
        a = self.weights(x)
        shares = self.like * a
        shares = shares / (shares.sum(axis=1, keepdims=True) + _TINY)
        curvature = (shares * self.number[:, None]).T @ shares + precision
        curvature += np.diag(np.maximum(a * self.shown - self.number @ shares, 0.0)) + self.of_rest(
            a
        )
        return np.asarray((unit + added).T @ curvature @ (unit + added))

    def most_probable(self, t: Floats, precision: Floats) -> Floats:
        """The most probable t, by Newton's method."""
        loss, slope, _ = self.loss(t, precision)
        for _ in range(_MOST_NEWTON):
            step = -np.linalg.solve(self.curvature(t, precision), slope)
            step *= min(1.0, 3 / np.abs(step).max())
            for _ in range(20):
                lower, next_slope, _ = self.loss(t + step, precision)
                if lower <= loss + 1e-4 * (slope @ step):
                    break
                step = step / 2
            else:
                return t
            t, gained, loss, slope = t + step, loss - lower, lower, next_slope
            if gained < 1e-6:
                break
        return t


class HamiltonianChains:
    """Chains of x and of the other coordinates, which begin about the most probable x.

    Attributes
    ----------
    smooth : ndarray of int
        The smoothness of each chain, a place in `SMOOTH`.
    """

    def __init__(self, law: IntensityLaw, chains: int, rng: np.random.Generator) -> None:
        self._law, self._rng = law, rng
        self._length = 0.3  # of a step
        mode, modes, log_evidence = np.full(law.shown.size, law.centre), [], []
        for smooth in SMOOTH:
            precision = law.precision(smooth)
            mode = law.most_probable(mode, precision)
            lower = np.linalg.cholesky(law.curvature(mode, precision))
            root = np.linalg.inv(lower)  # normal numbers times it have the right law
            log_size = np.linalg.slogdet(precision)[1] / 2 - np.log(np.diag(lower)).sum()
            modes.append((mode, precision, root, log_size))
            log_evidence.append(log_size - law.loss(mode, precision)[0])
        self._modes = [np.array(arrays) for arrays in zip(*modes, strict=True)]
        self.smooth: Integers = rng.choice(
            len(SMOOTH), chains, p=special.softmax(np.array(log_evidence))
        )
        self._y = rng.standard_normal((chains, law.shown.size + law.start.size)) / 2
        self._y[:, law.shown.size :] += law.start

    def _loss(self, y: Floats, modes: list[Any]) -> tuple[Floats, Floats]:
        mode, precision, root, log_size = modes
        t, u = mode + np.squeeze(y[:, None, : mode.shape[1]] @ root, 1), y[:, mode.shape[1] :]
        loss, slope, of_others = self._law.loss(t, precision, u)
        slope = np.squeeze(root @ slope[:, :, None], -1)
        return loss - log_size, np.concatenate([slope, of_others], axis=1)

    def move(self, times: int, *, adapt: bool = False) -> None:
        """Move all chains, and let them change their smoothness, so many times; to adapt the length
        of steps.
        """
        rng = self._rng
        for _ in range(times):
            y, modes = self._y, [array[self.smooth] for array in self._modes]
            loss, slope = self._loss(y, modes)
            speed = rng.standard_normal(y.shape)
            energy = loss + (speed**2).sum(axis=1) / 2
            step = self._length * rng.uniform(0.7, 1.1, (len(y), 1))
            with np.errstate(all="ignore"):
                for _ in range(_STEPS):
                    speed = speed - step / 2 * slope
                    y = y + step * speed
                    value, slope = self._loss(y, modes)
                    speed = speed - step / 2 * slope
                gain = energy - value - (speed**2).sum(axis=1) / 2
            chance = np.where(np.isfinite(gain), np.exp(np.minimum(gain, 0.0)), 0.0)
            moved = rng.random(len(y)) < chance
            self._y = np.where(moved[:, None], y, self._y)
            loss = np.where(moved, value, loss)
            neighbour = np.clip(self.smooth + rng.choice([-1, 1], len(y)), 0, len(SMOOTH) - 1)
            gain = loss - self._loss(self._y, [array[neighbour] for array in self._modes])[0]
            moved = -rng.standard_exponential(len(y)) < gain
            self.smooth = np.where(moved, neighbour, self.smooth)
            if adapt:
                length = self._length * math.exp(0.3 * (chance.mean() - _ACCEPTED))
                self._length = min(max(length, 0.002), 0.6)

    @property
    def weights(self) -> Floats:
        """Expected numbers where the chains are, shape `(chains, p)`."""
        mode, _, root, _ = (array[self.smooth] for array in self._modes)
        t = mode + np.squeeze(self._y[:, None, : mode.shape[1]] @ root, 1)
        return self._law.weights(self._law.x(t)[0])

    @property
    def others(self) -> Floats:
        """The other coordinates, shape `(chains, others)`."""
        return self._y[:, self._law.shown.size :]
