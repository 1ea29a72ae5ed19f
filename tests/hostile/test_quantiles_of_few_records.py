"""Quantiles of levels of few records: no uniform groups, and a warning where noise hides them."""

import warnings
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.surveys.levels import tree
from opendp_bayes.surveys.levels.tree import halves

GROUP = 10
#: Steep flanks in the first and the last group, and as many records in every bin between.
EDGE = [0] * 6 + [5, 10, 15, 20]
STEEP = np.array([*EDGE, *[40] * 20, *EDGE[::-1]])
TRUTH = 8.2  # of the quantile .02, 16 of 900 records


def levels(counts: Any, scale: float, group: int = GROUP) -> Any:
    """Bins and groups of neighbours, of which counts were drawn under Laplace noise."""
    bins = list(range(len(counts)))
    merge = {f"from {a}": bins[a : a + group] for a in range(0, len(bins), group)}
    made: Any = {"mechanism": "laplace_parameters", "scale": scale}
    sums = counts.reshape(-1, group).sum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of counts that look clamped
        releases = {
            "bin": ob.noisy_counts(counts.tolist(), bins, **made),
            "group": ob.noisy_counts(sums.tolist(), bins, merge=merge, **made),
        }
    return ob.combine_tables(releases)


@pytest.fixture(scope="module")
def steep() -> Any:
    """The levels of the steep flanks, under little noise."""
    return levels(STEEP, 3.0)


def outer_quantile(of: Any) -> tuple[float, float]:
    """The interval of 95 % of a quantile in a flank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = of["bin"].quantile(0.02, edges=np.arange(41.0))
        low, high = found.value.interval(0.95)
    return low, high


def test_steep_flanks_and_groups_of_equal_shares_are_noticed(
    steep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where groups are not halved they share one concentration, that of flat ones."""
    low, high = outer_quantile(steep)
    assert low < TRUTH < high
    monkeypatch.setattr(tree, "halves", lambda *_: [])
    assert outer_quantile(levels(STEEP, 3.0))[1] < TRUTH - 2


def test_halves_nest_and_parts_that_are_no_neighbours_are_not_halved() -> None:
    fine, coarse = np.arange(13), np.array([1] * 3 + [0] * 10)
    found = halves(fine, coarse)
    assert [part.max() + 1 for part, _ in found] == [11, 7, 4]
    for (part, number), (above, _) in zip(found, [*found[1:], (coarse, None)], strict=True):
        assert np.array_equal(number, np.bincount(part))
        assert tree.nests(part, above)
        assert np.all(np.diff(part) >= 0)
    sizes = found[-1][1]
    assert sizes.tolist() == [2.0, 1.0, 5.0, 5.0]
    assert halves(np.arange(8), np.array([0, 1, 0, 1, 0, 1, 0, 1])) == []
    assert halves(np.arange(4), np.array([0, 0, 1, 1])) == []  # which leaves nothing between


def test_quantiles_that_noise_hides_have_a_warning() -> None:
    """The bin of the median has 40 records, and the noise a standard deviation of 42."""
    hidden = levels(STEEP[:20], 30.0)
    with pytest.warns(UserWarning, match=r"levels 0.5 lie .* 0\.[89]\d*"):
        hidden["bin"].quantile(0.5)


@pytest.mark.parametrize("name", ["clear counts", "small groups"])
def test_clear_counts_and_small_groups_have_none(name: str, steep: Any) -> None:
    clear = steep if name == "clear counts" else levels(STEEP[:20], 30.0, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clear["bin"].quantile(0.5)
        clear["group"].merged({"first": clear["group"].categories[:2]}).quantile(0.5)
