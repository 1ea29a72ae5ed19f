"""Every expression that polars can make of a column, with plausible arguments; run as a module, it
says what they are worth on two orders of the same records, each in a process of its own, because a
process keeps the codes of categories that it has seen.
"""

import contextlib
import datetime
import inspect
import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from opendp.context import domain_of  # OpenDP adds expressions of its own
from opendp.metrics import symmetric_distance
from opendp.mod import enable_features
from opendp.transformations import make_stable_lazyframe

from tests.helpers.every_function import examples

SCHEMA: dict[str, Any] = {"id": pl.Int64, "f": pl.Float64, "i": pl.Int64, "s": pl.String}
SCHEMA |= {"b": pl.Boolean, "e": pl.Enum(["a", "b"]), "c": pl.Categorical, "d": pl.Date}
SCHEMA |= {"t": pl.Datetime("us"), "h": pl.Time}
_RECORDS: list[tuple[Any, ...]] = [
    (0, 0.5, 3, "b", True, "b", "y", 9131, 10**15, 10**9),
    (1, 2.0, -1, "a", False, "a", "x", 0, 0, 0),
    (2, -0.0, 0, "2021-03-04", None, None, None, None, None, None),
    (3, float("nan"), None, None, True, "a", "z", 18262, 10**12 + 7, 86399 * 10**9),
    (4, None, 2**40, "1", False, "b", "x", -400, -(10**14), 5),
    (5, 7.25, 1, "xyz", True, "a", "w", 20000, 10**13, 10**12),
]
RECEIVERS = tuple(name for name in SCHEMA if name != "id")
_TYPES = [pl.Int64, pl.UInt8, pl.String, pl.Enum(["a", "b"]), pl.Categorical]
_TYPES += [pl.List(pl.Categorical), pl.Boolean, pl.Float32, pl.Date, pl.Datetime("ms"), pl.Time]
ARGUMENTS: dict[str, list[Any]] = {
    "other": [pl.col("i"), pl.col("c"), 1, "a"],
    "dtype": [*_TYPES, pl.Decimal(10, 2), pl.Binary],
    "by": [pl.col("i"), "1d", "a", 2],
    "old": [{"a": "b"}, {1: 2}, {0.5: 2.0}],
    **{name: [pl.col("i")] for name in ("exprs", "source")},
    **{name: [pl.col("b")] for name in ("others", "predicate", "predicates")},
    **{name: [pl.col("s")] for name in ("more_exprs", "more_by")},
    **{name: [2] for name in ("n", "exponent", "window_size", "digits", "width", "scale")},
    **{name: [0] for name in ("index", "lower_bound", "offset")},
    **{name: ["a"] for name in ("suffix", "prefix", "pattern")},
    **{name: ["x"] for name in ("symbol", "lib")},
    **{name: ["i"] for name in ("columns", "index_column")},
    **{name: [0.5] for name in ("quantile", "alpha")},
    **{name: [3] for name in ("upper_bound", "length")},
}
ARGUMENTS |= {"half_life": [2, "1d"], "value": [1, "a", 1.0], "element": [1, "a"]}
ARGUMENTS |= {"expr": [pl.element()], "more_columns": ["s"], "name": ["z"], "names": [["q"]]}
ARGUMENTS |= {"more_names": ["q"], "breaks": [[1.0]], "indices": [[0]], "function": [abs]}
ARGUMENTS |= {"args": [], "quantiles": [[0.5]], "dimensions": [(-1,)], "period": ["2i"]}
ARGUMENTS |= {"item": [1], "separator": [","], "literal": [b"a"], "encoding": ["hex"]}
ARGUMENTS |= {"bounds": [(0, 1)], "candidates": [[1, 2]], "time_unit": ["ms"]}
ARGUMENTS |= {"time": [datetime.time(1)], "time_zone": ["UTC"], "every": ["1d"]}
ARGUMENTS |= {"format": ["%Y"], "patterns": [["a"]], "json_path": ["$.a"]}
_C = pl.col
_CUT = _C("f").cut([1.0])
#: With optional arguments, of several expressions, and of no column; and those of functions.
MORE: dict[str, pl.Expr] = {
    "cut.to_physical": _CUT.to_physical(),
    "cut.cast(int)": _CUT.cast(pl.Int64),
    "cut.cast(float)": _CUT.cast(pl.Float64),
    "cut.cast(String)": _CUT.cast(pl.String),
    "cut.cast(Enum)": _C("f").cut([1.0], labels=["l", "h"]).cast(pl.Enum(["l", "h"])),
    "cut(labels)": _C("f").cut([0.0, 1.0], labels=["l", "m", "h"], left_closed=True),
    "cut(include_breaks)": _C("f").cut([1.0], include_breaks=True),
    "cut.is_null": _CUT.is_null(),
    "cut == text": _CUT == "(1, inf]",
    "cut < cut": _C("i").cut([1.0]) > _CUT,
    "cut.fill_null": _CUT.fill_null("a"),
    "cut.to_physical in a comparison": _CUT.to_physical() == 0,
    "cut in a sum": _CUT.cast(pl.Int64) + _C("i"),
    "Categorical.cast(int)": _C("s").cast(pl.Categorical).cast(pl.Int64),
    "Categorical.to_physical": _C("s").cast(pl.Categorical).to_physical(),
    "Categorical.cast(String)": _C("s").cast(pl.Categorical).cast(pl.String),
    "column of Categorical.cast(int)": _C("c").cast(pl.Int32),
    "column of Categorical.rank": _C("c").rank("dense"),
    "fill_null(value)": _C("i").fill_null(7),
    "fill_null(column)": _C("f").fill_null(_C("i")),
    "fill_null(text)": _C("e").fill_null("a"),
    "fill_null(Categorical)": _C("s").fill_null(_C("c")),
    "fill_null(forward)": _C("i").fill_null(strategy="forward"),
    "fill_null(mean)": _C("f").fill_null(strategy="mean"),
    "fill_nan(column)": _C("f").fill_nan(_C("i")),
    "clip": _C("i").clip(0, 2),
    "clip(columns)": _C("f").clip(0, _C("f").mean()),
    "when": pl.when(_C("b")).then(_C("i")).otherwise(0),
    "when(Categorical)": pl.when(_C("b")).then(_C("c")).otherwise(_C("c")),
    "to_date": _C("s").str.to_date("%Y-%m-%d"),
    "to_datetime": _C("s").str.to_datetime("%Y-%m-%d", strict=False),
    "to_time": _C("s").str.to_time("%H"),
    "to_date()": _C("s").str.to_date(),
    "strptime(Categorical)": _C("s").str.strptime(pl.Date, "%Y"),
    "replace(lists)": _C("s").replace(["a", "b"], ["x", None]),
    "replace(column)": _C("s").replace(_C("s"), _C("e")),
    "replace(Categorical)": _C("s").replace(["a"], pl.Series(["b"], dtype=pl.Categorical)),
    "replace_strict": _C("s").replace_strict({"a": 1, "b": 2}, default=0),
    "replace_strict(type)": _C("i").replace_strict({1: 2}, default=None, return_dtype=pl.Float64),
    "replace_strict(Categorical)": _C("s").replace_strict(
        ["a", "b"], pl.Series(["x", "y"], dtype=pl.Categorical), default=None
    ),
    "replace_strict(to Categorical)": _C("s").replace_strict(
        {"a": "b"}, default="c", return_dtype=pl.Categorical
    ),
    "replace_strict(of cut)": _CUT.replace_strict({"(-inf, 1]": 0, "(1, inf]": 1}, default=None),
    "is_in(column)": _C("s").is_in(_C("e").cast(pl.String).implode()),
    "is_in(list)": _C("s").is_in(["a"]),
    "Series": pl.lit(pl.Series([1, 2, 3, 4, 5, 6])),
    "infinite": _C("f") < float("inf"),
    "over": _C("i").sum().over("b"),
    "rank over": _C("i").rank("dense").over("b"),
    "number over": pl.int_range(pl.len()).over("b") < 1,
    "shuffle": _C("i").shuffle(),
    "sort_by": _C("i").sort_by("f"),
    "all": pl.all().is_null(),
    "by type": _C(pl.Int64) + 1,
    "hash": _C("s").hash(),
    "map_elements": _C("i").map_elements(abs, return_dtype=pl.Int64),
    "literal first": 1 + _C("i"),
    "text": _C("s") + "x",
    "two steps": (_C("i") // 2 == 0) & ~_C("b") | _C("f").is_finite(),
    "bits": _C("i") ^ 5,
    "power": _C("i") ** 2,
    "dates": _C("t") - _C("t"),
}


MORE |= examples()


def methods(receivers: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every public method of an expression and its namespaces, of each receiver."""
    for receiver in receivers:
        column = pl.col(receiver)
        spaces = {"": column} | {name: getattr(column, name) for name in sorted(_SPACES)}
        for space, of in spaces.items():
            for name in sorted(name for name in dir(of) if not name.startswith("_")):
                if name not in _SPACES and callable(method := getattr(of, name)):
                    yield f"{space}.{name}".lstrip("."), (receiver, method)


#: OpenDP adds its own to those of polars.
_SPACES = pl.Expr._accessors


@cache
def expressions(receivers: tuple[str, ...]) -> dict[str, pl.Expr]:
    """All of them, each by a label that says how it was made."""
    made = dict(MORE)
    for name, (receiver, method) in methods(receivers):
        parameters = [
            parameter
            for parameter in inspect.signature(method).parameters.values()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ]
        choices = [list(enumerate(ARGUMENTS[parameter.name])) for parameter in parameters]
        for chosen in itertools.product(*choices):
            expr = None
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                expr = method(*(argument for _, argument in chosen))  # not all fit; some print
            if isinstance(expr, pl.Expr) and _fits(expr):
                made[f"{receiver}.{name}({', '.join(str(at) for at, _ in chosen)})"] = expr
    return made


def _fits(expr: pl.Expr) -> bool:
    try:
        pl.LazyFrame(schema=SCHEMA).with_columns(z=expr).collect_schema()
    except Exception:  # noqa: BLE001 - of a type that the method does not take
        return False
    return True


def records(order: str) -> pl.DataFrame:
    """The records as they are, or the other way round with more of them in front."""
    more = [(9, 9.0, 9, "q", True, "b", "v", 1, 1, 1), (8, 1.5, 4, "z", False, "a", "u", 2, 2, 2)]
    rows = _RECORDS if order == "as they are" else [*more, *_RECORDS[::-1]]
    physical = {name: pl.Int32 if of == pl.Date else of for name, of in SCHEMA.items()}
    physical |= {"t": pl.Int64, "h": pl.Int64}
    frame = pl.DataFrame(rows, schema=physical, orient="row")
    return frame.cast({"d": pl.Date, "t": pl.Datetime("us"), "h": pl.Time})


def in_a_process(what: str, receivers: tuple[str, ...], labels: list[str]) -> dict[str, Any]:
    """What `main` writes, from a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", __name__, what],
        cwd=Path(__file__).parents[2],
        input=json.dumps([receivers, labels]),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUST_BACKTRACE": "0"},  # OpenDP's traces take 60 ms each
    )
    written: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])  # some expressions print
    return written


