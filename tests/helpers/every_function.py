"""Every function of polars that makes an expression, with plausible arguments."""

import datetime
import inspect
import operator
import warnings

import polars as pl

_C = pl.col
_DAY, _NEXT = datetime.date(2021, 3, 4), datetime.date(2021, 3, 6)
_MANY = [_C("i"), _C("f")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _DEPRECATED = pl.arctan2d("f", "i"), pl.groups("i")
#: What is given to functions of these names, or what they are called with.
_ALIKE: list[tuple[tuple[object, ...], tuple[str, ...]]] = [
    (("i",), ("approx_n_unique", "count", "cum_sum", "exclude", "field", "from_epoch")),
    (("i",), ("implode", "max", "mean", "median", "min", "n_unique", "std", "sum", "var")),
    (("i", "f"), ("arg_sort_by", "corr", "cov", "cum_sum_horizontal", "max_horizontal")),
    (("i", "f"), ("mean_horizontal", "min_horizontal", "sum_horizontal")),
    (("i", "i"), ("concat_arr", "concat_list")),
    (("d", _NEXT), ("business_day_count", "date_ranges")),
    (("i", 2), ("head", "tail")),
    ((2020, 1, _C("i")), ("date", "datetime")),
    ((0, operator.add, _MANY), ("cum_fold", "fold")),
    ((operator.add, _MANY), ("cum_reduce", "reduce")),
    ((["i"], operator.itemgetter(0)), ("map_batches", "map_groups")),
]
FUNCTIONS: dict[str, list[pl.Expr]] = {
    **{name: [getattr(pl, name)(*given)] for given, names in _ALIKE for name in names},
    **{name: [getattr(pl, name)(), getattr(pl, name)("i")] for name in ("first", "last")},
    **{name: [getattr(pl, name)(6), getattr(pl, name)(pl.len())] for name in ("ones", "zeros")},
    "rolling_corr": [pl.rolling_corr("i", "f", window_size=2)],
    "rolling_cov": [pl.rolling_cov("i", "f", window_size=2)],
    "all": [pl.all(), pl.all("b")],
    "all_horizontal": [pl.all_horizontal("b", _C("i") > 0)],
    "any": [pl.any("b")],
    "any_horizontal": [pl.any_horizontal("b", _C("i") > 0)],
    "arange": [pl.arange(0, pl.len()), pl.arange(0, _C("i").max())],
    "arctan2": [pl.arctan2("f", "i")],
    "arctan2d": [_DEPRECATED[0]],
    "arg_where": [pl.arg_where(_C("b"))],
    "coalesce": [pl.coalesce("i", 0), pl.coalesce("s", "c")],
    "col": [_C("i"), _C("i", "f"), _C("^i$"), _C(pl.Int64)],
    "concat_str": [pl.concat_str("s", "e"), pl.concat_str("s", "c", separator="-")],
    "cum_count": [pl.cum_count("i"), pl.cum_count("i", reverse=True)],
    "date_range": [pl.date_range(_DAY, _NEXT), pl.date_range(_C("d").min(), _C("d").max())],
    "datetime_range": [pl.datetime_range(_DAY, _NEXT)],
    "datetime_ranges": [pl.datetime_ranges("t", _NEXT)],
    "duration": [pl.duration(days=_C("i"))],
    "element": [pl.element() + 1],
    "format": [pl.format("{}-{}", "s", "i")],
    "groups": [_DEPRECATED[1]],
    "int_range": [pl.int_range(pl.len()), pl.int_range(0, 6)],
    "int_ranges": [pl.int_ranges(0, "i")],
    "len": [pl.len()],
    "linear_space": [pl.linear_space(0, 1, 6)],
    "linear_spaces": [pl.linear_spaces("i", 1, 6)],
    "lit": [
        *map(pl.lit, [1, 0.5, "a", True, None, _DAY, datetime.timedelta(1), datetime.time(1)]),
        *map(pl.lit, [[1, 2], b"a", pl.Series([1] * 6), pl.Series([1])]),
        *(pl.lit(pl.Series(["a"]).cast(pl.Categorical)), pl.lit("a", dtype=pl.Categorical)),
    ],
    "nth": [pl.nth(1), pl.nth(0, 2)],
    "quantile": [pl.quantile("i", 0.5)],
    "repeat": [pl.repeat(1, 6), pl.repeat("a", pl.len())],
    "row_index": [pl.row_index()],
    "sql_expr": [pl.sql_expr("i + 1"), pl.sql_expr("SUM(i)"), pl.sql_expr("ROW_NUMBER() OVER ()")],
    "struct": [pl.struct("i", "s"), pl.struct("i").struct.field("i")],
    "time": [pl.time(_C("i"))],
    "time_range": [pl.time_range()],
    "time_ranges": [pl.time_ranges("h")],
    "when": [
        *(pl.when("b").then("i"), pl.when("b").then("s").otherwise("c")),
        pl.when("b").then("i").when(_C("i") > 0).then(1).otherwise("f"),
        pl.when(_C("i") > _C("i").mean()).then(1),
    ],
}


def functions() -> set[str]:
    """The names of polars' functions that make expressions, as they are annotated."""
    found = {"col", "when"}  # an object, and what begins one
    for name in dir(pl):
        if name.startswith("_") or not inspect.isfunction(of := getattr(pl, name)):
            continue
        made = str(inspect.signature(of).return_annotation)
        if "Expr" in made.replace("DataTypeExpr", ""):
            found.add(name)
    return found


def examples() -> dict[str, pl.Expr]:
    """All of them, each by a label."""
    return {
        f"pl.{name}({at})": expr for name, of in FUNCTIONS.items() for at, expr in enumerate(of)
    }
