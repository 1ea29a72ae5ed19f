"""The steps and expressions of a polars plan that are accepted, each with the reason.

OpenDP checks plans too, and lets some through whose values depend on other rows. Whatever is not
listed here is refused by `plan_gate`. Names are those that polars writes into a plan.
`docs/guarantee.md` shows the same lists, and a test keeps them equal.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of step or expression: how a user writes it, and why it is accepted.

    `by_label` says that a function may be of a Categorical, because it goes by the label of the
    value and not by its code. The code is the number of labels that occurred before it in all rows.
    `of` has the types that a function is of, where it fails for others.
    """

    written: str
    reason: str
    by_label: bool = False
    of: tuple[str, ...] = ()


_DATES, _TIMES, _NUMBERS = ("Date", "Datetime"), ("Time", "Datetime"), ("integer", "float")


#: Each row of the result comes from one row; that of an aggregation, from the rows of one group.
STEPS = {
    "DataFrameScan": Kind("`context.query()`", "the rows themselves"),
    "IR": Kind("`query.collect_schema()`", "is the same plan, with its types looked up"),
    "Filter": Kind("`filter`", "keeps or drops a row by a value of that row, or limits rows"),
    "HStack": Kind("`with_columns`", "adds values of the same row"),
    "Select": Kind("`select` with a column in it", "keeps values of the same row"),
    "GroupBy": Kind(
        "`group_by(...).agg(...)`", "makes one row of a group: OpenDP's Bounds count it"
    ),
}

#: The value at a row depends on that row alone.
EXPRESSIONS = {
    "Column": Kind("`pl.col('x')`, one by name", "is a value of the row"),
    "Alias": Kind("`alias`, `y=...`", "is another name"),
    "Literal": Kind("`pl.lit`: one number, text or Boolean", "is the same for every row"),
    "BinaryExpr": Kind(
        "arithmetic without `/`, comparisons, logic",
        "is of two values of the row; `//` and `%` of integers alone",
    ),
    "Ternary": Kind("`fill_nan`", "is one of two values of the row"),
    "Cast": Kind(
        "`cast` to Boolean, numbers, String, Enum, dates and times",
        "is of one value, and of no pair of types that fails at some values; of a Categorical to"
        " String or Enum, which go by its label, of a float to neither",
    ),
    "Boolean.IsNull": Kind("`is_null`", "is of one value", by_label=True),
    "Boolean.IsNotNull": Kind("`is_not_null`", "is of one value", by_label=True),
    "Boolean.IsFinite": Kind("`is_finite`", "is of one value", of=_NUMBERS),
    "Boolean.IsInfinite": Kind("`is_infinite`", "is of one value", of=_NUMBERS),
    "Boolean.IsNan": Kind("`is_nan`", "is of one value", of=_NUMBERS),
    "Boolean.IsNotNan": Kind("`is_not_nan`", "is of one value", of=_NUMBERS),
    "Boolean.Not": Kind("`~`, `not_`", "is of one value"),
    "Clip": Kind("`clip`", "is of one value and two limits"),
    "Cut": Kind(
        "`cut` at given breaks", "has the label of one value; its code is that of none", of=_NUMBERS
    ),
    "FillNull": Kind("`fill_null` with a value", "is one of two values of the row"),
    "Replace": Kind("`replace` by a constant mapping", "is of one value"),
    "ReplaceStrict": Kind("`replace_strict` by a constant mapping", "is of one value"),
    "StringExpr.Strptime": Kind(
        "`str.to_date`, `to_datetime`, `to_time` with a format",
        "is of one value; polars would infer a format from all of them",
    ),
    "TemporalExpr.Millennium": Kind("`dt.millennium`", "is of one value", of=_DATES),
    "TemporalExpr.Century": Kind("`dt.century`", "is of one value", of=_DATES),
    "TemporalExpr.Year": Kind("`dt.year`", "is of one value", of=_DATES),
    "TemporalExpr.IsoYear": Kind("`dt.iso_year`", "is of one value", of=_DATES),
    "TemporalExpr.Quarter": Kind("`dt.quarter`", "is of one value", of=_DATES),
    "TemporalExpr.Month": Kind("`dt.month`", "is of one value", of=_DATES),
    "TemporalExpr.Week": Kind("`dt.week`", "is of one value", of=_DATES),
    "TemporalExpr.WeekDay": Kind("`dt.weekday`", "is of one value", of=_DATES),
    "TemporalExpr.Day": Kind("`dt.day`", "is of one value", of=_DATES),
    "TemporalExpr.OrdinalDay": Kind("`dt.ordinal_day`", "is of one value", of=_DATES),
    "TemporalExpr.Hour": Kind("`dt.hour`", "is of one value", of=_TIMES),
    "TemporalExpr.Minute": Kind("`dt.minute`", "is of one value", of=_TIMES),
    "TemporalExpr.Second": Kind("`dt.second`", "is of one value", of=_TIMES),
    "TemporalExpr.Millisecond": Kind("`dt.millisecond`", "is of one value", of=_TIMES),
    "TemporalExpr.Microsecond": Kind("`dt.microsecond`", "is of one value", of=_TIMES),
    "TemporalExpr.Nanosecond": Kind("`dt.nanosecond`", "is of one value", of=_TIMES),
}

