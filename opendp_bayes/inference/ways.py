"""Ways to the posterior of the counts that were drawn from: what the mechanism draws decides once
which engine finds it, and everything else is asked of that way. Engines are imported when they are
needed, because a query asks, before it releases, only whether there is a way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.inference.likelihood.drawn_counts import (
    DrawnCounts,
    check_concentration,
    check_envelope,
)
from opendp_bayes.inference.likelihood.of_counts import (
    LARGEST_COMPARED,
    LARGEST_LIST,
    Likelihood,
    Tabulated,
    Weighing,
    likelihood_of,
    noise_of,
)
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import ReleasedData

if TYPE_CHECKING:
    from opendp_bayes.inference.engines import Engine, Generator


@dataclass(frozen=True, eq=False)
class Way:
    """Way to the posterior of the counts of the same records, drawn once or several times; nothing
    is computed before it is asked for.

    Noise on the counts is convolved. Otherwise every data set has a weight, of which two categories
    have one for each count of the first, and more have so few that they are listed, or draws; no
    records are a single data set.

    Attributes
    ----------
    likelihoods : Sequence[Likelihood]
        Of each draw.
    prior : ndarray
        Concentration of the prior, shape `(k,)`.
    size : int or None
        The number of records where that is public.
    """

    likelihoods: Sequence[Likelihood]
    prior: Floats
    size: int | None

    def check(self, mechanism: str, foreseen: bool) -> None:
        """Raise `ValueError` where a release of a mechanism has no posterior; where it may have
        none, if it is only `foreseen`.
        """
        for noisy in self._looks:
            check_envelope(noisy, self.prior, self.size)
            if foreseen and self.size is None:
                check_concentration(math.fsum(self.prior), noisy.noise.scale, self.prior.size)
        if self._looks:
            return
        if self.size is None:
            raise ValueError(
                f"mechanism={mechanism!r}: with a private number of records, the posterior of a"
                " release is known only for noise on the counts."
            )
        if self._states_no_law and not self._is_listed:
            raise ValueError(
                f"mechanism={mechanism!r}: states no law, so that a posterior of {self.size}"
                f" records and {self.prior.size} categories would need a list of all data sets, and"
                f" at most {LARGEST_LIST} are listed. Let it state its law, or ask for fewer"
                " categories (docs: Extending, The law)."
            )
        if foreseen:  # whether it can be enumerated, tried on a data set of public facts
            for likelihood in self.likelihoods:
                if isinstance(likelihood, Tabulated):
                    _check_enumerated(likelihood, mechanism)

    def exact(self, records_prior: Any = None) -> "Engine | None":
        """The engine that finds it without random draws; None where that is out of reach."""
        prior, size, k = self.prior, self.size, self.prior.size
        if self._looks:
            from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise

            return CountsGivenNoise.of(self._looks, prior, size=size, records_prior=records_prior)
        from opendp_bayes.inference.engines import Listed, TwoCategories
        from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising

        if size == 0:
            return Listed(np.zeros((1, k), dtype=np.int64), np.zeros(1), prior)
        if size is None or not self._is_listed:
            return None
        if k == 2:
            pairs = [likelihood.drawn.tolist() for likelihood in self.likelihoods]
            around = {end for first, second in pairs for end in (first, size - second)}
            return TwoCategories(self._log_likelihood, around, prior, size)
        counts = candidates(size, k)
        log_prior = log_rising(counts, prior).sum(axis=1)
        return Listed(counts, log_prior + self._log_likelihood(counts), prior)

    def engine(self, records_prior: Any, effective: int, rng: "Generator") -> "Engine":
        """The engine of one release, with so many effective draws where it needs draws."""
        engine = self.exact(records_prior)
        if engine is not None:
            return engine
        from opendp_bayes.inference.sampling.interpolated_normaliser import by_interpolation

        likelihood: Any = self.likelihoods[0]
        return by_interpolation(likelihood, self.prior, effective, rng)

    @property
    def _looks(self) -> list[DrawnCounts]:
        """The draws where all are noise on the counts of any records; otherwise none."""
        looks = [one for one in self.likelihoods if isinstance(one, DrawnCounts)]
        return looks if self.size != 0 and len(looks) == len(self.likelihoods) else []

    @property
    def _states_no_law(self) -> bool:
        return any(isinstance(likelihood, Tabulated) for likelihood in self.likelihoods)

    @property
    def _is_listed(self) -> bool:
        """True for as few data sets as are listed, or two categories, whose curve is."""
        compared = any(isinstance(likelihood, Weighing) for likelihood in self.likelihoods)
        k, most = self.prior.size, LARGEST_COMPARED if compared else LARGEST_LIST
        return self.size is not None and (k == 2 or number_of_candidates(self.size, k) <= most)

    def _log_likelihood(self, counts: Integers) -> Floats:
        return np.asarray(sum(likelihood.log_likelihood(counts) for likelihood in self.likelihoods))


def _check_enumerated(likelihood: Tabulated, mechanism: str) -> None:
    """Raise `ValueError` where a mechanism cannot tell how likely a release is."""
    try:
        likelihood.log_likelihood(likelihood.drawn[None, :])
    except ValueError as error:
        raise ValueError(
            f"mechanism={mechanism!r}: {str(error).rstrip('.')}, so that its release would have no"
            " posterior. For counts without one, call its constructor."
        ) from None


def way_to(release: ReleasedData, foreseen: bool = False) -> Way:
    """The way to the posterior of a release under a prior of its own.

    Raises
    ------
    ValueError
        Where there is none; of one that is only `foreseen`, where there may be none, whatever is
        drawn.
    """
    size, whole = release.size, release.whole
    if release.k < 2:
        raise ValueError(
            f"categories={list(release.categories)!r}: one that stands for all has no share to"
            " estimate; for the number of records combine it with the counts of its parts, by"
            " combine_tables({...})."
        )
    if whole is None:
        likelihood = likelihood_of(release.setting, release.noisy_counts)
    else:
        # The noise of a group's counts is that of its table, whose other counts say nothing more
        # of them where its number of records is public.
        size = release.group_size
        likelihood = noise_of(f"group_size={size}", whole).chosen(list(release.inside))
    way = Way([likelihood], np.array(release.prior), size)
    way.check(release.mechanism.name, foreseen)
    return way


def check_posterior(release: ReleasedData) -> None:
    """Raise `ValueError`/`TypeError` where `noise_aware_posterior` refuses a release before it
    computes anything: whatever was drawn, the mechanism, its scale, the prior, the number of
    records or that of the categories are beyond it.
    """
    table = release.source or release
    if table.learned_prior:
        from opendp_bayes.inference.answers.learned_posterior import check_learned

        check_learned(table)
    else:
        way_to(table, foreseen=True)
