"""Random interactions of the pairs of variables that no table has, with a strength that is
learned from the pairs that were measured.
"""

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.surveys.survey_tables.effects_of_tables import (
    BETWEEN,
    CENTRE,
    WITHIN,
    PairEffects,
    measured_effects,
)
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.tables import Model

Interactions = dict[Scope, Floats]

#: The largest strength that is drawn.
_STRONGEST = 3.0


def learned_centre(effects: Mapping[Scope, PairEffects]) -> tuple[float, float]:
    """Learn the centre of the normal law of the logarithms of pairs' strengths from those of
    measured pairs, which may be none: its mean, and its standard deviation.
    """
    above = [math.log(one.strength) - CENTRE for one in effects.values()]
    variance = 1 / (BETWEEN**-2 + len(above) * WITHIN**-2)
    return CENTRE + variance * WITHIN**-2 * sum(above), variance**0.5


def drawn_interactions(
    model: Model, size: float, draws: int, rng: np.random.Generator
) -> Interactions:
    """Draw an interaction of every pair of variables that no table has, shape `(draws, levels,
    levels)`; the second half are the first with their signs turned, so that means vary less.

    It is `t (√½ c f gᵀ + √½ Z)`, with the strength t, normal c and Z, and the directions f and g
    in which the levels of the two variables differ most in the pairs that were measured.
    """
    effects = measured_effects(model.levels, tuple(model.looks), size)
    (mean, std), half = learned_centre(effects), draws // 2
    directions = _directions(model.levels, effects, half, rng)
    centre = mean + std * rng.standard_normal(half)
    found: Interactions = {}
    for pair in open_pairs(model):
        one, other = (directions[v] for v in pair)
        logs = centre + WITHIN * rng.standard_normal(half)
        strength = np.minimum(np.exp(logs), _STRONGEST)[:, None, None]
        along = rng.standard_normal((half, 1, 1)) * one[:, :, None] * other[:, None, :]
        cells = rng.standard_normal((half, one.shape[1], other.shape[1]))
        own = strength * (along + cells) / 2**0.5
        found[pair] = np.concatenate([own, -own])
    return found


def open_pairs(model: Model) -> list[Scope]:
    """The pairs of variables, of two levels or more, that no table has."""
    wide = [v for v, levels in enumerate(model.levels) if levels > 1]
    return [pair for pair in combinations(wide, 2) if model.tree.holding(pair) is None]


def _directions(
    levels: tuple[int, ...],
    effects: Mapping[Scope, PairEffects],
    draws: int,
    rng: np.random.Generator,
) -> list[Floats]:
    """For each variable the direction of its levels in which its measured effects are largest, of
    mean 0 and mean square 1, shape `(draws, levels)`; any direction where it has none.
    """
    drawn = {pair: one.draw(draws, rng) for pair, one in effects.items()}
    found = []
    for v, number in enumerate(levels):
        blocks = [
            of if pair[0] == v else of.swapaxes(1, 2) for pair, of in drawn.items() if v in pair
        ]
        if not blocks:
            blocks = [rng.standard_normal((draws, number, 1))]
        first = np.linalg.svd(np.concatenate(blocks, axis=2), full_matrices=False)[0][:, :, 0]
        centred = first - first.mean(axis=1, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=1, keepdims=True))
        found.append(centred / np.where(size > 0, size, 1.0))
    return found
