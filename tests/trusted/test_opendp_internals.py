"""What of OpenDP is touched that it hides, where, and where frames are read."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.context import Query
from opendp.mod import OpenDPException

import opendp_bayes
from opendp_bayes.trusted import opendp_internals as internals
from tests.helpers.contexts import plain_context
from tests.helpers.sources import SOURCES

FILE = Path(internals.__file__)
#: `make lint` sees that the other rooms load nothing of OpenDP.
ROOMS = {"commands", "extend", "questions", "trusted", "plugins"}
GLUE = [path for path in SOURCES if ROOMS & set(path.parts) or path.parent.name == "opendp_bayes"]
#: Attributes of OpenDP's objects with an underscore, also where they are named by a text.
HIDDEN = {"_chain", "_output_measure", "_d_in", "_d_out", "_wrap_release", "_query", "_lgb_plan"}
HIDDEN |= {"_type_", "__opendp_dict__", "polars_plan", "_lazyframe_from_domain"}
#: Of OpenDP's objects too, and a name that others have: `query._context` and the like are meant.
SHARED = {"_context": {"query", "base", "plain", "nested"}}


def touched(source: str) -> set[str]:
    """What a module touches of OpenDP that has an underscore, or is known to be hidden."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "opendp":
            private = any(part.startswith("_") for part in str(node.module).split("."))
            found |= {one.name for one in node.names if private or one.name.startswith("_")}
        elif isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else node.value
            owner = owner.id if isinstance(owner, ast.Name) else owner
            shared = owner in SHARED.get(node.attr, set())
            if node.attr in HIDDEN or shared:
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and node.value in HIDDEN:
            found.add(str(node.value))
    return found


def test_no_other_file_touches_what_opendp_hides() -> None:
    """Negative control."""
    for path in GLUE:
        found = touched(path.read_text(encoding="utf-8"))
        assert (found == set()) != (path == FILE), (path, found)
    for source, name in (
        ("from opendp.domains import _lazyframe_from_domain", "_lazyframe_from_domain"),
        ("from opendp.extras._utilities import to_then", "to_then"),
        ("spent = asked.base._d_out", "_d_out"),
        ("context = query._context", "_context"),
        ("object.__getattribute__(query, 'polars_plan')", "polars_plan"),
        ("del answer.__opendp_dict__", "__opendp_dict__"),
    ):
        assert touched(source) == {name}
    assert touched("import opendp.prelude as dp; dp.loss_of; self._context; spark._chains") == set()


# --- What each was in the version that is accepted
def context_of(**split: Any) -> dp.Context:
    frame = pl.LazyFrame({"vote": ["yes", "no"], "age": [30, None]})
    split = split or {"split_evenly_over": 2}
    return plain_context(frame, {"contributions": 2}, parts=None, **split)


@pytest.fixture
def query() -> Any:
    return context_of().query().filter(pl.col("age") > 3)


def test_queries_have_their_parts_in_this_order(query: Any) -> None:
    assert type(internals.belongs_to(query)) is Query
    context = context_of()
    parts = internals.parts_of(internals.belongs_to(context.query()))
    domain, metric = parts.chain
    assert (domain, metric) == context.accountant.input_space
    assert parts.output_measure == dp.max_divergence()
    assert (parts.d_in, parts.d_out, parts.context) == (2, 0.5, context)
    parts = internals.parts_of(internals.belongs_to(query))
    assert internals.parts_of(Query(*parts)) == parts


def test_a_query_of_a_frame_has_its_plan(query: Any) -> None:
    plan = internals.plan_of(query)
    assert type(plan) is pl.LazyFrame
    assert "FILTER" in plan.explain()
    assert plan.collect_schema().names() == ["vote", "age"]


def test_objects_remember_what_made_them_and_frames_are_made_of_domains() -> None:
    measurement = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 1.0)
    assert vars(measurement)["__opendp_dict__"]
    internals.forget_origin(measurement)
    assert "__opendp_dict__" not in vars(measurement)
    internals.forget_origin(measurement)  # of what has none
    columns = [dp.series_domain("vote", dp.option_domain(dp.atom_domain(T=str)))]
    frame = internals.frame_of(dp.lazyframe_domain(columns))
    assert frame.collect_schema() == {"vote": pl.String}
    assert frame.collect().height == 0
    domain = internals.domain_of_column("age", pl.Int64())
    assert isinstance(domain, dp.Domain)
    assert "age" in str(domain)
    assert "i64" in str(domain)
    with pytest.raises((OpenDPException, ValueError)):
        internals.domain_of_column("when", pl.Object())


def test_constructors_and_features_are_those_that_are_known() -> None:
    def make_pair(input_domain: Any, input_metric: Any, *, size: int) -> Any:
        return input_domain, input_metric, size

    partial = internals.to_then(make_pair)(size=3)
    assert partial("domain", "metric") == ("domain", "metric", 3)
    assert partial.constructor("domain", "metric") == ("domain", "metric", 3)
    dp.enable_features("contrib")
    assert "contrib" in internals.GLOBAL_FEATURES


def error_of(ask: Callable[[], Any]) -> str:
    with pytest.raises(OpenDPException) as caught:
        ask()
    return str(caught.value)


def test_an_error_has_what_a_callback_raised() -> None:
    def fails(arg: Any) -> Any:
        raise RuntimeError("of our own")

    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    pure = dp.max_divergence()
    measurement = dp.m.make_user_measurement(*space, pure, fails, lambda d_in: 0.0)
    found = internals.RAISED_BY_CALLBACK.search(error_of(lambda: measurement(1)))
    assert found
    assert found[1] == "of our own"


PACKAGE = Path(opendp_bayes.__file__).parent
#: Methods and functions of polars that read a frame or the names in it, and OpenDP's way to a
#: Context.
OPENING = {"collect", "collect_async", "collect_batches", "collect_schema", "compositor", "fetch"}
PREFIXES = ("scan_", "sink_", "read_csv", "read_ipc", "read_parquet", "read_json", "read_excel")
#: Functions of our own that are named alike.
OURS = {"scan_columns"}
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if "trusted" not in path.parts)


def touches(source: str) -> set[str]:
    """Names of the attributes and functions in a module that read a frame or open a Context."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        name = getattr(node, "attr", None) if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("polars"):
            found |= {each.name for each in node.names}
        if name in OPENING or (name and name.startswith(PREFIXES) and name not in OURS):
            found.add(str(name))
    return found


def test_outside_of_the_trusted_room_no_frame_is_read() -> None:
    """Negative control, the trusted room itself among others."""
    assert len(OUTSIDE) > 100
    for path in OUTSIDE:
        assert touches(path.read_text(encoding="utf-8")) == set(), path
    inside = "".join(
        path.read_text(encoding="utf-8")
        for path in (PACKAGE / "trusted").glob("*")
        if path.suffix == ".py"
    )
    assert {"collect_schema", "scan_parquet", "sink_parquet", "compositor"} <= touches(inside)
    assert touches("frame.lazy().sink_csv('x')") == {"sink_csv"}
    assert touches("from polars import read_csv") == {"read_csv"}
