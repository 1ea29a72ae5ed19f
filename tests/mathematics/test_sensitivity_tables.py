"""Sensitivities at all data sets against those of each."""

import numpy as np
import pytest

from opendp_bayes.mathematics.exponential.sensitivity_tables import (
    local_sensitivities,
    smooth_sensitivities,
)
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mechanisms import local_sensitivity, smooth_sensitivity


@pytest.mark.parametrize(("size", "prior"), [(30, (1.0, 0.2)), (6, (1.0, 1.0, 0.3))])
@pytest.mark.parametrize("smoothness", [{"gamma": 0.5}, {"beta": 0.05}])
def test_curves(size: int, prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    sets = candidates(size, len(prior))
    local = [local_sensitivity(counts, prior) for counts in sets]
    smooth = [smooth_sensitivity(counts, prior, **smoothness) for counts in sets]
    np.testing.assert_allclose(local_sensitivities(size, prior), local, rtol=1e-12)
    np.testing.assert_allclose(smooth_sensitivities(size, prior, **smoothness), smooth, rtol=1e-12)
