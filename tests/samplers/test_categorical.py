"""How many candidates a categorical sampler takes."""

import numpy as np
import pytest

from opendp_bayes.samplers import categorical
from opendp_bayes.samplers.categorical import ExactCategorical


def test_the_sum_of_all_weights_fits_into_64_bits() -> None:
    assert categorical.LARGEST_SUPPORT << categorical._WEIGHT_BITS < 2**63


def test_more_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categorical, "LARGEST_SUPPORT", 4)
    assert ExactCategorical(np.zeros(4)).draw() in range(4)
    with pytest.raises(ValueError, match="has 5 entries; must have at most 4"):
        ExactCategorical(np.zeros(5))
