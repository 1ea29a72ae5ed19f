"""Many categories, groups and results: the first are shown, and too many refused at once."""

import time
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.display.sheet import MOST_ROWS, Sheet
from opendp_bayes.display.tables import Table
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.validation import MOST_RESULTS
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run
from tests.helpers.contexts import plain_context
from tests.helpers.releases import release
from tests.helpers.sweeps import slow

MANY = 30_000
TOO_MANY = 120_000


def released(number: int) -> ob.Release:
    labels = tuple(f"c{at}" for at in range(number))
    return release(tuple(at % 100 for at in range(number)), labels)


@pytest.fixture(scope="module")
def many() -> ob.Release:
    return released(MANY)


def test_texts_tables_and_groups_of_many_categories_say_how_many_are_left(many: ob.Release) -> None:
    survey = ob.Survey(("one", "two"), (many, released(20)))
    start = time.process_time()
    texts = [repr(many), repr(survey), str(survey)]
    shown = str(many.sheet(wait=False))
    pages = [many._repr_html_(), survey._repr_html_()]
    assert time.process_time() - start < 20
    assert f"'c99': 99, and {MANY - 100} more}}" in texts[0]
    assert f"1.0, and {MANY - 100} more]" in texts[0]
    assert all(len(text) < 10_000 for text in texts)
    assert f"\nand {MANY - MOST_ROWS} more\n" in shown
    assert f"and {MANY - MOST_ROWS} more" in pages[0]
    assert f"and {MANY - MOST_ROWS // 2} more" in pages[1], "each of two tables has half of them"
    assert all(page.count("<tr>") < MOST_ROWS + 10 for page in pages)
    posterior = released(150).posterior
    for text in (repr(posterior), repr(posterior.counts)):
        assert "'c99'" in text
        assert "'c100'" not in text
        assert "and 50 more}" in text
    groups = ob.Survey(tuple(f"q{i}" for i in range(150)), (released(3),) * 150)
    assert "and 50 more})" in repr(groups)


def test_the_command_shows_the_first_rows(many: ob.Release, tmp_path: Path) -> None:
    """It took 25 s for 30 000 rows, nearly all of it to lay them out."""
    file = tmp_path / "many.json"
    file.write_text(ob.Survey(("one", "two"), (many, many)).to_json())
    start = time.process_time()
    shown = run("show", file)
    assert time.process_time() - start < 25
    assert shown.count(f"and {MANY - MOST_ROWS // 2} more") == 2
    assert len(shown.splitlines()) < MOST_ROWS + 50
    assert shown.index(" c0 ") < shown.index(" c1 ")


def table_of(*sizes: int) -> Sheet:
    rows = [tuple((str(number), "1") for number in range(size)) for size in sizes]
    return Sheet(tuple(Table(("row", "n"), of) for of in rows))


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [((100,), [100]), ((101,), [100]), ((10, 300), [10, 50]), ((9,) * 200, [1] * 200), ((), [])],
)
def test_rows_are_shared_by_the_tables(sizes: tuple[int, ...], shown: list[int]) -> None:
    """Every table has as many, and none is without rows."""
    tables = table_of(*sizes).first(100).tables
    assert [len(table.rows) for table in tables] == shown
    left = [size - number for size, number in zip(sizes, shown, strict=True)]
    assert [table.left for table in tables] == left
    again = [table.first(1).left for table in tables]
    assert again == [size - 1 for size in sizes], "what was left out before is counted"


def test_limits_of_many_categories_are_of_pictures_too(pictures: None) -> None:
    """Negative control. Negative control. A dot for each of 3000 categories took minutes."""
    assert "more" not in str(table_of(3))
    assert "more" not in table_of(3)._repr_html_()
    assert shortly("ab", 2) == "a, b"
    assert shortly(range(101), 101).endswith("99, and 1 more")
    text = specification({"a": 250}, [f'column = "a"\ntitle = "{n}"' for n in range(200)])
    assert len(read_specification(text).results) == MOST_RESULTS
    start = time.process_time()
    ax = released(300).plot()
    assert len(ax.get_yticklabels()) == 100
    assert ax.get_xlabel() == "Share (the first 100 of 300 rows)"
    figure = ob.Survey(("q",), (released(300),)).plot()
    assert figure.findobj(lambda part: "the first 100 of 300 rows" in str(part))
    cells = tuple((f"a{i}", f"b{j}") for i in range(110) for j in range(2))
    table = release((5,) * 220, cells, axes=("a", "b")).plot()
    assert len(table.get_yticklabels()) == 100
    assert table.get_ylabel() == "a (the first 100 of 110 rows)"
    assert time.process_time() - start < 60


