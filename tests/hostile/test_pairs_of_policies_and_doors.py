"""Every door × policy for nulls, others and spellings × shape: counts of a plain model."""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_engines as engines
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.asked_of_files import survey_of
from tests.helpers.sweeps import pairs_of

DROP = ob.DROP
VALUES, GROUPS = ("a", "b", "c", "N", "none", "zz", None), ("n", "s", "e", None)
CATEGORIES, LISTED = ["a", "b", "c"], ["n", "s"]
#: Each combination of values another number of times.
ROWS = [
    {"v": v, "g": g} for at, (v, g) in enumerate(product(VALUES, GROUPS)) for _ in range(2 + 3 * at)
]
FRAME = pl.DataFrame(ROWS, schema={"v": pl.String, "g": pl.String})
EPSILON = 1e5

NULLS: tuple[Any, ...] = ("a", "none", DROP)
UNKNOWN: tuple[Any, ...] = ("b", "other", DROP)
RECODE: tuple[dict[str, str], ...] = ({}, {"N": "a"}, {"N": "c"})
#: Of the column of groups, where nulls and other values are: in no group, or in one.
OF_GROUPS: tuple[tuple[Any, Any], ...] = ((None, None), ("s", "rest"), (None, "n"))
SHAPES = ("column", "groups", "table", "merged")
DOORS = ("polars", "engine", "survey", "survey of an engine", "file")


def fate(value: Any, listed: list[str], nulls: Any, unknown: Any, recode: dict[str, str]) -> Any:
    """The label under which a value is counted."""
    if value is None or (value == nulls and value not in listed):
        return nulls
    return value if value in listed else recode.get(value, unknown)


def new(label: Any, listed: list[str]) -> list[str]:
    return [label] if isinstance(label, str) and label not in listed else []


class Asked:
    """One question, and what its release is to say."""

    def __init__(self, nulls: Any, unknown: Any, recode: Any, of_groups: Any, shape: str) -> None:
        self.nulls, self.unknown, self.recode, self.shape = nulls, unknown, recode, shape
        if shape == "table":  # every column of which says where both are
            of_groups = tuple("n" if given is None else given for given in of_groups)
        self.of_groups = of_groups
        self.labels = [*CATEGORIES, *new(nulls, CATEGORIES), *new(unknown, CATEGORIES)]
        self.groups = [*LISTED, *(label for of in of_groups for label in new(of, LISTED))]
        self.merge = {"low": ["a"], "high": [of for of in self.labels if of != "a"]}

    @property
    def has_groups(self) -> bool:
        return self.shape in ("groups", "table")

    @property
    def arguments(self) -> dict[str, Any]:
        nulls, unknown = self.of_groups
        of: dict[str, Any] = {
            "column": ["v", "g"] if self.shape == "table" else "v",
            "categories": {"v": CATEGORIES, "g": LISTED},
            "nulls": {"v": self.nulls, "g": nulls},
            "unknown": {"v": self.unknown, "g": unknown},
        }
        if self.shape == "groups":
            of["by"] = "g"
        if not self.has_groups:
            of = {name: one["v"] if isinstance(one, dict) else one for name, one in of.items()}
        return of | ({"merge": self.merge} if self.shape == "merged" else {})

    @property
    def specification(self) -> str:
        def table(name: str, listed: list[str], nulls: Any, unknown: Any, recode: Any) -> str:
            lines = [f"[columns.{name}]", f"categories = {json.dumps(listed)}"]
            policies = {"nulls": nulls, "unknown": unknown}.items()
            lines += [f'{of} = "{as_text(label)}"' for of, label in policies if label is not None]
            lines += [f'recode = {{ {value} = "{label}" }}' for value, label in recode.items()]
            return "\n".join(lines)

        result = {"groups": 'column = "v"\nby = "g"', "table": 'column = ["v", "g"]'}
        merge = ", ".join(f"{name} = {json.dumps(of)}" for name, of in self.merge.items())
        merged = f'column = "v"\nmerge = {{ {merge} }}'
        results = result.get(self.shape, merged if self.shape == "merged" else 'column = "v"')
        of_v = table("v", CATEGORIES, self.nulls, self.unknown, self.recode)
        of_g = table("g", LISTED, *self.of_groups, {})
        top = f'title = "t"\n[privacy]\nepsilon = {EPSILON}'
        return "\n".join((top, of_v, of_g, "[[results]]", results))

    def wanted(self) -> dict[Any, int]:
        """By group and category, as far as there are groups."""
        counts: Counter[Any] = Counter()
        for row in ROWS:
            label = fate(row["v"], CATEGORIES, self.nulls, self.unknown, self.recode)
            group = fate(row["g"], LISTED, *self.of_groups, {})
            if label is DROP or (self.has_groups and group is None):
                continue
            if self.shape == "merged":
                label = "low" if label == "a" else "high"
            counts[(group, label) if self.has_groups else label] += 1
        labels: list[Any] = list(self.merge) if self.shape == "merged" else self.labels
        every = product(self.groups, labels) if self.has_groups else labels
        return {key: counts[key] for key in every}


