"""A posterior per group: the rows counted in cells of group and category, released at once, and
split into one release for each group.
"""

import io
import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from opendp.core import new_function
from opendp.extras._utilities import to_then
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import Domain, Function, Metric, Transformation

from opendp_bayes.framework.boundary import ContractError, descriptor_of, guarded, require_features
from opendp_bayes.framework.columns import CategoricalColumn, public_values
from opendp_bayes.framework.counts import counting, public_size, source_column, type_of_column
from opendp_bayes.framework.spaces import IN_NO_GROUP, GroupedCountsSpace, Key, PosteriorSpace
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms import LaplaceParameters, Mechanism
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.release import Label, Release


def make_grouped_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    by: str,
    keys: Sequence[Key] | None = None,
    column: str,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
) -> Transformation:
    """Count the records of each category of one column in each group of another.

    Parameters
    ----------
    by : the column that says which group a record is in; Enum, String, Categorical, integer or
        Boolean.
    keys : the public groups, as values of `by`; with None among them, the nulls are a group too,
        the last. Not needed for an Enum column, which carries its own. Rows with any other value
        are in no group: they are counted in a cell of their own, which no grouped release contains.
    column, categories, size, nulls, unknown : as in `make_categorical_counts`. `size` is the number
        of all records; those of the groups are private.

    The output is an int64 array with an entry for every cell, group by group, and a last one for
    the rows that are in no group. The stability map is that of `make_categorical_counts`: every row
    is in one cell (`docs/proofs.md`, "Groups"). What follows is `make_dirichlet_multinomial`,
    `make_laplace_parameters` with `total="private"`, and `grouped_release`.

    Raises `ValueError`/`TypeError` for a column, key, metric or policy that does not fit.
    """
    require_features("make_grouped_counts")
    values = source_column(
        input_domain, input_metric, column, categories=categories, nulls=nulls, unknown=unknown
    )
    groups = _groups(by, type_of_column(input_domain, by, "by"), keys)
    k, cells = len(values.labels), len(groups.labels) * len(values.labels)
    space = GroupedCountsSpace.build(
        groups.labels, values.labels, public_size(input_domain, input_metric, size)
    )

    def count(frame: pl.LazyFrame) -> Integers:
        found = (
            frame.select(group=groups.value, value=values.value)
            .group_by("group", "value")
            .len()
            .collect(engine="streaming")
        )
        cell = np.minimum(
            groups.positions(found["group"]) * k + values.positions(found["value"]), cells
        )
        counts = np.zeros(cells + 1, dtype=np.int64)
        np.add.at(counts, cell, found["len"].to_numpy().astype(np.int64))
        return counts

    return counting(input_domain, input_metric, space, count, "make_grouped_counts")


def grouped_release(input_domain: Domain) -> Function:
    """Post-processing from the release of all cells to a `GroupedRelease`, without the cell of the
    rows in no group.

    `input_domain` is the posterior space of the cells: `posterior >> then_laplace_parameters(...,
    total="private") >> grouped_release(posterior.output_domain)`. Raises `ValueError` for another
    domain.
    """
    require_features("grouped_release")
    space: PosteriorSpace = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial after make_grouped_counts"
    )
    cells: Any = space.categories
    if cells[-1] != IN_NO_GROUP:
        raise ValueError(
            f"input_domain={input_domain}: has no groups; must be the output of"
            " make_dirichlet_multinomial after make_grouped_counts."
        )
    groups = tuple(dict.fromkeys(group for group, _ in cells[:-1]))
    k = (space.k - 1) // len(groups)
    labels = tuple(label for _, label in cells[:k])

    def split(cells: Release) -> GroupedRelease:
        if not (
            isinstance(cells.mechanism, LaplaceParameters) and cells.mechanism.total == "private"
        ):
            raise ContractError(
                "the release of the cells must be by LaplaceParameters with total='private'."
            )
        return GroupedRelease(
            groups=groups,
            counts=tuple(cells.counts[start : start + k] for start in range(0, space.k - 1, k)),
            categories=labels,
            prior=cells.prior[:k],
            mechanism=cells.mechanism,
            size=cells.size,
            d_in=cells.d_in,
            loss=cells.loss,
            measure=cells.measure,
        )

    return new_function(guarded(split, "grouped_release"), TO="ExtrinsicObject")


then_grouped_counts = to_then(make_grouped_counts)


def ungrouped(query: LazyGroupByQuery) -> tuple[LazyFrameQuery, str]:
    """The query before `group_by` and the column it groups by; `ValueError` unless that is one
    column by name.

    Polars does not give back the plan of a group-by, so it is read from the serialised one. The
    plan holds no data.
    """
    grouped = object.__getattribute__(query, "_lgb_plan").agg([])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the JSON form is on its way out; the rule below notices if it changes
            node = json.loads(grouped.serialize(format="json"))["GroupBy"]
            plan = pl.LazyFrame.deserialize(io.StringIO(json.dumps(node["input"])), format="json")
            keys = [key["Column"] for key in node["keys"] if key.keys() == {"Column"}]
    except Exception as error:
        raise ValueError(
            "query: its plan cannot be read back from `group_by`; leave out infinite and undefined"
            f" literals and Python functions. ({error})"
        ) from None
    if len(keys) != 1 or len(node["keys"]) != 1:
        raise ValueError(
            "query: must group by one column, by name. Compute the column in the plan first: "
            "`query.with_columns(group=pl.col('a') + '/' + pl.col('b')).group_by('group')`."
        )
    if plan.group_by(keys).agg([]).serialize() != grouped.serialize():
        raise ValueError(
            "query: its plan is not read back from `group_by` as it was, or groups with options;"
            " use `group_by(column)` alone."
        )
    return LazyFrameQuery(plan, object.__getattribute__(query, "_query")), keys[0]


def mechanism_for_groups(
    mechanism: Any, options: dict[str, Any]
) -> tuple[str | Mechanism, dict[str, Any]]:
    """Complete the mechanism and the options of a query per group; refuse all but Laplace noise
    with a private total.

    The other mechanisms need the public number of records of each group, which a changed record can
    change.
    """
    name = mechanism if isinstance(mechanism, str) else getattr(mechanism, "name", None)
    total = getattr(mechanism, "total", options.get("total", "private"))
    if name not in ("auto", LaplaceParameters.name) or total != "private":
        shown = (
            f"total={total!r}"
            if name in ("auto", LaplaceParameters.name)
            else f"mechanism={mechanism!r}"
        )
        raise ValueError(
            f"{shown}: needs a public number of records, and those of the groups are private: a"
            " record may be in any group, and a changed one may move to another. Use"
            " mechanism='auto', or LaplaceParameters(scale, total='private')."
        )
    if not isinstance(mechanism, str):
        return mechanism, options
    return LaplaceParameters.name, {**options, "total": "private"}


def _groups(by: str, dtype: pl.DataType, keys: Any) -> CategoricalColumn:
    """The column of the groups, whose labels are the keys; the position after the last is that of
    the rows in no group.
    """
    if isinstance(keys, (pl.Series, np.ndarray)):
        keys = keys.tolist() if isinstance(keys, np.ndarray) else keys.to_list()
    nulls = isinstance(keys, Sequence) and not isinstance(keys, str) and None in keys
    if nulls and keys.count(None) > 1:
        raise ValueError(f"keys={keys!r}: must not repeat a key.")
    known = public_values(
        by, dtype, [key for key in keys if key is not None] if nulls else keys, "keys"
    )
    labels: Any = (*known, None) if nulls else known
    return CategoricalColumn(by, dtype, known, labels, nulls=len(known), unknown=len(labels))
