"""Groups that columns of a joint table make, after the release."""

from itertools import product
from typing import Any

import pytest

import opendp_bayes as ob
from tests.helpers.releases import guarantee

PRIVATE, PUBLIC = ob.LaplaceParameters(2.0, total="private"), ob.KNormParameters(2.0)
REGIONS, VOTES = ("north", "south"), ("yes", "no", "none")
DRAWN = (3, -1, 2, 6, 4, 1)
OF_TABLE: Any = ((1.0, 2.0, 0.5) * 2, PRIVATE, guarantee(None))
TABLE = ob.Release(DRAWN, tuple(product(REGIONS, VOTES)), *OF_TABLE, axes=("region", "vote"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), r"name some variables .*each once"),
        (("age",), r"columns=\('age',\): .*name some variables .*'region', 'vote'"),
        (("region", "vote"), "but not all of them"),
        (("region", "region"), "each once"),
    ],
)
def test_other_columns_are_refused(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TABLE.by(*columns)
