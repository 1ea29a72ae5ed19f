"""Starting points of the chains: tables drawn down the tree from measured ones, made positive."""

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.tables import Model

#: What a cell has at least, and how often the margins of a clique are fitted in turn.
_LEAST, _ROUNDS = 0.3, 10


def starting_tables(model: Model, chains: int, rng: np.random.Generator) -> dict[Scope, Integers]:
    """Draw consistent clique tables, shape `(chains, cells)` each."""
    (root, _), *others = model.tree.downwards()
    sizes = np.full(chains, model.size) if model.size is not None else _sizes(model, chains, rng)
    guess = _guess(model, root)
    found = {root: rng.multinomial(sizes, guess / guess.sum())}
    for child, separator in others:
        shared = model.margin_of(found, separator)
        places, guess = model.places(child, separator), _guess(model, child)
        counts = np.empty((chains, guess.size), dtype=np.int64)
        for cell in range(shared.shape[1]):
            inside = np.flatnonzero(places == cell)
            shares = guess[inside] / guess[inside].sum()
            counts[:, inside] = rng.multinomial(shared[:, cell], shares)
        found[child] = counts
    return found


def _sizes(model: Model, chains: int, rng: np.random.Generator) -> Integers:
    """Numbers of records about the sum that was drawn with the least noise."""
    look = min(model.looks, key=lambda one: one.std**2 * one.noisy.drawn.size)
    drawn = look.noisy.drawn
    around = rng.normal(drawn.sum(), look.std * drawn.size**0.5, chains)
    return np.maximum(np.rint(around), 0).astype(np.int64)


def _guess(model: Model, clique: Scope) -> Floats:
    """A positive table that has about the measured margins, largest tables last."""
    shape = tuple(model.levels[v] for v in clique)
    found = np.ones(shape)
    inside = [look for look in model.looks if set(look.scope) <= set(clique)]
    for _ in range(_ROUNDS):
        for look in sorted(inside, key=lambda one: len(one.scope)):
            wanted = np.maximum(look.noisy.drawn, _LEAST)
            wanted = wanted.reshape([model.levels[v] for v in look.scope])
            others = tuple(at for at, v in enumerate(clique) if v not in look.scope)
            found = found * np.expand_dims(wanted / found.sum(axis=others), others)
    return found.reshape(-1)
