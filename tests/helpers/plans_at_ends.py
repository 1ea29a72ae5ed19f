"""Random chains of accepted steps on records at the ends of every type. Run as a module, in a
process of its own because some expressions end it: how many chains were counted beside a frame
without the odd records, how far counts moved at most beyond what is stated, and which chains failed
or moved too far.
"""

import argparse
import json
import random
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import polars as pl
import pyarrow as pa
from opendp.extras.polars import Bound, LazyFrameQuery
from opendp.mod import OpenDPException, enable_features

from opendp_bayes.queries.categorical_counts import counts_of_frame
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted import plan_values
from opendp_bayes.trusted.kinds import kind_of
from opendp_bayes.trusted.opendp_internals import belongs_to, plan_of
from opendp_bayes.trusted.plan_validation import check_plan
from tests.helpers.contexts import plain_context

C = pl.col
_INF, _NAN = float("inf"), float("nan")
_LABELS = ["a", "b", "", "\0", "\U0001f600"]
_LONG = "x" * 100_000


def _ends(bits: int, signed: bool) -> list[int]:
    most = 2 ** (bits - signed) - 1
    return [0, 1, 2, most, most - 1, *([-1, -most, -most - 1] if signed else [])]


#: Values of each column, those that are ordinary and those at the ends of its type.
VALUES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "b": (pl.Boolean(), [True, False], [True, False]),
    "i": (pl.Int64(), [0, 1, 2, 3], _ends(64, True)),
    "i32": (pl.Int32(), [0, 1, 2], _ends(32, True)),
    "u": (pl.UInt64(), [0, 1, 2], _ends(64, False)),
    "u32": (pl.UInt32(), [0, 1, 2], _ends(32, False)),
    "f": (pl.Float64(), [0.5, 1.0, 2.0], [_NAN, _INF, -_INF, -0.0, 5e-324, 1.8e308, 2.0**63]),
    "f32": (pl.Float32(), [0.5, 1.0], [_NAN, _INF, -_INF, -0.0, 1e-45, 3.4e38]),
    "s": (pl.String(), ["a", "b", "2020-01-01"], ["", "\0", "2000 01 Jan", _LONG, "\U0001f600"]),
    "e": (pl.Enum(_LABELS), ["a", "b"], _LABELS),
    "c": (pl.Categorical(), ["a", "b"], ["", "\0", "new", _LONG]),
    "d": (pl.Date(), [0, 18_000], _ends(32, True)),
    "ms": (pl.Datetime("ms"), [0, 10**12], _ends(64, True)),
    "us": (pl.Datetime("us"), [0, 10**15], _ends(64, True)),
    "ns": (pl.Datetime("ns"), [0, 10**18], _ends(64, True)),
    "tz": (pl.Datetime("us", "Europe/Berlin"), [0, 10**15], _ends(64, True)),
    "h": (pl.Time(), [0, 10**12], [0, 86_399_999_999_999, *_ends(64, True)]),
}
_WHOLE: dict[Any, Any] = {pl.Date: pl.Int32(), pl.Datetime: pl.Int64()}


def column(name: str, values: list[Any]) -> pl.Series:
    """A column of `VALUES`, of times by the numbers that they are kept as."""
    dtype = VALUES[name][0]
    if dtype == pl.Time:  # a cast would refuse what a file may hold
        numbers = pa.array(values, pa.int64()).view(pa.time64("ns"))
        return cast(pl.Series, pl.from_arrow(numbers)).alias(name)
    kept = _WHOLE.get(dtype.base_type(), dtype)
    return pl.Series(name, values, dtype=kept, strict=False).cast(dtype)


@cache
def _pool(odd: bool) -> pl.DataFrame:
    """Many records, from which some are drawn."""
    source, columns = random.Random(odd), []
    for name, (_, ordinary, ends) in VALUES.items():
        choices = [*(ends if odd else ordinary), None]
        columns.append(column(name, source.choices(choices, k=400)))
    return pl.DataFrame(columns)


