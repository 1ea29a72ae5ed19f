"""Every public number of a posterior beside its own draws: means, spreads, ends of intervals and
probabilities. What there is, is read from the classes, so that a new number is compared or fails
here. Tables have three axes of unequal lengths, asked for in cyclic orders.

A number is off where it lies `FAR` standard errors from that of the draws: for all numbers here, a
false alarm in a thousand runs, and with fixed seeds none.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

import opendp_bayes as ob
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.quantities import OfDraws, Quantity
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior, NumberPosterior
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyRest
from opendp_bayes.unlisted.thresholds import Discovery, LaplaceThreshold
from tests.helpers.every_result import made_anew, methods, results
from tests.helpers.oracles import discrete_laplace_cell
from tests.helpers.releases import release

N, FAR = 4000, 6.0
AXES = {"x": ("p", "q"), "y": ("k", "l", "m"), "z": ("a", "b", "c", "d")}
CELLS = tuple(product(*AXES.values()))


def close(number: Any, drawn: Any, error: Any) -> bool:
    """Within some standard errors, and a margin for a law of few values."""
    with np.errstate(invalid="ignore"):
        far = np.abs(np.asarray(number, dtype=float) - drawn) > FAR * np.asarray(error) + 1e-9
    return not np.any(far)


def off_moments(result: Any, drawn: Any) -> Iterator[str]:
    """Mean and spread, where they are finite."""
    with np.errstate(all="ignore"):
        yield from _off_moments(result, drawn)


def _off_moments(result: Any, drawn: Any) -> Iterator[str]:
    drawn = np.asarray(drawn, dtype=float)
    mean, std = np.asarray(result.mean()), np.asarray(result.std())
    finite = np.isfinite(std)
    own, number = drawn.std(axis=0), len(drawn)
    size = np.sqrt(number)
    middle = drawn - drawn.mean(axis=0)
    fourth = (middle**4).mean(axis=0) / np.maximum(own, 1e-300) ** 4
    if not close(np.where(finite, mean, 0), np.where(finite, drawn.mean(axis=0), 0), own / size):
        yield "mean"
    error = own * np.sqrt(np.maximum(fourth - 1, 0.1) / 4) / size + own / number
    if not close(np.where(finite, std, 0), np.where(finite, own, 0), error):
        yield "std"


def off_shares(result: Any, drawn: Any) -> Iterator[str]:
    """Ends of intervals, the median and probabilities."""
    drawn = np.asarray(drawn, dtype=float)
    error = 0.5 / np.sqrt(len(drawn))
    whole = isinstance(result, CountsPosterior | NumberPosterior)
    for level in (0.5, 0.9):
        lower, upper = result.interval(level)
        below, above = (drawn < lower).mean(axis=0), (drawn > upper).mean(axis=0)
        at = [(drawn <= lower).mean(axis=0), (drawn >= upper).mean(axis=0)]
        tail = (1 - level) / 2
        for outside, with_end in zip((below, above), at, strict=True):
            far = np.any(outside > tail + FAR * error)
            if far or np.any(with_end < tail - FAR * error):
                yield f"interval({level})"
    if hasattr(result, "median"):
        below = (drawn < result.median()).mean()
        if below > 0.5 + FAR * error or (drawn <= result.median()).mean() < 0.5 - FAR * error:
            yield "median"
    for share in (0.2, 0.7):
        value = float(np.quantile(drawn, share))
        at_most = (drawn <= value).mean(axis=0)
        if hasattr(result, "cdf") and not close(result.cdf(value), at_most, error):
            yield "cdf"
        if whole:
            value = round(value)
            if not close(result.pmf(value), (drawn == value).mean(axis=0), error):
                yield "pmf"
    if hasattr(result, "pdf"):
        ends = np.quantile(drawn, [0.1, 0.6])
        values = np.linspace(ends[0], ends[1], 801)
        inside = trapezoid(result.pdf(values), values, axis=0)
        if not close(inside, ((drawn > ends[0]) & (drawn < ends[1])).mean(axis=0), error):
            yield "pdf"
    if isinstance(result, Quantity):
        for above in (result.above or 0.0, float(np.median(drawn))):
            if not close(result.probability(above).value, (drawn > above).mean(), error):
                yield "probability"


def off(result: Any, drawn: Any) -> list[str]:
    """The numbers of a law that are not those of some draws."""
    return [*off_moments(result, drawn), *off_shares(result, drawn)]


def off_itself(result: Any, drawn: Any) -> list[str]:
    """The numbers of a law that are not those of its own draws, or of others of the same."""
    found = off(result, result.sample(N, random_state=5))
    return found + [f"{name} of the whole" for name in off(result, drawn)]


def columns(posterior: Any, drawn: Any) -> dict[Any, Any]:
    return dict(zip(posterior.categories, drawn.T, strict=True))


def off_of_posterior(posterior: Any) -> Iterator[str]:
    """Every number of a posterior, by the draws of all of its probabilities and counts."""
    with np.errstate(all="ignore"):  # of pooled groups a draw of a probability may be 0
        yield from _off_of_posterior(posterior)


def _off_of_posterior(posterior: Any) -> Iterator[str]:
    drawn = posterior.sample(N, random_state=3)
    yield from off(posterior, drawn)
    of, labels = columns(posterior, drawn), list(posterior.categories)
    first, last, rest = labels[0], labels[-1], labels[1:]
    parts: dict[str, tuple[Any, Any]] = {
        "[]": (posterior[first], of[first]),
        "difference": (posterior.difference(first, last), of[first] - of[last]),
        "quantity": (posterior.quantity(lambda p: p[first] ** 2), of[first] ** 2),
    }
    if len(labels) > 2:
        among = np.stack([of[label] for label in rest], axis=1)
        merged = np.stack([of[first] + of[last], *(of[label] for label in rest[:-1])], axis=1)
        groups = {"both": [first, last]}
        parts["merged"] = posterior.merged(groups), merged
        parts["given"] = posterior.given(rest), among / among.sum(axis=1, keepdims=True)
    for name, (part, own) in parts.items():
        yield from (f"{name}: {one}" for one in off_itself(part, own))
    more = posterior.predictive(50, N, random_state=4)
    if not close(more.mean(axis=0), 50 * posterior.mean(), more.std(axis=0) / np.sqrt(N)):
        yield "predictive: mean"
    spread = np.sqrt(50 * (posterior.mean() - posterior.mean() ** 2 + 49 * posterior.std() ** 2))
    if not close(more.std(axis=0), spread, 2 * spread / np.sqrt(N)):
        yield "predictive: std"
    frame = posterior.to_frame(0.9)
    numbers = posterior.mean(), posterior.std(), *posterior.interval(0.9)
    for name, number in zip(("mean", "std", "lower", "upper"), numbers, strict=True):
        if not np.array_equal(frame[name].to_numpy(), number):
            yield f"to_frame: {name}"
    lower, upper = posterior.interval(0.9, "simultaneous")
    if not ((drawn >= lower) & (drawn <= upper)).all(axis=1).mean() > 0.9 - FAR * 0.3 / np.sqrt(N):
        yield "interval: simultaneous"
    lower, upper = posterior.interval(0.9, "hdi")
    if not close(((drawn >= lower) & (drawn <= upper)).mean(axis=0), 0.9, 0.4 / np.sqrt(N)):
        yield "interval: highest density"
    if len(posterior.axes) < 2 and not posterior.unordered:
        yield from off_ordered(posterior, drawn)
    yield from off_counts(posterior)


def off_ordered(posterior: Any, drawn: Any) -> Iterator[str]:
    upto = np.cumsum(drawn, axis=1)
    for place, (_, one) in enumerate(posterior.cumulative().items()):
        yield from (f"cumulative: {name}" for name in off_itself(one, upto[:, place]))
    edges = [0.0, 1.0, 4.0, 5.0, 9.0, 11.0, 12.0][: len(posterior.categories) + 1]
    if len(edges) < len(posterior.categories) + 1:
        return
    quantile = posterior.quantile(0.6, edges=edges)
    place = (upto < 0.6).sum(axis=1)
    held = np.bincount(place, minlength=len(posterior.categories)) / len(place)
    if not close(quantile.probabilities, held, 0.7 / np.sqrt(N)):
        yield "quantile: probabilities"
    row = np.arange(len(drawn))
    before, own = (upto - drawn)[row, place], drawn[row, place]
    left, right = np.array(edges)[place], np.array(edges)[place + 1]
    value = left + (0.6 - before) / own * (right - left)
    yield from (f"quantile: {name}" for name in off_itself(quantile.value, value))


def off_counts(posterior: Any) -> Iterator[str]:
    try:
        counts = posterior.counts
    except ValueError:  # no clique holds them
        return
    drawn = counts.sample(N, random_state=6)
    yield from (f"counts: {name}" for name in off(counts, drawn))
    records = posterior.records
    yield from (f"records: {name}" for name in off_itself(records, drawn.sum(axis=1)))
    one = counts[posterior.categories[-1]]
    yield from (f"counts[]: {name}" for name in off_itself(one, drawn[:, -1]))
    total = posterior.quantity(lambda n: sum(n.values()), of="counts")
    if not close(total.mean(), drawn.sum(axis=1).mean(), drawn.sum(axis=1).std() / np.sqrt(N)):
        yield "quantity of counts"


def off_tables(posterior: Any) -> Iterator[str]:
    """Marginals and conditionals of a table, found by the labels of its cells."""
    drawn = posterior.sample(N, random_state=3)
    of = columns(posterior, drawn)
    names = posterior.axes
    for order in permutations(names):
        for wanted in (order, order[:2], order[:1]):
            yield from _off_table(posterior.marginal(*wanted), of, names, wanted, {})
    for order in permutations(names):
        given = {order[0]: AXES[order[0]][-1]}
        wanted = order[1:]
        yield from _off_table(posterior.conditional(*wanted, **given), of, names, wanted, given)


def _off_table(table, of, names, wanted, given):
    inside = {
        cell: values
        for cell, values in of.items()
        if all(cell[names.index(name)] == value for name, value in given.items())
    }
    total = sum(inside.values())
    sums: dict[Any, Any] = {}
    for cell, values in inside.items():
        own = tuple(cell[names.index(name)] for name in wanted)
        label = own if len(own) > 1 else own[0]
        sums[label] = sums.get(label, 0.0) + values / total
    wrong = off_moments(table, np.stack([sums[label] for label in table.categories], axis=1))
    yield from (f"{wanted} given {dict(given)}: {name}" for name in wrong)


@cache
def posteriors() -> dict[str, Any]:
    """Of every kind: exact, by draws, by chains, of groups, of levels and of surveys."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        of = results()
        found = {name: one for name, one in of.items() if isinstance(one, NoiseAwarePosterior)}
        noisy = ob.GaussianParameters(3.0)
        counts = tuple(5 + 3 * ((7 * at) % 24) for at in range(24))
        whole = release(counts, CELLS, noisy, axes=("x", "y", "z"), columns=("x", "y", "z"))
        found["three axes"] = whole.posterior
        labels, prior = ("a", "b", "c"), (0.3, 4.0, 9.0)
        knorm = release((6, 3, 9), labels, ob.KNormParameters(1.0), 18)
        found["knorm"] = replace(knorm, prior=prior).posterior
    return found


