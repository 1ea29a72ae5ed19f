"""Random plans give the counts that Python gives row by row, in every engine."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import pytest
import random_plans
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from random_plans import ENGINES, Said, conditions, numbers, rows, texts

from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines import context
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.expressions import read
from opendp_bayes_engines.kinds import Kind

ROWS = rows(seed=1, size=300)
#: Labels that differ in blanks alone are counted apart.
pytestmark = pytest.mark.filterwarnings("ignore:.* differ in nothing but blanks:UserWarning")

LABELS = {
    "text": ["yes", "yes ", "é", "a'b", "a\\b", "", "no", "NO", "e", "17"],
    "number": [0, 1, 5, -1, 2**63 - 1, 17],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    ROWS.write_parquet(path)
    return path


@pytest.fixture(scope="module", params=ENGINES)
def frame(request: pytest.FixtureRequest, frame_in: Callable[[str, Path], Any], path: Path) -> Any:
    return frame_in(request.param, path)


@pytest.fixture(scope="module")
def made(frame: Any) -> tuple[Any, Any]:
    """A Context over the rows in one engine, and the data that it holds."""
    return _context(frame), held(frame)[0]


@pytest.fixture(scope="module")
def by_person(frame: Any) -> tuple[Any, Any]:
    """The same, where a person is the privacy unit."""
    return _context(frame, identifier="person"), held(frame)[0]


def _context(frame: Any, **unit: Any) -> Any:
    return context(
        frame,
        privacy_unit=dp.unit_of(contributions=1, **unit),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )


def counted(query: Any, data: Any, name: str, labels: list[Any], **of: Any) -> list[int]:
    """The counts before any noise: of the labels, of nulls and of other values."""
    buckets = ("null", "unknown") if isinstance(labels[0], str) else (-999, -998)
    variable = Variable(name, labels, *buckets)
    chain, _ = query.counts_of(Question((variable,), **of))
    counts: list[int] = chain(data).tolist()
    return counts


def expected(values: list[Any], labels: list[Any]) -> list[int]:
    """What reads like the label of nulls is counted with them."""
    known = Counter(
        labels.index(value) if value in labels else "null" if value in (None, "null") else "unknown"
        for value in values
    )
    return [known[at] for at in (*range(len(labels)), "null", "unknown")]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("text", LABELS["text"]),
        ("text", [f"absent {at}" for at in range(998)] + ["yes", "no"]),
        ("text", ["other?", "other??", "?"]),
        ("number", LABELS["number"]),
        ("number", list(range(-500, 500))),
        ("small", [-128, 0, 300]),
        ("wide", [0, 1, 2**63 - 1]),
        ("wide", [-1, 1]),
        ("flag", [True, False]),
        ("flag", [True]),
        ("label", random_plans.LABELS),
    ],
)
def test_every_value_is_counted_where_it_belongs(
    made: tuple[Any, Any], name: str, labels: list[Any]
) -> None:
    query = made[0].query()
    if query.schema[name].kind is Kind.OTHER:
        pytest.skip(f"this engine has no type like that of {name!r}")
    if isinstance(labels[0], bool):
        chain, _ = query.counts_of(Question((Variable(name, labels, "null", "unknown"),)))
        counts = chain(made[1]).tolist()
    else:
        counts = counted(query, made[1], name, labels)
    assert counts == expected(ROWS[name].to_list(), labels)


#: Conditions that are unknown for some rows: the expression, and what it means in a row.
UNKNOWN: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "when": (
        nw.when(nw.col("flag")).then(nw.col("text")),
        lambda row: row["text"] if row["flag"] else None,
    ),
    "when not": (
        nw.when(~nw.col("flag")).then(nw.lit("yes")),
        lambda row: "yes" if row["flag"] is False else None,
    ),
    "otherwise": (
        nw.when(nw.col("flag")).then(nw.col("text")).otherwise(nw.lit("no")),
        lambda row: row["text"] if row["flag"] else "no",
    ),
    "clip": (
        nw.col("small").clip(0, 1).cast(nw.String),
        lambda row: None if row["small"] is None else str(min(max(row["small"], 0), 1)),
    ),
    "abs": (
        nw.col("small").abs().cast(nw.String),
        lambda row: None if row["small"] is None else str(abs(row["small"])),
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_condition_is_not_fulfilled(made: tuple[Any, Any], name: str) -> None:
    expr, means = UNKNOWN[name]
    if made[0].query().schema["flag"].kind is Kind.OTHER:
        pytest.skip("this engine has no Booleans")
    query = made[0].query().with_columns(asked=expr)
    labels = ["yes", "no", "é", "0", "1", "17"]
    values = [means(row) for row in ROWS.to_dicts()]
    assert None in values or name == "otherwise"
    assert counted(query, made[1], "asked", labels) == expected(values, labels)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_row_of_an_unknown_condition_is_not_kept(made: tuple[Any, Any], wanted: bool) -> None:
    if made[0].query().schema["flag"].kind is Kind.OTHER:
        pytest.skip("this engine has no Booleans")
    query = made[0].query().filter(nw.col("flag") if wanted else ~nw.col("flag"))
    values = [row["text"] for row in ROWS.to_dicts() if row["flag"] is wanted]
    assert 0 < len(values) < ROWS["flag"].count() < len(ROWS)
    assert counted(query, made[1], "text", LABELS["text"]) == expected(values, LABELS["text"])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    condition=conditions(3),
    kind_and_value=st.one_of(
        st.tuples(st.just("text"), texts()), st.tuples(st.just("number"), numbers())
    ),
)
def test_random_plans_count_alike(
    made: tuple[Any, Any], condition: Said, kind_and_value: tuple[str, Said]
) -> None:
    kind, value = kind_and_value
    assume(read(condition.expr, made[0].schema, "condition").reads)
    kept = [row for row in ROWS.to_dicts() if condition.means(row) is True]
    asked = value.expr.cast(nw.String) if kind == "text" else value.expr  # no longer an Enum
    query = made[0].query().filter(condition.expr).with_columns(asked=asked)
    counts = counted(query, made[1], "asked", LABELS[kind])
    assert counts == expected([value.means(row) for row in kept], LABELS[kind])


KEPT = ["person", "text", "other", "number", "small", "real", "flag", "day", "label"]


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=conditions(1), limit=st.integers(1, 40), after=conditions(1))
def test_truncated_plans_count_alike(
    by_person: tuple[Any, Any], before: Said, limit: int, after: Said
) -> None:
    for condition in (before, after):
        assume(read(condition.expr, by_person[0].schema, "condition").reads)
    query = by_person[0].query().filter(before.expr).select(*KEPT)
    query = query.truncate_per_group(limit).filter(after.expr)
    rows = [row for row in ROWS.to_dicts() if before.means(row) is True]
    rows.sort(key=lambda row: [_nulls_first(row[name]) for name in sorted({*KEPT} - {"person"})])
    seen: Counter[Any] = Counter()
    values = []
    for row in rows:
        seen[row["person"]] += 1
        if seen[row["person"]] <= limit and after.means(row) is True:
            values.append(row["text"])
    assert counted(query, by_person[1], "text", LABELS["text"]) == expected(values, LABELS["text"])


def _nulls_first(value: Any) -> Any:
    if value is None or value != value:
        return (0, 0)
    return (1, value.encode() if isinstance(value, str) else value)
