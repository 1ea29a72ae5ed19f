"""Draws of consistent tables: chains from tables drawn down the tree, run until every variable's
margin is known well enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.inference.sampling.markov_chain import Diagnostics, run_until
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.line_moves import all_moves
from opendp_bayes.surveys.survey_tables.tables import Model, State, split

_CHAINS = 32
#: Sweeps of the first run, how often a run is doubled, and the most states that each chain keeps.
_FIRST_RUN, _DOUBLINGS, _MOST_KEPT = 64, 5, 256
#: Largest R-hat of chains that have met: so much the halves of 32 chains show that are worth 400
#: independent draws together.
MET = 1.08
#: Of tables that have settled: the largest R-hat and the fewest effective draws of a count.
SETTLED_R_HAT, SETTLED_EFFECTIVE = 1.1, 100


@dataclass(frozen=True, eq=False)
class ConsistentDraws:
    """Clique tables of every chain and draw, shape `(chains, draws, cells)` for each clique, and
    the concentration of their prior, shape `(chains, draws)`.
    """

    model: Model
    cliques: dict[Scope, Integers]
    concentration: Floats
    sweeps: int

    @property
    def shape(self) -> tuple[int, int]:
        """Chains, and draws of each."""
        chains, draws = self.concentration.shape
        return chains, draws

    def rows(self, clique: Scope) -> Integers:
        """Tables of one clique, those of all chains one below the other."""
        counts = self.cliques[clique]
        return counts.reshape(-1, counts.shape[-1])

    def counts(self, scope: Scope) -> Integers | None:
        """Counts of some variables within one clique, shape `(chains, draws, cells)`, in the order
        given; None where no clique holds them.
        """
        clique = self.model.tree.holding(scope)
        if clique is None:
            return None
        return np.asarray(self.model.margin(self.cliques[clique], clique, scope))

    @cached_property
    def size(self) -> Integers:
        """Number of records, shape `(chains, draws)`."""
        return np.asarray(self.cliques[self.model.tree.cliques[0]].sum(axis=-1))

    @cached_property
    def _settled(self) -> dict[Scope, tuple[float, float]]:
        """Results of `settled`, which take seconds."""
        return {}

    def settled(self, scope: Scope) -> tuple[float, float]:
        """The largest R-hat and the fewest effective draws of the counts in a table."""
        if scope not in self._settled:
            counts: Any = self.counts(scope)  # measured, so in a clique
            diagnostics = Diagnostics.of(counts.astype(np.float64))
            self._settled[scope] = float(diagnostics.r_hat.max()), float(diagnostics.ess.min())
        return self._settled[scope]

    def have_met(self, scopes: Sequence[Scope], r_hat: float, effective: float) -> bool:
        """True if the counts in each of some tables have at most this R-hat and so many draws."""
        diagnostics = map(self.settled, scopes)
        return all(r <= r_hat and number >= effective for r, number in diagnostics)


def draw(model: Model, effective: int, rng: np.random.Generator) -> ConsistentDraws:
    """Run chains until they have met, with `effective` draws of the number of records and of each
    margin of one variable, and the measured tables have settled. Double the run at most so often.
    """
    margins: list[Scope] = [(), *((v,) for v in range(len(model.levels)))]
    measured = [table.scope for table in model.tables.values() if table.looks]
    tables = model.all_tables(starting_tables(model, _CHAINS, rng))
    middle = len(model.concentrations) // 2
    state = State(tables, np.full(_CHAINS, middle))
    moves = all_moves(model)

    def sweep(times: int) -> tuple[Integers, Integers]:
        for _ in range(times):
            for move in moves:
                for _ in range(move.calls):
                    move(state, rng)
        small = np.int32 if state.flat.max() < 2**31 else np.int64
        return state.flat.astype(small), state.chosen

    def look(states: list[tuple[Integers, Integers]], sweeps: int) -> tuple[ConsistentDraws, bool]:
        draws = _after_a_quarter(model, states, sweeps)
        settled = draws.have_met(margins, MET, effective)
        return draws, settled and draws.have_met(measured, SETTLED_R_HAT, SETTLED_EFFECTIVE)

    return run_until(sweep, look, _FIRST_RUN, _DOUBLINGS, _MOST_KEPT)


def _after_a_quarter(
    model: Model, states: list[tuple[Integers, Integers]], sweeps: int
) -> ConsistentDraws:
    tables_kept, chosen = zip(*states[len(states) // 4 :], strict=True)
    tables = split(
        np.stack(tables_kept), {scope: table.cells for scope, table in model.tables.items()}
    )
    cliques = {
        clique: np.ascontiguousarray(tables[clique].swapaxes(0, 1)) for clique in model.tree.cliques
    }
    return ConsistentDraws(model, cliques, model.concentrations[np.stack(chosen, axis=1)], sweeps)


#: What a cell has at least, and how often the margins of a clique are fitted in turn.
_LEAST, _ROUNDS = 0.3, 10


def starting_tables(model: Model, chains: int, rng: np.random.Generator) -> dict[Scope, Integers]:
    """Draw consistent clique tables, shape `(chains, cells)` each."""
    (root, _), *others = model.tree.downwards()
    sizes = np.full(chains, model.size) if model.size is not None else _sizes(model, chains, rng)
    guess = _guess(model, root)
    tables = {root: rng.multinomial(sizes, guess / guess.sum())}
    for child, separator in others:
        shared = model.margin_of(tables, separator)
        places, guess = model.places(child, separator), _guess(model, child)
        counts = np.empty((chains, guess.size), dtype=np.int64)
        for cell in range(shared.shape[1]):
            inside = np.flatnonzero(places == cell)
            shares = guess[inside] / guess[inside].sum()
            counts[:, inside] = rng.multinomial(shared[:, cell], shares)
        tables[child] = counts
    return tables


def _sizes(model: Model, chains: int, rng: np.random.Generator) -> Integers:
    """Numbers of records about the sum that was drawn with the least noise."""
    look = min(
        model.looks, key=lambda noisy_table: noisy_table.std**2 * noisy_table.noisy.drawn.size
    )
    noisy_counts = look.noisy.drawn
    around = rng.normal(noisy_counts.sum(), look.std * noisy_counts.size**0.5, chains)
    return np.maximum(np.rint(around), 0).astype(np.int64)


def _guess(model: Model, clique: Scope) -> Floats:
    """A positive table that has about the measured margins, largest tables last."""
    looks = [look for look in model.looks if set(look.scope) <= set(clique)]
    guess = np.ones(model.tables[clique].cells)
    for _ in range(_ROUNDS):
        for look in sorted(looks, key=lambda look: len(look.scope)):
            places = model.places(clique, look.scope)
            guess *= (np.maximum(look.noisy.drawn, _LEAST) / np.bincount(places, guess))[places]
    return guess
