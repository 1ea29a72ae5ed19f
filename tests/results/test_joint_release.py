"""Releases of joint tables: JSON, frames, tables and pictures."""

import json
from itertools import product

import jsonschema
import pytest

import opendp_bayes as ob
from tests.helpers.releases import changed, guarantee

CELLS = tuple(product(["north", "so$_uth$"], ["yes", "no", 3]))
TABLE = ob.Release(
    (30, 20, 10, 15, 22, 3), CELLS, (1.0,) * 6, ob.KNormParameters(1.0), guarantee(100),
    ("region", "vote"),
)  # fmt: skip
SOME = changed(
    TABLE, noisy_counts=(40, 20, 40), categories=(*CELLS[1:3], CELLS[3]), prior=(1.0,) * 3
)

pytestmark = pytest.mark.usefixtures("pictures")


# --- JSON
@pytest.mark.parametrize("release", [TABLE, SOME])
def test_json_both_ways(release: ob.Release) -> None:
    document = json.loads(release.to_json())
    assert document["version"] == 3
    assert document["axes"] == ["region", "vote"]
    assert document["categories"] == [list(cell) for cell in release.categories]
    jsonschema.validate(document, ob.Release.json_schema())
    again = ob.Release.from_json(release.to_json())
    assert again == release
    assert again.posterior.marginal("vote").mean() == pytest.approx(
        release.posterior.marginal("vote").mean()
    )
