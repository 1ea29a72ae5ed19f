"""Describe the release that a query would make and its debit: nothing is read, nothing is spent."""

import math
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.display.wording import prior_said
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.mechanisms.neighbours import relation_of
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.expected_error import error_of_part
from opendp_bayes.queries.bound_query import BoundQuery
from opendp_bayes.queries.question import Variable
from opendp_bayes.queries.sentinels import LeftOut
from opendp_bayes.release_format.labels import place_of
from opendp_bayes.trusted.budget import loss_in, shown
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.spaces import groups_and_labels


def summary_of(asked: BoundQuery, budget: Any, guess_size: int | None) -> pl.DataFrame:
    """The row that `PosteriorQuery.summarize` shows, of the mechanism that fits the budget and its
    loss for one privacy unit.
    """
    size = asked.space.size
    if guess_size is not None:
        guess_size = as_size(guess_size, "guess_size")
        if size is not None:
            raise ValueError(
                f"guess_size={guess_size}: the number of records, {size}, is public; leave it out."
            )
    records = guess_size if size is None else size
    width = None if records is None else _width(asked, asked.fitted(budget), records)
    numbers = dict.fromkeys(("scale", "epsilon", "delta", "rho", "interval_width"), pl.Float64)
    return pl.DataFrame(
        [_row(asked, budget) | {"interval_width": width}],
        schema_overrides={**numbers, "d_in": pl.Int64, "largest": pl.Int64},
    )


def _row(asked: BoundQuery, budget: Any) -> dict[str, Any]:
    """The row, without the width of an interval, which takes time to compute."""
    mechanism, loss = asked.fitted(budget).mechanism, asked.loss(budget)
    measure, learned = parts_of(asked.base).output_measure, asked.question.learned
    return {
        "column": ", ".join(asked.columns),
        "aggregate": _aggregate(asked),
        "categories": _where_from(asked),
        "prior": prior_said(_prior(asked), learned=learned, ordered=asked.question.ordered or ()),
        "nulls": _where_counted(asked, "nulls"),
        "unknown": _where_counted(asked, "unknown"),
        "mechanism": type(mechanism).__name__,
        "scale": mechanism.scale,
        "neighbours": relation_of(asked.space.size),
        "d_in": asked.distance.records,
        "largest": asked.distance.largest,
        "epsilon": loss.epsilon,
        "delta": loss.delta,
        "rho": loss.rho,
        "debits": f"{shown(loss_in(measure)(loss))} ({measure})",
    }


def described(asked: BoundQuery, budget: Any) -> str:
    """Describe the query in one line, without anything that takes time to compute."""
    row = _row(asked, budget)
    size = "" if asked.space.size is None else f", size={asked.space.size}"
    columns = ", ".join(map(repr, asked.columns))
    return (
        f"PosteriorQuery({row['aggregate'].lower()} of {columns}, prior={row['prior']!r},"
        f" mechanism={asked.fitted(budget).mechanism}, relation={row['neighbours']!r}{size},"
        f" d_in={asked.distance.stated}, debits={row['debits']})"
    )


def _prior(asked: BoundQuery) -> tuple[float, ...]:
    """The prior of the categories, of one group where there are groups."""
    _, labels = groups_and_labels(asked.space.categories)
    return asked.space.prior[: len(labels) or None]


def _aggregate(asked: BoundQuery) -> str:
    groups, labels = groups_and_labels(asked.space.categories)
    k = len(labels) if groups else asked.space.k
    kind = f"{k} cells" if asked.space.axes else f"{k} categories"
    return f"Posterior of {kind}" + (f" in {len(groups)} groups" if groups else "")


def _where_counted(asked: BoundQuery, policy: str) -> str:
    """The label that nulls or other values are counted under, of several columns by name."""
    fates = {}
    of_groups = [of for of in asked.question.groups if getattr(of, policy) is not None]
    for variable in (*asked.question.variables, *of_groups):
        label = getattr(variable, policy)
        fate = "cannot occur" if label is None else repr(label)
        if policy == "nulls" and _is_another_value(asked, variable):
            fate = f"{fate}, with what reads so"
        fates[variable.column] = "left out" if isinstance(label, LeftOut) else fate
    return _by_name(fates)


def _is_another_value(asked: BoundQuery, variable: Variable) -> bool:
    """True if values that read like the label of nulls, which is no category, are counted there."""
    axes = () if asked.frame is None else asked.frame.cells.axes
    held = [value for of in axes if of.column == variable.column for value in of.values]
    given = held if variable.categories is None else variable.categories
    return place_of(variable.nulls, held) is not None and place_of(variable.nulls, given) is None


def _where_from(asked: BoundQuery) -> str:
    """Say where the labels of categories and groups are from, of several columns by name."""
    question = asked.question
    given: dict[str, object] = {of.column: of.categories for of in question.variables}
    together = question.combinations
    given |= {of.column: of.categories if together is None else together for of in question.groups}
    axes = () if asked.frame is None else asked.frame.cells.axes
    boolean = {of.column for of in axes if of.kind == "boolean"}
    return _by_name(
        {
            name: "given"
            if labels is not None
            else "of its type"
            if name in boolean
            else "of its type; an Enum that was made from the data is the data"
            for name, labels in given.items()
        }
    )


def _by_name(said: dict[str, str]) -> str:
    """Join what is said of several columns, once where it is the same of all."""
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{name}: {one}" for name, one in said.items())


def _width(asked: BoundQuery, setting: Setting, records: int) -> float:
    """The expected width of an interval at balanced proportions, of the categories of one group
    where there are groups.
    """
    space = asked.space
    groups, labels = groups_and_labels(space.categories)
    cells = len(groups) * len(labels) or space.k  # without that of records in no group
    counts = np.zeros(space.k, dtype=np.int64)
    counts[:cells] = np.diff(np.arange(cells + 1) * records // cells)
    part = slice(0, len(labels) if groups else space.k)
    width = error_of_part("interval_width", setting, counts, part)
    return width if math.isfinite(width) else math.nan
