"""A name is a name: `*` and `^vote.*$`, patterns to polars, are columns like any other."""

from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_office import read
from tests.helpers.command_line import run
from tests.helpers.contexts import checked_context

EXACT = 1e5


def frame_of(name: str, kind: Any = pl.String) -> pl.DataFrame:
    votes = pl.Series(["a", "a", "a", "a", "b", None], dtype=kind)
    return pl.DataFrame({"person": range(6), "vote 2": ["b"] * 6, name: votes})


def query(frame: Any, **unit: Any) -> Any:
    context = checked_context(frame, unit or {"contributions": 1}, {"epsilon": EXACT})
    return context.query()


def test_a_pattern_of_polars_would_count_another_column() -> None:
    """Negative control."""
    counted = frame_of("^vote.*$").lazy().group_by(value=pl.col("^vote.*$")).len().collect()
    assert counted.rows() == [("b", 6)]


@pytest.mark.parametrize("name", ["*", "^person$"])
def test_an_identifier_that_polars_takes_for_a_pattern_is_refused(name: str) -> None:
    frame = frame_of("vote").with_columns(pl.Series(name, range(6)))
    with pytest.raises(ValueError, match="identifier must be one column"):
        query(frame, contributions=1, identifier=name)
    bound = dp.polars.Bound(by=[name], per_group=1, num_groups=1)
    with pytest.raises(ValueError, match=r"Bound.by must be one column"):
        query(frame, contributions=[bound])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("given", "near"), [("vot", True), ("Votes", True), ("age", False)])
def test_a_name_that_is_nearly_right_is_said_to_be_so(tmp_path, kind, given, near):
    """The names of a CSV file are not told: without a header line they are somebody's record."""
    path = tmp_path / f"votes.{kind}"
    getattr(pl.DataFrame({"vote": ["a", "b"], "x": ["c", "d"]}), f"write_{kind}")(path)
    message = run("release", path, "--column", given, "--categories", "a,b", "--rho", 1, code=2)
    if kind == "csv":
        assert ("There is a similar name" in message) == near
        assert "'vote'" not in message
    else:
        assert "must be one of 'vote', 'x'" in message
    context = checked_context(read(path))
    with pytest.raises(ValueError, match="not a column of the") as caught:
        ob.posterior(context.query(), given, categories=["a", "b"], nulls="a", unknown="b")
    assert ("There is a similar name; check capitals and blanks." in str(caught.value)) == near
    assert "'vote'" not in str(caught.value)