SOON = "listed", "table posterior", "level", "knorm"


@pytest.mark.parametrize("name", SOON)
def test_the_numbers_of_a_posterior_are_those_of_its_draws(name: str) -> None:
    assert list(off_of_posterior(posteriors()[name])) == []


@pytest.mark.slow
def test_the_numbers_of_all_posteriors_are_those_of_their_draws() -> None:
    for name in posteriors().keys() - {*SOON}:
        assert list(off_of_posterior(posteriors()[name])) == [], name


def test_tables_and_comparisons_are_those_of_their_draws() -> None:
    """Of two tables of a survey, which share their draws, and of two posteriors, which do not."""
    assert list(off_tables(posteriors()["three axes"])) == []
    of = made_anew()  # no draws of which another test asked fewer
    for name in ("differences", "comparison"):
        for label, one in of[name].items():
            assert list(off_itself(one, one.sample(N, random_state=2))) == [], label


def release_with_rest(rest: int = 600, scale: float = 40.0) -> ob.DiscoveredRelease:
    """Two values far above the threshold, so that no law of all values is learned, and the rest."""
    loss = ob.PrivacyLoss(2.0, 3.0, 3.0, 1e-6)
    law = Discovery(LaplaceThreshold(4.0, 60), DiscreteLaplace(scale))
    promise = ob.PrivacyGuarantee(None, 1, loss, "Approximate(MaxDivergence)")
    return ob.DiscoveredRelease("v", ("a", "b"), (4000, 3000), 1, law, rest, promise)