def records(source: random.Random, number: int, odd: bool, person: int | None = None) -> Any:
    """Some records, three of each person, or all of one."""
    owners = [person] * number if person is not None else [at // 3 for at in range(number)]
    drawn = _pool(odd)[source.sample(range(400), k=number)]
    return drawn.with_columns(p=pl.Series(owners, dtype=pl.Int64))


_CONSTANTS = [0, 1, -1, 2, 7, 2**31, 2**63 - 1, -(2**63), 0.5, -0.0, True, "a", "", "1", None]
_TYPES: list[Any] = [
    *(pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32),
    *(pl.UInt64, pl.Float32, pl.Float64, pl.String, pl.Enum(["a", "b", "1", "true"]), pl.Date),
    *(pl.Datetime("ms"), pl.Datetime("ns"), pl.Time, pl.Duration, pl.Categorical, pl.Binary),
]
_OPERATORS = [
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "eq_missing", "ne_missing"),
    *("__add__", "__sub__", "__mul__", "__floordiv__", "__mod__", "__truediv__"),
    *("__and__", "__or__", "__xor__"),
]
#: Functions without arguments, of which many are refused.
_OF_ONE: list[Callable[[pl.Expr], pl.Expr]] = [
    *(lambda x: ~x, lambda x: x.is_null(), lambda x: x.is_not_null(), lambda x: x.is_nan()),
    *(lambda x: x.is_finite(), lambda x: x.is_infinite(), lambda x: x.is_not_nan()),
    *(lambda x: -x, lambda x: x.abs(), lambda x: x.dt.year(), lambda x: x.dt.hour()),
    *(lambda x: x.str.to_date("%Y-%m-%d"), lambda x: x.str.to_date("%Y %d %B", strict=False)),
    *(lambda x: x.str.len_chars(), lambda x: x.fill_nan(0.0), lambda x: x.dt.date()),
]


def an_expression(source: random.Random, names: list[str], depth: int) -> pl.Expr:
    """Of columns, constants and others of its kind, whether or not it is accepted."""
    if depth == 0:
        return C(source.choice(names))
    x = an_expression(source, names, depth - 1)
    constants = lambda k: source.choices(_CONSTANTS, k=k)  # noqa: E731
    match source.randrange(8):
        case 0 | 1:
            other = an_expression(source, names, 0)
            other = other if source.random() < 0.4 else pl.lit(source.choice(_CONSTANTS))
            sides = [x, other] if source.random() < 0.8 else [other, x]
            return getattr(sides[0], source.choice(_OPERATORS))(sides[1])
        case 2 | 3:
            return x.cast(source.choice(_TYPES), strict=source.random() < 0.5)
        case 4:
            return source.choice(_OF_ONE)(x)
        case 5:
            return x.fill_null(source.choice(_CONSTANTS))
        case 6:
            of, to, rest = constants(3)
            enum = pl.Enum(["a", "b"])
            strict = [{"default": rest}, {}, {"default": "a", "return_dtype": enum}]
            codes: list[Any] = [{of: to}, {of: to, 5: rest}, {of: "b"}]
            every = [x.replace_strict(old, **more) for old, more in zip(codes, strict, strict=True)]
            return source.choice([x.replace({of: to}), *every])
        case _:
            low, high = sorted(source.sample([-(2**63), -1, 0, 1, 2, 2**31, 2**63 - 1], k=2))
            return source.choice([x.clip(low, high), x.cut([low, high], labels=["a", "b", "1"])])


def a_step(source: random.Random, query: Any, *, names: list[str], limited: bool) -> Any:
    expr = an_expression(source, names, source.choice([1, 1, 2, 3]))
    match source.randrange(11 if limited else 8):
        case 0 | 1:
            return query.filter(expr)
        case 2:
            return query.select(*names, y=expr)
        case 3 | 4 | 5 | 6 | 7:
            return query.with_columns(expr.alias(source.choice([*names, "y", "z"])))
        case 8:
            keep = source.choice(["first", "last"])
            return query.truncate_per_group(source.randint(1, 3), keep=keep)
        case _:
            by = source.sample(names, k=source.randint(1, 2))
            made = query.truncate_per_group(1, by=by, keep="first")
            return made.truncate_per_group(2, keep=source.choice(["first", "last"]))


