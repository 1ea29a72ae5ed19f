"""An audit of a mechanism: the loss that it claims, against its own probabilities and against draws of its sampler."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from opendp_bayes._validation import Floats, Integers, as_positive, as_size
from opendp_bayes.accounting.exact import checked, exact_loss, privacy_profile, worst_pair
from opendp_bayes.mechanisms.hellinger_exponential import HellingerExponential
from opendp_bayes.mechanisms.knorm_parameters import KNormParameters
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.smooth_hellinger_exponential import SmoothHellingerExponential
from opendp_bayes.privacy_loss import PrivacyLoss
from opendp_bayes.sensitivity import global_sensitivity
from opendp_bayes.simplex import candidates, number_of_candidates, ranks

Counts = tuple[int, ...]
Pair = tuple[Counts, Counts]
#: Called with the name of the step, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]
#: What `Mechanism.log_pmf` returns: outcomes, shape `(c, k)`, and their log-probabilities, shape `(c,)`.
Law = tuple[Integers, Floats]

#: Up to so many probabilities (data sets times outcomes) all neighbours are compared; beyond, the pairs that draws are taken from.
LARGEST_TABLE = 1 << 18
_FEWEST_DRAWS, _MOST_DRAWS = 1000, 10**7  # the most are what fits into memory and half an hour
_CHUNKS, _SMALLEST_CHUNK = 50, 1000  # calls of `sample` for one data set, and draws of one
_CUTS = 128  # events tried for one order of the outcomes
_SMALLEST_CELL = 20.0  # expected draws, where the chi-square tail is accurate
_LOG_ERROR = 2.0**-40  # of a log-probability, relative; the mechanisms' own is below 2^-42
_UNSEEN = 1e-9  # a law that leaves less than this open rules out every outcome that it does not list


@dataclass(frozen=True)
class Claim:
    """An ε claimed at one δ, and the ε below which the draws refute every claim at that δ; 0 if they refute none.

    `refutable` is what `refuted` comes to for a sampler that follows the stated law; None where that law cannot be enumerated. It says how much the
    draws can tell: the further below `epsilon` it is, the more a sampler can lose beyond the claim without failing.
    """

    delta: float
    epsilon: float
    refuted: float
    refutable: float | None


@dataclass(frozen=True)
class LawCheck:
    """The largest log-ratio of the probabilities that the mechanism states, over `pairs` pairs of neighbours, and the pair that attains it.

    `epsilon` is within `error` of what exact arithmetic gives. `complete` says whether these were all pairs.
    """

    first: Counts
    second: Counts
    epsilon: float
    error: float
    pairs: int
    complete: bool


@dataclass(frozen=True)
class Fit:
    """The p-value of a chi-square test that the draws for one data set follow the stated law; 0 if an impossible outcome was drawn."""

    counts: Counts
    p_value: float


@dataclass(frozen=True)
class Audit:
    """What `audit` found; plain data.

    Attributes
    ----------
    mechanism, size, prior, draws, confidence : what was audited, and how.
    epsilon : the claimed pure ε.
    nominal : the ε that the papers state for this scale; None for a mechanism that is not theirs.
    proven, exact : the closed-form bound and `exact_loss`.
    computed : the ε that the accounting finds from the probabilities alone, whatever `proven_loss` says; None if it cannot.
    law : the check of the stated probabilities; None where they cannot be enumerated.
    claims : for δ = 0 and each δ asked for, the claimed ε and the largest ε refuted.
    drawn : the pairs of neighbours from which draws were taken.
    fits : the tests of the draws against the stated law, one for each data set drawn from; empty where it cannot be enumerated.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    epsilon: float
    nominal: float | None
    proven: PrivacyLoss
    exact: PrivacyLoss
    computed: float | None
    law: LawCheck | None
    claims: tuple[Claim, ...]
    drawn: tuple[Pair, ...]
    fits: tuple[Fit, ...]
    draws: int
    confidence: float

    @property
    def level(self) -> float:
        """The p-value below which a fit fails: half of `1 - confidence`, shared by the fits."""
        return (1 - self.confidence) / 2 / max(len(self.fits), 1)

    @property
    def failures(self) -> tuple[str, ...]:
        """The checks that fail, among `"accounting"`, `"law"`, `"draws"` and `"fit"`. What rounding may add to a loss is forgiven."""
        found = {
            "accounting": self.computed is not None and self.computed * (1 - _LOG_ERROR) > self.epsilon,
            "law": self.law is not None and self.law.epsilon - self.law.error > self.epsilon,
            "draws": any(claim.refuted > claim.epsilon for claim in self.claims),
            "fit": any(fit.p_value < self.level for fit in self.fits),
        }
        return tuple(name for name, fails in found.items() if fails)

    @property
    def passed(self) -> bool:
        """Whether no check refutes the claim."""
        return not self.failures

    @property
    def certified(self) -> bool:
        """Whether a certified bound, of the exact accounting or of the mechanism's `proven_loss`, is within the claim.

        An audit can pass without: then nothing refutes the claim and nothing proves it.
        """
        return self.exact.epsilon <= self.epsilon

    def to_json(self) -> str:
        """The audit as a JSON object; null stands for infinity."""
        document = {
            **asdict(self),
            "mechanism": {"name": self.mechanism.name, "parameters": asdict(self.mechanism)},
            "passed": self.passed,
            "certified": self.certified,
            "failures": self.failures,
        }
        return msgspec.json.encode(document).decode()