def off_discovered(shown: ob.DiscoveredRelease) -> Iterator[str]:
    """Counts and shares by their draws; everything else by its own under a flat prior."""
    parts = {"counts": shown.posterior, "shown": shown.among_shown, "all": shown.among_all}
    for name, part in parts.items():
        assert part is not None
        drawn = part.sample(N, random_state=8)
        wrong = off_moments(part, drawn)
        yield from (f"{name}: {one}" for one in wrong)
        lower, upper = part.interval(0.9)
        inside = ((drawn >= lower) & (drawn <= upper)).mean(axis=0)
        if np.any(inside < 0.9 - FAR * 0.3 / np.sqrt(N)):
            yield f"{name}: interval"
    assert shown.noisy_rest is not None
    assert shown.discovery.rest is not None
    noise, rng = shown.discovery.rest.scale, np.random.default_rng(9)
    counts = np.arange(int(shown.noisy_rest + 40 * noise))
    weights = np.array(
        [discrete_laplace_cell(shown.noisy_rest - n, noise) for n in counts.tolist()]
    )
    rest = rng.standard_gamma(rng.choice(counts, N, p=weights / weights.sum()) + 1.0)
    others = rng.standard_gamma(shown.posterior.sample(N, random_state=7) + 1.0).sum(axis=1)
    all_ = shown.among_all
    assert all_ is not None
    wrong = off_moments(Last(all_), rest / (rest + others))
    yield from (f"everything else: {one}" for one in wrong)


