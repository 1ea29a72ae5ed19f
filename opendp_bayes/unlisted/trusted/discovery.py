"""Counts of all values of a column to a release of those that are shown: noise for each, a
threshold, and nothing of what is below it.
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from opendp.measurements import make_user_measurement
from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.trusted.boundary import (
    ContractError,
    checked_map,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.budget import name_of
from opendp_bayes.unlisted.discovered_data import DiscoveredData
from opendp_bayes.unlisted.laws_for_budgets import loss_of_discovery
from opendp_bayes.unlisted.thresholds import Discovery
from opendp_bayes.unlisted.trusted.keys import KEY, NUMBER, CountedKeys, KeysSpace

#: Values whose noise is drawn at a time.
_AT_A_TIME = 1_000_000
#: Measures under which values may be shown that nobody listed, and whether they state ρ.
_WITH_DELTA = {"Approximate(MaxDivergence)": False, "Approximate(ZeroConcentratedDivergence)": True}


def is_concentrated(output_measure: Measure) -> bool:
    """True if a measure with δ states ρ, and False if it states ε; `ValueError` for a measure
    without δ.
    """
    measure = name_of(output_measure)
    if measure not in _WITH_DELTA:
        raise ValueError(
            f"output_measure={output_measure}: must have a δ, because a value that one person alone"
            " has is shown with a small probability, and never without that person. Ask for"
            " privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-8) or dp.loss_of(rho=0.1, delta=1e-8),"
            " or list the categories."
        )
    return _WITH_DELTA[measure]


def make_discovery(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    discovery: Discovery,
    *,
    delta: float = 0.0,
) -> Measurement:
    """Make the measurement on the output space of `make_discovered_counts` that draws
    `DiscoveredData`; the arguments are those of the constructor of the same name in
    `opendp_bayes.measurements`.
    """
    require_features("make_discovery")
    space = descriptor_of(input_domain, KeysSpace, "make_discovered_counts")
    space.check_metric(input_metric)
    if not isinstance(discovery, Discovery):
        raise TypeError(
            f"discovery={told(discovery)}: must be a Discovery, such as"
            " Discovery(OptimalThreshold(epsilon=1.0, delta=1e-8))."
        )
    of_rho, held = is_concentrated(output_measure), deepcopy(discovery)

    def loss(d_in: Any) -> PrivacyLoss:
        loss_at_distance = loss_of_discovery(held, d_in, concentrated=of_rho, delta=delta)
        return replace(loss_at_distance)  # a value that nobody changes for others

    def losses(d_in: Any) -> tuple[float, float]:
        bound = loss(d_in)
        return (bound.rho if of_rho else bound.epsilon), bound.delta

    law_name = type(held.law).__name__
    privacy_map = checked_map(losses, law_name)
    guarantee = PrivacyGuarantee(None, 1, loss(1), name_of(output_measure))

    def release(keys: Any) -> DiscoveredData:
        if not isinstance(keys, CountedKeys):
            raise ContractError("the input must be counts of make_discovered_counts.")
        labels, noisy_counts, noisy_rest = _shown(keys, space, held)
        return DiscoveredData(
            column=space.column,
            categories=labels,
            noisy_counts=noisy_counts,
            listed=len(space.listed),
            discovery=deepcopy(held),
            noisy_rest=noisy_rest,
            guarantee=deepcopy(guarantee),
            people=space.people,
        )

    measurement = make_user_measurement(
        space.domain,
        space.metric,
        output_measure,
        guarded(release, f"{law_name}: sampling"),
        guarded_map(privacy_map, f"{law_name}: privacy map"),
    )
    measurement.accounting = guarantee.loss.method
    return measurement


#: Labels, their noisy counts, and the noisy rest.
_Shown = tuple[tuple[Value, ...], tuple[int, ...], int | None]


def _shown(keys: CountedKeys, space: KeysSpace, discovery: Discovery) -> _Shown:
    """Shown values, and the rest.

    Every value gets noise, whatever becomes of it. Labels are plain values of Python: a column of
    polars that was filtered still holds what is hidden.
    """
    law = discovery.law
    listed = dict.fromkeys(space.listed, 0)
    shown: dict[Value, int] = {}
    hidden = 0
    slices = (piece for batch in keys.batches() for piece in batch.iter_slices(_AT_A_TIME))
    for batch in slices:
        values, numbers = batch[KEY], batch[NUMBER].to_numpy().astype(np.int64)
        is_listed = values.is_in(pl.Series(list(listed), dtype=values.dtype).implode()).to_numpy()
        noisy = numbers + law.draws(numbers.size)
        is_shown = (noisy >= law.threshold) & ~is_listed
        for label, number in _plain(values, is_listed, numbers):
            listed[label] += number
        counts = _plain(values, is_shown, noisy)
        seen = len(shown) + len(counts)
        shown |= dict(counts)
        if len(shown) < seen:  # which says nothing of what is hidden
            raise RuntimeError("a value is in two rows, so that its noise was drawn twice")
        hidden += int(numbers[~is_shown & ~is_listed].sum())
    noise = law.draws(len(listed)).tolist()
    noised = zip(listed.items(), noise, strict=True)
    noisy_counts = {label: number + z for (label, number), z in noised} | dict(
        sorted(shown.items())
    )
    noisy_rest = None if discovery.rest is None else hidden + int(discovery.rest.draws(1)[0])
    return tuple(noisy_counts), tuple(noisy_counts.values()), noisy_rest


def _plain(
    values: pl.Series, chosen: NDArray[np.bool_], numbers: Integers
) -> list[tuple[Value, int]]:
    """The values that are chosen, with a number for each."""
    labels = values.filter(pl.Series(chosen)).to_list()
    return list(zip(labels, numbers[chosen].tolist(), strict=True))
