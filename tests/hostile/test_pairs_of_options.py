"""Options together, of every method of every result: each pair has its own, repeatable answer."""

import inspect
import itertools
import operator
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.inference.answers import posterior as answers
from tests.helpers.every_result import called, methods, plausible, results
from tests.helpers.releases import release

OPTIONS: dict[str, list[Any]] = {
    "level": [0.95, 0.5],
    "kind": ["eti", "hdi", "simultaneous"],
    "among": ["all", "answered"],
    "plug_in": [False, True],
}
#: Parameters of such a name that are something else.
OTHERS = {("quantile", "level"), ("synthetic", "kind"), ("write_synthetic", "kind")}
#: What is refused, or the same as another: of one probability, or of two categories.
REFUSED = {(key, "kind", "simultaneous") for key in ("category", "listed", "of pooled")}


@pytest.fixture(autouse=True)
def _quick(chains_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)


def numbers(answer: Any) -> tuple[Any, ...]:
    """What is answered, without the words on which probability it is for."""
    if isinstance(answer, pl.DataFrame):
        return tuple(answer.drop("level", strict=False).select(pl.col(pl.Float64)).rows())
    if isinstance(answer, Sheet):
        return tuple(row for table in answer.tables for row in table.rows)
    if isinstance(answer, (Axes, Figure)):
        axes = answer.axes if isinstance(answer, Figure) else [answer]
        return tuple(_drawn(artist) for one in axes for artist in one.get_children())
    if isinstance(answer, (tuple, list)) and not isinstance(answer, np.ndarray):
        return tuple(map(numbers, answer))
    return tuple(np.ravel(answer).tolist())


def intervals(answer: Any) -> list[tuple[Any, ...]]:
    """The columns that are ends of intervals, or whole intervals."""
    if isinstance(answer, pl.DataFrame):
        ends = ("lower", "upper", "_lb", "_ub")
        return [tuple(answer[name]) for name in answer.columns if name.endswith(ends)]
    tables = answer.tables if isinstance(answer, Sheet) else ()
    columns = [column for table in tables for column in zip(*table.rows, strict=True)]
    return [column for column in columns if any(" to " in cell for cell in column)]


def _drawn(artist: Any) -> str:
    """Where lines and their like are, and what stands in cells; no title."""
    if isinstance(artist, Line2D):
        return repr(artist.get_xydata().tolist())
    if isinstance(artist, Text) and artist.get_text()[:1].isdigit():
        return str(artist.get_text())
    paths = artist.get_paths() if isinstance(artist, Collection) else []
    return repr([path.vertices.tolist() for path in paths])


def combinations(method: str, signature: inspect.Signature, key: str) -> list[dict[str, Any]]:
    """The options of a method, each value with each of the others."""
    values = {
        name: [one for one in OPTIONS[name] if (key, name, one) not in REFUSED]
        for name in signature.parameters
        if name in OPTIONS and (method, name) not in OTHERS
    }
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def answered(result: Any, method: str, options: dict[str, Any]) -> tuple[Any, ...]:
    """The numbers of an answer, and its intervals."""
    signature = inspect.signature(getattr(result, method))
    usual = {
        name: plausible(result, method, name, lambda: Path())
        for name in signature.parameters
        if name not in options
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            answer = called(result, method, {**usual, **options})
            return numbers(answer), intervals(answer)
        finally:
            plt.close("all")


def is_alike(options: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    """True of options that differ in what has no effect on this result."""
    differ = {name for name in options if options[name] != other[name]}
    return differ == {"among"} and key != "with nulls"


def of_results() -> Iterator[tuple[str, Any]]:
    yield from results().items()
    labels = ("a", "b", "c", "none")
    yield "with nulls", release((6, 3, 9, 4), labels, columns=("v",), nulls=("none",)).posterior


def faults_of(key: str, result: Any) -> Iterator[str]:
    for method, signature in methods(result):
        every = combinations(method, signature, key)
        if len(every) < 2:
            continue
        first = [answered(result, method, options) for options in every]
        if "plot" not in method and answered(result, method, every[0]) != first[0]:
            yield f"{key}.{method}({every[0]}): another answer when asked again"
        for at, (options, one) in enumerate(zip(every, first, strict=True)):
            pairs = zip(every, first[:at], strict=False)
            same = [before for before, of in pairs if of == one]
            same = [before for before in same if not is_alike(options, before, key)]
            if same:
                yield f"{key}.{method}: {same[0]} and {options} have one answer"
            for before, of in zip(every, first[:at], strict=False):
                is_of_level = {**before, "level": options.get("level")} == options
                if is_of_level and any(map(operator.eq, one[1], of[1])):
                    yield f"{key}.{method}: an interval of {before} is that of {options}"


def test_every_combination_of_options_has_its_answer() -> None:
    assert [fault for key, result in of_results() for fault in faults_of(key, result)] == []