def audit(
    mechanism: Mechanism,
    *,
    size: int | None,
    prior: ArrayLike,
    epsilon: float | None = None,
    deltas: Sequence[float] = (1e-6, 1e-3),
    draws: int = 100_000,
    confidence: float = 0.999,
    progress: Progress | None = None,
) -> Audit:
    """Check that a mechanism loses no more than it claims, in four ways that need not agree with each other.

    * *Accounting*: the largest loss that the exact accounting computes, `computed`, is within the claim.
    * *Law*: so is the largest log-ratio of the mechanism's `log_pmf`, over all neighbours where that is feasible.
    * *Draws*: `sample` is called for the worst pair of neighbours, and no statement that follows from the claim is refuted.
    * *Fit*: those draws follow `log_pmf`.

    Parameters
    ----------
    mechanism, size, prior : as in `exact_loss`. Neighbours differ by one record.
    epsilon : the claim; unless given, the bound of `exact_loss`.
    deltas : further values of δ, between 0 and 1; what is claimed there is the smaller of `epsilon` and the certified profile.
    draws : number of draws for each data set.
    confidence : a mechanism that keeps its claims and draws from its law fails with probability at most `1 - confidence` (half of it for *draws*, by
        Clopper-Pearson bounds; half for *fit*, by the chi-square approximation).
    progress : called with the step, the amount done and the amount there is.

    Uses no data: data sets are made up. Raises `ValueError`/`TypeError` for arguments that are not valid or do not fit the mechanism.

    Source: `docs/audit.md`.

    >>> from opendp_bayes import HellingerExponential, audit
    >>> found = audit(HellingerExponential(scale=0.5), size=10, prior=[1.0, 1.0], draws=2000)
    >>> round(found.exact.epsilon, 4), found.law.first, found.law.second
    (0.8838, (0, 10), (1, 9))
    """
    size, prior, _ = checked(mechanism, size, prior, 1)
    draws = as_size(draws, "draws")
    if not _FEWEST_DRAWS <= draws <= _MOST_DRAWS:
        raise ValueError(f"draws={draws!r}: must be between {_FEWEST_DRAWS} and {_MOST_DRAWS}.")
    if not 0 < as_positive(confidence, "confidence") < 1:
        raise ValueError(f"confidence={confidence!r}: must be between 0 and 1.")
    for delta in deltas:
        if not 0 < as_positive(delta, "delta") < 1:
            raise ValueError(f"delta={delta!r}: must be between 0 and 1.")
    tell: Progress = progress or (lambda step, done, total: None)

    exact = exact_loss(mechanism, size=size, prior=prior)
    claimed = exact.epsilon if epsilon is None else as_positive(epsilon, "epsilon")
    profile = privacy_profile(mechanism, size=size, prior=prior)
    worst = None if size is None else worst_pair(mechanism, size=size, prior=prior)
    law = _over_all_neighbours(mechanism, size, prior, tell)
    if law is not None:
        pairs: list[Pair] = [(law.first, law.second)]
    else:
        pairs = [(worst.first, worst.second)] if worst else typical_pairs(size, len(prior))
        law = _over(mechanism, prior, pairs)

    def drawn(counts: Counts, before: int) -> Integers:
        return _drawn(mechanism, counts, prior, draws, lambda done: tell("Draws", before * draws + done, 2 * len(pairs) * draws))

    levels = [0.0, *deltas]
    each = (1 - confidence) / 2 / (2 * len(pairs) * len(levels))
    refuted, refutable, fits = np.zeros(len(levels)), np.zeros(len(levels)), []
    for number, (first, second) in enumerate(pairs):
        p = drawn(first, 2 * number)
        q = drawn(second, 2 * number + 1)
        laws = _law(mechanism, first, prior), _law(mechanism, second, prior)
        refuted = np.maximum(refuted, _refuted(p, q, laws, (first, second), levels, each))
        refutable = np.maximum(refutable, _refutable(laws, draws, levels, each))
        for counts, outcomes, stated in ((first, p, laws[0]), (second, q, laws[1])):
            p_value = None if stated is None else chi_square_p_value(outcomes, stated)
            if p_value is not None:
                fits.append(Fit(counts, p_value))
    return Audit(
        mechanism=mechanism,
        size=size,
        prior=prior,
        epsilon=claimed,
        nominal=nominal_loss(mechanism, size, np.array(prior)),
        proven=mechanism.proven_loss(1, size=size, prior=np.array(prior)),
        exact=exact,
        computed=worst.epsilon if worst else None if exact.method == "proven" else exact.epsilon,
        law=law,
        claims=tuple(
            Claim(delta, min(claimed, profile.epsilon(delta)) if delta else claimed, float(found), None if law is None else float(most))
            for delta, found, most in zip(levels, refuted, refutable, strict=True)
        ),
        drawn=tuple(pairs),
        fits=tuple(fits),
        draws=draws,
        confidence=confidence,
    )


