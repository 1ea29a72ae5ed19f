"""`context`: what it takes, and the messages of what it does not."""

import gc
import math
import sys
import tempfile

import duckdb
import narwhals as nw
import narwhals.stable.v1 as stable
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from opendp.context import Context
from polars.io.plugins import register_io_source
from pyarrow.dataset import dataset

import opendp_bayes as ob
from opendp_bayes.trusted.contexts import CheckedContext

Bound = dp.polars.Bound
DATA = pl.DataFrame(
    {"vote": ["a", "b", None] * 10, "id": list(range(30)), "g": [1, 2, 3] * 10},
    schema={"vote": pl.String, "id": pl.Int16, "g": pl.UInt8},
)
UNIT, LOSS = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
TEXT = {"column": "vote", "categories": ["a", "b"], "nulls": "none", "unknown": "other"}
ALMOST_WITHOUT_NOISE = dp.loss_of(epsilon=1e6)


def opened(frame=DATA, unit=UNIT, loss=LOSS, **split):
    return ob.context(frame, privacy_unit=unit, privacy_loss=loss, **split)


FRAMES = {
    "polars, in memory": lambda: DATA,
    "polars, lazy": lambda: DATA.lazy(),
    "pandas": lambda: DATA.to_pandas().astype({"vote": "string"}),
    "pandas, categories": lambda: DATA.to_pandas().astype({"vote": "category"}),
    "pandas, an index of its own": lambda: (
        DATA.to_pandas().astype({"vote": "string"}).set_index("id", drop=False)
    ),
    "narwhals, lazy": lambda: nw.from_native(DATA.lazy()),
    "narwhals, of pandas": lambda: nw.from_native(DATA.to_pandas().astype({"vote": "string"})),
    "narwhals, its stable interface": lambda: stable.from_native(DATA.to_arrow()),
    "Arrow": lambda: DATA.to_arrow(),
    "Arrow, a dictionary": lambda: DATA.cast({"vote": pl.Categorical}).to_arrow(),
    "Arrow, an Enum": lambda: DATA.cast({"vote": pl.Enum(["a", "b"])}).to_arrow(),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_is_counted_alike(name):
    context = opened(FRAMES[name](), loss=ALMOST_WITHOUT_NOISE, split_evenly_over=1)
    assert isinstance(context, Context)
    assert ob.posterior(context.query(), **TEXT).release().counts == (10, 10, 10, 0)


@pytest.mark.parametrize("name", ["pandas, categories", "Arrow, a dictionary", "Arrow, an Enum"])
def test_categories_of_the_data_are_not_taken_for_public(name):
    query = opened(FRAMES[name](), split_evenly_over=1).query()
    with pytest.raises(ValueError, match="categories=None: column 'vote' of type"):
        ob.posterior(query, **{**TEXT, "categories": None})


def test_arguments_reach_opendp():
    unit = dp.unit_of(contributions=2, identifier="id")
    context = opened(unit=unit, loss=dp.loss_of(rho=0.5, delta=1e-6), split_by_weights=[1, 3])
    first = ob.posterior(context.query().truncate_per_group(3), **TEXT).release()
    assert (first.d_in, first.rho) == (6, pytest.approx(0.125))
    margin = dp.polars.Margin(by=["g"], invariant="lengths")
    context = opened(unit=dp.unit_of(changes=1), margins=[margin])
    released = ob.posterior(context.query(epsilon=0.5), size=30, **TEXT).release()
    assert (released.size, context.current_privacy_loss()) == (30, 0.5)
    assert opened(loss=dp.loss_of(epsilon=1)).d_out == 1.0, "a whole number will do"


def test_the_file_of_a_frame_in_memory_lives_as_long_as_its_context(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = opened(split_evenly_over=1)
    [path] = tmp_path.glob("opendp-bayes-*/data")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    query = ob.posterior(context.query(), **TEXT)
    del context
    gc.collect()
    assert query.release().size is None
    del query
    gc.collect()
    assert not path.exists()


MANY = f"must be between 1 and {2**31 - 1}"
POSITIVE, DELTA = "must be finite and greater than 0", "must be at least 0 and below 1"
FRAME = "must be a LazyFrame or a DataFrame of polars"
TWO = [Bound(per_group=3), Bound(by=["g"], num_groups=0)]
PERSON = {"contributions": 1, "identifier": "person"}
UNITS_REFUSED = [
    ({"contributions": 0}, ValueError, f"contributions=0: {MANY}"),
    ({"changes": 0}, ValueError, f"changes=0: {MANY}"),
    ({"contributions": -1}, ValueError, f"contributions=-1: {MANY}"),
    ({"changes": 2**31}, ValueError, f"changes={2**31}: {MANY}"),
    ({"contributions": True}, TypeError, "contributions=True: must be a whole number, not bool"),
    ({"contributions": 1.5}, TypeError, "contributions=1.5: must be a whole number, not float"),
    ({"contributions": TWO}, ValueError, f"contributions: Bound.num_groups=0: {MANY}"),
    ({"contributions": [3]}, TypeError, "contributions: 3 must be a number or a dp.polars.Bound"),
    ({"l1": 2.0}, ValueError, "privacy_unit=L1Distance(f64): must be dp.unit_of(contributions"),
    (PERSON, ValueError, "privacy_unit: identifier='person' is not a column of the frame"),
]
LOSSES_REFUSED = [
    ({"epsilon": 0.0}, ValueError, f"epsilon=0.0: {POSITIVE}"),
    ({"epsilon": math.inf}, ValueError, f"epsilon=inf: {POSITIVE}"),
    ({"epsilon": math.nan}, ValueError, f"epsilon=nan: {POSITIVE}"),
    ({"epsilon": -1.0}, ValueError, f"epsilon=-1.0: {POSITIVE}"),
    ({"epsilon": True}, TypeError, "epsilon=True: must be a number, not bool"),
    ({"rho": 0.0}, ValueError, f"rho=0.0: {POSITIVE}"),
    ({"epsilon": 0.0, "delta": 1e-6}, ValueError, f"epsilon=0.0: {POSITIVE}"),
    ({"epsilon": 1.0, "delta": 1.0}, ValueError, f"delta=1.0: {DELTA}"),
    ({"epsilon": 1.0, "delta": -1e-6}, ValueError, f"delta=-1e-06: {DELTA}"),
    ({"rho": 1.0, "delta": math.nan}, ValueError, f"delta=nan: {DELTA}"),
    ({"epsilon": 1.0, "delta": True}, TypeError, "delta=True: must be a number, not bool"),
]
#: What is given to `opened`, the error, and how its message begins.
SAME_NAMES = pd.DataFrame([["a secret", "b"]], columns=["a secret", "a secret"])
MIXED = pd.DataFrame({"vote": pd.Categorical([5, "a secret"])})
REFUSED = [
    *(({"unit": dp.unit_of(**unit)}, *error) for unit, *error in UNITS_REFUSED),
    *(({"loss": dp.loss_of(**loss)}, *error) for loss, *error in LOSSES_REFUSED),
    ({"loss": 1.0}, TypeError, "privacy_loss=1.0: must be what OpenDP makes"),
    ({"loss": (dp.renyi_divergence(), 1.0)}, ValueError, "privacy_loss=RenyiDivergence: must be"),
    ({"unit": 1}, TypeError, "privacy_unit=1: must be what OpenDP makes"),
    ({"split_evenly_over": 0}, ValueError, "split_evenly_over=0: must be between 1 and 1e+12"),
    ({"split_evenly_over": True}, TypeError, "split_evenly_over=True: must be a whole number"),
    ({"split_by_weights": []}, TypeError, "split_by_weights=[]: must be a sequence of numbers"),
    ({"split_by_weights": "12"}, TypeError, "split_by_weights='12': must be a sequence of numbers"),
    ({"margins": [{"by": []}]}, TypeError, "margins=<list>: must be a sequence of dp.polars.Marg"),
    ({"split_by_weights": [1, 0]}, ValueError, f"split_by_weights[1]=0: {POSITIVE}"),
    ({"split_evenly_over": 2, "split_by_weights": [1, 1]}, ValueError, "Cannot specify both"),
    ({"frame": {"vote": ["a"]}}, TypeError, f"data=dict: {FRAME}"),
    ({"frame": "votes.csv"}, ValueError, "data='votes.csv': is no file of Parquet or Arrow"),
    ({"frame": "votes.parquet"}, ValueError, "data=votes.parquet: cannot be read as Parquet"),
    ({"frame": duckdb.sql("SELECT 1")}, TypeError, f"data=duckdb.DuckDBPyRelation: {FRAME}"),
    ({"frame": SAME_NAMES}, ValueError, "data=pandas.DataFrame: two columns have one name"),
    ({"frame": DATA["vote"]}, TypeError, f"data=polars.Series: {FRAME}"),
    ({"frame": DATA.to_arrow().to_batches()[0]}, TypeError, f"data=pyarrow.RecordBatch: {FRAME}"),
    ({"frame": None}, TypeError, f"data=NoneType: {FRAME}"),
    ({"frame": MIXED}, RuntimeError, "data=pandas.DataFrame: making its columns those of polars"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_no_value_is_shown(arguments, error, message):
    with pytest.raises(error) as caught:
        opened(**arguments)
    assert str(caught.value).startswith(message)
    assert caught.value.__cause__ is None
    assert "a secret" not in f"{caught.value} {caught.value.__context__}"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        # Whose first line is taken for the names of columns.
        (lambda path: pl.scan_csv(path).select("vote"), "secret,yes\nother,no\n"),
        (pl.scan_ndjson, '{"vote": "yes"}\n{"vote": secret}\n'),
    ],
)
def test_a_frame_that_has_no_schema_shows_nothing_of_its_file(read, text, tmp_path):
    path = tmp_path / "votes"
    path.write_text(text)
    with pytest.raises(pl.exceptions.PolarsError, match=r"secret|'s'"):
        read(path).collect_schema()  # the negative control
    with pytest.raises(RuntimeError, match=r"looking up its names.* run the plan") as caught:
        opened(read(path))
    assert caught.value.__context__ is None


#: Frames with a column of which no Context has the values.
LEFT_OUT = {
    "object of pandas": lambda: pd.DataFrame({"vote": ["a", "b"], "who": [1, "x"]}).astype(
        {"vote": "string", "who": "object"}
    ),
    "duration": lambda: DATA.with_columns(who=pl.duration(days="id")),
    "decimal": lambda: DATA.with_columns(who=pl.col("id").cast(pl.Decimal(5, 2))),
    "list": lambda: DATA.with_columns(who=pl.concat_list("id", "g")),
}
IN_GROUPS = {"vote": ["a", "b"], "who": ["x", "y"]}
#: What such a column may be asked for as.
AS = {
    "identifier": lambda frame: opened(frame, dp.unit_of(contributions=1, identifier="who")),
    "column": lambda frame: ob.posterior(one_query(frame), **(TEXT | {"column": "who"})),
    "one of two": lambda frame: ob.posterior(one_query(frame), ["vote", "who"]),
    "groups": lambda frame: ob.posterior(one_query(frame), "vote", by="who", categories=IN_GROUPS),
    "a question": lambda frame: ob.survey(one_query(frame), {"q": TEXT | {"column": "who"}}),
    "categories to discover": lambda frame: ob.discover(one_query(frame), "who"),
    "a condition": lambda frame: ob.posterior(
        one_query(frame).filter(pl.col("who").is_not_null()), **TEXT
    ),
}


def one_query(frame):
    return opened(frame, loss=dp.loss_of(epsilon=1.0, delta=1e-8), split_evenly_over=1).query()


@pytest.mark.parametrize("kind", LEFT_OUT)
@pytest.mark.parametrize("role", AS)
def test_a_column_without_values_says_why_whatever_it_is_asked_for_as(kind, role):
    with pytest.raises(ValueError, match=r"who'.* left out of the Context\. .*frame"):
        AS[role](LEFT_OUT[kind]())


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_column_of_that_name_that_the_plan_computes_is_counted(kind):
    plan = one_query(LEFT_OUT[kind]()).with_columns(who=pl.col("vote"))
    assert len(ob.posterior(plan, **(TEXT | {"column": "who"})).release().counts) == 4


def test_without_narwhals_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"pandas\.DataFrame: is not a frame.*opendp-bayes\[fra"):
        opened(DATA.to_pandas())
    opened(DATA, split_evenly_over=1).query()


@pytest.mark.parametrize("epsilon", [math.inf, math.nan, -0.5, True])
def test_a_query_takes_a_number_that_is_finite_and_not_negative(epsilon):
    context = opened()
    kind, constraint = (TypeError, "a number") if epsilon is True else (ValueError, "at least 0")
    with pytest.raises(kind, match=f"epsilon={epsilon}: must be {constraint}"):
        context.query(epsilon=epsilon)
    assert context.current_privacy_loss() == 0.0


def test_divided_budgets_of_nothing_and_those_that_are_spent():
    margin = dp.polars.Margin(by=["g"], invariant="lengths")
    context = opened(unit=dp.unit_of(changes=1), margins=[margin])
    lengths = context.query(epsilon=0.0).group_by("g").agg(dp.len(signed=True)).release()
    assert dict(lengths.collect().iter_rows()) == {1: 10, 2: 10, 3: 10}
    with pytest.raises(ValueError, match=r"budget of 0\.0; .*finite"):
        ob.posterior(context.query(epsilon=0.0), size=30, **TEXT).release()
    context = opened(split_evenly_over=2)
    with pytest.raises(ValueError, match="Expected no privacy arguments"):
        context.query(epsilon=0.5)
    for _ in range(2):
        ob.posterior(context.query(), **TEXT).release()
    with pytest.raises(ValueError, match="Privacy allowance has been exhausted"):
        context.query()
    context = opened(split_by_weights=[9, 1, 4])
    first, second = (ob.posterior(context.query(), **TEXT) for _ in range(2))
    first.release()
    with pytest.raises(dp.OpenDPException, match=r"insufficient budget .*: 0\.6\d+ > 0\.07\d+"):
        second.release()
    assert len(context.current_privacy_loss()) == 1
    assert ob.posterior(context.query(), **TEXT).release().epsilon < 0.11


def own_data(**changes):
    """A Context over data of one's own, as an engine opens it."""
    losses = {"privacy_unit": dp.unit_of(contributions=1), "privacy_loss": dp.loss_of(epsilon=1.0)}
    arguments = losses | {"split_evenly_over": 1, "split_by_weights": None} | changes
    check = arguments.pop("check", lambda metric: None)
    frame = pl.LazyFrame({"vote": ["a", "b"]})
    domain = dp.domain_of(frame, infer=True)
    return CheckedContext.opened(frame, domain, ["vote"], arguments, check=check)


def test_a_context_over_data_of_ones_own_is_checked_like_any():
    seen = []

    def refused(metric):
        seen.append(metric)
        raise ValueError("no plan is proved for it")

    assert own_data(check=seen.append).query()
    with pytest.raises(ValueError, match="no plan is proved"):
        own_data(check=refused)
    assert seen == [dp.symmetric_distance()] * 2
    for unit in ("contributions", "changes"):
        with pytest.raises(ValueError, match="identifier='person' is not a column"):
            own_data(privacy_unit=dp.unit_of(**{unit: 1}, identifier="person"))


def of_a_source():
    """A frame as `register_io_source` makes it."""

    def rows(columns, predicate, number, batch):
        yield DATA if columns is None else DATA.select(columns)

    return register_io_source(rows, schema=DATA.schema)


SOURCES = {
    "a source of rows": of_a_source,
    "a dataset of pyarrow": lambda: pl.scan_pyarrow_dataset(dataset(DATA.to_arrow())),
    "a step after it": lambda: of_a_source().filter(pl.col("g") > 1),
    "one side of a join": lambda: DATA.lazy().join(of_a_source(), on="id"),
    "one of several": lambda: pl.concat([DATA.lazy(), of_a_source()]),
    "a second reading": lambda: of_a_source().cache(),
    "in narwhals": lambda: nw.from_native(of_a_source()),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_frame_of_a_python_function_is_refused_with_what_to_do(name, tmp_path):
    """OpenDP 0.16 ends the process after some hundred of them, when it frees one."""
    frame = SOURCES[name]()
    with pytest.raises(ValueError, match=r"data=.*a Python function.*sink_parquet\(path\)"):
        opened(frame)
    written = nw.to_native(frame, pass_through=True).collect()
    written.write_parquet(tmp_path / "rows.parquet")
    for instead in (written, pl.scan_parquet(tmp_path / "rows.parquet")):
        assert opened(instead, loss=ALMOST_WITHOUT_NOISE, split_evenly_over=1).query()


def test_it_is_not_read_in_a_context_of_opendp_either():
    frame = of_a_source().cast({"id": pl.Int32, "g": pl.UInt32})
    of = {"privacy_unit": UNIT, "privacy_loss": LOSS, "split_evenly_over": 1}
    context = Context.compositor(frame, **of)
    asked = ob.posterior(context.query(), **TEXT)
    with pytest.raises(Exception, match="is not read: its rows"):
        asked.release()
