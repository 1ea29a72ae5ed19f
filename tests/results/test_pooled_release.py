"""Pooled groups as the analyst sees them: frame, table and picture."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes import LaplaceParameters
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.pooled_release import Pooled
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten

#: Of the release that is pooled.
PROMISE = guarantee(None)
PRIVATE = LaplaceParameters(1.0, total="private")


def pooled_of(groups: Any, drawn: Any, a: Any = None, made: Any = PROMISE) -> Pooled:
    """Of draws that all have κ m = 3 for every category and the counts that were drawn."""
    noisy = DrawnCounts.of(drawn, DiscreteLaplace(1.0))
    drawn = noisy.drawn
    labels = ("yes", "no", "$x^$", "d")[: drawn.shape[1]]
    a = np.full((40, drawn.shape[1]), 3.0) if a is None else a
    counts = np.tile(np.maximum(drawn, 0), (len(a), 1, 1))
    return Pooled(PooledGroups(groups, labels, noisy, None), made, a, counts, 40.0)


NORTH = pooled_of(("north", None), [[4, -2], [10, 90]])


def test_is_shown_as_a_frame_and_as_a_table() -> None:
    frame = NORTH.to_frame(0.5)
    assert frame["group"].to_list() == ["north"] * 2 + [None] * 2
    assert frame["category"].to_list() == ["yes", "no"] * 2
    assert frame["noisy_count"].to_list() == [4, -2, 10, 90]
    one = stats.beta([7, 3, 13, 93], [3, 7, 93, 13])
    lower, upper = one.interval(0.5)
    wanted = np.column_stack([one.mean(), one.std(), lower, upper])
    assert frame["mean", "std", "lower", "upper"].to_numpy() == pytest.approx(wanted, abs=1e-9)
    text = str(NORTH.sheet(0.5)).splitlines()
    assert text[1].split() == f"north yes 4 0.700 {lower[0]:.3f} to {upper[0]:.3f}".split()
    assert text[-2] == "The others are worth 6 records to a group (50 %: 6 to 6)."
    assert text[-1] == "Importance sampling: 40 effective draws."
    assert "0.700" in NORTH._repr_html_()
    with pytest.raises(ValueError, match="level=1"):
        NORTH.to_frame(1.0)


@pytest.mark.parametrize(
    ("truncated", "kept"), [(False, ""), (True, ""), (True, "the last row of each id")]
)
def test_the_table_has_the_promise_of_the_release(
    truncated: bool, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    made = guarantee(None, d_in=2, truncated=truncated, kept=kept)
    shown = pooled_of(("north", None), [[4, 0], [10, 90]], made=made).sheet()
    text = " ".join(str(shown).split())
    whole = "whole identifiers, with at most " if truncated else ""
    said = f"All groups together: ε = 1 for data sets that differ by {whole}2 records added"
    assert said in text
    assert ("rows of each identifier were limited" in text) == truncated
    assert ("limited to the last row of each id before they were counted" in text) == bool(kept)
    grouped = GroupedRelease(
        ("n", "s"), ((40, 10), (10, 30)), ("a", "b"), (1.0, 1.0), PRIVATE, made
    )
    assert grouped.pooled(ess=1).guarantee == made


@pytest.mark.parametrize("k", [2, 3])
def test_many_groups_are_estimated_together_as_alone(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(2, 0.1, (400, 1))) * rng.dirichlet(np.full(k, 40), 400)
    drawn = rng.poisson(9.0, (30, k))
    noisy = DrawnCounts.of(drawn, DiscreteLaplace(1.0))
    counts = rng.poisson(drawn + 1, (400, 30, k))
    groups = PooledGroups(tuple(range(30)), tuple(range(k)), noisy, None)
    pooled = Pooled(groups, PROMISE, a, counts, 400.0)
    alone = pooled.to_frame()
    monkeypatch.setattr("opendp_bayes.results.pooled_release._TOGETHER", 0)
    together = pooled.to_frame()
    for name, error in {"mean": 1e-9, "std": 1e-9, "lower": 0.05, "upper": 0.05}.items():
        off = (together[name] - alone[name]) / alone["std"]
        assert off.abs().max() < error