def nominal_loss(mechanism: Mechanism, size: int | None, prior: Floats) -> float | None:
    """The ε of the papers' calibrations at this scale, for one record; None for a mechanism that has none.

    Source: tailoring paper, section 4, with the global sensitivity of this size and prior.
    """
    if isinstance(mechanism, LaplaceParameters):
        return LaplaceParameters.proven_loss(mechanism, 1, size=size, prior=prior).epsilon
    if isinstance(mechanism, KNormParameters):
        return 1 / mechanism.scale
    if isinstance(mechanism, HellingerExponential) and size is not None:
        return 2 * (global_sensitivity(size, prior) if mechanism.sensitivity == "global" else 1.0) / mechanism.scale
    if isinstance(mechanism, SmoothHellingerExponential) and mechanism.gamma is not None:
        return 2 * (1 + mechanism.gamma) / mechanism.scale
    return None


def typical_pairs(size: int | None, k: int) -> list[Pair]:
    """Neighbours at the edge of the simplex and at balanced counts; a record added, to none and to 10 in each category, if `size` is None."""
    if size is None:
        return [((0,) * k, (1, *(0,) * (k - 1))), ((10,) * k, (11, *(10,) * (k - 1)))]
    share, rest = divmod(size, k)
    balanced = [share + (i < rest) for i in range(k)]
    edge = [size, *[0] * (k - 1)]
    return [(tuple(counts), (counts[0] - 1, counts[1] + 1, *counts[2:])) for counts in (edge, balanced)]


# The stated law.


def _law(mechanism: Mechanism, counts: Sequence[int], prior: ArrayLike) -> Law | None:
    """`log_pmf`, or None where the outcomes cannot be enumerated."""
    try:
        return mechanism.log_pmf(counts, prior)
    except ValueError:
        return None


def _over_all_neighbours(mechanism: Mechanism, size: int | None, prior: tuple[float, ...], tell: Progress) -> LawCheck | None:
    """The largest log-ratio over all neighbours, or None where there are too many probabilities or none are stated."""
    k = len(prior)
    if size is None or number_of_candidates(size, k) > LARGEST_TABLE:
        return None
    sets = candidates(size, k)
    law = _law(mechanism, sets[-1].tolist(), prior)
    if law is None or law[1].size * len(sets) > LARGEST_TABLE:
        return None
    laws = []
    for number, counts in enumerate(sets):
        laws.append(mechanism.log_pmf(counts, prior))
        tell("Probabilities", number + 1, len(sets))
    return _largest((sets[i].tolist(), sets[j].tolist(), laws[i], laws[j]) for i, j in _neighbours(sets, size))


def _neighbours(sets: Integers, size: int) -> list[tuple[int, int]]:
    """Every pair of data sets that differ by a record changed, as indices into `sets`, ascending, each once."""
    found = []
    for i, j in permutations(range(sets.shape[1]), 2):
        first = np.flatnonzero(sets[:, i] > 0)
        moved = sets[first]
        moved[:, i] -= 1
        moved[:, j] += 1
        second = ranks(moved, size)
        found += [(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True) if a < b]
    return sorted(found)


def _over(mechanism: Mechanism, prior: tuple[float, ...], pairs: list[Pair]) -> LawCheck | None:
    stated = [(first, second, _law(mechanism, first, prior), _law(mechanism, second, prior)) for first, second in pairs]
    known = [(first, second, p, q) for first, second, p, q in stated if p is not None and q is not None]
    return _largest(known, complete=False) if known else None


