"""Quantiles under fixed priors, and of few records between steep flanks."""

import itertools
import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference.answers import ordered
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.surveys.levels import tree
from opendp_bayes.surveys.levels.tree import halves
from tests.helpers.releases import guarantee

LEVELS = (0.1, 0.5, 0.9, 0.95)
LAWS: Any = {
    "uniform": stats.uniform(),
    "exponential": stats.expon(scale=1 / 6),
    "peaked": stats.norm(0.5, 0.1),
}
WARNING = r"levels .* depend on the prior, .* learn .* along their order, .* larger budget"


def shares_of(law: str, k: int) -> Any:
    """The probabilities of so many bins between 0 and 1."""
    found = np.diff(LAWS[law].cdf(np.linspace(0, 1, k + 1)))
    return found / found.sum()


def released(counts: Any, scale: float, prior: float, rng: np.random.Generator) -> ob.Release:
    """A release of counts, with noise of Laplace."""
    drawn = counts + DiscreteLaplace(scale).simulate(counts.shape, rng)
    mechanism = ob.LaplaceParameters(scale, total="private")
    k = len(counts)
    return ob.Release(
        tuple(drawn.tolist()), tuple(range(k)), (prior,) * k, mechanism, guarantee(None)
    )


def warned_and_held(law, k, scale, records, prior, rng):
    """Of each level, whether a warning names it and the interval of 95 % holds the quantile."""
    shares = shares_of(law, k)
    truth = np.interp(LEVELS, np.append(0, np.cumsum(shares)), np.arange(k + 1.0))
    release = released(rng.multinomial(records, shares), scale, prior, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = release.posterior.quantiles(LEVELS)
    named = found.warning.partition(" depend ")[0].replace(",", "").split()
    places = [one.interval(0.95) for one in found.values()]
    held = [low <= at <= high + 1 for (low, high), at in zip(places, truth, strict=True)]
    return np.array([f"{level:g}" in named for level in LEVELS]), np.array(held)


def in_cases(number: int, *of: Any) -> tuple[Any, Any]:
    warned, held = zip(*(warned_and_held(*of) for _ in range(number)), strict=True)
    return np.array(warned), np.array(held)


@pytest.fixture(scope="module")
def hidden() -> tuple[Any, Any]:
    """Six bins of an exponential law, of which most have few records beside the noise."""
    rng = np.random.default_rng(1)
    return in_cases(4, "exponential", 6, 10.0, 100, 1.0, rng)


def test_where_intervals_fail_a_warning_says_so(hidden: tuple[Any, Any]) -> None:
    warned, held = hidden
    assert held[:, 3].mean() < 0.6
    assert warned[:, 3].mean() > 0.8
    assert not np.any(~warned & ~held)


@pytest.mark.parametrize(
    ("law", "k", "scale", "records"),
    [("exponential", 9, 1.0, 10_000), ("uniform", 4, 5.0, 1000), ("uniform", 9, 0.5, 1000)],
)
def test_clear_counts_have_no_warning(law: str, k: int, scale: float, records: int) -> None:
    rng = np.random.default_rng(2)
    warned, held = in_cases(1, law, k, scale, records, 1.0, rng)
    assert not warned.any()
    assert held.mean() >= 0.9


def test_without_the_rule_failures_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: of the same releases, where nothing counts as moved."""
    monkeypatch.setattr(ordered, "_MOVED", np.inf)
    rng = np.random.default_rng(1)
    warned, held = in_cases(1, "exponential", 6, 10.0, 100, 1.0, rng)
    assert np.any(~warned & ~held)


HIDDEN = np.array([250, 120, 60, 30, 20, 10, 5, 3, 2])


def test_the_warning_says_what_to_do_and_merging_makes_quantiles_clear() -> None:
    """What the warning names as a remedy: fewer categories, and with them less of the prior."""
    posterior = released(HIDDEN, 20.0, 1.0, np.random.default_rng(0)).posterior
    with pytest.warns(UserWarning, match=WARNING):
        posterior.quantile(0.95)
    posterior = released(10 * HIDDEN, 3.0, 1.0, np.random.default_rng(0)).posterior
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.merged({"last": [4, 5, 6, 7, 8]}).given([0, 1, 2, 3, "last"]).quantile(0.5)


@pytest.mark.parametrize("levels", [{0.1: 1, 0.9: 4}, {0.9: 4, 0.1: 1}], ids=str)
def test_the_warning_names_the_levels_that_are_pulled_in_any_order(levels: Any) -> None:
    """Of six categories with one record each; the prior adds to the last two alone."""
    places = {level: np.arange(6) == at for level, at in levels.items()}
    quantiles: Any = {level: SimpleNamespace(probabilities=of) for level, of in places.items()}
    pulls = np.array([0.0, 0.0, 0.0, 0.0, 50.0, 50.0])

    def cumulative(ends: Any) -> Any:
        return SimpleNamespace(mean=lambda: ends / 6, std=lambda: np.full(len(ends), 0.4))

    said = ordered.said_of_pulls(quantiles, pulls, 200.0, cumulative)
    assert said.startswith("Quantiles of the levels 0.9 depend")


def test_pulls_of_parts_are_in_the_order_of_their_categories() -> None:
    """Those of the whole, summed over what each category is made of."""
    cells = tuple(itertools.product("abc", range(3)))
    prior = tuple(2.0**at for at in range(9))
    noise = ob.LaplaceParameters(2.0, total="private")
    one, table = (
        ob.Release(tuple(range(10, 19)), labels, prior, noise, guarantee(None), axes).posterior
        for labels, axes in ((tuple(range(9)), ()), (cells, ("x", "y")))
    )
    whole = np.array(one._pulls())
    grid = np.array(table._pulls()).reshape(3, 3)
    for places in ([5, 2, 7], [8, 0], list(range(8, -1, -1))):
        assert one.given(places)._pulls() == pytest.approx(whole[places])
        merged = one.merged({"some": places[:2]})
        expected = [
            whole[places[:2]].sum() if at == "some" else whole[at] for at in merged.categories
        ]
        assert merged._pulls() == pytest.approx(expected)
    assert table.marginal("y")._pulls() == pytest.approx(grid.sum(axis=0))
    assert table.marginal("y", "x")._pulls() == pytest.approx(grid.T.ravel())
    assert table.conditional("x", y=2)._pulls() == pytest.approx(grid[:, 2])


def test_parts_of_a_posterior_have_it_too() -> None:
    """Categories among themselves, merged ones, and one variable of a table."""
    posterior = released(HIDDEN, 20.0, 1.0, np.random.default_rng(0)).posterior
    with pytest.warns(UserWarning, match=WARNING):
        posterior.given(list(range(1, 9))).quantile(0.95)
    with pytest.warns(UserWarning, match=WARNING):
        posterior.merged({"first": [0, 1]}).quantile(0.95)
    cells = tuple(itertools.product(("n", "s"), range(4)))
    rng = np.random.default_rng(0)
    drawn = np.tile([30, 8, 2, 1], 2) + DiscreteLaplace(8.0).simulate((8,), rng)
    mechanism = ob.LaplaceParameters(8.0, total="private")
    table: Any = ob.Release(
        tuple(drawn.tolist()), cells, (1.0,) * 8, mechanism, guarantee(None), ("region", "age")
    ).posterior
    for one in (table.marginal("age"), table.conditional("age", region="n")):
        with pytest.warns(UserWarning, match=WARNING):
            one.quantile(0.95)


@pytest.mark.slow
def test_without_a_warning_intervals_hold() -> None:
    """An interval that holds .85 fails a cell of the design with a probability of 1e-3."""
    quiet: dict[Any, list[bool]] = defaultdict(list)
    missed, hidden = 0, 0
    design = itertools.product(
        LAWS, (4, 9, 20), (0.5, 5.0, 20.0), (100, 1000, 10_000), (0.3, 1.0), range(4)
    )
    for law, k, scale, records, prior, seed in design:
        rng = np.random.default_rng([k, records, seed, int(10 * prior), int(10 * scale), len(law)])
        warned, held = warned_and_held(law, k, scale, records, prior, rng)
        for level, silent, holds in zip(LEVELS, ~warned, held, strict=True):
            if silent:
                quiet[law, k, scale, records, prior, level].append(bool(holds))
        hidden, missed = hidden + int(warned.sum()), missed + int((warned & ~held).sum())
    every = list(itertools.chain(*quiet.values()))
    assert np.mean(every) >= 0.9
    for cell, held_in in quiet.items():
        assert stats.binom.cdf(sum(held_in), len(held_in), 0.85) > 1e-3, cell
    assert missed / hidden > 0.03  # what is warned of holds less often


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


def test_halves_nest_and_quantiles_that_noise_hides_have_a_warning() -> None:
    """The bin of the median has 40 records, and the noise a standard deviation of 42."""
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