def a_question(source: random.Random, schema: pl.Schema) -> dict[str, Any] | None:
    """What to count of a column that can be counted."""
    labels = {"text": ["a", "b", ""], "integer": [0, 1, -1, 2**63 - 1], "boolean": [True, False]}
    counted = [name for name, of in schema.items() if kind_of(of).kind in labels]
    if not counted:
        return None
    names = source.sample(counted, k=min(len(counted), source.randint(1, 2)))
    categories = {
        name: list(kind_of(schema[name]).declared or labels[kind_of(schema[name]).kind])
        for name in names
    }
    if len(names) == 1:
        asked: dict[str, Any] = {"column": names[0], "categories": categories[names[0]]}
    else:
        asked = {"column": names, "categories": categories}
    return asked | {"nulls": "no value", "unknown": "others"}


@cache
def begun(unit: str) -> Any:
    """A query of a Context without records; what it counts may be of others."""
    units: dict[str, Any] = {
        "rows": {"contributions": 1},
        "people": {"contributions": [Bound(by=[], per_group=1)], "identifier": "p"},
    }
    empty = records(random.Random(0), 1, odd=False).clear()
    return plain_context(empty.lazy(), units[unit], parts=None).query(epsilon=1.0)


def a_chain(source: random.Random, unit: str) -> tuple[Any, Any] | None:
    """Accepted steps and what is counted after them; None where nothing can be."""
    made = begun(unit)
    if unit == "people":
        made = made.truncate_per_group(source.randint(1, 3), keep="first")
    for _ in range(source.randint(1, 5)):
        schema = made.collect_schema()
        rows = pl.LazyFrame(schema=schema)
        names = [name for name in schema.names() if name != "p"]
        for seed in source.sample(range(2**32), k=8):
            step = partial(a_step, names=names, limited=unit == "people")
            try:
                tried = step(random.Random(seed), LazyFrameQuery(rows, belongs_to(made)))
                tried.collect_schema()
                check_plan(plan_of(tried), rows)
                made = step(random.Random(seed), made)
                break
            except (TypeError, ValueError, pl.exceptions.PolarsError):
                pass  # refused, or of types that do not fit
    asked = a_question(source, made.collect_schema())
    return None if asked is None else (made, asked)


def chains(seed: int, number: int, until_failed: bool) -> dict[str, Any]:
    """So many random chains, counted on some records, and with odd ones beside them."""
    source, found = random.Random(seed), {"done": 0, "skipped": 0, "most": 0.0}
    failed: list[str] = []
    while found["done"] < number and not (failed and until_failed):
        unit = source.choice(["rows", "people"])
        few = records(source, 9, odd=False)
        odd = records(source, 4 if unit == "people" else 1, odd=True, person=99)
        try:
            made, asked = a_chain(source, unit) or (None, {})
            counts = counts_of_frame(made, Question.of(**asked))
            stated = counts.transformation.map(counts.gate.base._d_in)
        except (TypeError, ValueError):  # nothing to count, or refused by OpenDP
            found["skipped"] += 1
            continue
        try:
            here, there = (
                counts.transformation(frame.lazy()) for frame in (few, pl.concat([few, odd]))
            )
            moved = float(abs(here - there).sum() / stated)
        except OpenDPException:
            moved = _INF
        if moved > 1:
            failed.append(plan_of(made).explain(optimized=False))
        found["done"] += 1
        found["most"] = max(found["most"], moved)
    return found | {"failed": failed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("--any-type", action="store_true", help="values of any type are accepted")
    of = parser.parse_args()
    warnings.simplefilter("ignore")
    enable_features("contrib", "honest-but-curious")
    if of.any_type:  # the negative control
        plan_values._check_family = lambda node, dtype, families, what: None
    sys.stdout.write(json.dumps(chains(of.seed, of.number, until_failed=of.any_type)))