def context(**columns: pl.Series) -> dp.Context:
    return plain_context(
        pl.LazyFrame(columns or {"v": pl.Series(["a", "b"]), "w": pl.Series(["a", "b"])})
    )


LABELS = [f"c{number}" for number in range(TOO_MANY)]
SIDE = [f"c{number}" for number in range(400)]


OF_BOTH = {"column": ["v", "w"], "categories": {"v": SIDE, "w": SIDE}}


@pytest.mark.parametrize(
    "question",
    [
        *({"column": "v", "categories": of} for of in (LABELS, pl.Series(LABELS))),
        OF_BOTH,
        {**OF_BOTH, "cells": [("c0", "c0")] * TOO_MANY, "unknown": "c0"},
        *({"column": "v", "categories": {"v": SIDE, "w": of}, "by": "w"} for of in (LABELS, SIDE)),
    ],
)
def test_more_cells_than_can_be_answered_are_refused_at_once(question: dict[str, Any]) -> None:
    policy = {"nulls": "c0", "unknown": "c0"}
    start = time.process_time()
    with pytest.raises(ValueError, match="2 GB that one query may"):
        ob.survey(context().query(), {"q": {**policy, **question}})
    assert time.process_time() - start < 5
    if "by" not in question:
        with pytest.raises(ValueError, match="2 GB that one query may"):
            ob.posterior(context().query(), **{**policy, **question})


def test_the_categories_of_a_type_are_looked_up_in_no_time() -> None:
    """They were looked for in a list made anew for each of them."""
    kind = pl.Enum(LABELS[:20_000])
    start = time.process_time()
    ob.posterior(context(v=pl.Series(["c0"], dtype=kind)).query(), "v", nulls="c0")
    assert time.process_time() - start < 20
    with pytest.raises(ValueError, match=f"categories: would be {TOO_MANY}"):
        ob.posterior(context(v=pl.Series(["c0"], dtype=pl.Enum(LABELS))).query(), "v", nulls="c0")


def test_all_questions_of_a_survey_count() -> None:
    one = {"column": "v", "categories": LABELS[:20_000], "nulls": "c0", "unknown": "c0"}
    with pytest.raises(ValueError, match=r"would be 120000 .*2\.4 GB.*the 2 GB"):
        ob.survey(context().query(), dict.fromkeys("abcdef", one))
    few = {"column": "v", "categories": ["a", "b"], "nulls": "a", "unknown": "a"}
    start = time.process_time()
    with pytest.raises(ValueError, match=f"questions: are 300 results; .*most {MOST_RESULTS}"):
        ob.survey(context().query(), {str(number): few for number in range(300)})
    assert time.process_time() - start < 1
    assert len(ob.survey(context().query(), {str(n): few for n in range(3)}).questions) == 3


def specification(columns: dict[str, int], results: list[str]) -> str:
    text = 'title = "t"\n[privacy]\nepsilon = 1.0\n'
    for name, number in columns.items():
        text += f"[columns.{name}]\ncategories = [{', '.join(map(str, range(number)))}]\n"
    return text + "".join(f"[[results]]\n{result}\n" for result in results)


def titled(number: int) -> list[str]:
    return [f'column = "a"\ntitle = "{n}"' for n in range(number)]


@pytest.mark.parametrize(
    ("columns", "results", "message"),
    [
        ({"a": TOO_MANY}, ['column = "a"'], rf"would be {TOO_MANY} categories"),
        ({"a": 400, "b": 400}, ['column = ["a", "b"]'], "would be 160801 categories or cells"),
        ({"a": 400, "b": 400}, ['column = "a"\nby = "b"'], "would be 160400 categories or cells"),
        *slow([({"a": 20_000}, titled(6), "would be 100005 categories or cells")]),
        ({"a": 2}, titled(300), f"are 300 results; must be at most {MOST_RESULTS}"),
    ],
)
def test_specifications_are_refused_too(columns, results, message, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(specification(columns, results))
    start = time.process_time()
    assert message in run("run", file, "--dry-run", code=2)
    assert time.process_time() - start < 20
