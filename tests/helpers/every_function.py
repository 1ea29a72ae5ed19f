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
#: By the name of the function; a new one has to be added here.
FUNCTIONS: dict[str, list[pl.Expr]] = {
    "all": [pl.all(), pl.all("b")],
    "all_horizontal": [pl.all_horizontal("b", _C("i") > 0)],
    "any": [pl.any("b")],
    "any_horizontal": [pl.any_horizontal("b", _C("i") > 0)],
    "approx_n_unique": [pl.approx_n_unique("i")],
    "arange": [pl.arange(0, pl.len()), pl.arange(0, _C("i").max())],
    "arctan2": [pl.arctan2("f", "i")],
    "arctan2d": [_DEPRECATED[0]],
    "arg_sort_by": [pl.arg_sort_by("i", "f")],
    "arg_where": [pl.arg_where(_C("b"))],
    "business_day_count": [pl.business_day_count("d", _NEXT)],
    "coalesce": [pl.coalesce("i", 0), pl.coalesce("s", "c")],
    "col": [_C("i"), _C("i", "f"), _C("^i$"), _C(pl.Int64)],
    "concat_arr": [pl.concat_arr("i", "i")],
    "concat_list": [pl.concat_list("i", "i")],
    "concat_str": [pl.concat_str("s", "e"), pl.concat_str("s", "c", separator="-")],
    "corr": [pl.corr("i", "f")],
    "count": [pl.count("i")],
    "cov": [pl.cov("i", "f")],
    "cum_count": [pl.cum_count("i"), pl.cum_count("i", reverse=True)],
    "cum_fold": [pl.cum_fold(0, operator.add, _MANY)],
    "cum_reduce": [pl.cum_reduce(operator.add, _MANY)],
    "cum_sum": [pl.cum_sum("i")],
    "cum_sum_horizontal": [pl.cum_sum_horizontal("i", "f")],
    "date": [pl.date(2020, 1, _C("i"))],
    "date_range": [pl.date_range(_DAY, _NEXT), pl.date_range(_C("d").min(), _C("d").max())],
    "date_ranges": [pl.date_ranges("d", _NEXT)],
    "datetime": [pl.datetime(2020, 1, _C("i"))],
    "datetime_range": [pl.datetime_range(_DAY, _NEXT)],
    "datetime_ranges": [pl.datetime_ranges("t", _NEXT)],
    "duration": [pl.duration(days=_C("i"))],
    "element": [pl.element() + 1],
    "exclude": [pl.exclude("i")],
    "field": [pl.field("i")],
    "first": [pl.first(), pl.first("i")],
    "fold": [pl.fold(0, operator.add, _MANY)],
    "format": [pl.format("{}-{}", "s", "i")],
    "from_epoch": [pl.from_epoch("i")],
    "groups": [_DEPRECATED[1]],
    "head": [pl.head("i", 2)],
    "implode": [pl.implode("i")],
    "int_range": [pl.int_range(pl.len()), pl.int_range(0, 6)],
    "int_ranges": [pl.int_ranges(0, "i")],
    "last": [pl.last(), pl.last("i")],
    "len": [pl.len()],
    "linear_space": [pl.linear_space(0, 1, 6)],
    "linear_spaces": [pl.linear_spaces("i", 1, 6)],
    "lit": [
        *map(pl.lit, [1, 0.5, "a", True, None, _DAY, datetime.timedelta(1), datetime.time(1)]),
        *map(
            pl.lit,
            [
                [1, 2],
                b"a",
                pl.Series([1] * 6),
                pl.Series([1]),
                pl.Series(["a"]).cast(pl.Categorical),
            ],
        ),
        pl.lit("a", dtype=pl.Categorical),
    ],
    "map_batches": [pl.map_batches(["i"], operator.itemgetter(0))],
    "map_groups": [pl.map_groups(["i"], operator.itemgetter(0))],
    "max": [pl.max("i")],
    "max_horizontal": [pl.max_horizontal("i", "f")],
    "mean": [pl.mean("i")],
    "mean_horizontal": [pl.mean_horizontal("i", "f")],
    "median": [pl.median("i")],
    "min": [pl.min("i")],
    "min_horizontal": [pl.min_horizontal("i", "f")],
    "n_unique": [pl.n_unique("i")],
    "nth": [pl.nth(1), pl.nth(0, 2)],
    "ones": [pl.ones(6), pl.ones(pl.len())],
    "quantile": [pl.quantile("i", 0.5)],
    "reduce": [pl.reduce(operator.add, _MANY)],
    "repeat": [pl.repeat(1, 6), pl.repeat("a", pl.len())],
    "rolling_corr": [pl.rolling_corr("i", "f", window_size=2)],
    "rolling_cov": [pl.rolling_cov("i", "f", window_size=2)],
    "row_index": [pl.row_index()],
    "sql_expr": [pl.sql_expr("i + 1"), pl.sql_expr("SUM(i)"), pl.sql_expr("ROW_NUMBER() OVER ()")],
    "std": [pl.std("i")],
    "struct": [pl.struct("i", "s"), pl.struct("i").struct.field("i")],
    "sum": [pl.sum("i")],
    "sum_horizontal": [pl.sum_horizontal("i", "f")],
    "tail": [pl.tail("i", 2)],
    "time": [pl.time(_C("i"))],
    "time_range": [pl.time_range()],
    "time_ranges": [pl.time_ranges("h")],
    "var": [pl.var("i")],
    "when": [
        pl.when("b").then("i"),
        pl.when("b").then("i").when(_C("i") > 0).then(1).otherwise("f"),
        pl.when("b").then("s").otherwise("c"),
        pl.when(_C("i") > _C("i").mean()).then(1),
    ],
    "zeros": [pl.zeros(6), pl.zeros(pl.len())],
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