class Last:
    """The last entry of a law."""

    def __init__(self, of: Any) -> None:
        self.mean = lambda: of.mean()[-1]
        self.std = lambda: of.std()[-1]


def test_shares_of_a_discovery_are_those_of_draws() -> None:
    assert list(off_discovered(release_with_rest())) == []


# --- Mistakes, which have to be noticed
def test_notices_differences_that_are_too_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the error of a mean is."""
    monkeypatch.setattr(OfDraws, "std", lambda self: self.drawn.std() / np.sqrt(len(self.drawn)))
    one = next(iter(results()["differences"].values()))
    assert "std" in off(one, one.sample(N, random_state=2))


def test_notices_a_rest_without_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(self: Any, number: int, rng: Any) -> Any:
        return np.full(number, self.noisy_count)

    monkeypatch.setattr(NoisyRest, "draws", without)
    assert "everything else: std" in list(off_discovered(release_with_rest()))


def test_notices_a_transposed_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = posteriors()["three axes"]
    marginal = NoiseAwarePosterior.marginal

    def transposed(self: Any, *names: str) -> Any:
        return marginal(self, *names[::-1]) if len(names) == 2 else marginal(self, *names)

    class Swapped:
        """Labels of one order with the numbers of another."""

        axes, sample, categories = table.axes, table.sample, table.categories
        conditional = table.conditional

        def marginal(self, *names: str) -> Any:
            found = transposed(table, *names)
            found.categories = marginal(table, *names).categories
            return found

    assert any("given {}" in one for one in off_tables(Swapped()))


# --- What there is
_COMPARED = """
    mean std median interval cdf pdf pmf probability sample difference quantity
    cumulative quantile quantiles merged given marginal conditional predictive to_frame
    compare __getitem__
"""
#: Methods that give no number of a law, or the same numbers as another does.
_OTHERS = "row sheet plot summary"


def test_a_new_number_of_a_posterior_is_compared() -> None:
    kinds = NoiseAwarePosterior, CountsPosterior, NumberPosterior, Quantity
    names = {
        name for one in results().values() if isinstance(one, kinds) for name, _ in methods(one)
    }
    assert names == {*_COMPARED.split(), *_OTHERS.split()}


#: Of every kind of result that has estimates, what is to be drawn for it.
BELOW_0: dict[str, dict[str, Any]] = {
    "release": {"noisy_counts": (-6, 3, -9)},
    "joint": {"noisy_counts": (9, -1, -2, 3)},
    "groups": {"noisy_counts": ((-9, 1), (2, -3))},
    "sized": {"noisy_counts": ((-9, 1), (2, 31)), "rest": -5},
    "shown": {"noisy_counts": (-4, 30), "listed": 1, "noisy_rest": -7},
}


def test_no_count_beside_an_estimate_is_below_0() -> None:
    """Whatever was drawn, in every frame of every kind of result."""
    released = {name: one for name, one in results().items() if hasattr(one, "to_json")}
    estimated = {name: one for name, one in released.items() if hasattr(one, "estimates")}
    assert estimated.keys() == BELOW_0.keys()
    below = {name: replace(one, **BELOW_0[name]) for name, one in estimated.items()}
    for name, one in below.items():
        frames = [one.estimates(), one.to_frame()][: 1 if name == "shown" else 2]  # as drawn there
        counts = [count for frame in frames for count in frame["count"]]
        assert min(counts) == 0, name
        together = ob.Survey((name,), (one,)).to_frame()["count"].to_list()
        assert together == frames[0]["count"].to_list()
