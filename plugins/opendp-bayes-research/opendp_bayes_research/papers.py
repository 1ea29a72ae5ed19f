"""The mechanisms of the papers by the names they have there, at the papers' scales: values to
compute with, as all mechanisms of this package are.

The ε is the papers' own (nominal) one. Their exact loss is often far below it, and for EHDL it can
be above; `calibrate` solves the scale for the exact loss instead (`docs/research/papers.md`).
"""

import math
from dataclasses import replace

from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import as_level, as_positive, as_prior, as_size
from opendp_bayes.mechanisms import (
    HellingerExponential,
    LaplaceParameters,
    SmoothHellingerExponential,
    global_sensitivity,
)

__all__ = ["beta", "ehd", "ehdl", "ehds", "ilap", "lap", "lap_truncated"]


def lap(epsilon: float, k: int) -> LaplaceParameters:
    """lapMech, LSDim: floored Laplace noise of scale `k / epsilon` on all but the last of `k`
    categories.

    Source: tailoring paper, section 4.1.1; Algorithm 2 of "Private mechanisms".

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    k : int
        Number of categories, at least 2.

    Raises
    ------
    ValueError, TypeError
        For an ε that is not positive or less than two categories.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> papers.lap(epsilon=1.0, k=3)
    LaplaceParameters(scale=3.0, noise='floored', total='remainder')
    """
    return _floored(_categories(k) / as_positive(epsilon, "epsilon"))


def lap_truncated(epsilon: float, k: int) -> LaplaceParameters:
    """The variation of lapMech that the tailoring paper's boxes show: where the noised counts sum
    to more than the number of records, they are truncated so that they sum to it.

    The paper does not say in which way; here each count keeps at most what those before it leave.
    For two categories the release is that of `lap`. Source: tailoring paper, section 7.2.2.

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    k : int
        Number of categories, at least 2.

    Raises
    ------
    ValueError, TypeError
        For an ε that is not positive or less than two categories.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> candidates, log_p = papers.lap_truncated(epsilon=1.0, k=3).log_pmf([1, 1, 0], 1.0)
    >>> dict(zip(map(tuple, candidates.tolist()), (2.718281828459045**log_p).round(3).tolist()))
    ... # doctest: +NORMALIZE_WHITESPACE
    {(0, 0, 2): 0.25, (0, 1, 1): 0.071, (0, 2, 0): 0.179, (1, 0, 1): 0.071, (1, 1, 0): 0.071,
     (2, 0, 0): 0.358}
    """
    return replace(lap(epsilon, k), total="truncated")


def ilap(epsilon: float, k: int) -> LaplaceParameters:
    """ilapMech, LSHist: floored Laplace noise on all but the last of `k` categories, of scale `1 /
    epsilon` for two categories and `2 / epsilon` for more.

    Source: tailoring paper, section 4.1.2; Algorithm 3 of "Private mechanisms".

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    k : int
        Number of categories, at least 2.

    Raises
    ------
    ValueError, TypeError
        For an ε that is not positive or less than two categories.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> papers.ilap(epsilon=1.0, k=3).scale
    2.0
    """
    return _floored((1 if _categories(k) == 2 else 2) / as_positive(epsilon, "epsilon"))


def ehd(epsilon: float, size: int, prior: ArrayLike) -> HellingerExponential:
    """expMech, EHD: the exponential mechanism with the global sensitivity.

    The papers' constant for the sensitivity, `sqrt(1 - pi/4)`, is that of a prior of ones with
    three or more categories or one record. Source: tailoring paper, section 4.2.1; Algorithm 4 of
    "Private mechanisms".

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    size : int
        The public number of records, at least 1.
    prior : array_like
        The prior concentration, shape `(k,)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> round(papers.ehd(epsilon=1.0, size=100, prior=[1.0, 1.0]).scale, 5)
    0.67788
    """
    largest = global_sensitivity(as_size(size), as_prior(prior))
    return HellingerExponential(scale=2 * largest / as_positive(epsilon, "epsilon"))


def ehdl(epsilon: float) -> HellingerExponential:
    """expMech^local, EHDL: the exponential mechanism with the local sensitivity of the data, which
    no proof makes private.

    Source: tailoring paper, section 4.2.2; Algorithm 5 of "Private mechanisms".

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.

    Raises
    ------
    ValueError, TypeError
        For an ε that is not positive.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> papers.ehdl(epsilon=1.0)
    HellingerExponential(scale=2.0, sensitivity='local')
    """
    return HellingerExponential(scale=2 / as_positive(epsilon, "epsilon"), sensitivity="local")


def ehds(epsilon: float, gamma: float = 1.0) -> SmoothHellingerExponential:
    """expMech^smoo, EHDS: the exponential mechanism with the γ-smooth sensitivity and scale `2 (1 +
    gamma) / epsilon`.

    Source: tailoring paper, Definition 4 (γ = 1); Algorithm 6 of "Private mechanisms".

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    gamma : float, default 1.0
        The γ of the smooth sensitivity, positive.

    Raises
    ------
    ValueError, TypeError
        For an ε or γ that is not positive.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> papers.ehds(epsilon=1.0)
    SmoothHellingerExponential(scale=4.0, gamma=1.0, beta=None)
    """
    scale = 2 * (1 + as_positive(gamma, "gamma")) / as_positive(epsilon, "epsilon")
    return SmoothHellingerExponential(scale=scale, gamma=gamma)


def beta(epsilon: float, delta: float, size: int) -> SmoothHellingerExponential:
    """The (ε, δ) mechanism of the notes: scale `2 / epsilon` and the β-smooth sensitivity with `β =
    ln(1 - ε / (2 ln(δ / (2 (size + 1)))))`, for two categories.

    Its proof there does not hold; the tailoring paper's figures can have shown no other mechanism
    as EHDS (`docs/research/papers.md`). Source: notes, sections 3.2 and 3.3.

    Parameters
    ----------
    epsilon : float
        The papers' ε, positive.
    delta : float
        The notes' δ, between 0 and 1.
    size : int
        The public number of records, at least 1.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes_research import papers
    >>> round(papers.beta(epsilon=1.0, delta=1e-8, size=100).beta, 6)
    0.020852
    """
    epsilon, size = as_positive(epsilon, "epsilon"), as_size(size)
    delta = as_level(delta, "1e-8", "delta")
    slope = math.log1p(epsilon / (2 * math.log(2 * (size + 1) / delta)))
    return SmoothHellingerExponential(scale=2 / epsilon, beta=slope)


def _floored(scale: float) -> LaplaceParameters:
    return LaplaceParameters(scale=scale, noise="floored")


def _categories(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"k={k!r}: must be an integer, not {type(k).__name__}.")
    if k < 2:
        raise ValueError(f"k={k}: must be at least 2 categories.")
    return k
