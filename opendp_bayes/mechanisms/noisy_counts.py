"""The common part of the mechanisms that add noise to counts."""

import math

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.log_space import log_sums
from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_prior
from opendp_bayes.mechanisms.laws import AdditiveNoise, saturated
from opendp_bayes.mechanisms.protocol import DrawnCounts

#: Integers of listed noise that `log_pmf` may hold: noise vectors times categories.
LARGEST_NOISE = 4_000_000
#: Listed noise leaves out what is, of any candidate's probability, less than about
#: `exp(-NEGLIGIBLE)`, 4e-14.
NEGLIGIBLE = 31.0


class NoisyCounts(DrawnCounts):
    """Counts with integer noise."""

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw with exact integer noise, shape `(draws, k)`; draws may be negative."""
        counts = as_counts(counts)
        prior = as_prior(prior, counts.size)
        total = int(counts.sum())
        law = self.law(total, prior)
        assert isinstance(law, AdditiveNoise)  # noqa: S101 (others draw in another way)
        true_counts = counts[np.array(law.noised)]
        noised = (
            law.noise.draws(draws * true_counts.size).reshape(draws, true_counts.size) + true_counts
        )
        return law.completed(saturated(noised), total)

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, and their log-probabilities, shape `(c,)`; the prior does not
        influence the noise.

        Every draw is enumerated, or of Gaussian noise every one within a cube, outside of which
        less than about 4e-14 of any candidate's probability lies.

        Raises
        ------
        ValueError
            Where that takes more than `LARGEST_NOISE` integers, and for `total="private"`, whose
            candidates are infinitely many.
        """
        counts = as_counts(counts)
        prior, k, size = as_prior(prior, counts.size), counts.size, int(counts.sum())
        law = self.law(size, prior)
        assert isinstance(law, AdditiveNoise)  # noqa: S101 (others are enumerated in another way)
        low, high = law.cut
        if math.isfinite(low) and math.isinf(high):
            raise ValueError(
                "total='private': the released counts are unbounded, so their probabilities cannot"
                " be enumerated."
            )
        # The Gaussian noise that leads straight to the farthest candidate has squares that sum to
        # 2 n^2.
        rest = NEGLIGIBLE + math.log(2 * k) - k * float(law.noise.log_mass(0))
        reach = law.noise.reach((size / self.scale) ** 2 + rest) if math.isinf(high) else math.inf
        windows = law.windows(counts, reach)
        if math.prod(last - first + 1 for _, first, last in windows) * k > LARGEST_NOISE:
            raise self._too_many(k)
        draws, log_p = law.listed(windows, size)
        shape = (size + 1,) * k
        released = np.ravel_multi_index(tuple(self.project(draws, size).T), shape)
        candidates, candidate_of = np.unique(released, return_inverse=True)
        support = np.stack(np.unravel_index(candidates, shape), axis=1)
        return support, log_sums(candidate_of, log_p, len(candidates))

    def _too_many(self, k: int) -> ValueError:
        return ValueError(
            f"counts: enumerating the noise on {k} categories at scale={self.scale!r} takes"
            f" more than {LARGEST_NOISE} integers. Fewer records, fewer categories or a"
            " smaller scale take less; sampling has no such limit."
        )