#: In `group_by(...).agg(...)` alone, and of no floats, whose sum depends on the order of adding.
AGGREGATIONS = {
    "Len": Kind("`pl.len()`", "counts the rows of the group"),
    "Count": Kind("`count`", "counts the values of the group"),
    "NullCount": Kind("`null_count`", "counts the nulls of the group"),
    "NUnique": Kind("`n_unique`", "counts the different values of the group"),
    "Sum": Kind("`sum`", "adds the integers of the group"),
    "Min": Kind("`min`", "is a value of the group, whatever the order of its rows"),
    "Max": Kind("`max`", "is a value of the group, whatever the order of its rows"),
}

#: Operators of a `BinaryExpr`.
OPERATORS = frozenset(
    [
        "Eq",
        "EqValidity",
        "NotEq",
        "NotEqValidity",
        "Lt",
        "LtEq",
        "Gt",
        "GtEq",
        "Plus",
        "Minus",
        "Multiply",
        "Divide",
        "TrueDivide",
        "FloorDivide",
        "Modulus",
        "And",
        "Or",
        "Xor",
        "LogicalAnd",
        "LogicalOr",
    ]
)

_VALUES = frozenset(
    [
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "Int128",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "UInt128",
        "Float32",
        "Float64",
        "String",
        "Date",
        "Time",
        "Datetime",
        "Duration",
    ]
)
#: Types that a cast may have.
TYPES = _VALUES | {"Enum"}
#: The types that a cast may be of, by the one it is to. Others fail at some values although OpenDP
#: makes none strict, or give dates at which their own functions fail, which would tell of values.
CASTS = {
    "Boolean": {"Boolean", "integer", "float"},
    "integer": {"Boolean", "integer", "float", "String", "Enum", *_DATES, "Time", "Duration"},
    "float": {"Boolean", "integer", "float", "String", *_DATES, "Time", "Duration"},
    "String": {"Boolean", "integer", "String", "Enum", *_DATES, "Time"},
    "Enum": {"String", "Enum"},
    "Date": {"String", *_DATES},
    "Time": {"String", *_TIMES},
    "Datetime": {"String", *_DATES},
    "Duration": {"Duration"},
}
#: What a constant may be: polars has names of its own for those of Python.
CONSTANTS = _VALUES | {"Null", "StringOwned", "Int", "Float", "Str"}

