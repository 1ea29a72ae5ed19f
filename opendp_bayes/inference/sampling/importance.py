r"""The true counts by importance sampling, where they can be neither listed nor convolved: weighted
independent draws.

The posterior given the release of an exponential mechanism is a peak at the release upon a plain as
wide as the prior. So draws come from a mixture of the prior and of laws `exp(-H(x, release) / w)`
of every width, whose shares are adapted to the posterior. `docs/research/computation.md`,
"Importance sampling".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table
from opendp_bayes.inference.engines import Generator, Listed
from opendp_bayes.inference.laws.dirichlet_multinomial import (
    dirichlet_multinomial,
    log_dirichlet_multinomial,
)
from opendp_bayes.mathematics.exponential.hellinger import hellinger_distance
from opendp_bayes.mathematics.exponential.sensitivity import (
    local_sensitivity,
    smallest_local_sensitivity,
)
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import Label
from opendp_bayes.samplers.exponential.hellinger_candidates import HellingerSampler

#: Draws before the shares are first adapted, and the most.
_FIRST_DRAWS, _MOST_DRAWS = 2000, 1 << 17
#: The part of the draws that is spread evenly over the laws, whatever their shares have become.
_EVEN = 0.1
#: For data sets with small counts, where a smooth sensitivity is large: the prior is divided by
#: this.
SPARSER = 8.0
#: Proposals behind the normaliser of a law: a standard error of about 2 %.
_PROPOSALS = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class WeightDiagnostics(Shown):
    """Diagnostics of weighted draws: they tell how far the draws can be trusted.

    Attributes
    ----------
    ess : ndarray
        Effective sample size, `1 / sum weights^2`, the same for each category, shape `(k,)`.
    draws : int
        Number of draws.
    log_error : float
        Standard deviation of the error of the log-likelihood over the posterior; 0 where it is not
        interpolated.
    categories : tuple[str or int or bool or tuple, ...]
        The labels.
    """

    ess: Floats
    draws: int
    log_error: float = 0.0
    categories: tuple[Label, ...] = ()

    def sheet(self) -> Sheet:
        """A row, since all categories have the same draws."""
        row = "all categories", f"{self.ess.min():.0f}", f"{self.draws}", f"{self.log_error:.3f}"
        headings = "weighted draws", "effective", "in all", "error of the log-likelihood"
        return Sheet((Table(headings, [row]),))


class Weighted(Listed):
    """Independent draws of the counts, shape `(draws, k)`, with weights."""

    def __init__(
        self, counts: Integers, log_weights: Floats, prior: Floats, counted: Listed | None = None
    ) -> None:
        super().__init__(counts, log_weights, prior, counted)
        ess = float(1 / (self.weights**2).sum())
        self.diagnostics = WeightDiagnostics(np.full(prior.size, ess), len(counts))


class Proposals:
    """The prior, the prior divided by `SPARSER`, and about each centre laws `exp(-H(x, centre) /
    w)` whose widths double up to the largest distance.

    They begin with half of what one record can change at the centre or, if that is less, with the
    `width` of the likelihood there: where a count is small one record changes much. Narrower than
    what any record changes is of no use.
    """

    def __init__(self, centres: Integers, prior: Floats, width: float) -> None:
        self.prior, self._priors, self._centres = prior, (prior, prior / SPARSER), centres
        self._size = int(centres[0].sum())
        width = max(width, smallest_local_sensitivity(self._size, prior) / 4)
        narrowest = [min(local_sensitivity(centre, prior) / 2, width) for centre in centres]
        widths_of_centres = [
            least * 2.0 ** np.arange(math.ceil(-math.log2(least))) for least in narrowest
        ]
        self._widths = np.concatenate(widths_of_centres)
        #: For each width, the place of its centre.
        self._about = np.repeat(
            np.arange(len(centres)), [widths.size for widths in widths_of_centres]
        )
        self._samplers = [
            HellingerSampler(centres[row], prior, width)
            for row, width in zip(self._about, self._widths.tolist(), strict=True)
        ]
        self._log_normalisers = np.array(
            [sampler.log_normaliser(_PROPOSALS) for sampler in self._samplers]
        )

    def __len__(self) -> int:
        return 2 + len(self._samplers)

    def draw(self, numbers: Integers, rng: Generator) -> Integers:
        """So many draws from each law, shape `(sum of numbers, k)`."""
        wanted = iter(numbers.tolist())
        batches = [dirichlet_multinomial(self._size, a, next(wanted), rng) for a in self._priors]
        batches += [sampler.draw(next(wanted)) for sampler in self._samplers]
        return np.concatenate(batches)

    def log_densities(self, counts: Integers) -> Floats:
        """Log-probability of every row of `counts` under every law, shape `(m, len(self))`."""
        of_priors = [log_dirichlet_multinomial(counts, prior) for prior in self._priors]
        away = [hellinger_distance(self.prior + counts, self.prior + c) for c in self._centres]
        scaled = np.column_stack(away)[:, self._about] / self._widths
        return np.column_stack([*of_priors, -scaled - self._log_normalisers])


def by_importance(
    log_likelihood: Callable[[Integers], Floats],
    proposals: Proposals,
    effective: int,
    rng: Generator,
) -> Weighted:
    """Draws until they have the wanted effective sample size, at most `_MOST_DRAWS`;
    `log_likelihood` takes rows of counts, shape `(m, k)`.
    """
    numbers_drawn = np.zeros(len(proposals), dtype=np.int64)
    shares, number = np.full(len(proposals), 1 / len(proposals)), _FIRST_DRAWS
    batches = []
    while True:
        numbers = np.ceil(number * shares).astype(np.int64)
        numbers_drawn += numbers
        new = proposals.draw(numbers, rng)
        batches.append((new, log_likelihood(new), proposals.log_densities(new)))
        counts, log_likelihoods, log_densities = map(np.concatenate, zip(*batches, strict=True))
        # All draws together are from the mixture of the laws in the numbers drawn.
        log_mixture = special.logsumexp(log_densities, axis=1, b=numbers_drawn)
        log_weights = log_likelihoods + log_densities[:, 0] - log_mixture
        result = Weighted(counts, log_weights, proposals.prior)
        ess = result.independent
        if ess >= effective or len(counts) >= _MOST_DRAWS:
            return result
        shares_found = result.weights @ (
            numbers_drawn * np.exp(log_densities - log_mixture[:, None])
        )
        shares = (1 - _EVEN) * shares_found + _EVEN / len(proposals)
        lacking = max(1.2 * (effective / ess - 1) * len(counts), _FIRST_DRAWS)
        number = math.ceil(min(lacking, len(counts), _MOST_DRAWS - len(counts)))


def copies(shares: Floats, number: int, rng: Generator) -> Integers:
    """So many places, in order, each about as often as its share says."""
    upto = np.cumsum(shares)
    levels = (np.arange(number) + rng.random()) / number * upto[-1]
    return np.minimum(np.searchsorted(upto, levels), len(shares) - 1)
