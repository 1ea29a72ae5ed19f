"""Every public method of a narwhals expression is known: accepted for its types, or refused."""

import datetime
from typing import Any

import narwhals as nw
import polars as pl
import pytest

from opendp_bayes_engines.expressions import read
from opendp_bayes_engines.kinds import Column, Kind, column_of, written_column_of
from opendp_bayes_engines.rules import ROOTS, RULES

SCHEMA = {
    "text": column_of(nw.String()),
    "n": column_of(nw.Int64()),
    "small": column_of(nw.Int8()),
    "wide": column_of(nw.UInt64()),
    "real": column_of(nw.Float64()),
    "flag": column_of(nw.Boolean()),
    "day": column_of(nw.Date()),
    "moment": column_of(nw.Datetime()),
    "list": column_of(nw.List(nw.Int64())),
}


def _words(text: str, prefix: str = "") -> set[str]:
    return {prefix + word for word in text.split()}


#: Methods of `nw.Expr` that are no step of their own: what they are made of is looked at instead.
MADE_OF_OTHERS = _words("pipe is_close str.head __radd__ __rmul__ __rand__ __ror__ __bool__")
#: Not row by row: they read other rows, or make more or fewer of them.
OTHER_ROWS = _words(
    """
    all any any_value cat.get_categories count cum_count cum_max cum_min cum_prod cum_sum diff
    drop_nulls ewm_mean filter first is_duplicated is_first_distinct is_last_distinct is_unique
    kurtosis last len map_batches max mean median min mode n_unique null_count over quantile rank
    rolling_mean rolling_std rolling_sum rolling_var shift skew std sum unique var
    """
)
#: Row by row, but they may fail, or mean different things in different engines.
NOT_ALIKE = (
    _words("ceil cos exp fill_nan floor is_finite is_nan log replace_strict round sin sqrt")
    | _words("__truediv__ __rtruediv__ __rfloordiv__ __rmod__ __pow__ __rpow__ struct.field")
    | _words(
        """
        replace replace_all split strip_chars strip_chars_start strip_chars_end tail to_date zfill
        to_datetime to_lowercase to_time to_titlecase to_uppercase pad_start pad_end
        """,
        "str.",
    )
    | _words(
        """
        convert_time_zone date hour microsecond millisecond minute nanosecond offset_by second
        replace_time_zone timestamp to_string total_microseconds total_milliseconds total_minutes
        total_nanoseconds total_seconds truncate
        """,
        "dt.",
    )
    | _words("contains get len max mean median min sort sum unique", "list.")
    | _words("keep map prefix suffix to_lowercase to_uppercase", "name.")
)
#: Refused, and not in narwhals 2.28.
SINCE_2_29 = _words("map __xor__ __rxor__")
NAMESPACES = ("cat", "dt", "list", "name", "str", "struct")
number = nw.col("n")


