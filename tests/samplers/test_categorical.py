"""How many candidates a categorical sampler takes."""

import numpy as np
import pytest

from opendp_bayes.samplers.exponential import categorical
from opendp_bayes.samplers.exponential.categorical import ExactCategorical


def test_the_sum_of_all_weights_fits_into_64_bits() -> None:
    assert categorical.LARGEST_SUPPORT << categorical._WEIGHT_BITS < 2**63


def test_more_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categorical, "LARGEST_SUPPORT", 4)
    assert ExactCategorical(np.zeros(4)).draw() in range(4)
    with pytest.raises(ValueError, match=r"has 5 entries; .*at most 4"):
        ExactCategorical(np.zeros(5))


@pytest.mark.parametrize("wrong", [-1e-300, -0.5, 2.0**62, 2.0**62.5, np.inf, np.nan])
def test_exponents_of_which_nothing_is_known_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"every entry .*at least 0"):
        ExactCategorical(np.array([0.0, wrong]))


def test_weights_do_not_exceed_the_room_that_a_draw_leaves_for_them() -> None:
    """Also where an exponent is so large that nothing is left of its digits."""
    exponents = 2.0 ** np.random.default_rng(0).uniform(45, 61.99, 400)
    sampler = ExactCategorical(np.append(exponents, 0.0))
    weights = np.diff(sampler._cumulative, prepend=0)
    assert np.all(weights > 0)
    assert np.all(weights <= 1 << categorical._WEIGHT_BITS - 1)


def test_the_error_of_a_weight_is_stated_as_what_it_is() -> None:
    """It is lost privacy: of the size of the roundings that it covers."""
    for largest in (0.0, 1.0, 1e6):
        error = categorical.weight_error(largest)
        assert 2.0**-41 + 2.0**-51 * (1 + largest) <= error <= 2.0**-39 + 2.0**-49 * largest
