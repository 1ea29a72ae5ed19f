"""An audit of a mechanism: the loss that it claims, against its own probabilities and against draws
of its sampler.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes import exact_loss, privacy_profile
from opendp_bayes.accounting.losses import worst_pair
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_positive, as_size
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.neighbours import ONE_RECORD
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes_research.auditing.audited_draws import (
    Sampler,
    chi_square_p_value,
    draws_of,
    refutable_under,
    refuted_by,
)
from opendp_bayes_research.auditing.results import Audit, Claim, Fit, Pair
from opendp_bayes_research.auditing.stated_law import listed, over_all_neighbours, over_pairs

#: With fewer draws hardly anything is refuted.
_FEWEST_DRAWS = 1000
#: So many fit into memory, and take half an hour.
_MOST_DRAWS = 10**7


def audit(
    mechanism: Mechanism,
    *,
    size: int | None,
    prior: ArrayLike,
    epsilon: float | None = None,
    deltas: Sequence[float] = (1e-6, 1e-3),
    draws: int = 100_000,
    confidence: float = 0.999,
    sample: Sampler | None = None,
) -> Audit:
    """Check that a mechanism loses no more than it claims, in four ways that need not agree with
    each other.

    * *Accounting*: the largest loss that the exact accounting computes, `computed`, is within the
      claim.
    * *Law*: so is the largest log-ratio of the mechanism's `log_pmf`, over all neighbours where
      that is feasible.
    * *Draws*: the sampler is called for the worst pair of neighbours, and no statement that follows
      from the claim is refuted.
    * *Fit*: those draws follow `log_pmf`.

    Uses no data: data sets are made up.

    Source: `docs/research/audit.md`.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value. Neighbours differ by one record.
    size : int or None
        The public number of records, or None where it is private (add/remove neighbours).
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    epsilon : float, optional
        The claim; unless given, the bound of `exact_loss`.
    deltas : Sequence[float], optional
        Further values of δ, between 0 and 1; the claim there is the smaller of `epsilon` and the
        certified profile.
    draws : int, default 100000
        Number of draws for each data set.
    confidence : float, default 0.999
        A mechanism that keeps its claims and draws from its law fails with probability at most `1 -
        confidence` (half of it for *draws*, by Clopper-Pearson bounds; half for *fit*, by the
        chi-square approximation).
    sample : Sampler, optional
        A sampler to use in place of `mechanism.sample`: called with counts, prior and a number, it
        returns so many independent releases, shape `(number, k)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or do not fit the mechanism.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import HellingerExponential
    >>> from opendp_bayes_research import audit
    >>> found = audit(HellingerExponential(scale=0.5), size=10, prior=[1.0, 1.0], draws=2000)
    >>> round(found.exact.epsilon, 4), found.law.first, found.law.second
    (0.8838, (0, 10), (1, 9))
    """
    setting = Setting.of(mechanism, size, prior)
    draws = as_size(draws, "draws", "draws")
    if not _FEWEST_DRAWS <= draws <= _MOST_DRAWS:
        raise ValueError(f"draws={draws!r}: must be between {_FEWEST_DRAWS} and {_MOST_DRAWS}.")
    as_level(confidence, argument="confidence")
    for delta in deltas:
        as_level(delta, "1e-6", "delta")
    copied = deepcopy(setting.mechanism)  # what others hold, nobody can change for the caches
    exact = exact_loss(copied, size=size, prior=setting.prior)
    profile = privacy_profile(copied, size=size, prior=setting.prior)
    claimed = exact.epsilon if epsilon is None else as_positive(epsilon, "epsilon")
    worst = None if size is None else worst_pair(setting)
    law = over_all_neighbours(setting)
    # Draws are taken for the worst pair of all, or where these are too many for the worst of the
    # accounting, or typical ones.
    if law is not None:
        pairs = [(law.first, law.second)]
    else:
        typical = typical_pairs(setting.size, len(setting.prior))
        pairs = [(worst.first, worst.second)] if worst else typical
        law = over_pairs(setting, pairs)
    levels = [0.0, *deltas]
    data_sets = [counts for pair in pairs for counts in pair]
    samples = draws_of(sample or copied.sample, data_sets, setting.prior, draws)
    level = (1 - confidence) / 2 / (2 * len(pairs) * len(levels))
    refuted, refutable, fits = _tested(setting, pairs, samples, levels, level)
    return Audit(
        mechanism=copied,
        size=setting.size,
        prior=setting.prior,
        epsilon=claimed,
        proven=setting.proven_loss(ONE_RECORD),
        exact=exact,
        computed=worst.epsilon if worst else None if exact.method == "proven" else exact.epsilon,
        law=law,
        claims=tuple(
            Claim(
                delta,
                min(claimed, profile.epsilon(delta)) if delta else claimed,
                float(refuted[i]),
                None if law is None else float(refutable[i]),
            )
            for i, delta in enumerate(levels)
        ),
        drawn=tuple(pairs),
        fits=tuple(fits),
        draws=draws,
        confidence=confidence,
    )


def _tested(
    setting: Setting,
    pairs: Sequence[Pair],
    samples: Iterator[Integers],
    deltas: Sequence[float],
    level: float,
) -> tuple[Floats, Floats, list[Fit]]:
    """For each δ the largest ε that the draws refute and the largest that those of the stated law
    would, over all pairs; and the fits of all draws.
    """
    refuted = refutable = np.zeros(len(deltas))
    fits = []
    for pair in pairs:
        p, q = next(samples), next(samples)
        laws = listed(setting, pair[0]), listed(setting, pair[1])
        refuted = np.maximum(refuted, refuted_by(p, q, laws, pair, deltas, level))
        refutable = np.maximum(refutable, refutable_under(laws, len(p), deltas, level))
        for counts, outcomes, stated in zip(pair, (p, q), laws, strict=True):
            p_value = None if stated is None else chi_square_p_value(outcomes, stated)
            if p_value is not None:
                fits.append(Fit(counts, p_value))
    return refuted, refutable, fits


def typical_pairs(size: int | None, k: int) -> list[Pair]:
    """Neighbours at the edge of the simplex and at balanced counts; a record added, to none and to
    10 in each category, if `size` is None.
    """
    if size is None:
        return [((0,) * k, (1, *(0,) * (k - 1))), ((10,) * k, (11, *(10,) * (k - 1)))]
    share, remainder = divmod(size, k)
    balanced = [share + (i < remainder) for i in range(k)]
    edge = [size, *[0] * (k - 1)]
    return [
        (tuple(counts), (counts[0] - 1, counts[1] + 1, *counts[2:])) for counts in (edge, balanced)
    ]