def _largest(pairs: Iterable[tuple[Sequence[int], Sequence[int], Law, Law]], *, complete: bool = True) -> LawCheck:
    """The pair with the largest log-ratio; of pairs that differ by rounding alone, the first."""
    best = LawCheck(first=(), second=(), epsilon=-1.0, error=0.0, pairs=0, complete=complete)
    for first, second, p, q in pairs:
        with np.errstate(invalid="ignore"):  # what is impossible for both tells nothing
            epsilon = float(np.nanmax(np.abs(np.subtract(*_aligned(p, q)))))
        if epsilon - best.error > best.epsilon:
            log_p = np.concatenate([p[1], q[1]])
            error = _LOG_ERROR * (1 - float(np.min(log_p, where=np.isfinite(log_p), initial=0.0)))
            best = replace(best, first=tuple(first), second=tuple(second), epsilon=epsilon, error=error)
        best = replace(best, pairs=best.pairs + 1)
    return best


def _aligned(p: Law, q: Law) -> tuple[Floats, Floats]:
    """Log-probabilities of the same outcomes under both laws, `-inf` where one does not list an outcome."""
    if np.array_equal(p[0], q[0]):
        return p[1], q[1]
    outcomes = np.unique(np.concatenate([p[0], q[0]]), axis=0)
    return _at(outcomes, *p), _at(outcomes, *q)


def _at(outcomes: Integers, listed: Integers, values: ArrayLike, missing: float = -math.inf) -> Floats:
    """The values at some outcomes, shape `(m, k)`, of a function given at those listed, shape `(c, k)`, and `missing` elsewhere."""
    _, place = np.unique(np.concatenate([outcomes, listed]), axis=0, return_inverse=True)
    place = place.ravel()
    table = np.full(place.max() + 1, missing)
    table[place[len(outcomes) :]] = values
    return table[place[: len(outcomes)]]


# Draws.


