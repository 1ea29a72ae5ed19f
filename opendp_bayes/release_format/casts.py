"""Say how a column of a type that is not counted becomes one that is, in the words of polars."""

_DATES = ", whose labels are as '2026-05-01', or .dt.year() or .dt.month()"
#: By the name of a type, an expression of `pl.col(...)` whose value is of the same row, and what
#: else may be meant, or what the labels are then.
CASTS = {
    **dict.fromkeys(
        ("Float16", "Float32", "Float64", "Decimal"),
        ("cast(pl.Int64, strict=False)", ", or bin it by cut"),
    ),
    "Date": ("cast(pl.String)", _DATES),
    "Datetime": ("cast(pl.Date).cast(pl.String)", _DATES),
    "Time": ("dt.hour()", ""),
    "Duration": ("dt.total_days()", ""),
    "List": ("list.first()", ""),
    "Array": ("arr.first()", ""),
    "Struct": ("struct.field('NAME')", ""),
    "Null": ("cast(pl.String)", ""),
}


def how_to_cast(type_name: str, column: str, where: str = "in the frame before the Context") -> str:
    """Write a sentence on how a column of a type becomes one that is counted.

    Examples
    --------
    >>> how_to_cast("Time", "at")
    "Cast it in the frame before the Context, as in pl.col('at').dt.hour()."
    """
    if type_name not in CASTS:
        return "Make it text or whole numbers in the frame."
    return f"Cast it {where}, as in pl.col({column!r}).{''.join(CASTS[type_name])}."
