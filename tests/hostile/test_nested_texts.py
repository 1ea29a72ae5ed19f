"""A text that is nested without end is refused at once, by a plain error, wherever it is read."""

import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mathematics.telling import DEEPEST
from opendp_bayes.release_format.kind_of_text import format_of
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run
from tests.helpers.contexts import plain_context
from tests.helpers.releases import release
from tests.helpers.sweeps import slow

#: Deeper than any interpreter follows; Python 3.14 goes by the size of its stack, others to 1000.
DEEP = 1_000_000
CELLS = ("a", 1), ("a", 2), ("b", 1), ("b", 2)
RELEASE = release((3, 4, 5, 6), CELLS, axes=("letter", "number"))
SURVEY = ob.Survey(("q",), (RELEASE,))
FORMATS = ("opendp-bayes release", "opendp-bayes survey", "opendp-bayes report")
READERS: dict[str, Callable[[str], Any]] = {"a release": ob.Release.from_json}
READERS |= {"a survey": ob.Survey.from_json, "a report": Report.from_json}
READERS |= {"a format": format_of, "a specification": read_specification}
FIELDS = ("x", "release", "releases", "specification", "mechanism", "noisy_counts")


def nested(depth: int) -> list[str]:
    """Lists, objects, and lists that nothing closes."""
    return ["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth]


def documents(depth: int) -> list[str]:
    """Texts with something nested: bare, in a field of every format, and in those of releases."""
    texts = []
    for deep in nested(depth):
        texts.append(deep)
        for name in FORMATS:
            texts += [
                f'{{"format":"{name}","version":{version},"{field}":{deep}}}'
                for version in (1, 2)
                for field in FIELDS
            ]
        for whole in (RELEASE.to_json(), SURVEY.to_json()):
            fields = json.loads(whole)
            texts += [json.dumps(fields | {name: "@"}).replace('"@"', deep) for name in fields]
    return texts


SHALLOW = product(READERS, (40, 900, 1500, 100_000))
DEEPER = [(reader, DEEP) for reader in READERS if reader != "a release"]


@pytest.mark.parametrize(("reader", "depth"), [*SHALLOW, ("a release", DEEP), *slow(DEEPER)])
def test_json_is_read_or_refused_by_a_plain_error(reader: str, depth: int) -> None:
    for text in documents(depth):
        try:
            READERS[reader](text)
        except ValueError as error:
            assert len(str(error)) < 600  # noqa: PT017
        else:  # which says only what is stated
            assert reader == "a format"


@pytest.mark.parametrize("reader", READERS)
def test_the_error_says_the_limit(reader: str) -> None:
    text = '{"format": "opendp-bayes survey", "version": 1, "x": ' + "[" * DEEP
    with pytest.raises(ValueError, match=f"too deep in each other; .*{DEEPEST} levels"):
        READERS[reader](text)


def test_documents_are_not_that_deep_and_specifications_may_have_dots() -> None:
    """Negative control: decimals, texts and names with dots in them are no nesting."""

    def depth(value: Any) -> int:
        if isinstance(value, dict):
            value = list(value.values())
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    assert 4 <= depth(json.loads(SURVEY.to_json())) <= DEEPEST / 2
    prior = ", ".join(["0.5"] * 2000)
    text = (
        f'title = "A. B. C."\n[privacy]\nepsilon = 1.5\n[columns."a.b"]\n'
        f"categories = [{', '.join(map(str, range(2000)))}]\n"
        f'[[results]]\ncolumn = "a.b"\nprior = [{prior}]\n'
    )
    assert len(read_specification(text).columns["a.b"].categories) == 2000


@pytest.mark.parametrize("depth", [40, 900, 1500, 50_000])
def test_toml_is_refused_at_once(depth: int) -> None:
    """Names that dots join took the square of their number: 117 s for 50 000."""
    names = ".".join("a" * depth)
    texts = {
        "lists": f"x = {'[' * depth}{']' * depth}",
        "an open list": f"x = {'[' * depth}",
        "tables": f"x = {'{a=' * depth}1{'}' * depth}",
        "both": f"x = {'[{a=' * depth}1{'}]' * depth}",
        "names": f"{names} = 1",
        "quoted names": f"{'.'.join([chr(34) + 'a' + chr(34)] * depth)} = 1",
        "names within": f"x = {{ {names} = 1 }}",
        "a table": f"[{names}]\nx = 1",
        "tables of a list": f"[[columns.{names}]]\nx = 1",
    }
    for name, text in texts.items():
        start = time.perf_counter()
        with pytest.raises(ValueError, match=r".") as refused:
            read_specification(text)
        assert len(str(refused.value)) < 600, name
        assert time.perf_counter() - start < 5, name


@pytest.mark.parametrize("command", ["show", "report", "run"])
def test_the_commands_say_so_too(command: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text('{"format": "opendp-bayes survey", "x": ' + "[" * DEEP)
    more = ["-o", tmp_path / "out"] if command == "report" else []
    more += ["--dry-run"] if command == "run" else []
    assert "too deep in each other" in run(command, file, *more, code=2)


def deep_query(depth: int, kind: str) -> Any:
    frame = pl.LazyFrame({"v": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), "i": [1, 2]})
    query = plain_context(frame).query()
    if kind == "steps":
        for _ in range(depth):
            query = query.with_columns(pl.col("i") + 1)
        return query
    expression = pl.col("i")
    for _ in range(depth):
        expression = expression + 1 if kind == "operators" else expression.fill_null(0)
    return query.with_columns(expression.alias("i"))


@pytest.mark.parametrize("kind", ["steps", "operators", "functions"])
def test_a_plan_is_looked_at_or_refused_by_its_depth(kind: str) -> None:
    assert ob.posterior(deep_query(30, kind), "v", nulls="a").resolve()
    if kind == "functions":  # polars reads 128 levels of a plan, to say what type each has
        with pytest.raises(ValueError, match="40 functions in each other"):
            ob.posterior(deep_query(60, kind), "v", nulls="a")
    for depth in (130, 300, 800) if kind != "steps" else (800,):
        with pytest.raises(ValueError, match=r"too deep .* some 400 steps|functions in each other"):
            ob.posterior(deep_query(depth, kind), "v", nulls="a")