def as_text(label: Any) -> str:
    return "DROP" if label is DROP else str(label)


def counted(release: Any, shape: str) -> dict[Any, int]:
    if shape == "groups":
        return {
            (group, label): count
            for group, one in release.items()
            for label, count in zip(one.categories, one.counts, strict=True)
        }
    pairs = zip(release.categories, release.counts, strict=True)
    return {(of[::-1] if shape == "table" else of): count for of, count in pairs}


@cache
def relation() -> Any:
    return duckdb.from_arrow(FRAME.to_arrow())


def query(kind: str) -> Any:
    make, data = (ob.context, FRAME.lazy()) if kind == "polars" else (engines.context, relation())
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=EPSILON)
    context: Any = make(data, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
    return context.query()


def of_survey(kind: str, asked: Asked) -> Any:
    return ob.survey(query(kind), {"v": asked.arguments})


def of_file(asked: Asked, folder: Path) -> Any:
    FRAME.write_csv(folder / "rows.csv")
    return survey_of(folder / "rows.csv", read_specification(asked.specification))


ASK: dict[str, Callable[[Asked, Path], Any]] = {
    "polars": lambda asked, _: ob.posterior(query("polars"), **asked.arguments),
    "engine": lambda asked, _: ob.posterior(query("engine"), **asked.arguments),
    "survey": lambda asked, _: of_survey("polars", asked),
    "survey of an engine": lambda asked, _: of_survey("engine", asked),
    "file": of_file,
}
CASES = [
    case
    for case in product(DOORS, SHAPES, NULLS, UNKNOWN, RECODE, OF_GROUPS)
    if (case[1] != "merged" or case[0] not in ("polars", "engine"))  # which merge nothing
    and (not case[4] or case[0] == "file")  # whose reading recodes
]
#: A few in which every two values are together.
PAIRS = [case for case in pairs_of(CASES) if not case.marks]


def stated(label: Any, listed: list[str]) -> str | None:
    """The label that a release states: of nulls, or of other values, alone."""
    return next(iter(new(label, listed)), None)


def summed_up(asked: Asked, policy: str) -> str:
    """What a summary says of nulls, or of other values, of every column that says where."""
    at = ("nulls", "unknown").index(policy)
    of = {"v": (asked.nulls, asked.unknown)[at]}
    if asked.has_groups and asked.of_groups[at] is not None:
        of["g"] = asked.of_groups[at]
    texts = {name: "left out" if label is DROP else f"'{label}'" for name, label in of.items()}
    if len(set(texts.values())) == 1:
        return texts["v"]
    return ", ".join(f"{name}: {text}" for name, text in texts.items())


@pytest.mark.parametrize(("door", "shape", "nulls", "unknown", "recode", "of_groups"), PAIRS)
def test_records_are_counted_where_the_question_says(
    door: str, shape: str, nulls: Any, unknown: Any, recode: Any, of_groups: Any, tmp_path: Path
) -> None:
    asked = Asked(nulls, unknown, recode, of_groups, shape)
    made = ASK[door](asked, tmp_path)
    summary = made.summarize().row(0, named=True)
    release = made.release()
    if isinstance(release, ob.Survey):
        (release,) = release.values()
    assert counted(release, shape) == asked.wanted()
    # what is stated
    several = shape == "table"
    of_v = stated(nulls, CATEGORIES), stated(unknown, CATEGORIES)
    of_g = tuple(stated(label, LISTED) for label in asked.of_groups)
    assert release.columns == (("v", "g") if several else ("v",))
    assert release.axes == (("v", "g") if several else ())
    assert (release.nulls, release.unknown) == (
        tuple(zip(of_v, of_g, strict=True)) if several else ((of_v[0],), (of_v[1],))
    )
    assert getattr(release, "grouped_by", ()) == (("g",) if shape == "groups" else ())
    assert getattr(release, "parts", ()) == (
        tuple(map(tuple, asked.merge.values())) if shape == "merged" else ()
    )
    if door != "file":  # whose records are left out by its plan
        for policy in ("nulls", "unknown"):
            assert summary[policy] == summed_up(asked, policy)


def test_a_label_that_stands_elsewhere_is_noticed(tmp_path: Path) -> None:
    """Negative control: of a model that forgets what reads like the label of nulls."""
    asked = Asked("none", "other", {}, (None, None), "column")
    release = ASK["polars"](asked, tmp_path).release()
    assert counted(release, "column") == asked.wanted()
    asked.nulls = "missing"
    assert counted(release, "column") != asked.wanted()
