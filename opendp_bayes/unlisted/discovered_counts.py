"""Frames to the counts of values that nobody listed, `make_discovered_counts`, and to a release of
some of them, `make_discovery`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opendp.mod import Domain, LazyFrameDomain, Measure, Measurement, Metric, Transformation

from opendp_bayes.mathematics.telling import told
from opendp_bayes.queries.base import releasing
from opendp_bayes.queries.columns import public_values
from opendp_bayes.queries.question import LeftOut
from opendp_bayes.release_format.casts import how_to_cast
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.labels import distinct, plain
from opendp_bayes.trusted.boundary import require_features
from opendp_bayes.trusted.kinds import ColumnKind, kinds_of_frame
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from opendp_bayes.unlisted.thresholds import Discovery
from opendp_bayes.unlisted.trusted import discovery as trusted
from opendp_bayes.unlisted.trusted.keys import (
    Batches,
    CountedKeys,
    Keys,
    counted_in_frames,
    make_counts_of_keys,
    normal_batches,
)


def make_discovered_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    column: str,
    always: Sequence[Value] = (),
    nulls: Value | LeftOut | None = None,
) -> Transformation:
    """Count the records of every value of a column, which nobody listed.

    What it gives holds all values and nobody may see it: it is for `make_discovery`, which shows
    those whose noisy count reaches a threshold.

    The stability map returns the sum over all values of how far their counts move, two for a record
    that is changed.

    Parameters
    ----------
    input_domain : Domain
        A `LazyFrameDomain`.
    input_metric : Metric
        `symmetric_distance()`, `change_one_distance()`, or `frame_distance(symmetric_distance())`
        with Bounds, as after `make_stable_lazyframe`.
    column : str
        The column whose values are counted: String, Categorical, Enum, Date, integer or Boolean.
        Text is compared by its characters as they are, and a date is text, such as "2026-05-01".
        The categories of a type are not used.
    always : Sequence[str or int or bool], optional
        Values that are listed all the same, and shown whatever their count.
    nulls : str or int or bool or LeftOut, optional
        A value of the column's kind under which nulls are counted, which is shown whatever its
        count; or `DROP`, which leaves them out. Required if the column is nullable.

    Raises
    ------
    ValueError, TypeError
        For a column, value, metric or policy that does not fit.
    """
    require_features("make_discovered_counts")
    if not isinstance(input_domain, LazyFrameDomain):
        raise TypeError(
            f"input_domain={told(input_domain)}: must be a LazyFrameDomain, as"
            " `dp.domain_of(frame, infer=True)` makes."
        )
    keys = keys_of(column, kinds_of_frame(input_domain), always, nulls)
    count = counted_in_frames(keys)
    return make_counts_of_keys(input_domain, input_metric, keys, count, "make_discovered_counts")


def counting_values(
    domain: Domain,
    metric: Metric,
    column: str,
    kinds: Mapping[str, ColumnKind],
    batches: Callable[[Any, Keys], Batches],
    made_by: str,
    *,
    always: Sequence[Value] = (),
    nulls: Value | LeftOut | None = None,
    person: str | None = None,
    plan: Transformation | None = None,
) -> Transformation:
    """Make the transformation from data of your own to the counts of all values of a column,
    guarded and with its stability map.

    Parameters
    ----------
    domain : Domain
        The domain of the data, whatever holds them.
    metric : Metric
        One that bounds a number of records, `symmetric_distance()` or `change_one_distance()`.
    column, always, nulls : str, Sequence, str or int or bool or LeftOut
        As in `make_discovered_counts`.
    kinds : Mapping[str, ColumnKind]
        By name, what is known of each column.
    batches : Callable[[Any, Keys], Batches]
        A generator, from the data and what is counted of them, `Keys` with its `column`, `nulls`
        and `person`, to polars frames with the columns `key` and `number`. Every value that occurs
        is in one row of one frame, text by its characters and in no other form. Its number is that
        of records, or where `person` is not None of people who have it. A date may stay one, and a
        null, which is counted under `nulls` or left out; people who have both are counted once
        only where `batches` puts `nulls` in place of nulls before it counts. They are dropped as
        they are read.
    made_by : str
        The name that messages give.
    person : str, optional
        The column that tells people apart; None where records are counted.
    plan : Transformation, optional
        Where people are counted, the transformation from data whose privacy unit is one identifier
        to those of `domain`, which limits the rows of each; what is made begins before it then, and
        not behind.

    Raises
    ------
    ValueError, TypeError
        For a column, value, metric or policy that does not fit.
    """
    keys = keys_of(column, kinds, always, nulls, person)

    def count(data: Any) -> CountedKeys:
        return CountedKeys(lambda: normal_batches(batches(data, keys), keys))

    return make_counts_of_keys(domain, metric, keys, count, made_by, plan=plan)


def keys_of(
    column: Any, kinds: Mapping[str, ColumnKind], always: Any, nulls: Any, person: str | None = None
) -> Keys:
    """A column whose values are to be discovered, and the values that are listed.

    Raises
    ------
    ValueError, TypeError
        Where these do not fit the column.
    """
    if not isinstance(column, str):
        raise TypeError(
            f"column={told(column)}: must be the name of one column where its categories are to be"
            " discovered; join several in the frame before the Context, as in"
            " frame.with_columns(place=pl.concat_str('town', 'street', separator=', '))."
        )
    if column not in kinds:
        raise ValueError(f"column={column!r}: is not a column of the frame.")
    column_kind = replace(kinds[column], declared=None)  # which would be what the type lists
    if column_kind.type == "Date":
        column_kind = replace(column_kind, kind="text")
    if column_kind.kind == "other":
        raise TypeError(
            f"column={column!r}: has type {column_kind.type}; must be String, Categorical, Enum,"
            f" Date, integer or Boolean. {how_to_cast(column_kind.type, column)}"
        )
    if isinstance(always, str) or not isinstance(always, Sequence):
        raise TypeError(f"always={told(always)}: must be a sequence of labels, as in ['A01'].")
    if column_kind.nullable and nulls is None:
        raise ValueError(
            f"nulls=None: column {column!r} may hold nulls. Pass nulls= with a label to count them"
            " under, which is shown whatever its count, or nulls=ob.DROP to leave them out."
        )
    under = None if nulls is None or isinstance(nulls, LeftOut) else plain(nulls)
    listed = (
        [] if not always else list(public_values(column, column_kind, always, argument="always"))
    )
    if under is not None:
        public_values(column, column_kind, [under], argument="nulls")
        listed = distinct([*listed, under])
    for label in listed:
        is_day = kinds[column].type == "Date" and (label != under or label in always)
        _check_can_be(label, is_day=is_day)
    return Keys(column, column_kind.kind, tuple(listed), under, person)


def _check_can_be(label: Any, *, is_day: bool) -> None:
    """Raise `ValueError` for a listed text that no value can be."""
    if not isinstance(label, str):
        return
    try:
        label.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"always, nulls: {label!a} has half of a character, which no column holds; write the"
            " whole one."
        ) from None
    if is_day and not re.fullmatch(r"\d{4}-\d\d-\d\d|-?\d+ days", label):
        raise ValueError(
            f"always={label!r}: is no date as it is counted; write it as '2026-05-01'."
        )


def make_discovery(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    discovery: Discovery,
    *,
    delta: float = 0.0,
) -> Measurement:
    """Show the values of a column that nobody listed, as far as that is private; returns a
    `DiscoveredRelease`.

    Every value that occurs gets a noisy count, and is shown with it if it reaches the threshold.
    Values that were listed are shown whatever their count, with the same noise.

    The map returns (ε, δ) or (ρ, δ), certified (`docs/research/proofs.md`, "Keys that nobody
    listed").

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        Output of `make_discovered_counts`.
    output_measure : Measure
        `approximate(max_divergence())` or `approximate(zero_concentrated_divergence())`, for
        Gaussian noise.
    discovery : Discovery
        The law of the noise with its threshold, and the noise of the rest: `Discovery` with an
        `OptimalThreshold`, `LaplaceThreshold` or `GaussianThreshold`.
    delta : float, default 0.0
        The δ that the privacy map of Gaussian noise uses under `approximate(max_divergence())`; 0
        elsewhere, where δ follows from the law.

    Raises
    ------
    ValueError, TypeError
        For pieces that do not fit.
    """
    return releasing(
        trusted.make_discovery(input_domain, input_metric, output_measure, discovery, delta=delta),
        DiscoveredRelease.of,
    )


then_discovered_counts = to_then(make_discovered_counts)
then_discovery = to_then(make_discovery)
