"""Groups that columns of a joint table make, after the release."""

import json
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee, release

PRIVATE, PUBLIC = ob.LaplaceParameters(2.0, total="private"), ob.KNormParameters(2.0)
REGIONS, VOTES = ("north", "south"), ("yes", "no", "none")
DRAWN = (3, -1, 2, 6, 4, 1)
OF_TABLE: Any = ((1.0, 2.0, 0.5) * 2, PRIVATE, guarantee(None))
TABLE = ob.Release(DRAWN, tuple(product(REGIONS, VOTES)), *OF_TABLE, axes=("region", "vote"))
OF_15 = replace(TABLE, mechanism=PUBLIC, guarantee=guarantee(15))


def test_a_group_of_a_private_number_is_what_a_query_by_groups_makes_of_the_same_draws() -> None:
    asked = GroupedRelease(
        REGIONS, (DRAWN[:3], DRAWN[3:]), VOTES, (1.0, 2.0, 0.5), PRIVATE, guarantee(None)
    )
    found = TABLE.by("region")
    assert dict(found) == dict(asked)
    for region in REGIONS:
        assert found[region].to_json() == asked[region].to_json()
        assert np.array_equal(found[region].posterior.mean(), asked[region].posterior.mean())
    # Which is not what the table says of them: a group's own number is flat by itself.
    north = TABLE.posterior.conditional("vote", region="north")
    assert not np.allclose(found["north"].posterior.mean(), north.mean(), atol=1e-4)


def test_groups_by_the_last_column_have_their_own_draws_and_priors() -> None:
    found = TABLE.by("vote")
    assert list(found) == list(VOTES)
    assert [one.noisy_counts for one in found.values()] == [(3, 6), (-1, 4), (2, 1)]
    assert [one.prior for one in found.values()] == [(1.0, 1.0), (2.0, 2.0), (0.5, 0.5)]
    assert {one.categories for one in found.values()} == {REGIONS}
    with pytest.raises(KeyError, match=r"'maybe': .*not a group; .* 'no', 'n"):
        found["maybe"]


@pytest.mark.parametrize("column", ["region", "vote"])
def test_a_group_of_a_public_number_is_a_part_of_the_table(column: str) -> None:
    other = "vote" if column == "region" else "region"
    for value, one in OF_15.by(column).items():
        whole = OF_15.posterior.conditional(other, **{column: value})
        assert one.whole is OF_15
        assert one.size == 15, "that of all records"
        assert np.array_equal(one.posterior.mean(), whole.mean())
        assert np.array_equal(one.posterior.interval(0.9), whole.interval(0.9))
        assert one.posterior.records.mean() == whole.records.mean()
        places = [at for at, cell in enumerate(OF_15.categories) if value in cell]
        assert one.counts == tuple(OF_15.counts[place] for place in places)
        with pytest.raises(ValueError, match=r"to_json: .*one group of a table"):
            one.to_json()
        with pytest.raises(ValueError, match="one group of a table"):
            one.by(other)


@pytest.mark.usefixtures("short_chains")
def test_a_learned_prior_is_that_of_the_table() -> None:
    learned = replace(TABLE, prior=(1.0,) * 6, learned_prior=True, ordered=("vote",))
    north = learned.by("region")["north"]
    assert (north.whole, north.learned_prior, north.ordered) == (learned, True, ("vote",))
    whole = learned.posterior.conditional("vote", region="north")
    assert np.array_equal(north.posterior.mean(), whole.mean())
    assert learned.by("vote")["yes"].ordered == ()


def test_several_columns_make_tuples_and_several_others_a_table() -> None:
    cells = tuple(product("ab", (1, 2, 3), (True, False)))
    three = ob.Release(tuple(range(12)), cells, (1.0,) * 12, PRIVATE, guarantee(None), tuple("zyx"))
    by_two = three.by("x", "z")
    assert list(by_two) == list(product((True, False), "ab"))
    assert by_two[True, "b"].noisy_counts == (6, 8, 10)
    assert (by_two[True, "b"].categories, by_two[True, "b"].axes) == ((1, 2, 3), ())
    tables = three.by("z")
    assert tables["a"].axes == ("y", "x")
    assert tables["a"].categories == tuple(product((1, 2, 3), (True, False)))
    assert tables["a"].noisy_counts == tuple(range(6))


@pytest.mark.parametrize("size", [None, 66])
@pytest.mark.parametrize("columns", [of for n in (1, 2) for of in permutations("zyx", n)])
def test_what_is_said_of_the_other_columns_stays_theirs(columns, size):
    said = {name: {"nulls": f"no {name}", "unknown": f"other {name}"} for name in "zyx"}
    cells = tuple(product("ab", (1, 2, 3), (True, False)))
    rest = {of: tuple(said[name][of] for name in "zyx") for of in ("nulls", "unknown")}
    of = {"axes": tuple("zyx"), "ordered": tuple("zy"), "columns": tuple("zyx"), **rest}
    three = release(tuple(range(12)), cells, PRIVATE if size is None else PUBLIC, size, **of)
    rest = tuple(name for name in "zyx" if name not in columns)
    for one in three.by(*columns).values():
        assert one.columns == rest
        assert one.ordered == tuple(name for name in rest if name != "x")
        assert one.nulls == tuple(said[name]["nulls"] for name in rest)
        assert one.unknown == tuple(said[name]["unknown"] for name in rest)


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


def test_tables_that_leave_out_cells_and_releases_of_one_column_are_refused() -> None:
    some = replace(
        TABLE, noisy_counts=DRAWN[:5], categories=TABLE.categories[:5], prior=TABLE.prior[:5]
    )
    with pytest.raises(ValueError, match="cell for every combination"):
        some.by("region")
    one = ob.Release((1, 2), ("a", "b"), (1.0, 1.0), PRIVATE, guarantee(None))
    with pytest.raises(ValueError, match=r"none, .*not of a joint table"):
        one.by("a")


def test_the_columns_of_a_query_by_groups_are_in_its_document() -> None:
    of = (REGIONS, (DRAWN[:3], DRAWN[3:]), VOTES, (1.0,) * 3, PRIVATE, guarantee(None))
    made = GroupedRelease(*of, grouped_by=("region",))
    assert json.loads(made.to_json())["by"] == ["region"]
    assert ob.Release.from_json(made.to_json()) == made
