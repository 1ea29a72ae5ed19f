"""Exact samplers on integers, with randomness from the operating system's CSPRNG (`secrets`).

No floating-point operation stands between the random bits and a sample: parameters are floats taken
at their exact rational value, and the stated laws are returned exactly.
"""

import secrets
from fractions import Fraction


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability `exp(-x)`, `x >= 0` (Canonne, Kamath and Steinke, "The discrete
    Gaussian", Algorithm 1).
    """
    while x > 1:
        if not _bernoulli_exp_unit(1, 1):
            return False
        x -= 1
    return _bernoulli_exp_unit(x.numerator, x.denominator)


def _bernoulli_exp_unit(numerator: int, denominator: int) -> bool:
    """True with probability `exp(-x)` for `x = numerator / denominator` in [0, 1]: the parity of
    the first failure of Bernoulli(x / j).
    """
    j = 1
    while secrets.randbelow(denominator * j) < numerator:
        j += 1
    return j % 2 == 1


def geometric(rate: Fraction) -> int:
    """A sample of `P(t) = (1 - q) q^t`, `t = 0, 1, ...`, `q = exp(-rate)` (the same paper,
    Algorithm 2), in expected constant time.
    """
    s, t = rate.numerator, rate.denominator
    while True:
        remainder = secrets.randbelow(t)
        if _bernoulli_exp_unit(remainder, t):
            break
    quotient = 0
    while _bernoulli_exp_unit(1, 1):
        quotient += 1
    return (remainder + t * quotient) // s


def floored_laplace(scale: Fraction) -> int:
    """A sample of `floor(Laplace(scale))`: a fair sign and a geometric, `G` or `-1 - G` (docs:
    Mechanisms, "Floored Laplace").
    """
    draw = geometric(1 / scale)
    return draw if secrets.randbits(1) else -1 - draw


def discrete_laplace(scale: Fraction) -> int:
    """A sample of `P(t) = tanh(1 / (2 scale)) exp(-|t| / scale)`: a sign and a geometric, with
    "minus zero" drawn again.
    """
    while True:
        draw = geometric(1 / scale)
        if secrets.randbits(1):
            return draw
        if draw:
            return -draw
