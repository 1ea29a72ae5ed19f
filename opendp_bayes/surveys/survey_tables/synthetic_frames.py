"""Synthetic records as polars frames, with the types of the labels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Label

if TYPE_CHECKING:
    import polars as pl


def frame_of(levels: Integers, labels: Mapping[str, tuple[Label, ...]]) -> "pl.DataFrame":
    """Name the levels of records, shape `(size, variables)`: Booleans and integers stay what they
    are, and all others become an Enum in the order of the labels.
    """
    import polars as pl

    columns = {}
    for (name, of), own in zip(labels.items(), levels.T, strict=True):
        kinds = {type(label) for label in of}
        if kinds == {bool} or kinds == {int}:
            columns[name] = pl.Series(name, np.array(of)[own])
        else:
            texts = list(map(str, of))
            if len(set(texts)) < len(texts):
                texts = list(map(repr, of))
            codes = pl.Series(name, own.astype(np.uint32))
            columns[name] = codes.cast(pl.Enum(texts))
    return pl.DataFrame(columns)