def _values(order: str, exprs: dict[str, pl.Expr]) -> dict[str, Any]:
    """From each label to the values at the records that both orders have, by their number."""
    frame, values = records(order), {}
    for label, expr in exprs.items():
        try:
            got = frame.lazy().with_columns(z=_not_strict(expr)).collect()
            kept = got.select("id", z=pl.col("z").cast(pl.String, strict=False)).filter(
                pl.col("id") < 6
            )
            values[label] = sorted(kept.rows())
        except BaseException as error:  # noqa: BLE001 - polars panics with one that is no Exception
            values[label] = type(error).__name__
    return values


def _not_strict(expr: pl.Expr) -> pl.Expr:
    """As OpenDP makes it: casts and parsing give nulls where they would fail."""
    given = written = expr.meta.serialize(format="json")
    for strict, not_strict in _STRICT.items():
        written = written.replace(strict, not_strict)
    return expr if written == given else pl.Expr.deserialize(written.encode(), format="json")


_STRICT = {
    '"options":"Strict"': '"options":"NonStrict"',
    '"strict":true': '"strict":false',
    '"String":"raise"': '"String":"null"',
}


def _accepted_by_opendp(exprs: dict[str, pl.Expr]) -> dict[str, bool]:
    enable_features("contrib")
    empty = pl.LazyFrame(schema=SCHEMA)
    domain = domain_of(empty, infer=True)
    accepted = {}
    for label, expr in exprs.items():
        plan = empty.with_columns(z=expr)
        try:
            make_stable_lazyframe(
                domain, symmetric_distance(), plan, MO="FrameDistance<SymmetricDistance>"
            )
            accepted[label] = True
        except Exception:  # noqa: BLE001 - a panic is a refusal too
            accepted[label] = False
    return accepted


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    of, labels = json.load(sys.stdin)
    chosen = {label: expressions(tuple(of))[label] for label in labels}
    answer = (
        _accepted_by_opendp(chosen) if sys.argv[1] == "OpenDP" else _values(sys.argv[1], chosen)
    )
    sys.stdout.write("\n" + json.dumps(answer))
