"""Upper tails of a draw from two categories, weighted by how far they tell a neighbour apart: the
sums that make every profile (`docs/smoothed.md`, "The profile").

    d = sum_k P(k) (1 - e^ε r(k))_+ ,

k records drawn from the category that loses a record. The ratio r falls as k grows, so the sum is
an upper tail of positive terms, and nothing cancels.
"""

import math

import numpy as np

from opendp_bayes_smoothed.draws import Draw, Floats, Integers, log_pmf_error

#: Relative part of a sum that may be left out; what is left out is bounded and added.
NEGLIGIBLE = 2.0**-40
#: Elements of the largest array of a tail sum.
_BLOCK = 1 << 18
#: Rows whose tails are summed together.
_ROWS = 1024


def log_tail(draw: Draw, a: Integers, b: Integers, s: Integers, epsilon: float) -> Floats:
    """`ln sum_k P(k) (1 - e^ε r(k))_+` for each row of `a`, `b`, `s`: certified upper bounds, shape
    of `a`.

    `a >= 1` records of the category that loses one, `b` of the one that gains it, `s` drawn from
    the two.
    """
    if a.size > _ROWS:
        pieces = (np.array_split(numbers, a.size // _ROWS + 1) for numbers in (a, b, s))
        rows = zip(*pieces, strict=True)
        return np.concatenate([log_tail(draw, x, y, z, epsilon) for x, y, z in rows])
    low, high = draw.support(a, b, s)
    start = first_positive(draw, a, b, s, low, high, epsilon)
    result = np.full(a.shape, -np.inf)
    active = start <= high
    if np.any(active):
        result[active] = _sum_upwards(
            draw, start[active], high[active], a[active], b[active], s[active], epsilon
        )
    return result


def _excess(
    draw: Draw,
    k: Integers,
    a: Integers,
    b: Integers,
    s: Integers,
    factor: float,
    relative_error: Floats,
) -> tuple[Floats, Floats]:
    """`1 - e^ε r(k)`, and a bound on its error where it is positive."""
    ratio = draw.ratio(k, a, b, s)
    with np.errstate(invalid="ignore"):
        # An outcome that the neighbour cannot have counts in full, at an infinite ε too.
        scaled = np.where(ratio > 0, factor * ratio, 0.0)
    return 1 - scaled, np.minimum(scaled, 1.0) * relative_error + 2.0**-53


def _factor(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 709 else math.inf


def first_positive(
    draw: Draw, a: Integers, b: Integers, s: Integers, low: Integers, high: Integers, epsilon: float
) -> Integers:
    """The smallest k with `e^ε r(k) < 1`, or with a doubt about it, by bisection; `high + 1` if
    there is none. r decreases.
    """
    below, above = low - 1, high + 1
    factor, relative_error = _factor(epsilon), draw.ratio_error(a, b, s) + 2.0**-51
    while np.any(above - below > 1):
        middle = np.clip((below + above) // 2, low, high)
        excess, error = _excess(draw, middle, a, b, s, factor, relative_error)
        positive = excess > -error
        open_ = above - below > 1
        above, below = (
            np.where(open_ & positive, middle, above),
            np.where(open_ & ~positive, middle, below),
        )
    return above


def _sum_upwards(
    draw: Draw,
    start: Integers,
    high: Integers,
    a: Integers,
    b: Integers,
    s: Integers,
    epsilon: float,
) -> Floats:
    """The sum from `start`, relative to the probability there, by the recurrence of the
    probabilities, in blocks of columns.
    """
    log_first = draw.log_pmf(start, a, b, s)
    total, relative, k, steps = np.zeros(a.shape), np.ones(a.shape), start.copy(), 0
    longest = int(np.max(high - start)) + 1
    columns = min(max(16, min(4096, _BLOCK // a.size)), longest)
    rows = (a[:, None], b[:, None], s[:, None])
    factor, relative_error = _factor(epsilon), (draw.ratio_error(a, b, s) + 2.0**-51)[:, None]
    while True:
        block = np.minimum(k[:, None] + np.arange(columns), high[:, None])
        possible = k[:, None] + np.arange(columns) <= high[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(block < high[:, None], draw.step(block, *rows), 0.0)
        growth = np.cumprod(ratio, axis=1)
        terms = relative[:, None] * np.concatenate([np.ones((a.size, 1)), growth[:, :-1]], axis=1)
        excess, error = _excess(draw, block, *rows, factor, relative_error)
        gain = np.clip(excess + error, 0.0, 1.0)
        total = total + np.sum(np.where(possible, terms * gain, 0.0), axis=1)
        relative, k, steps = relative * growth[:, -1], k + columns, steps + columns
        last = ratio[:, -1]
        # Successive ratios fall, so what follows is below a geometric series.
        with np.errstate(divide="ignore", invalid="ignore"):
            remainder = np.where(
                relative > 0, np.where(last < 1, relative / (1 - last), np.inf), 0.0
            )
        if np.all(remainder <= NEGLIGIBLE * total):
            with np.errstate(divide="ignore"):
                logs = np.log(total + remainder)
            # Every probability carries up to 8 roundings for each step of the recurrence; the sum
            # one for each term at most.
            return (
                log_first + logs + log_pmf_error(log_first) + 2.0**-49 * (min(steps, longest) + 8)
            )
