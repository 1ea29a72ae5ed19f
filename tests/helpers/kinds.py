"""Descriptions of the columns of a frame, as a question needs them."""

import polars as pl

from opendp_bayes.trusted.kinds import ColumnKind, kind_of


def kinds_in(frame: pl.LazyFrame) -> dict[str, ColumnKind]:
    """Describe the columns of a frame, any of which may hold nulls."""
    return {name: kind_of(dtype) for name, dtype in frame.collect_schema().items()}