_ORDER = "which depend on the order of the values in all rows"
_TO_ENUM = (
    "Use `cast(pl.Enum([...]), strict=False)` with public categories, which goes by the label"
)
_BEFORE = "Compute it in the frame before the Context, if each row of the result comes from one row"
_ONE_ROW = "Keep one row of each identifier instead, with `truncate_per_group(1)`"

#: The reason and the remedy for what users are likely to try; the last is for everything else.
REFUSED = {
    "ToPhysical": (
        f"reads the codes of a Categorical, {_ORDER}",
        f"{_TO_ENUM}; others have `cast`",
    ),
    "Categorical": (f"makes a Categorical, which has codes {_ORDER}", _TO_ENUM),
    "codes": (f"is a Categorical, whose codes are read here, {_ORDER}", _TO_ENUM),
    "AnonymousFunction": (
        "is a function of your own, which may look at other rows",
        "Apply it to the frame before the Context; OpenDP's honest-but-curious feature is then your"
        " promise that each row of its result comes from one row",
    ),
    "Over": (
        "looks at other rows",
        "Only `truncate_per_group` and `truncate_num_groups` may, each a filter of its own",
    ),
    "Series": (
        "has a value for each position, and where a row is depends on the rows before it",
        "Use one constant, or `replace` by a mapping",
    ),
    "Selector": ("names columns by a rule", "Name each of them, as in `pl.col('x')`"),
    "Strptime": ("without a format infers one from all rows", "Pass format='%Y-%m-%d' or another"),
    "QCut": ("takes its breaks from all rows", "Use `cut` with public breaks"),
    "FillNullWithStrategy": ("looks at other rows", "Use `fill_null` with a value"),
    "AllHorizontal": (
        "joins the conditions of a filter, as `drop_nulls` does too, which is not accepted",
        "Join them by `&`, or give each a filter of its own; instead of `drop_nulls('x')` write"
        " `filter(pl.col('x').is_not_null())`",
    ),
    "IsIn": (
        "is not supported by OpenDP",
        "Write `replace_strict({'a': True, 'b': True}, default=False)`, or join comparisons by `|`",
    ),
    "IsBetween": ("is not supported by OpenDP", "Write `(x >= 1) & (x <= 2)`"),
    "Coalesce": ("is not supported by OpenDP", "Use `fill_null` with a value"),
    "First": ("depends on the order of rows", _ONE_ROW),
    "Last": ("depends on the order of rows", _ONE_ROW),
    "float": (
        "is no number to group by or to add up: the last digits depend on the order of all rows",
        "Cast it to integers first",
    ),
    "division": (
        "rounds otherwise where a batch has one row, and which rows share one depends on all",
        "Compare with another limit, `x >= 10` for `x / 10 >= 1`, or cast to integers and use `//`",
    ),
    "zero": (
        "shows the sign of zero, which depends on whether other rows are in its batch",
        "Use `cut` with public breaks, or cast to integers first",
    ),
    "fails": (
        "fails at some values, and a release that fails tells of them",
        "Of text, write `replace_strict({'a': True, 'b': True}, default=False)`, or `str.to_date`"
        " with a format; compute others in the frame before the Context",
    ),
    "stale": (
        "was computed anew, and the Bounds of the privacy unit or of an earlier step are about the"
        " groups of the old column",
        "Give the new column another name",
    ),
    "limit": (
        "is not one whole number, so that OpenDP may count fewer rows than polars keeps",
        "Pass one, as in `truncate_per_group(2)`",
    ),
    "seed": (
        "draws the same places every time, and which rows are there may depend on all",
        "Leave the seed out, as `keep='sample'` does",
    ),
    "keys": (
        "numbers rows of other identifiers too, in polars 1.36",
        "Sort by one column, computed from them where several decide",
    ),
    "constants": ("makes one row, whatever the data", "Select a column too, or use `with_columns`"),
    "source": ("is what it begins with", "Begin it with `context.query()`"),
    "": ("is not among the steps that are known to look at one row alone", _BEFORE),
}
