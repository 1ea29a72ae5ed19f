"""Say how a column of a type that is not counted becomes one that is, in the words of polars."""

#: By the name of a type, an expression of `pl.col(...)` whose value is of the same row.
CASTS = {
    "Float16": "cast(pl.Int64, strict=False)",
    "Float32": "cast(pl.Int64, strict=False)",
    "Float64": "cast(pl.Int64, strict=False)",
    "Decimal": "cast(pl.Int64, strict=False)",
    "Date": "cast(pl.String)",
    "Datetime": "cast(pl.Date).cast(pl.String)",
    "Time": "dt.hour()",
    "Duration": "dt.total_days()",
    "List": "list.first()",
    "Array": "arr.first()",
    "Struct": "struct.field('NAME')",
    "Null": "cast(pl.String)",
}
#: What else may be meant, and what the labels are then.
_OTHERWISE = {
    "Float16": ", or bin it by cut",
    "Float32": ", or bin it by cut",
    "Float64": ", or bin it by cut",
    "Decimal": ", or bin it by cut",
    "Date": ", whose labels are as '2026-05-01', or .dt.year() or .dt.month()",
    "Datetime": ", whose labels are as '2026-05-01', or .dt.year() or .dt.month()",
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
    return (
        f"Cast it {where}, as in pl.col({column!r}).{CASTS[type_name]}"
        f"{_OTHERWISE.get(type_name, '')}."
    )
