r"""Exact sampling of `P(r) ∝ f(r) = exp(-H(posterior, r) / width)` over every way to split n
records into k counts, without enumerating them.

`H^2 = 1 - exp(-D)` and D is a sum over categories, so `exp(-j D)` is a product over categories for
every j. As a function of D, `H / width` is concave: between two points it lies above its chord, so
that there `f <= P exp(-j D)` with the chord's slope j. A sum of such terms, one for each interval,
is above f everywhere (`chords`). Each term is a product and is sampled coordinate by coordinate,
from tables that bound it over blocks of counts; one count, the last, is what remains of n. A
proposal r of term m is accepted with probability

    f(r) * (share of term m in the sum, at r) / (the probability that m proposes r, times a
    constant)  <=  1,

and what is accepted has the law f. The tables need only be bounds: what they lack in accuracy costs
acceptance, not privacy. Weights are integers and random bits come from `secrets`. Proof, and the
error of this last step in floating point: `docs/research/proofs.md`, "Sampling without
enumerating".
"""

import math

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.simplex import log_number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.samplers.uniform import accepted, log_uniforms, random_words

# Of a chord below H / width, about: where its term is the largest it exceeds f by a factor of up to
# e^0.5
_CHORD_GAP = 0.5
# Candidates that have less than e^-40 of the probability together share one term.
_NEGLIGIBLE = 40.0
BITS = 44  # integer weights sum to 2^44
# Added to logarithms of bounds: far above their rounding errors, far below what costs acceptance.
MARGIN = 2.0**-20


def chords(largest: float, log_candidates: float) -> tuple[Floats, Floats]:
    """Logarithms of P and slopes j of terms with `sum of P exp(-j D) >= exp(-largest H)`, `H =
    sqrt(1 - exp(-D))`, for every `D >= 0`.

    Each is a chord of `largest * H` as a function of D, between two of the points `H = sin^2(m
    step)`, for which all chords are at nearly the same distance below it; the last is a constant
    from where all candidates together weigh less than `exp(-_NEGLIGIBLE)`.

    Examples
    --------
    >>> log_weights, slopes = chords(2.0, 100.0)
    >>> log_weights.round(3).tolist(), slopes.round(3).tolist()
    ([0.0, -0.415, -1.5], [7.747, 1.312, 0.0])
    """
    number = max(math.ceil(math.pi / 2 / math.sqrt(2 * _CHORD_GAP / largest)), 1)
    step = math.pi / 2 / number
    reach = min((log_candidates + _NEGLIGIBLE) / largest, 1.0)
    used = min(math.ceil(math.asin(math.sqrt(reach)) / step), number - 1)
    distance = np.sin(step * np.arange(used + 1)) ** 2
    divergence = -np.log1p(-(distance**2))
    slopes = np.append(largest * np.diff(distance) / np.diff(divergence), 0.0)
    return slopes * divergence - largest * distance + MARGIN, slopes


def blocks(largest: int, precision: int) -> tuple[Integers, Integers]:
    """Blocks of the numbers from 1 to `largest` or a little more: their first number, and the
    logarithm to base 2 of how many they hold.

    They widen as the spacing of floating-point numbers of `precision` bits does, so that a block is
    short beside its distance from 0.

    Examples
    --------
    >>> start, bits = blocks(20, 1)
    >>> start.tolist(), bits.tolist()
    ([1, 2, 3, 4, 6, 8, 12, 16], [0, 0, 0, 1, 1, 2, 2, 3])
    """
    octaves = range(max(largest.bit_length() - precision, 1))
    # The first octave holds the numbers below 2^precision too.
    start = np.concatenate(
        [
            np.arange(1 << precision if octave else 1, 2 << precision, dtype=np.int64) << octave
            for octave in octaves
        ]
    )
    bits = np.concatenate(
        [
            np.full((1 << precision) if octave else (2 << precision) - 1, octave)
            for octave in octaves
        ]
    )
    needed = start <= largest
    return start[needed], bits[needed]


def integer_weights(logs: Floats) -> Integers:
    """Integers along the last axis that sum to `2^BITS` and are at least `exp(logs)`, relative to
    their sum, times `exp(log_scale)`; 0 for -inf.
    """
    logs = logs - np.max(logs, axis=-1, keepdims=True)
    relative = np.exp(logs)
    relative /= relative.sum(axis=-1, keepdims=True)
    weights = np.maximum(np.ceil(relative * math.exp(log_scale(logs))), logs > -np.inf).astype(
        np.int64
    )
    surplus = (1 << BITS) - weights.sum(axis=-1, keepdims=True)
    largest = np.argmax(weights, axis=-1, keepdims=True)
    np.put_along_axis(
        weights, largest, np.take_along_axis(weights, largest, axis=-1) + surplus, axis=-1
    )
    return weights


def log_scale(weights: Integers | Floats) -> float:
    """Logarithm of the total that `integer_weights` shares out before it rounds up: below `2^BITS`
    by more than rounding up adds.
    """
    return math.log((1 << BITS) - 8 * weights.shape[-1])


