"""DuckDB: nothing of a session, such as collations and the order of its rows, is asked."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from opendp_bayes_engines.kinds import Column, schema_of
from opendp_bayes_engines.steps import ORDER
from opendp_bayes_engines.tables import LazyTable, names_in_frame

_TYPES: dict[str, Any] = {
    "BOOLEAN": pl.Boolean,
    "TINYINT": pl.Int64,
    "SMALLINT": pl.Int64,
    "INTEGER": pl.Int64,
    "BIGINT": pl.Int64,
    "UTINYINT": pl.Int64,
    "USMALLINT": pl.Int64,
    "UINTEGER": pl.Int64,
    "UBIGINT": pl.UInt64,
    "FLOAT": pl.Float32,
    "DOUBLE": pl.Float64,
    "VARCHAR": pl.String,
    "ENUM": pl.String,
    "DATE": pl.Date,
}
#: Columns as they are within an engine. A text of Arrow may hold any bytes.
_READ: dict[Any, str] = {
    pl.Int64: "CAST({0} AS BIGINT)",
    pl.String: "encode(TRY(decode(encode(CAST({0} AS VARCHAR)))))",
    pl.Date: "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    " THEN {0} - DATE '1970-01-01' END",
}
#: Rows that are handed over at a time.
_AT_A_TIME = 1_000_000


class DuckDBTable(LazyTable):
    """A relation of DuckDB."""

    @classmethod
    def from_native(cls, relation: Any) -> "DuckDBTable":
        types = ("ENUM" if kind.id == "enum" else str(kind) for kind in relation.types)
        # A type in brackets, of a nested column, may hold labels.
        columns = (Column(kind.partition("(")[0], _TYPES.get(kind)) for kind in types)
        return cls(relation, schema_of(zip(relation.columns, columns, strict=True)))

    def read(self, names: Sequence[str], *, in_order: bool = False) -> Any:
        columns = [
            _READ.get(self.schema[name].dtype, "{0}").format('"' + name.replace('"', '""') + '"')
            + f" AS {alias}"
            for name, alias in names_in_frame(names).items()
        ]
        if in_order:  # with a key, whatever numbers the session draws
            columns.append(f"hash(hash(random(), {secrets.randbits(63)})) AS {ORDER}")
        return self.native.project(", ".join(columns))

    def batches(self, frame: Any) -> Iterator[pl.DataFrame]:
        reader = frame.to_arrow_reader(_AT_A_TIME)
        first = next(reader, None)
        yield pl.DataFrame(reader.schema.empty_table() if first is None else first)
        for batch in reader:
            yield pl.DataFrame(batch)
