"""Draws of a tenth of the length and short searches, for tests that do not measure them."""

import math

import pytest

from opendp_bayes.inference.answers import learned_posterior
from opendp_bayes.inference.pooling import pooled_draws
from opendp_bayes.inference.sampling import interpolated_normaliser, markov_chain
from opendp_bayes.surveys.levels import concentrations
from opendp_bayes.surveys.survey_tables import consistent_draws, survey_posterior


def interpolate_less(patch: pytest.MonkeyPatch) -> None:
    """Estimate normalisers at a quarter of the data sets, from a quarter of the proposals."""
    for name, value in {"_NODES": 30, "_SPARSE_NODES": 10, "_UNIFORM_NODES": 10}.items():
        patch.setattr(interpolated_normaliser, name, value)
    for name, value in {"_PROPOSALS": 1024, "_ADDED": 10, "_ROUNDS": 0, "_PILOT": 100}.items():
        patch.setattr(interpolated_normaliser, name, value)


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Take a tenth of the sweeps and draws for enough; learn concentrations in two steps."""
    interpolate_less(patch)
    for name, value in {"_MOST_STEPS": 2, "_MOST_BOXES": 1}.items():
        patch.setattr(concentrations, name, value)
    for name, value in {"_STARTS": 1, "_BEFORE": 10, "_MOVES": 20, "_DOUBLINGS": 0}.items():
        patch.setattr(learned_posterior, name, value)
    for name, value in {"_ROUND": 40, "_INTERVALS": 6, "_FEWEST": 10}.items():
        patch.setattr(pooled_draws, name, value)
    for name, value in {"_FIRST_RUN": 8, "_DOUBLINGS": 3, "MET": math.inf}.items():
        patch.setattr(consistent_draws, name, value)
    for module in (learned_posterior, markov_chain):
        patch.setattr(module, "LARGEST_R_HAT", math.inf)
        patch.setattr(module, "FEWEST_EFFECTIVE", 1)
    for module in (consistent_draws, survey_posterior):
        patch.setattr(module, "SETTLED_R_HAT", math.inf)
        patch.setattr(module, "SETTLED_EFFECTIVE", 1)
