"""Numbers of records that stand for a law."""

import numpy as np
import pytest

from opendp_bayes.inference.cells import Cells
from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.inference.size_rows import rows_of


def test_a_few_numbers_have_the_mean_and_the_deviation_of_all():
    sizes, weights = np.arange(5000), 1.002 ** -np.arange(5000)
    law = CountLaws.of_rows(sizes[:, None], weights / weights.sum())
    rows, shares = rows_of(law)
    assert rows.size < 300
    assert np.all(np.diff(rows) > 0)
    assert shares.sum() == pytest.approx(1)
    assert shares[:64] == pytest.approx(law.pmf(np.arange(64)[:, None])[:, 0])
    mean = shares @ rows
    assert mean == pytest.approx(law.mean()[0], rel=1e-3)
    assert np.sqrt(shares @ (rows - mean) ** 2) == pytest.approx(law.std()[0], rel=1e-3)


def test_one_number_stands_for_itself():
    at = np.array([700])
    rows, shares = rows_of(CountLaws(Cells(np.array([0]), at, at), np.array([[0, 1.0, 0, 0]])))
    assert rows.tolist() == [700]
    assert shares.tolist() == [1]
