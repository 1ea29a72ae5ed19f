"""The true counts and the probabilities under a learned prior, from draws of Markov chains.

Given a draw the intensities of cells are independent Gamma variates, and the probabilities are
these divided by their sum. Sums of some, and some among themselves, are so too, nearly: a sum of
Gamma variates, each a tenth wide at the most, stands for a Gamma variate of its mean and variance.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from opendp_bayes.inference.engines.engine import Listed, mixtures_of_draws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.learned.cells import Cells, Draw
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.inference.sampling.importance import copies
from opendp_bayes.inference.sampling.kept_draws import Arrays
from opendp_bayes.inference.sampling.markov_chain import (
    FEWEST_EFFECTIVE,
    LARGEST_R_HAT,
    Chains,
    Diagnostics,
    run_until,
)
from opendp_bayes.mathematics.validation import Floats

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
#: What names of arrays begin with that describe the prior.
_LEARNED = "learned "


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
        learned: dict[str, Floats],
    ) -> None:
        super().__init__(intensities, counted=counted)
        self._means, self._variances, self.learned = means, variances, learned

    @classmethod
    def of(
        cls, drawn: Draw, learned: dict[str, Floats], rng: np.random.Generator
    ) -> "LearnedCounts":
        """Draw intensities for what the chains were at."""
        counts, mean, scale = drawn.counts, drawn.mean, drawn.scale
        intensities, means, variances = (
            each.astype(np.float32)
            for each in (rng.standard_gamma(mean / scale) * scale, mean, mean * scale)
        )
        counted = Listed(counts.reshape(-1, counts.shape[-1]))
        return cls(intensities, means, variances, counted, learned)

    def arrays(self) -> Arrays:
        """Hand over arrays, of which `of_arrays` makes the draws again."""
        own = {"intensities": self.chains, "means": self._means, "variances": self._variances}
        learned = {f"{_LEARNED}{name}": values for name, values in self.learned.items()}
        return {**own, "counted": self._counted.rows, **learned}

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "LearnedCounts":
        """The draws again."""
        learned = {
            name.removeprefix(_LEARNED): of
            for name, of in arrays.items()
            if name.startswith(_LEARNED)
        }
        own = {name: arrays[name] for name in ("intensities", "means", "variances")}
        return cls(**own, counted=Listed(arrays["counted"]), learned=learned)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the expected probabilities."""
        return Diagnostics.of(_shares(self._means))

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """Mixtures of Beta laws, one for every few draws that agree most."""
        k = len(self.prior)
        block = max(1, _BLOCK // len(self.rows))
        parts = [self._mixtures(slice(at, at + block)) for at in range(0, k, block)]
        return BetaMixtures.joined(parts)

    def _mixtures(self, some: slice) -> BetaMixtures:
        """The mixtures of some categories."""
        means, variances = self._means[..., some], self._variances[..., some]
        rest = self._means.sum(axis=-1, keepdims=True, dtype=np.float64) - means
        others = self._variances.sum(axis=-1, keepdims=True, dtype=np.float64) - variances
        means, rest = np.maximum(means, _LEAST), np.maximum(rest, _LEAST)
        share, left = means / (means + rest), rest / (means + rest)
        relative = variances / means**2 + np.maximum(others, 0) / rest**2
        total = 1 / (share * left * relative) - 1
        a, b = ((part * total).reshape(-1, means.shape[-1]).T for part in (share, left))
        return mixtures_of_draws(a, b)

    def _of(self, part: Callable[[Any], Any]) -> "LearnedCounts":
        means, variances = part(self._means), part(self._variances)
        counted = self._counted._of(part)
        return LearnedCounts(part(self.chains), means, variances, counted, self.learned)


def learned_counts(
    table: NoisedTable, ordered: Sequence[str], rng: np.random.Generator
) -> LearnedCounts:
    """The posterior of the counts of a table, by chains that are made longer until they meet.

    Its products of matrices are too small to be shared between threads, whose waiting for each
    other takes twice as long on a quiet machine, and twenty times on a busy one.
    """
    cells = Cells(table, ordered)
    with threadpool_limits(1, "blas"):
        drawn, met = _run(cells, rng)
    names = [" x ".join(each.variables) or "the order" for each in cells.margins]
    learned = {"empty cells": drawn.empty, "spread of cells": drawn.spread}
    learned |= {f"effects of {name}": drawn.tau[..., at] for at, name in enumerate(names)}
    counts = LearnedCounts.of(drawn, {name: each.ravel() for name, each in learned.items()}, rng)
    if met is not None:
        counts.diagnostics = met  # of 10 000 cells they take seconds
    return counts


def _run(cells: Cells, rng: np.random.Generator) -> tuple[Draw, Diagnostics | None]:
    """Draws of chains that are made longer until they meet, and their diagnostics if they do.

    While they forget where they began, counts are tilted to a public sum, each time half as far as
    is still wanted.
    """
    for _ in range(_STARTS if cells.margins or cells.size is not None else 0):
        chains = cells.chains(_CHAINS, rng)
        chains.move(_BEFORE, adapt=True)
        cells.begin_at(chains, rng)
    chains = cells.chains(_CHAINS, rng)
    chains.move(_BEFORE, adapt=True)

    def draw(moves: int) -> Draw:
        chains.move(moves)
        return cells.drawn(chains, rng)[0]

    def look(drawn: list[Draw], _: int) -> tuple[tuple[Draw, Diagnostics | None], bool]:
        found = _by_weight(drawn, rng)
        met = _met(found.mean)
        return (found, met), met is not None

    most = max(_FEWEST_KEPT, _MOST_KEPT // (_CHAINS * cells.kind.size))
    return run_until(draw, look, _MOVES, _DOUBLINGS, most, _APART)


def _by_weight(drawn: list[Draw], rng: np.random.Generator) -> Draw:
    """The draws of each chain in their order, each about as often as it weighs; arrays of shape
    `(chains, draws, ...)`.

    Copies stand next to each other, so that effective draws are told as those of chains are.
    """
    weights = special.softmax([draw.log_weight for draw in drawn], axis=0)
    places = np.stack([copies(of_chain, len(drawn), rng) for of_chain in weights.T])
    chain = np.arange(len(places))[:, None]
    every = ([getattr(draw, field.name) for draw in drawn] for field in fields(Draw))
    return Draw(*(np.stack(each, axis=1)[chain, places] for each in every))


def _met(means: Floats) -> Diagnostics | None:
    """Diagnostics of the expected probabilities if chains agree, with enough draws, on the expected
    number of records, on how even the probabilities are, and on each of these.
    """
    even = (_shares(means) ** 2).sum(axis=-1, keepdims=True)
    shares = _shares(means.astype(np.float32))
    first = [shares[..., :_FIRST]] if shares.shape[-1] > _FIRST else []
    for values in (means.sum(axis=-1, keepdims=True), even, *first, shares):
        found = Diagnostics.of(values)
        if found.r_hat.max() > LARGEST_R_HAT or found.ess.min() < FEWEST_EFFECTIVE:
            return None
    return found


def _shares(means: Any) -> Any:
    """Divide the expected records of every category by their sum, for each draw."""
    return means / means.sum(axis=-1, keepdims=True)
