"""Everything of OpenDP that it does not promise to keep: names with an underscore, attributes that
its queries hide, and errors that are known by their text alone. No other file touches any of them.

A new version of OpenDP may change all of this. `tests/trusted/test_opendp_internals.py` asks OpenDP
for each, and names what is gone.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl
from opendp.context import Context, Query
from opendp.domains import _lazyframe_from_domain
from opendp.extras import _utilities
from opendp.extras.polars import LazyFrameQuery, _series_domain_from_field
from opendp.mod import GLOBAL_FEATURES, Domain, Measure

__all__ = ["GLOBAL_FEATURES"]

#: The message of a callback of ours, in the account that OpenDP gives of it.
RAISED_BY_CALLBACK = re.compile(r"^RuntimeError: (.*)$", re.MULTILINE)


def to_then(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Make the `then_x` of a constructor, as OpenDP makes its own.

    Parameters
    ----------
    constructor : Callable
        Takes the input domain and metric first.
    """
    return _utilities.to_then(constructor)


class Parts(NamedTuple):
    """Arguments from which OpenDP makes a `Query`, in its order.

    Attributes
    ----------
    chain : Any
        The space of the data, or what was chained to it.
    output_measure : Measure
        The measure of the Context.
    d_in : Any
        The distance of its privacy unit.
    d_out : Any
        The budget of the query, None where it has none.
    context : Context or None
        The Context that holds the data, None where there is none.
    """

    chain: Any
    output_measure: Measure
    d_in: Any
    d_out: Any
    context: Context | None


def parts_of(query: Query) -> Parts:
    """The parts of a query that is on no frame, or of what a frame's query belongs to."""
    return Parts(query._chain, query._output_measure, query._d_in, query._d_out, query._context)


def belongs_to(query: LazyFrameQuery) -> Query:
    """The query with the budget and the Context, which a query on a polars frame hides."""
    return object.__getattribute__(query, "_query")


def plan_of(query: LazyFrameQuery) -> pl.LazyFrame:
    """The plan of a query on a polars frame, which hides it behind polars' own methods."""
    return object.__getattribute__(query, "polars_plan")


def forget_origin(built: Any) -> None:
    """Take from an object of OpenDP what it was made of, such as the frame."""
    with suppress(AttributeError):
        del built.__opendp_dict__


def frame_of(domain: Domain) -> pl.LazyFrame:
    """A frame without rows that has the columns of a domain."""
    return _lazyframe_from_domain(domain)


def domain_of_column(name: str, dtype: pl.DataType) -> Domain:
    """The domain of a column; raises `OpenDPException` or `ValueError` for a type without one."""
    return _series_domain_from_field((name, dtype))
