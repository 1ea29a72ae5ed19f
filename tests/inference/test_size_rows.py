"""Numbers of records that stand for a law."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.size_rows import rows_of
from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.laws.count_laws import CountLaws


def test_a_few_numbers_have_the_mean_and_the_deviation_of_all():
    sizes, weights = np.arange(5000), 1.002 ** -np.arange(5000)
    law = CountLaws.of_rows(sizes[:, None], weights / weights.sum())
    rows, shares = rows_of(law)
    assert rows.size < 400
    assert np.all(np.diff(rows) > 0)
    assert shares.sum() == pytest.approx(1)
    assert shares[:64] == pytest.approx(law.pmf(np.arange(64)[:, None])[:, 0])
    mean = shares @ rows
    assert mean == pytest.approx(law.mean()[0], rel=1e-12)
    assert np.sqrt(shares @ (rows - mean) ** 2) == pytest.approx(law.std()[0], rel=1e-3)


def test_not_many_numbers_stand_for_themselves():
    """With the weights that make sums over cells exact."""
    cells = Cells(np.array([0, 0]), np.array([70, 90]), np.array([70, 101]))
    law = CountLaws(cells, cells.node_weights / 13)
    rows, shares = rows_of(law)
    assert rows.tolist() == cells.nodes[cells.used].tolist()
    assert shares @ rows == pytest.approx(law.mean()[0], rel=1e-14)
    assert shares @ rows**2 - (shares @ rows) ** 2 == pytest.approx(law.std()[0] ** 2, rel=1e-10)
