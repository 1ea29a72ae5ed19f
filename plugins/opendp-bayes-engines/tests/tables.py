"""The engines, random tables over the ends of every type, and what conditions mean in Python."""

import datetime
import operator
import random
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
from hypothesis import strategies as st

from tests.helpers.sweeps import slow

#: The engines that every test of counting runs on. Spark takes half a minute to start.
ENGINES = ["polars", "duckdb", "dask", "ibis", "ibis on polars", *slow(["spark", "spark connect"])]
TEXTS = [
    "yes", "Yes", "yes ", " yes", "no", "NO", "", "\x00", "é", "e\u0301", "ß", "SS", "İ", "漢字",
    "🙂🙃", "a'b", 'a"b', "a\\b", "a%_b", "NaN", "null", "\u00a0", "\ufffd", "x" * 70_000,
]  # fmt: skip
_DAYS = (1, 1, 1), (999, 12, 31), (1582, 10, 10), (1969, 12, 31), (1970, 1, 1), (2000, 2, 29)
DATES = [datetime.date(*day) for day in (*_DAYS, (9999, 12, 31))]
ODD_NAME = 'a "name" `of` it.s\\ *'
#: The values of each column, nulls apart, and its type.
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "person": (pl.Int64, list(range(12))),
    "text": (pl.String, TEXTS),
    "number": (pl.Int64, [-(2**63), -(2**53) - 1, -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1]),
    "small": (pl.Int8, [-128, -1, 0, 127]),
    "short": (pl.Int16, [-(2**15), 0, 2**15 - 1]),
    "middle": (pl.Int32, [-(2**31), 0, 2**31 - 1]),
    "flag": (pl.Boolean, [True, False]),
    "day": (pl.Date, DATES),
    ODD_NAME: (pl.String, TEXTS[:6]),
}
#: Types that Spark has not, or reads as others.
UNSIGNED: dict[str, tuple[Any, list[Any]]] = {
    "tiny": (pl.UInt8, [0, 255]),
    "narrow": (pl.UInt16, [0, 2**16 - 1]),
    "half": (pl.UInt32, [0, 2**31, 2**32 - 1]),
}
#: Types that are written and not counted within an engine.
WRITTEN: dict[str, tuple[Any, list[Any]]] = {
    "wide": (pl.UInt64, [0, 2**63, 2**64 - 1]),
    "real": (pl.Float64, [float("-inf"), -0.0, 0.0, 0.1, 5e-324, 1e300, float("inf")]),
    "single": (pl.Float32, [float("-inf"), 0.10000000149011612, 1e30]),
}
COUNTED = {**VALUES, **UNSIGNED}


def columns_of(engine: str) -> dict[str, tuple[Any, list[Any]]]:
    return VALUES if engine.startswith("spark") else COUNTED


def rows(seed: int, size: int) -> pl.DataFrame:
    """Rows with every value somewhere, where they are enough, and nulls in all columns."""
    draw = random.Random(seed)
    every = {**COUNTED, **WRITTEN}

    def filled(values: list[Any]) -> list[Any]:
        more = (draw.choice([*values, None]) for _ in range(size - len(values)))
        return [*values[:size], *more]

    schema = {name: dtype for name, (dtype, _) in every.items()}
    return pl.DataFrame({name: filled(values) for name, (_, values) in every.items()}, schema)


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
_COMPARED |= {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COMPARED["is_in"] = lambda value, constants: value in constants


def holds(condition: tuple[str, str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a row fulfils a condition, as Python says."""
    name, op, constant = condition
    value = row[name]
    if op == "is_null":
        return (value is None) is constant
    return value is not None and _COMPARED[op](value, constant)


def conditions(columns: Mapping[str, tuple[Any, list[Any]]]) -> st.SearchStrategy[Any]:
    """Random conditions on any of the columns."""

    def on(name: str) -> st.SearchStrategy[Any]:
        value = st.sampled_from(columns[name][1])
        return st.one_of(
            st.tuples(st.just(name), st.sampled_from(list(_COMPARED)[:-1]), value),
            st.tuples(st.just(name), st.just("is_in"), st.lists(value, min_size=1, max_size=4)),
            st.tuples(st.just(name), st.just("is_null"), st.booleans()),
        )

    return st.sampled_from(list(columns)).flatmap(on)