def leading_bits(words: NDArray[np.uint64]) -> Integers:
    return (words >> np.uint64(64 - BITS)).astype(np.int64)


#: Above this tables outgrow memory, and only scales that mean no privacy give anything but noise.
#: (2^BITS of each must fit into 63 bits together.)
LARGEST_CATEGORIES = 1000

# Squared, in variances, that the sum of proposals may be off: more than the 1.75 of one side of a
# normal law
_DRIFT = 2.0
_GAP_MARGIN = 2.0**-42  # relative, above the error of a gap and of a sum of gaps
# Proposals made at a time: at least so many, and so many for each category; one release seldom
# needs a second batch.
_BATCH = (256, 32)
_LARGEST_BATCH = 1 << 18  # counts in a batch, which bounds its memory


class HellingerSampler:
    """Draws from `exp(-H(prior + counts, prior + r) / width)` over the r with the sum of `counts`;
    `counts` and `prior` have shape `(k,)`.

    To make one takes time and memory that grow with k and with the logarithm of n; all draws from
    it share that.
    """

    def __init__(self, counts: Integers, prior: Floats, width: float) -> None:
        self._counts, self._prior, self._width = counts, prior, width
        k, n = counts.size, int(counts.sum())
        self._log_weights, self._slopes = chords(1 / width, log_number_of_candidates(n, k))

        # Blocks of distances from each count, in both directions; arrays of shape (k, blocks). One
        # that has no count from 0 to n has no weight.
        start, bits = blocks(n, min(max((k - 1).bit_length(), 4), 6))
        self._first = np.concatenate([-start[::-1], [0], start])
        self._bits = np.concatenate([bits[::-1], [0], bits])
        last = self._first + np.sign(self._first) * ((1 << self._bits) - 1)
        lowest, highest = -counts[:, None], (n - counts)[:, None]
        self._log_size = np.where(
            (lowest <= self._first) & (self._first <= highest), self._bits * math.log(2), -np.inf
        )
        near, far = np.clip(self._first, lowest, highest), np.clip(last, lowest, highest)
        self._near, self._far = near.astype(np.float64), far.astype(np.float64)
        gaps = gap_above(prior[:, None] + (counts[:, None] + np.minimum(near, 0)), np.abs(near) / 2)
        self._gaps = gaps * (1 - _GAP_MARGIN - k * 2.0**-51)

        fits = [self._fit(slope) for slope in self._slopes.tolist()]
        self._tilts, lasts, masses = zip(*fits, strict=True)
        self._lasts, log_masses = np.array(lasts), self._log_weights + masses
        weights = integer_weights(log_masses)
        self._ends, self._log_integers = np.cumsum(weights), np.log(weights)
        # exp(log_unit) times the integer of a term is at least its weight, and so for the integers
        # of the blocks of each category.
        self._log_unit = (
            float(log_sum_exp(log_masses, axis=-1)) - log_scale(weights) + (k + 1) * MARGIN
        )

    def draw(self, draws: int) -> Integers:
        """Draw independently, shape `(draws, k)`. Always returns: proposals are made until
        enough are accepted.
        """
        k = self._counts.size

        def accepted_moves(missing: int) -> Integers:
            number = min(max(_BATCH[0], _BATCH[1] * k, 4 * missing), _LARGEST_BATCH // k)
            moves, log_acceptance = self._inside(number)
            return moves[log_uniforms(len(moves)) < log_acceptance][:missing]

        return self._counts + accepted(accepted_moves, draws)

    def log_normaliser(self, proposals: int) -> float:
        """Estimate the logarithm of the sum of f over every r, from `proposals` proposals, by the
        mean of their probabilities of acceptance.
        """
        expected, made = 0.0, 0
        while made < proposals or expected == 0:
            number = min(proposals, _LARGEST_BATCH // self._counts.size)
            expected, made = expected + float(np.exp(self._inside(number)[1]).sum()), made + number
        # A term is proposed with probability integer / 2^BITS, and a move with its density times
        # that of the rounding up of each category.
        log_rounding = BITS * math.log(2) - log_scale(self._gaps)
        return (
            math.log(expected / made)
            + self._log_unit
            + BITS * math.log(2)
            + (self._counts.size - 1) * log_rounding
        )

    def _inside(self, number: int) -> tuple[Integers, Floats]:
        """Return the proposals, of `number`, that are inside the simplex, as moves, and the
        logarithms of their probabilities of acceptance.
        """
        term = np.searchsorted(self._ends, leading_bits(random_words(number)), side="right")
        moves, log_density = self._proposals(term)
        inside = np.all(moves >= -self._counts, axis=1)
        return moves[inside], self._log_acceptance(term[inside], moves[inside], log_density[inside])

    def _log_acceptance(self, term: Integers, moves: Integers, log_density: Floats) -> Floats:
        """Logarithms, below 0, of the probabilities with which proposals inside the simplex are
        accepted.
        """
        # Integers are added first: the sum with the prior is rounded once.
        divergence = gap_above(
            self._prior + (self._counts + np.minimum(moves, 0)), np.abs(moves) / 2
        ).sum(axis=1)
        logs = self._log_weights - np.multiply.outer(divergence, self._slopes)
        log_share = logs[np.arange(term.size), term] - log_sum_exp(logs, axis=-1)
        log_f = -distance_from_divergence(divergence) / self._width
        return log_f + log_share - self._log_integers[term] - self._log_unit - log_density

    def _proposals(self, term: Integers) -> tuple[Integers, Floats]:
        """Draw a move of the counts for each proposal, shape `(proposals, k)`; return it with the
        logarithm of its integer weight, shape `(proposals,)`.

        A block is drawn by its weight, and a distance in it, whose number is a power of two, by
        random bits; the last category takes the rest.
        """
        k = self._counts.size
        moves = np.empty((term.size, k), dtype=np.int64)
        log_density = np.empty(term.size)
        for m in np.unique(term).tolist():
            rows = np.flatnonzero(term == m)
            ends, log_density_of = self._table(m)
            # The cumulative weights of a category are those of the one before, plus 2^BITS.
            words = leading_bits(random_words(rows.size * k)).reshape(rows.size, k) + (
                np.arange(k) << BITS
            )
            place = np.searchsorted(ends, words, side="right")
            block = place % self._first.size
            distance = self._first[block]
            inside = random_words(rows.size * k).reshape(rows.size, k) & (
                (1 << self._bits[block]) - 1
            ).astype(np.uint64)
            distance += np.sign(distance) * inside.astype(np.int64)
            density = log_density_of[place]
            last = self._lasts[m]
            distance[:, last], density[:, last] = 0, 0
            distance[:, last] = -distance.sum(axis=1)
            moves[rows], log_density[rows] = distance, density.sum(axis=1)
        return moves, log_density

    def _bounds(self, slope: float, tilt: float) -> Floats:
        """Upper bounds on `-slope h_i - tilt d` over the distances d of each block, shape `(k,
        blocks)`.
        """
        tilted = np.maximum(-tilt * self._near, -tilt * self._far)
        return tilted + 2.0**-50 * np.abs(tilted) - slope * self._gaps

    def _fit(self, slope: float) -> tuple[float, int, float]:
        """A tilt that makes the proposals of a term sum to about n, its last category, and the
        logarithm of a bound on its total weight.

        The common factor `exp(-tilt d)` is 1 for any moves that sum to 0, so every tilt gives the
        same term. The best one is the minimum of a convex function, the logarithm of the total
        weight of all categories; its derivative is the mean of the proposed sum. An approximation
        will do.
        """
        middle = (self._near + self._far) / 2
        tilt, low, high = 0.0, -math.inf, math.inf
        best = (0.0, 0, math.inf)
        for _ in range(40):
            bounds = self._bounds(slope, tilt)
            highest = np.max(np.where(self._log_size > -np.inf, bounds, -np.inf), axis=1)
            mass = np.exp(bounds + self._log_size - highest[:, None])
            total = mass.sum(axis=1)
            # The last category is the one whose weight is the largest multiple of its largest
            # entry: it need not be proposed.
            last = int(np.argmax(total))
            log_mass = float(np.sum(np.log(total)) - np.log(total[last]) + np.sum(highest))
            if log_mass < best[2]:
                best = (tilt, last, log_mass)
            mean = (mass * middle).sum(axis=1) / total
            variance = float(((mass * middle**2).sum(axis=1) / total - mean**2).sum())
            drift = float(mean.sum())
            if drift**2 <= _DRIFT * max(variance, 1.0):
                break
            low, high = (tilt, high) if drift > 0 else (low, tilt)
            step = tilt + drift / max(variance, abs(drift) * 2.0**-10)
            if not low < step < high:
                step = (low + high) / 2 if math.isfinite(low + high) else 2 * tilt
            tilt = step
        return best

    def _table(self, m: int) -> tuple[Integers, Floats]:
        """Proposals of one term: the cumulative weights of all blocks of all categories, and the
        logarithm of the weight of each count in a block.
        """
        bounds = self._bounds(float(self._slopes[m]), self._tilts[m])
        weights = integer_weights(bounds + self._log_size)
        offsets = np.arange(self._counts.size)[:, None] << BITS
        with np.errstate(divide="ignore"):  # a block without a count from 0 to n is never drawn
            log_density = np.log(weights) - self._bits * math.log(2) - log_scale(weights)
        return (np.cumsum(weights, axis=1) + offsets).ravel(), log_density.ravel()


def check_categories(k: int) -> None:
    """Raise `ValueError` if there are too many categories for a `HellingerSampler`."""
    if k > LARGEST_CATEGORIES:
        raise ValueError(
            f"prior: has {k} entries; this mechanism samples at most {LARGEST_CATEGORIES}"
            " categories. Use KNormParameters."
        )
