"""The trusted room checks cells itself: none that fits some records only, which would tell."""

from enum import Enum
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.counting import make_counts_of_cells, make_counts_of_groups
from opendp_bayes.trusted.kinds import ColumnKind, kind_of, kinds_of_frame
from opendp_bayes.trusted.spaces import CountsSpace
from tests.helpers.kinds import kinds_in


class Answer(str, Enum):
    YES = "yes"


AXIS = Axis("vote", "text", ("yes", "no"), null=2, unknown=0)
SPACE = CountsSpace(("yes", "no", "none"), None)
PUBLIC = CountsSpace(("yes", "no", "none"), 3)
CANARY = "Ada Lovelace"


def cells(axes: Any = (AXIS,), index: Any = (0, 1, 2), space: CountsSpace = SPACE) -> Cells:
    return Cells(axes, np.array(index), space)


def domain_of(**types: Any) -> dp.Domain:
    return dp.domain_of(pl.LazyFrame(schema=types), infer=True)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        *(("text", values) for values in (("a", "a"), ("a", 1), ("a", None), (Answer.YES,))),
        *(("integer", values) for values in ((1, True), (2, True), (1, 1), (1, 2**63))),
        *(("integer", (-(2**63) - 1,)), ("boolean", (True, 0)), ("boolean", (True, True))),
        *(("other", ("a",)), ("other", ())),
    ],
)
def test_values_are_different_and_of_their_kind(kind: Any, values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"values: .*different values of column 'x'"):
        Axis("x", kind, values, 0, 0)


def test_values_of_every_kind_are_accepted() -> None:
    Axis("x", "integer", (-(2**63), 2**63 - 1), 0, 0)
    Axis("x", "boolean", (False,), 0, 1)
    Axis("x", "text", (), 0, 1)


@pytest.mark.parametrize(  # the first has no place for nulls
    "index", [[0, 1], [[0, 1, 2]], [0.0, 1.0, 2.0], [False, True, True]]
)
def test_an_index_has_a_place_for_every_value(index: Any) -> None:
    with pytest.raises(ValueError, match=r"index: .*a dimension for each"):
        cells(index=index)


@pytest.mark.parametrize(("null", "other"), [(-1, 0), (0, -1), (3, 0), (0, 3)])
def test_places_are_on_the_axis(null: int, other: int) -> None:
    with pytest.raises(ValueError, match="index: must be whole numbers"):
        cells((Axis("vote", "text", ("yes", "no"), null, other),))


@pytest.mark.parametrize("index", [(0, 1, 3), (0, 1, -2), (0, 1, 99)])
def test_every_number_is_that_of_a_cell_or_of_none(index: Any) -> None:
    with pytest.raises(ValueError, match=r"index: .*from -1 to 2"):
        cells(index=index)


def test_every_record_is_counted_and_axes_may_have_spare_places() -> None:
    """An index that somebody made wrong afterwards would fail for some records only."""
    cells(index=(0, 1, -1))
    with pytest.raises(ValueError, match=r"index: .*from 0 to 2, .* records"):
        cells(index=(0, 1, -1), space=PUBLIC)
    index, values = np.array([0, 1, 2]), ["yes", "no"]
    axis = Axis("vote", "text", values, 2, 2)
    made = Cells((axis,), index, SPACE)
    index[2], values[0] = 99, "no"
    assert (made.index.tolist(), axis.values) == ([0, 1, 2], ("yes", "no"))
    with pytest.raises(ValueError, match="read-only"):
        made.index[2] = 99
    assert cells(index=(0, 1, 2, -1)).counts(
        pl.DataFrame({"vote": ["no", None, "?"], "number": [3, 4, 5]})
    ).tolist() == [5, 3, 4]


@pytest.mark.parametrize("types", [{"town": pl.String}, {"vote": pl.Int64}, {"vote": pl.List(int)}])
def test_the_frame_has_the_columns_and_their_kinds(types: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"axes: .*no column 'vote' of kind"):
        cells().check_kinds(kinds_in(pl.LazyFrame(schema=types)))


def ways_to_count(domain: Any, metric: Any, made: Cells) -> list[Any]:
    kinds = {"vote": ColumnKind("text", "String")}
    fit = Cells((), np.array(0), SPACE)  # everything in one cell

    def of_cells(cells, of=lambda metric: metric):
        return lambda: make_counts_of_cells(domain, of(metric), cells, (), "test")

    return [
        of_cells([made]),
        lambda: make_counts_of_groups(domain, metric, made, kinds, lambda *_: None, "test"),
        *(of_cells(cells, dp.frame_distance) for cells in ([made], [fit, made])),
    ]


@pytest.mark.parametrize("way", range(4))
def test_a_size_that_is_not_public_is_refused_by_every_way_to_count(way: int) -> None:
    """Negative control of what it prevents: `map(1)` would be 1 where a record more fails."""
    domain = domain_of(vote=pl.String)
    with pytest.raises(ValueError, match=r"size=3: .*records is private"):
        ways_to_count(domain, dp.symmetric_distance(), cells(space=PUBLIC))[way]()
    ways_to_count(domain, dp.symmetric_distance(), cells())[way]()


@pytest.mark.parametrize("way", range(2))
def test_a_public_number_is_stated(way: int) -> None:
    domain = domain_of(vote=pl.String)
    with pytest.raises(ValueError, match="size=None: under change-one neighbours"):
        ways_to_count(domain, dp.change_one_distance(), cells())[way]()
    counts = ways_to_count(domain, dp.change_one_distance(), cells(space=PUBLIC))[way]()
    if way == 0:
        together, (single,) = counts
        counts = together >> single
    assert counts.map(2) == 2


@pytest.mark.parametrize("way", [0, 2, 3])
def test_columns_are_looked_for_by_every_way_to_count(way: int) -> None:
    with pytest.raises(ValueError, match=r"axes: .*no column 'vote' of kind"):
        ways_to_count(domain_of(town=pl.String), dp.symmetric_distance(), cells())[way]()


OTHERS = [pl.Date(), pl.Float64(), pl.Decimal(10, 2), pl.List(pl.Enum([CANARY]))]
OTHERS += [pl.Array(pl.Enum([CANARY]), 2), pl.Struct({"name": pl.Enum([CANARY])})]
OTHERS.append(pl.Struct({CANARY: pl.Int8()}))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        *((dtype, "text") for dtype in (pl.String(), pl.Categorical(), pl.Enum([CANARY]))),
        *((pl.Boolean(), "boolean"), (pl.UInt64(), "integer"), (pl.Int128(), "integer")),
        *((dtype, "other") for dtype in OTHERS),
    ],
)
def test_what_is_known_of_a_column_has_no_label_but_what_an_enum_declares(dtype, kind):
    known = kind_of(dtype)
    assert known.kind == kind
    assert known.declared == ((CANARY,) if dtype == pl.Enum else None)
    assert known.declared is not None or CANARY not in repr(known)


def test_a_domain_says_which_columns_may_hold_nulls() -> None:
    domain = dp.lazyframe_domain(
        [
            dp.series_domain("a", dp.atom_domain(T=bool)),
            dp.series_domain("b", dp.option_domain(dp.atom_domain(T="i32"))),
        ]
    )
    assert kinds_of_frame(domain) == {
        "a": ColumnKind("boolean", "Boolean", nullable=False),
        "b": ColumnKind("integer", "Int32", nullable=True),
    }
