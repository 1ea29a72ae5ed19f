"""Sensitivities at all data sets against those of each."""

import numpy as np
import pytest

from opendp_bayes.mechanisms import local_sensitivity, sensitivity_curves, smooth_sensitivity


@pytest.mark.parametrize(("size", "prior"), [(30, (1.0, 0.2)), (6, (1.0, 1.0, 0.3))])
@pytest.mark.parametrize("smoothness", [{"gamma": 0.5}, {"beta": 0.05}])
def test_curves(size: int, prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    curves = sensitivity_curves(size, prior, **smoothness)
    assert (curves.counts.sum(axis=1) == size).all()
    local = [local_sensitivity(counts, prior) for counts in curves.counts]
    smooth = [smooth_sensitivity(counts, prior, **smoothness) for counts in curves.counts]
    np.testing.assert_allclose(curves.local, local, rtol=1e-12)
    np.testing.assert_allclose(curves.smooth, smooth, rtol=1e-12)
    assert curves.largest == pytest.approx(max(local))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"size=400, 3 categories: .*smooth sensitivities"):
        sensitivity_curves(400, [1.0, 1.0, 1.0], gamma=1.0)
    with pytest.raises(ValueError, match=r"gamma=None, beta=None: give exactly one"):
        sensitivity_curves(10, [1.0, 1.0])
    with pytest.raises(ValueError, match=r"size=200000: enumerating"):
        sensitivity_curves(200_000, [1.0, 1.0], gamma=1.0)