def _public(of: Any) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def _methods() -> set[str]:
    methods = _public(nw.Expr) - set(NAMESPACES)
    methods |= {
        f"{namespace}.{name}"
        for namespace in NAMESPACES
        for name in _public(getattr(number, namespace))
    }
    return (
        methods
        | {
            name
            for name in vars(nw.Expr)
            if name.startswith("__")
            and name not in vars(object)
            and callable(getattr(nw.Expr, name))
        }
        | {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
    )


def test_every_method_is_known() -> None:
    lists = [set(RULES) - {"clip_lower", "clip_upper"}, MADE_OF_OTHERS, OTHER_ROWS, NOT_ALIKE]
    known = set().union(*lists)
    assert _methods() - SINCE_2_29 == known
    assert sum(map(len, lists)) == len(known)


def test_every_function_that_makes_expressions_is_known() -> None:
    made = _words(
        """
        all all_horizontal any_horizontal coalesce col concat_str corr cov exclude format len list
        lit max max_horizontal mean mean_horizontal median min min_horizontal nth struct sum
        sum_horizontal when
        """
    )
    others = _words(
        """
        concat from_arrow from_dict from_dicts from_native from_numpy get_native_namespace
        generate_temporary_column_name is_ordered_categorical maybe_align_index
        maybe_convert_dtypes maybe_get_index maybe_reset_index maybe_set_index narwhalify
        new_series read_csv read_parquet scan_csv scan_parquet show_versions to_native to_py_scalar
        """
    )
    functions = {
        name
        for name in _public(nw)
        if callable(getattr(nw, name)) and not isinstance(getattr(nw, name), type)
    }
    assert functions == made | others
    assert set(ROOTS) == {"all_horizontal", "any_horizontal", "coalesce", "concat_str", "when_then"}


REFUSED: dict[str, tuple[Any, str]] = {
    "mean": (number.mean(), "mean: is not among the steps"),
    "more than a mean": (number.mean() < number, "mean: is not among the steps"),
    "beside a window": (number + number.cum_sum(), "cum_sum: is not among the steps"),
    "over": (number.sum().over("text"), "sum: is not among the steps"),
    "shift": (number.shift(1), "shift: is not among"),
    "rank": (number.rank(), "rank: is not among"),
    "unique": (number.unique(), "unique: is not among"),
    "filled forward": (number.fill_null(strategy="forward"), "fill_null: is not among"),
    "inside of when": (nw.when(number.max() > 1).then(1).otherwise(2), "max: is not among"),
    "inside of then": (nw.when(number > 1).then(number.max()).otherwise(2), "max: is not among"),
    "len": (nw.len() > 3, "len: is not among"),
    "series": (
        number > nw.from_native(pl.Series([1, 2]), series_only=True),
        "a Series carries data of its own",
    ),
    "in a series": (
        number.is_in(nw.from_native(pl.Series([1, 2]), series_only=True)),
        "is_in: is accepted with a list of constants",
    ),
    "map_batches": (
        number.map_batches(lambda x: x),
        "map_batches: a function of your own .* before `engines.context`.* honest-but-curious",
    ),
    "all": (nw.all(), "all: is not among"),
    "several": (nw.col("n", "small"), "are several columns"),
    "absent": (nw.col("absent") > 1, "'absent' is not a column of the frame, which has 9"),
    "lit(dtype)": (nw.lit(1, dtype=nw.Int8), "leave it out"),
    "null": (number == None, "NoneType is not a constant"),  # noqa: E711
    "moment": (nw.col("moment") > datetime.datetime(2020, 1, 1), "datetime is not a constant"),
    "wide constant": (number < 2**63, "must be less than 2"),
    "lowest constant": (number > -(2**63), "must be less than 2"),
    "early date": (
        nw.col("day") > datetime.date(999, 12, 31),
        "0999-12-31: PySpark takes no dates before the year 1000",
    ),
    "nan": (nw.col("real") == float("nan"), "nan is equal to nothing"),
    "control character": (nw.col("text") == "a\0", "must consist of printable characters"),
    "half a character": (nw.col("text") == "\ud800", "must consist of printable characters"),
    "sum": (number + 1, "may exceed 64 bits"),
    "product": (nw.col("small") * number, "may exceed 64 bits"),
    "minus": (-number - 1, "may exceed 64 bits"),
    "abs": (number.abs(), "may exceed 64 bits"),
    "sum of texts": (nw.col("text") + "x", r"\+: is accepted for integer values, not for String"),
    "division": (number / 2, "truediv: is not among"),
    "by nothing": (nw.col("small").clip(0, 9) // 0, "a constant of at least 1"),
    "by a column": (nw.col("small").clip(0, 9) % nw.col("small"), "a constant of at least 1"),
    "of numbers beyond floats": (number.clip(0, 2**52 + 1) // 2, r"at most 2\*\*52"),
    "of negatives": (nw.col("small") // 2, "numbers of at least 0"),
    "power": (number**2, "pow: is not among"),
    "cast to integer": (nw.col("text").cast(nw.Int64), "cast: from String to Int64 may fail"),
    "cast to less": (number.cast(nw.Int8), "cast: from Int64 to Int8 may fail"),
    "cast of a float": (nw.col("real").cast(nw.String), "cast: from Float64 to String may fail"),
    "text and number": (nw.col("text") == 3, "cannot compare String with Int64"),
    "text and number chosen": (nw.when("flag").then("text").otherwise("n"), "cannot compare"),
    "wide and number": (nw.col("wide") > 3, "cannot compare UInt64 with Int64"),
    "wide and wide": (nw.col("wide") > nw.col("wide"), ">: is accepted for integer or string"),
    "order of flags": (nw.col("flag") < nw.col("flag"), "<: is accepted for"),
    "and of numbers": (number & number, "&: is accepted for boolean values, not for Int64"),
    "nulls ignored": (nw.any_horizontal("flag", ignore_nulls=True), "fill the nulls first"),
    "not of a number": (~number, "~: is accepted for boolean"),
    "when a number": (nw.when(number).then(1), "is accepted for boolean"),
    "clip by a column": (number.clip("small", 5), "whole numbers as its bounds"),
    "clip upside down": (number.clip(5, 1), "must not be above"),
    "in nothing": (number.is_in([]), "at least one constant"),
    "in floats": (nw.col("real").is_in([1.0]), "is_in: is accepted for"),
    "in mixed": (number.is_in([1, "x"]), "cannot compare"),
    "in null": (number.is_in([1, None]), "NoneType is not a constant"),
    "pattern": (nw.col("text").str.contains("^a"), "needs literal=True"),
    "part is a column": (nw.col("text").str.starts_with(nw.col("text")), "constant text"),
    "no part": (nw.col("text").str.contains("", literal=True), "at least one character"),
    "from the end": (nw.col("text").str.slice(-2, 1), "offset of at least 0"),
    "to the end": (nw.col("text").str.slice(1), "a length of at least 1"),
    "far away": (nw.col("text").str.slice(2**30, 1), r"first 2\*\*30 characters"),
    "very long": (nw.col("text").str.slice(0, 2**30 + 1), r"first 2\*\*30 characters"),
    "long constant": (nw.col("text") == "a" * 10_001, "must have at most 10000"),
    "joined too often": (nw.concat_str(*["text"] * 65), "at most 64 texts"),
    "joined by much": (nw.concat_str("text", "text", separator="-" * 65), "by a short one"),
    "lower case": (nw.col("text").str.to_lowercase(), "str.to_lowercase: is not among"),
    "joined ignoring": (nw.concat_str("text", "text", ignore_nulls=True), "fill the nulls first"),
    "joined number": (nw.concat_str("text", "n"), "is accepted for string"),
    "length of a number": (nw.col("n").str.len_chars(), "is accepted for string"),
    "year of a moment": (nw.col("moment").dt.year(), "dt.year: is accepted for date"),
    "list": (nw.col("list").list.len(), "list.len: is not among"),
    "prefix": (number.name.prefix("x"), "name.prefix: is not among"),
    "nan asked": (nw.col("real").is_nan(), "is_nan: is not among"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_to_work_row_by_row_is_refused(name: str) -> None:
    expr, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as caught:
        read(expr, SCHEMA, "predicates")
    assert str(caught.value).startswith("predicates=")


@pytest.mark.parametrize("given", [3, None, lambda row: row, pl.col("n")])
def test_what_is_no_expression_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="must be a narwhals expression"):
        read(given, SCHEMA, "predicates")


@pytest.mark.parametrize(
    ("expr", "limits"),
    [
        (nw.col("small") + 1, (-127, 128)),
        (3 - nw.col("small"), (-124, 131)),
        (nw.col("small") * nw.col("small"), (-(2**7) * (2**7 - 1), 2**14)),
        (number.clip(0, 120) // 10, (0, 12)),
        (number.clip(0, 120) % 7, (0, 6)),
        (number.clip(lower_bound=-3).clip(upper_bound=5), (-3, 5)),
        (nw.col("small").abs(), (0, 128)),
        (-nw.col("small"), (-127, 128)),
        (nw.col("flag").cast(nw.Int64), (0, 1)),
        (nw.when("flag").then(nw.lit(-9)).otherwise(nw.lit(4)), (-9, 4)),
        (nw.col("small").fill_null(200), (-128, 200)),
        (nw.coalesce("small", nw.lit(-300)), (-300, 127)),
    ],
)
def test_limits_of_integers(expr: nw.Expr, limits: tuple[int, int]) -> None:
    assert read(expr, SCHEMA, "exprs").column.limits == limits


@pytest.mark.parametrize(
    ("expr", "nullable"),
    [
        (number > 1, True),
        (number.is_null(), False),
        (number.fill_null(0) > 1, False),
        (number.fill_null(nw.col("small")), True),
        (nw.when(number > 1).then(nw.lit("x")), True),
        (nw.when(number > 1).then(nw.lit("x")).otherwise(nw.lit("y")), False),
        (nw.lit("x"), False),
    ],
)
def test_what_may_be_null(expr: nw.Expr, nullable: bool) -> None:
    assert read(expr, SCHEMA, "exprs").column.nullable is nullable


def test_names_and_columns_read() -> None:
    term = read((nw.col("small") + 1 + nw.col("small").clip(0, 1)).alias("x"), SCHEMA, "exprs")
    assert (term.name, term.reads) == ("x", {"small"})
    term = read(nw.when(number > 1).then("text").otherwise(nw.lit("y")), SCHEMA, "exprs")
    assert (term.name, term.reads) == ("text", {"n", "text"})
    assert read("text", SCHEMA, "exprs").is_column
    assert not read(nw.col("text").cast(nw.String), SCHEMA, "exprs").is_column


def test_types_that_are_known() -> None:
    labels = nw.Enum(["a", "b"])
    assert column_of(labels) == Column(Kind.STRING, "Enum")
    assert written_column_of(labels) == Column(Kind.STRING, "Enum", categories=("a", "b"))
    assert written_column_of(nw.String()) == column_of(nw.String())
    for dtype in (nw.Datetime(), nw.Decimal(), nw.Binary(), nw.Object(), nw.Duration(), nw.Time()):
        assert column_of(dtype).kind is Kind.OTHER