def _drawn(mechanism: Mechanism, counts: Counts, prior: tuple[float, ...], draws: int, tell: Callable[[int], None]) -> Integers:
    parts, done = [], 0
    while done < draws:
        part = min(max(-(-draws // _CHUNKS), _SMALLEST_CHUNK), draws - done)
        parts.append(np.asarray(mechanism.sample(counts, prior, size=part)))
        done += part
        tell(done)
    return np.concatenate(parts)


def _nearness(outcomes: Integers, first: Counts, second: Counts) -> list[Floats]:
    """Two ways in which outcomes, shape `(c, k)`, are nearer to the first data set; shape `(c,)`.

    Along the direction between the two, and by the difference of the sums of absolute differences:
    up to a factor, the log-ratio of noise on the counts where nothing is clamped.
    """
    one, other = np.array(first), np.array(second)
    absolute = np.abs(outcomes - other).sum(axis=1) - np.abs(outcomes - one).sum(axis=1)
    return [(outcomes @ (one - other)).astype(np.float64), absolute.astype(np.float64)]


def _refuted(
    p: Integers,
    q: Integers,
    laws: tuple[Law | None, Law | None],
    pair: Pair,
    deltas: Sequence[float],
    level: float,
) -> Floats:
    """The largest ε refuted by draws from two neighbours, for each δ, in either order.

    A quarter of the draws orders the outcomes by how they tell the data sets apart, a quarter
    chooses an order and where to cut it, and the other half, on which nothing depends so far,
    tests the event. Three more orders are tried: the stated log-ratio and
    `_nearness`.
    """
    outcomes, place = np.unique(np.concatenate([p, q]), axis=0, return_inverse=True)
    place = place.ravel()
    quarter, half = len(p) // 4, len(p) // 2
    parts = [
        tuple(np.bincount(here[part], minlength=len(outcomes)) for here in (place[: len(p)], place[len(p) :]))
        for part in (slice(0, quarter), slice(quarter, half), slice(half, None))
    ]
    scores = [np.log((parts[0][0] + 0.5) / (parts[0][1] + 0.5)), *_nearness(outcomes, *pair)]
    if laws[0] is not None and laws[1] is not None:
        with np.errstate(invalid="ignore"):
            scores.append(np.nan_to_num(_at(outcomes, *laws[0]) - _at(outcomes, *laws[1]), nan=0.0, posinf=1e300, neginf=-1e300))
    return np.array(
        [
            max(
                0.0,
                _tested(scores, parts[1], parts[2], delta, level),
                _tested([-score for score in scores], parts[1][::-1], parts[2][::-1], delta, level),
            )
            for delta in deltas
        ]
    )


def _refutable(laws: tuple[Law | None, Law | None], draws: int, deltas: Sequence[float], level: float) -> Floats:
    """What `_refuted` gives for the best event under the stated laws, if it happens as often as they say; 0 without them."""
    best = np.zeros(len(deltas))
    if laws[0] is None or laws[1] is None:
        return best
    p, q = _aligned(laws[0], laws[1])
    tested = draws - draws // 2
    for one, other in ((p, q), (q, p)):
        with np.errstate(invalid="ignore"):
            order = np.argsort(-np.nan_to_num(one - other, nan=0.0), kind="stable")
        hits = [np.minimum(np.cumsum(np.exp(log_p[order])), 1.0) * tested for log_p in (one, other)]
        cuts = _cuts(hits[0] + hits[1])
        best = np.maximum(best, [np.max(log_ratio_bound(hits[0][cuts], tested, hits[1][cuts], tested, delta, level)) for delta in deltas])
    return best


def _cuts(seen: Floats | Integers) -> Integers:
    """Where to cut an order of outcomes that were seen so often up to each, shape `(c,)`: at some places, closer together at the beginning."""
    return np.unique(np.minimum(np.searchsorted(seen, np.geomspace(1, seen[-1], _CUTS)), len(seen) - 1))


def _tested(scores: list[Floats], choice: Sequence[Integers], test: Sequence[Integers], delta: float, level: float) -> float:
    """The bound of `log_ratio_bound` on the tested part, for the event that has the largest one on the choosing part."""
    best, event = -math.inf, np.zeros(len(scores[0]), dtype=bool)
    for score in scores:
        _, group = np.unique(-score, return_inverse=True)
        hits = [np.cumsum(np.bincount(group, weights=seen)) for seen in choice]
        cuts = _cuts(hits[0] + hits[1])
        bounds = log_ratio_bound(hits[0][cuts], hits[0][-1], hits[1][cuts], hits[1][-1], delta, level)
        at = int(np.argmax(bounds))
        if bounds[at] > best:
            best, event = float(bounds[at]), group <= cuts[at]
    return float(log_ratio_bound(test[0][event].sum(), test[0].sum(), test[1][event].sum(), test[1].sum(), delta, level))


def log_ratio_bound(p_hits: ArrayLike, p_draws: ArrayLike, q_hits: ArrayLike, q_draws: ArrayLike, delta: float, level: float) -> Floats:
    """`ln((p - delta) / q)` for a lower bound p on the probability of an event and an upper bound q on that of its other side.

    Each of the two Clopper-Pearson bounds is wrong with probability at most `level / 2`. A mechanism that is (ε, δ)-private has `p <= exp(ε) q + δ`,
    so a larger ε than the result is not excluded, a smaller one is. `-inf` where `p <= delta`.
    """
    a, n, b, m = (np.asarray(value, dtype=np.float64) for value in (p_hits, p_draws, q_hits, q_draws))
    low = np.where(a > 0, stats.beta.ppf(level / 2, np.maximum(a, 1), n - a + 1), 0.0)
    high = np.where(b < m, stats.beta.isf(level / 2, b + 1, np.maximum(m - b, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0) / high))


def chi_square_p_value(drawn: Integers, law: Law) -> float | None:
    """Chi-square test of draws against a law, with cells pooled until each expects enough; None if fewer than two remain.

    Cells are pooled by what is expected alone. What the law leaves to 1 is the probability of all outcomes that it does not list.
    """
    outcomes, seen = np.unique(drawn, axis=0, return_counts=True)
    support = np.unique(np.concatenate([outcomes, law[0]]), axis=0)
    observed = _at(support, outcomes, seen, missing=0.0)
    log_p = _at(support, *law)
    unlisted = np.isneginf(log_p)
    rest = max(0.0, 1 - math.fsum(np.exp(law[1])))
    if rest < _UNSEEN and observed[unlisted].any():
        return 0.0
    expected = np.append(len(drawn) * np.exp(log_p[~unlisted]), len(drawn) * rest)
    observed = np.append(observed[~unlisted], observed[unlisted].sum())
    pooled: list[tuple[float, float]] = []
    cell = (0.0, 0.0)
    for i in np.argsort(expected, kind="stable"):
        cell = (cell[0] + expected[i], cell[1] + observed[i])
        if cell[0] >= _SMALLEST_CELL:
            pooled.append(cell)
            cell = (0.0, 0.0)
    if len(pooled) < 2:
        return None
    pooled[-1] = (pooled[-1][0] + cell[0], pooled[-1][1] + cell[1])
    statistic = sum((count - mean) ** 2 / mean for mean, count in pooled)
    return float(stats.chi2.sf(statistic, len(pooled) - 1))
