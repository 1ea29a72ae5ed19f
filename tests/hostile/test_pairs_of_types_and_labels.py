"""Every type × every label at the ends of its values × every door: counts are Python's."""

from collections.abc import Callable
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_engines as engines

#: Integers of 64 bits and less by the bits that they have.
INTEGERS: tuple[Any, ...] = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
INTEGERS += (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
UNIT = dp.unit_of(contributions=1)
LOSS = dp.loss_of(epsilon=1e5)


def ends(dtype: Any) -> tuple[int, int]:
    frame = pl.select(low=dtype.min(), high=dtype.max())
    return int(frame["low"][0]), int(frame["high"][0])


def values_of(dtype: Any) -> list[int]:
    """Both ends, their neighbours, and what casts to another sign would make of a label."""
    low, high = ends(dtype)
    wrapped = [2**bits - 1 for bits in (8, 16, 32, 63, 64)]
    wrapped += [2**64 - 2, 2**63, 2**63 + 1]
    of = {low, low + 1, high - 1, high, -1, 0, 1, *wrapped}
    return [value for value in sorted(of) if low <= value <= high]


#: Labels of 64 bits, also of values that the type has not.
LABELS = [-(2**63), -(2**63) + 1, -128, -2, -1, 0, 1, 127, 255, 65_535, 2**32 - 1, 2**63 - 1]


def frame_of(dtype: Any) -> tuple[pl.DataFrame, list[int]]:
    """Each value another number of times."""
    values = [value for at, value in enumerate(values_of(dtype)) for _ in range(3 + at)]
    return pl.DataFrame({"n": pl.Series(values, dtype=dtype)}), values


def in_polars(frame: pl.DataFrame) -> Any:
    return ob.context(frame.lazy(), privacy_unit=UNIT, privacy_loss=LOSS)


def in_parquet(frame: pl.DataFrame, tmp_path: Any) -> Any:
    frame.write_parquet(tmp_path / "n.parquet")
    return ob.context(tmp_path / "n.parquet", privacy_unit=UNIT, privacy_loss=LOSS)


def in_duckdb(frame: pl.DataFrame) -> Any:
    return duckdb.from_arrow(frame.to_arrow())


#: A table of engines that start at once.
ENGINES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "duckdb": in_duckdb,
    "polars": lambda frame: frame.lazy(),
}


def of_engine(table: Any, dtype: Any) -> Any:
    """A Context of the engine's own; of what it does not count, on what `columns` writes."""
    arguments: Any = {"privacy_unit": UNIT, "privacy_loss": LOSS}
    if dtype == pl.UInt64:
        context = engines.context(table, **arguments)
        with pytest.raises(TypeError, match=r"n'.*columns"):
            ob.posterior(context.query(epsilon=1e5), "n", categories=[0], unknown="other")
        return ob.context(engines.columns(table, ["n"]), **arguments)
    return engines.context(table, **arguments)


@pytest.mark.parametrize("door", ["polars", "parquet", *(f"engine {of}" for of in ENGINES)])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_whole_numbers_are_counted_by_their_value(tmp_path: Any, dtype: Any, door: str) -> None:
    """A label below 0 is no value of a type without signs, and none beyond 63 bits is below 0."""
    frame, values = frame_of(dtype)
    if door == "polars":
        context = in_polars(frame)
    elif door == "parquet":
        context = in_parquet(frame, tmp_path)
    else:
        context = of_engine(ENGINES[door.removeprefix("engine ")](frame), dtype)
    query = ob.posterior(
        context.query(epsilon=1e5), "n", categories=LABELS, nulls=ob.DROP, unknown="other"
    )
    release = query.release()
    counts = dict(zip(release.categories, release.counts, strict=True))
    wanted: dict[Any, int] = {label: values.count(label) for label in LABELS}
    wanted["other"] = len(values) - sum(wanted.values())
    assert counts == wanted
