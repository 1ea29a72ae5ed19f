"""The steps and expressions of a polars plan that are accepted, each with the reason.

A row of the result comes from one row, whatever the others are, and every expression has a value
for every value of the types that it is accepted for: none fails, or makes a text longer. The reason
is the definition of the operation. OpenDP checks plans too, and lets more through. Whatever is not
listed here is refused by `plan_validation`. Names are those that polars writes into a plan.
`docs/guarantee.md` shows the same lists, and a test keeps them equal.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Kind:
    """A kind of step or expression: how a user writes it, why it is accepted, and for values of
    which types, by the names in `FAMILIES`.
    """

    written: str
    reason: str
    of: tuple[str, ...] = ()


#: The types that a plan computes with. Integers of one kind wrap around at their ends.
FAMILIES: dict[Any, str] = {
    pl.Boolean: "Boolean",
    pl.String: "String",
    pl.Enum: "Enum",
    pl.Categorical: "Categorical",
    pl.Date: "Date",
    pl.Datetime: "Datetime",
    pl.Time: "Time",
    **dict.fromkeys((pl.Float32, pl.Float64), "float"),
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.Int64), "integer"),
    **dict.fromkeys((pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64), "integer"),
}
NUMBERS = ("integer", "float")
_LABELLED = ("Boolean", "integer", "String", "Enum")
_TIMES = ("Date", "Datetime", "Time")
#: What a constant may be.
CONSTANTS = ("Boolean", "integer", "float", "String", "Null")
COMPARED = (*_LABELLED, "float", *_TIMES)

STEPS = {
    "DataFrameScan": Kind("`context.query()`", "the rows themselves"),
    "IR": Kind("`query.collect_schema()`", "is the same plan, with its types looked up"),
    "Filter": Kind("`filter`", "keeps or drops a row by a value of that row, or limits rows"),
    "HStack": Kind("`with_columns`", "adds values of the same row"),
    "Select": Kind("`select` with a column in it", "keeps values of the same row"),
}

COMPARISON = Kind(
    "`==`, `!=`, `<`, `<=`, `>`, `>=`, `eq_missing`, `ne_missing` of two numbers, or of values of"
    " one type other than Categorical",
    "is true, false or null",
    COMPARED,
)
_LOGIC = Kind("logic of Booleans: and, or, exclusive or", "is true, false or null", ("Boolean",))
_SUM = Kind("`+`, `-`, `*` of integers of one type", "wraps around at its ends", ("integer",))
QUOTIENT = Kind(
    "`//`, `%` of integers by a constant of at least 1", "is within its type", ("integer",)
)
#: The value at a row is decided by that row alone.
EXPRESSIONS = {
    "Column": Kind("`pl.col('x')`, one by name", "is a value of the row"),
    "Alias": Kind("`alias`, `y=...`", "is another name"),
    "Literal": Kind(
        "`pl.lit`: one number, Boolean, or text of at most 1000 characters",
        "is the same for every row",
    ),
}
#: Those of two values.
OPERATORS = {
    **dict.fromkeys(("Eq", "NotEq", "EqValidity", "NotEqValidity"), COMPARISON),
    **dict.fromkeys(("Lt", "LtEq", "Gt", "GtEq"), COMPARISON),
    **dict.fromkeys(("And", "Or", "Xor", "LogicalAnd", "LogicalOr"), _LOGIC),
    **dict.fromkeys(("Plus", "Minus", "Multiply"), _SUM),
    **dict.fromkeys(("FloorDivide", "Modulus"), QUOTIENT),
}
#: By what a cast is to.
CASTS = {
    "Boolean": Kind(
        "`cast` of Booleans and numbers to Boolean",
        "is whether it is other than 0",
        ("Boolean", *NUMBERS),
    ),
    "integer": Kind(
        "`cast` of Booleans and numbers to an integer type of at most 64 bits",
        "is the whole part, or null where it is none or beyond the type",
        ("Boolean", *NUMBERS),
    ),
    "float": Kind(
        "`cast` of Booleans and numbers to Float32 or Float64",
        "is the nearest one, beyond all an infinity",
        ("Boolean", *NUMBERS),
    ),
    "String": Kind(
        "`cast` of Booleans, integers, an Enum or a Categorical to String",
        "is `true`, `false`, at most 20 characters, or the label",
        (*_LABELLED, "Categorical"),
    ),
    "Enum": Kind(
        "`cast` of text, an Enum or a Categorical to an Enum",
        "is the same label, or null where there is none",
        ("String", "Enum", "Categorical"),
    ),
}
#: Of one value, and of constants.
FUNCTIONS = {
    "Boolean.IsNull": Kind("`is_null`", "is true or false", (*COMPARED, "Categorical")),
    "Boolean.IsNotNull": Kind("`is_not_null`", "is true or false", (*COMPARED, "Categorical")),
    "Boolean.IsFinite": Kind("`is_finite` of numbers", "is true, false or null", NUMBERS),
    "Boolean.IsInfinite": Kind("`is_infinite` of numbers", "is true, false or null", NUMBERS),
    "Boolean.IsNan": Kind("`is_nan` of numbers", "is true, false or null", NUMBERS),
    "Boolean.IsNotNan": Kind("`is_not_nan` of numbers", "is true, false or null", NUMBERS),
    "Boolean.Not": Kind("`~`, `not_` of Booleans", "is true, false or null", ("Boolean",)),
    "Clip": Kind(
        "`clip` of integers to constants of their type", "is one of three numbers", ("integer",)
    ),
    "Cut": Kind(
        "`cut` of numbers at constant breaks",
        "has the label of the part that holds the number, or null; its code is that of none",
        NUMBERS,
    ),
    "FillNull": Kind(
        "`fill_null` with a constant of the same type",
        "is one of two values",
        ("Boolean", "integer", "float", "String"),
    ),
    "Replace": Kind(
        "`replace` by a mapping of constants of the same type", "is one of them", COMPARED
    ),
    "ReplaceStrict": Kind(
        "`replace_strict` by a mapping from constants of its type to others of one type",
        "is one of them, or null where it is not among them",
        COMPARED,
    ),
}
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
        "Only `truncate_per_group` may, in a filter of its own, and keep the first or last rows or"
        " draw them: sort the frame before the Context, and instead of"
        " `truncate_num_groups(3, by=['x'])` write"
        " `truncate_per_group(1, by=['x']).truncate_per_group(3)`",
    ),
    "Series": (
        "has a value for each position, and where a row is depends on the rows before it",
        "Use one constant, or `replace` by a mapping",
    ),
    "Selector": ("names columns by a rule", "Name each of them, as in `pl.col('x')`"),
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
    "Ternary": (
        "is not supported by OpenDP",
        "Write `(x > 2).replace_strict({True: 'high', False: 'low'})`",
    ),
    "GroupBy": ("makes a row of several", _ONE_ROW),
    "float": (
        "shows last digits or the sign of zero, which depend on other rows",
        "Cast it to integers first, or compute it in the frame before the Context",
    ),
    "TrueDivide": (
        "rounds otherwise where a batch has one row, and which rows share one depends on all",
        "Compare with another limit, `x >= 10` for `x / 10 >= 1`, or cast to integers and use `//`",
    ),
    "back": ("is not read back by polars", f"Write `x.is_infinite()` or `x.is_nan()`. {_BEFORE}"),
    "fails": ("might fail at some values, and a failure tells that they are there", _BEFORE),
    "constant": (
        "might fail where there are any values, and a failure tells that there are",
        "Pass numbers, Booleans or text that the type of the column has",
    ),
    "long": (
        "is longer than 1000 characters, of which every row would get a copy",
        "Use a short label",
    ),
    "stale": (
        "is computed anew, and the Bounds of the privacy unit or of an earlier step are about the"
        " groups of the old column",
        "Give the new column another name",
    ),
    "limit": (
        "is not one whole number, so that OpenDP may count fewer rows than polars keeps",
        "Pass one, as in `truncate_per_group(2)`",
    ),
    "key": (
        "is not followed through the plan",
        "Compute it under a name first, by `with_columns`, or an identifier in the frame before the"
        " Context",
    ),
    "constants": ("makes one row, whatever the data", "Select a column too, or use `with_columns`"),
    "source": ("is what it begins with", "Begin it with `context.query()`"),
    "": (
        "is not among the steps and expressions that look at one row alone, and have a value for"
        " every one",
        _BEFORE,
    ),
}
_ARCS = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
#: What users write where polars' own name, in small letters, is another: a name with its namespace,
#: or a namespace alone.
WRITTEN = {
    **{f"trigonometry.arc_{name}": f"arc{name}" for name in _ARCS},
    "anonymous_function": "map_elements, map_batches or inspect",
    "and": "& or and_",
    "any_horizontal": "any_horizontal, or drop_nans of a frame,",
    "arg_where": "arg_where or arg_true",
    "arr.get": "arr.get, arr.first or arr.last",
    "arr.length": "arr.len",
    "bin.base64_decode": "bin.decode",
    "bin.base64_encode": "bin.encode",
    "bin.hex_decode": "bin.decode",
    "bin.hex_encode": "bin.encode",
    "business": "dt.is_business_day or dt.add_business_days",
    "count": "count or len",
    "distinct": "unique",
    "dt.time_stamp": "dt.timestamp or dt.epoch",
    "dt.to_string": "dt.to_string or dt.strftime",
    "dt.week_day": "dt.weekday",
    "eq": "== or eq",
    "eq_validity": "eq_missing",
    "explode": "explode, flatten, list.explode or str.explode",
    "ext_context": "with_context",
    "extension": "ext.storage or ext.to",
    "ffi_plugin": "an expression of another library, as those of OpenDP's dp,",
    "fill_null_with_strategy": "fill_null with a strategy, forward_fill or backward_fill",
    "fill_nan": "fill_nan",
    "filter": "filter or where",
    "floor_divide": "// or floordiv",
    "gather": "gather or get",
    "group_by": "group_by, group_by_dynamic or rolling",
    "gt": "> or gt",
    "gt_eq": ">= or ge",
    "hint": "set_sorted",
    "join": "join, join_asof, join_where or update",
    "keep_name": "name.keep",
    "log": "log or log10",
    "lt": "< or lt",
    "lt_eq": "<= or le",
    "max": "max or nan_max",
    "min": "min or nan_min",
    "minus": "- or sub",
    "modulus": "% or mod",
    "multiply": "* or mul",
    "negate": "- or neg",
    "not": "~ or not_",
    "not_eq": "!= or ne",
    "not_eq_validity": "ne_missing",
    "null_count": "null_count or has_nulls",
    "opaque_python": "map_batches or inspect",
    "or": "| or or_",
    "plus": "+ or add",
    "q_cut": "qcut",
    "random": "shuffle or sample",
    "rename_alias": "a function of name, as name.suffix,",
    "rleid": "rle_id",
    "rolling_expr": "a rolling_ function",
    "rolling_expr_by": "a rolling_ function",
    "round_sf": "round_sig_figs",
    "row_index": "with_row_index or with_row_count",
    "selector": "a rule for columns, as pl.all(), exclude, or drop, cast or fill_null of frames,",
    "set_sorted_flag": "set_sorted",
    "slice": "head, limit, slice, tail, first, last, top_k or bottom_k",
    "str.concat_vertical": "str.join or str.concat",
    "str.base64_decode": "str.decode",
    "str.base64_encode": "str.encode",
    "str.hex_decode": "str.decode",
    "str.hex_encode": "str.encode",
    "str.lowercase": "str.to_lowercase",
    "str.replace": "str.replace or str.replace_all",
    "str.split_n": "str.splitn",
    "str.strptime": "str.to_date, str.to_datetime, str.to_time or str.strptime",
    "str.titlecase": "str.to_titlecase",
    "str.uppercase": "str.to_uppercase",
    "str.z_fill": "str.zfill",
    "sum": "sum or dot",
    "ternary": "pl.when or fill_nan",
    "top_k": "top_k or bottom_k",
    "top_k_by": "top_k_by or bottom_k_by",
    "true_divide": "/ or truediv",
    "unpivot": "unpivot or melt",
    "xor": "^ or xor",
}
