"""DuckDB: its session is checked where it counts, and many categories are handed to it at once."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import narwhals as nw
import polars as pl

from opendp_bayes.extend.framework import ContractError
from opendp_bayes_engines.frames import FOUND, Held, Lazy, is_in
from opendp_bayes_engines.kinds import Column, Kind, column_of
from opendp_bayes_engines.steps import RESERVED, Frame, Schema
from opendp_bayes_engines.values import counted

#: Settings by which a query may mean something else, and the values at which it does not.
_SETTINGS = {
    "default_collation": ("", "binary", "c", "posix"),
    "current_dialect": ("",),
    "dialect_compatibility_mode": ("none",),
    "active_grammar_extensions": ("[]",),
    "allow_parser_override_extension": ("default",),
}
#: Held while a setting is changed: another thread would put it back too early.
_SETTING = Lock()
_SKIPPING = "filter_pushdown", "statistics_propagation"
#: What DuckDB wants a query on a relation to call it: as no table, view or variable is called.
_NAME = RESERVED + secrets.token_hex(16)
#: Values that are handed over at a time.
_AT_A_TIME = 1_000_000
#: Categories up to which constants cost less than a table.
_FEW = 100


def on_duckdb(frame: Frame, schema: Schema) -> Held:
    """A relation, in which text is compared byte by byte, whatever the collation of its column,
    which the type does not show.

    Raises `ValueError` for a session in which plans may mean something else, now and whenever it
    counts.
    """
    given = frame.to_native()
    check = partial(_check, given, schema)
    check()
    names = {name: '"' + name.replace('"', '""') + '"' for name in schema}
    native = given.project(
        ", ".join(
            f'{quoted} COLLATE "binary" AS {quoted}'
            if schema[name].kind is Kind.STRING and schema[name].dtype == "String"
            else quoted
            for name, quoted in names.items()
        )
    )
    quiet = partial(_of_rows, given)
    return Lazy(nw.from_native(native), _read, check=check, quiet=quiet, found=_found)


def _read(rows: Frame, column: Column) -> Iterator[pl.DataFrame]:
    # DuckDB groups on disk when its memory is used up.
    for batch in counted(rows, column).to_native().to_arrow_reader(_AT_A_TIME):
        yield pl.DataFrame(batch)


@contextmanager
def _of_rows(given: Any) -> Iterator[None]:
    """Let DuckDB ask the rows, and not statistics, while the block runs.

    By the least and largest values of parts of a Parquet file it decides whether any row is NaN.
    They leave out NaN where pyarrow or pandas wrote them, so that one row more in a part could
    bring a thousand back. Only these settings keep it from that: without the first, version 2.0.1
    skips parts in the scan itself.
    """
    with _SETTING:
        setting = "value FROM system.main.duckdb_settings() WHERE name = 'disabled_optimizers'"
        ((before,),) = _asked(given, setting).fetchall()
        disabled = before.split(",")
        wanted = [name for name in _SKIPPING if name not in disabled]
        if not wanted:
            yield
            return
        _set_disabled(given, ",".join([*filter(None, disabled), *wanted]))
        try:
            yield
        finally:
            _set_disabled(given, before)


def _set_disabled(given: Any, optimizers: str) -> None:
    import duckdb

    try:
        given.query(_NAME, f"SET disabled_optimizers = '{optimizers}'")
    except duckdb.InvalidInputException:
        raise ContractError(
            "frame: DuckDB's configuration is locked, and its optimizers"
            f" {' and '.join(_SKIPPING)} would count NaN by statistics of files; run"
            f" `SET disabled_optimizers = '{','.join(_SKIPPING)}'` on its connection before it is"
            " locked."
        ) from None


def _check(given: Any, schema: Schema) -> None:
    """Raise `ContractError` where the session of a relation is not as plans need it, or its columns
    are not what they were. Reads settings, names and types alone.
    """
    # By names that no macro can take: those of the system's own schema.
    for name, value in _asked(given, "name, value FROM system.main.duckdb_settings()").fetchall():
        if name in _SETTINGS and (value or "").casefold() not in _SETTINGS[name]:
            raise ContractError(
                f"frame: DuckDB's setting {name} is {value!r}, by which a plan may mean something"
                f" else; run `RESET {name}` on its connection."
            )
    functions = "DISTINCT function_name FROM system.main.duckdb_functions() WHERE"
    made = {name.casefold() for (name,) in _asked(given, f"{functions} NOT internal").fetchall()}
    if made:
        made &= {name.casefold() for (name,) in _asked(given, f"{functions} internal").fetchall()}
    if made:
        raise ContractError(
            f"frame: the macro {min(made)!r} on DuckDB's connection has the name of a function of"
            " DuckDB, which a plan would call instead; drop it, or give it another name."
        )
    columns = nw.from_native(given).collect_schema().items()
    if {name: column_of(dtype) for name, dtype in columns} != schema:
        raise ContractError(
            "frame: the columns of DuckDB's relation are not those that it had when the Context"
            " was made; make a Context over what it is now."
        )


def _asked(relation: Any, query: str) -> Any:
    """A query on the connection of a relation, which it does not read."""
    asked = relation.query(_NAME, f"SELECT {query}")
    # Before version 2, the relation stays behind as a view of that name.
    relation.query(_NAME, f"DROP VIEW IF EXISTS {_NAME}")
    return asked


def _found(groups: Frame, value: str, known: list[Any]) -> Frame:
    """DuckDB reads each constant again for every step that follows: two seconds for 10^5. One text
    of all is read at once.
    """
    if len(known) <= _FEW:
        return is_in(groups, value, known)
    native, between = groups.to_native(), secrets.token_hex(16)
    kind = "VARCHAR" if isinstance(known[0], str) else "BIGINT"
    text = between.join(map(str, known)).replace("'", "''")
    split = f"CAST(unnest(string_split('{text}', '{between}')) AS {kind}) AS category"
    others = [f"g.{name}" for name in groups.collect_schema().names() if name != FOUND]
    joined = native.set_alias("g").join(
        _asked(native, split).set_alias("c"), f"g.{value} = c.category", how="left"
    )
    return nw.from_native(
        joined.project(", ".join([*others, f"c.category IS NOT NULL AS {FOUND}"]))
    )
