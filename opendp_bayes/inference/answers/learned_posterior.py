"""The posterior under a prior that was learned from the release itself: draws of the true counts
and of the probabilities by Markov chains, and answers from them.

Given a draw the intensities of cells are independent Gamma variates, and the probabilities are
these divided by their sum. Sums of some, and some among themselves, are so too, nearly: a sum of
Gamma variates, each a tenth wide at the most, stands for a Gamma variate of its mean and variance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.engines import Listed, mixtures_of_draws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.learned.cells import Cells, Draw
from opendp_bayes.inference.learned.intensity_law import HamiltonianChains
from opendp_bayes.inference.learned.noised_table import NoisedTable, table_of
from opendp_bayes.inference.sampling.importance import copies
from opendp_bayes.inference.sampling.markov_chain import (
    FEWEST_EFFECTIVE,
    LARGEST_R_HAT,
    Chains,
    Diagnostics,
    run_until,
    warn_of_draws,
)
from opendp_bayes.mathematics.validation import Floats, as_generator, as_names
from opendp_bayes.release_format.data import ReleasedData

#: Chains, moves that are dropped, those of which draws are kept at first, how often these may be
#: doubled, and after how many a draw is kept.
_CHAINS, _BEFORE, _MOVES, _DOUBLINGS, _APART = 4, 30, 200, 3, 2
#: The most numbers that are kept of all draws, and the fewest draws of a chain.
_MOST_KEPT, _FEWEST_KEPT = 8_000_000, 100
#: How often chains begin anew where others came to, and counts are tilted towards a public sum.
_STARTS = 4
#: Entries of one block of draws times categories, and the least sum of intensities of any.
_BLOCK, _LEAST = 1 << 21, 1e-9
#: So many cells are looked at before all others are, which take seconds.
_FIRST = 200


class LearnedCounts(Chains):
    """Draws of intensities, shape `(chains, draws, k)`, which stand for the counts and the prior of
    other posteriors; `counted` has the true counts alone.

    Parameters
    ----------
    intensities : Any
        The draws.
    means, variances : Any
        Of the Gamma laws that they are drawn from, likewise shaped.
    counted : Listed
        The true counts of the same draws.
    learned : dict[str, ndarray]
        Draws of what describes the prior, shape `(chains * draws,)`, by what it is.
    """

    draws_shares = True
    _counted: Listed

    def __init__(
        self,
        intensities: Any,
        means: Any,
        variances: Any,
        counted: Listed,
        learned: Mapping[str, Floats],
    ) -> None:
        super().__init__(intensities, counted=counted)
        self._means, self._variances, self.learned = means, variances, learned

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the expected probabilities."""
        return Diagnostics.of(_shares(self._means))

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """Mixtures of Beta laws, one for every few draws that agree most."""
        k = len(self.prior)
        block = max(1, _BLOCK // len(self.rows))
        parts = [self._mixtures(slice(start, start + block)) for start in range(0, k, block)]
        return BetaMixtures.joined(parts)

    def _mixtures(self, some: slice) -> BetaMixtures:
        """The mixtures of some categories."""
        means, variances = self._means[..., some], self._variances[..., some]
        other_means = self._means.sum(axis=-1, keepdims=True, dtype=np.float64) - means
        other_variances = self._variances.sum(axis=-1, keepdims=True, dtype=np.float64) - variances
        means, other_means = np.maximum(means, _LEAST), np.maximum(other_means, _LEAST)
        share, left = means / (means + other_means), other_means / (means + other_means)
        relative = variances / means**2 + np.maximum(other_variances, 0) / other_means**2
        parameters = BetaMixtures.parameters(share, left, (share * left) ** 2 * relative)
        return mixtures_of_draws(*(each.reshape(-1, means.shape[-1]).T for each in parameters))

    def _of(self, select: Callable[[Any], Any]) -> "LearnedCounts":
        means, variances = select(self._means), select(self._variances)
        counted = self._counted._of(select)
        return LearnedCounts(select(self.chains), means, variances, counted, self.learned)


def learned_counts(
    table: NoisedTable, ordered: Sequence[str], rng: np.random.Generator
) -> LearnedCounts:
    """The posterior of the counts of a table, by chains that are made longer until they meet.

    Its products of matrices are too small to be shared between threads, whose waiting for each
    other takes twice as long on a quiet machine, and twenty times on a busy one.
    """
    cells = Cells(table, ordered)
    with threadpool_limits(1, "blas"):
        draw, met = _run(cells, rng)
    names = [" x ".join(margin.variables) or "the order" for margin in cells.margins]
    learned = {"empty cells": draw.empty, "spread of cells": draw.spread}
    learned |= {
        f"effects of {margin}": draw.tau[..., number] for number, margin in enumerate(names)
    }
    intensities, means, variances = (
        each.astype(np.float32)
        for each in (
            rng.standard_gamma(draw.mean / draw.scale) * draw.scale,
            draw.mean,
            draw.mean * draw.scale,
        )
    )
    counted = Listed(draw.counts.reshape(-1, draw.counts.shape[-1]))
    of_prior = {quantity: values.ravel() for quantity, values in learned.items()}
    counts = LearnedCounts(intensities, means, variances, counted, of_prior)
    if met is not None:
        counts.diagnostics = met  # of 10 000 cells they take seconds
    return counts


def _run(cells: Cells, rng: np.random.Generator) -> tuple[Draw, Diagnostics | None]:
    """Draws of chains that are made longer until they meet, and their diagnostics if they do.

    While they forget where they began, counts are tilted to a public sum, each time half as far as
    is still wanted.
    """
    for _ in range(_STARTS if cells.margins or cells.size is not None else 0):
        chains = HamiltonianChains(cells, _CHAINS, rng)
        chains.move(_BEFORE, adapt=True)
        cells.begin_at(chains, rng)
    chains = HamiltonianChains(cells, _CHAINS, rng)
    chains.move(_BEFORE, adapt=True)

    def draw(moves: int) -> Draw:
        chains.move(moves)
        return cells.drawn(chains, rng)[0]

    def look(draws: list[Draw], _: int) -> tuple[tuple[Draw, Diagnostics | None], bool]:
        weighed = _by_weight(draws, rng)
        met = _met(weighed.mean)
        return (weighed, met), met is not None

    most = max(_FEWEST_KEPT, _MOST_KEPT // (_CHAINS * cells.kind.size))
    return run_until(draw, look, _MOVES, _DOUBLINGS, most, _APART)


def _by_weight(draws: list[Draw], rng: np.random.Generator) -> Draw:
    """The draws of each chain in their order, each about as often as it weighs; arrays of shape
    `(chains, draws, ...)`.

    Copies stand next to each other, so that effective draws are told as those of chains are.
    """
    weights = special.softmax([draw.log_weight for draw in draws], axis=0)
    places = np.stack([copies(of_chain, len(draws), rng) for of_chain in weights.T])
    chain = np.arange(len(places))[:, None]
    arrays_of_fields = ([getattr(draw, field.name) for draw in draws] for field in fields(Draw))
    return Draw(*(np.stack(arrays, axis=1)[chain, places] for arrays in arrays_of_fields))


def _met(means: Floats) -> Diagnostics | None:
    """Diagnostics of the expected probabilities if chains agree, with enough draws, on the expected
    number of records, on how even the probabilities are, and on each of these.
    """
    even = (_shares(means) ** 2).sum(axis=-1, keepdims=True)
    shares = _shares(means.astype(np.float32))
    first = [shares[..., :_FIRST]] if shares.shape[-1] > _FIRST else []
    for values in (means.sum(axis=-1, keepdims=True), even, *first, shares):
        diagnostics = Diagnostics.of(values)
        if diagnostics.r_hat.max() > LARGEST_R_HAT or diagnostics.ess.min() < FEWEST_EFFECTIVE:
            return None
    return diagnostics


def _shares(means: Any) -> Any:
    """Divide the expected records of every category by their sum, for each draw."""
    return means / means.sum(axis=-1, keepdims=True)


def learned_from(
    release: ReleasedData, prior: Any, ordered: Any, records_prior: Any, random_state: int | None
) -> NoiseAwarePosterior:
    """The posterior under a learned prior, of arguments that are checked here."""
    if prior != "learned":
        raise ValueError(
            f"prior={prior!r}: must be a number, one for each category, or 'learned', as it must be"
            " where ordered is given."
        )
    if records_prior is not None:
        raise ValueError(
            f"records_prior={records_prior!r}: must be None with prior='learned', which learns the"
            " scale of the number of records with the rest."
        )
    if release.group_size is not None:
        raise ValueError(
            f"prior='learned': is for a whole table, not for one group of public size"
            f" {release.group_size}; use the release of all groups, or pooled()."
        )
    names = release.ordered if ordered is None else ordered
    return learned_posterior([release], release.size, names, random_state)


def learned_posterior(
    releases: Sequence[ReleasedData],
    size: int | None,
    ordered: Any = (),
    random_state: int | None = 0,
) -> NoiseAwarePosterior:
    """The posterior of a table of `size` records, drawn once or several times, under a learned
    prior.
    """
    table = table_of(releases, size)
    names = _ordered(table, releases[0].axes, ordered)
    draws = learned_counts(table, names, as_generator(random_state))
    warn_of_draws(draws.diagnostics)
    return NoiseAwarePosterior(releases, draws, smooth=tuple(names))


def check_learned(release: ReleasedData) -> None:
    """Raise `ValueError`/`TypeError` where no prior can be learned from a release, whatever is
    drawn.
    """
    _ordered(table_of([release], release.size), release.axes, release.ordered)


def _ordered(table: NoisedTable, axes: tuple[str, ...], names: Any) -> list[str]:
    """The names of ordered variables, as the table has them."""
    names = as_names(names, "ordered")
    if not axes:
        if len(names) > 1:
            raise ValueError(f"ordered={names!r}: must be one name, for there is one column.")
        return list(table.variables) if names else []
    if set(names) - set(axes):
        raise ValueError(
            f"ordered={names!r}: must be variables of the table: {', '.join(map(repr, axes))}."
        )
    return names
