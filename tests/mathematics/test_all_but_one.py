"""All values but one, against what a loop leaves out."""

import numpy as np
import pytest

from opendp_bayes.mathematics.all_but_one import all_but_one


@pytest.mark.parametrize("operation", [np.add, np.multiply])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (4, 3)])
def test_every_entry_is_left_out_once(operation, shape):
    values = np.random.default_rng(0).normal(size=shape) + 1j
    right = [operation.reduce(np.delete(values, i, axis=0)) for i in range(len(values))]
    assert all_but_one(values, operation) == pytest.approx(np.array(right), rel=1e-12)


def test_what_a_large_entry_hides_is_not_lost():
    assert all_but_one(np.array([1e-20, 1.0, 2e-20])).tolist() == [1.0, 1e-20 + 2e-20, 1.0]
