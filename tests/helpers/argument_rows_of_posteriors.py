"""Arguments of posteriors and of the methods of one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference.answers.comparison import Comparison
from opendp_bayes.inference.answers.ordered import QuantilePosterior
from opendp_bayes.inference.answers.quantities import CategoryPosterior, Quantity
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior, NumberPosterior
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.pooled_release import Pooled
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.argument_rows import DIFFERENT, LARGER, SMALLER, rows, vary
from tests.helpers.releases import guarantee

LAPLACE, GAUSSIAN = ob.LaplaceParameters(1.0), ob.GaussianParameters(2.0)


def released(counts: tuple[int, ...], size: int | None, mechanism: Any) -> ob.Release:
    prior = (1.0,) * len(counts)
    labels = tuple("abc"[: len(counts)])
    return ob.Release(counts, labels, prior, mechanism, guarantee(size))


def datavector() -> None:
    """Stand in for mbi's query of all cells."""


@dataclass(frozen=True)
class Measured:
    """A measurement of mbi's."""

    noisy_measurement: tuple[int, ...]
    clique: tuple[str, ...]
    stddev: float
    query: Any = datavector


MEASURED = Measured((6, 3, 1), ("v",), 1.0)
TWICE = dict.fromkeys("vw", released((60, 3, 1), 64, GAUSSIAN))
#: Too many data sets for a list.
BY_DRAWS = released((400, 350, 250), 1000, ob.mechanisms.HellingerExponential(0.5))
PRIVATE = released((6, 3), None, ob.LaplaceParameters(1.0, total="private"))
LEARNED = replace(PRIVATE, learned_prior=True)
POSTERIOR = released((6, 3, 1), 10, LAPLACE).posterior
OTHERS = replace(released((6, 3, 1), 10, LAPLACE), columns=("v",), unknown=("c",)).posterior
QUANTILE = POSTERIOR.quantile(0.65, edges=[0, 1, 2, 3])
OTHER = released((3, 6, 1), 10, LAPLACE).posterior
PICTURE = Figure().subplots()
ODDS = POSTERIOR.odds("a")
COMPARED = POSTERIOR.compare(OTHER)

AXES, CELLS = ("x", "y"), (("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"))
TABLE_RELEASE = ob.Release((9, 1, 2, 3), CELLS, (1.0,) * 4, LAPLACE, guarantee(15), AXES)
TABLE = TABLE_RELEASE.posterior

GROUPS = GroupedRelease(
    (1, 2), ((9, 1), (2, 3)), ("a", "b"), (1.0, 1.0), PRIVATE.mechanism, guarantee(None)
)
COUNTS = np.array([[9, 1], [2, 3]])
NOISY = PooledGroups(
    (1, 2), ("a", "b"), DrawnCounts.of(COUNTS, DiscreteLaplace(1.0), COUNTS > 0), None
)
POOLED = Pooled(NOISY, guarantee(None), np.full((4, 5, 2), 3.0), np.tile(COUNTS, (4, 5, 1, 1)))


def of_variables(method: Any) -> Any:
    """The method with its variables as one argument."""

    def function(self: Any, variables: Any, **given: Any) -> Any:
        return method(self, *variables, **given)

    function.__qualname__ = method.__qualname__
    return function


def first_is_larger(theta: Any) -> Any:
    return theta[0] > theta[1]


def first_mean(posterior: ob.NoiseAwarePosterior) -> float:
    return float(posterior.mean()[0])


def first_width(interval: Any) -> float:
    return float(interval.upper[0] - interval.lower[0])


def pooled_mean(pooled: Pooled) -> float:
    return float(np.mean([one.mean()[0] for one in pooled.values()]))


def number_of_draws(pooled: Pooled) -> int:
    return pooled.diagnostics.draws


def pooled_width(frame: Any) -> float:
    return float((frame["upper"] - frame["lower"]).sum())


def ends_drawn(figure: Any) -> list[Any]:
    """Of the intervals in the first picture."""
    bars = figure.axes[0].containers[0]
    return [segment.tolist() for segment in bars.lines[2][0].get_segments()]


POSTERIORS = [
    *rows(
        ob.combine,
        {
            "releases": [released((6, 3, 1), 10, LAPLACE)] * 2,
            "records": "same",
            "draws_may_agree": True,
        },
        first_mean,
        different={"records": "different", "prior": "learned"},
        larger={"releases": [released((8, 1, 1), 10, LAPLACE)] * 2},
        refused={"draws_may_agree": False},
    ),
    *rows(
        ob.noisy_counts,
        {
            "counts": [6, 3, 1],
            "categories": ["a", "b", "c"],
            "mechanism": "laplace_parameters",
            "scale": 1,
        },
        lambda release: release.posterior.mean()[0],
        vary("categories", ["x", "y", "z"], DIFFERENT, lambda release: release.categories),
        different={"mechanism": "gaussian_parameters", "size": 30},
        larger={"counts": [9, 3, 1]},
        refused={"noise": "floored", "merge": {"ab": ["a", "b"], "c": ["c"]}},
        smaller={"scale": 9.0, "prior": 20.0},
    ),
    *rows(
        ob.noisy_tables,
        {"measured": [MEASURED], "keys": {"v": ["a", "b", "c"]}, "mechanism": "laplace_parameters"},
        lambda tables: tables["v"].posterior.mean()[0],
        vary("keys", {"v": ["x", "b", "c"]}, DIFFERENT, lambda tables: tables["v"].categories),
        different={"mechanism": "gaussian_parameters", "size": 30},
        refused={"noise": "floored"},
        smaller={"measured": [replace(MEASURED, stddev=9.0)]},
    ),
    *rows(
        ob.combine_estimates,
        {"estimates": [1.0, 2.0], "variances": [0.5, 0.5], "kind": "population"},
        lambda found: float(found.variance),
        larger={"estimates": [1.0, 3.0], "variances": [0.5, 0.6]},
        smaller={"kind": "predictive"},
    ),
    *rows(
        ob.log_likelihood,
        {"release": released((6, 3, 1), 10, LAPLACE)},
        lambda of: float(of([0.7, 0.2, 0.1])),
        smaller={"release": released((2, 3, 5), 10, LAPLACE)},
    ),
    *rows(
        ob.noise_aware_posterior,
        {"release": BY_DRAWS, "ess": 100},
        first_mean,
        vary("prior", "learned", DIFFERENT, release=PRIVATE),
        vary("release", LEARNED, DIFFERENT, release=PRIVATE),
        vary("ordered", ["a"], DIFFERENT, release=PRIVATE, prior="learned"),
        vary("records_prior", stats.poisson(30), DIFFERENT, release=PRIVATE),
        vary("ess", 4000, LARGER, lambda p: p.diagnostics.ess.min()),
        vary("random_state", 1, DIFFERENT, release=PRIVATE, prior="learned"),
        larger={"release": released((9, 1, 0), 10, LAPLACE)},
    ),
    *(
        row
        for name, base, of, varied in (
            ("pdf", {"values": 0.3}, np.array, [vary("values", 0.4, DIFFERENT)]),
            ("cdf", {"values": 0.3}, lambda p: p[0], [vary("values", 0.4, LARGER)]),
            (
                "interval",
                {},
                first_width,
                [vary("level", 0.99, LARGER), vary("kind", "simultaneous", LARGER)],
            ),
            (
                "summary",
                {},
                lambda frame: float((frame[:, 4] - frame[:, 3]).sum()),
                [
                    vary("level", 0.99, LARGER),
                    vary("kind", "hdi", SMALLER),
                    vary("among", "answered", LARGER, lambda frame: frame["mean"][0], self=OTHERS),
                ],
            ),
            (
                "sample",
                {"size": 5, "random_state": 0},
                np.array,
                [vary("size", 6, LARGER, len), vary("random_state", 1, DIFFERENT)],
            ),
            (
                "merged",
                {"groups": {"x": ["a", "c"]}},
                first_mean,
                [vary("groups", {"x": ["b", "c"]}, SMALLER)],
            ),
            (
                "given",
                {"categories": ["a", "c"]},
                first_mean,
                [vary("categories", ["b", "c"], SMALLER)],
            ),
            (
                "predictive",
                {"records": 50, "size": 5, "random_state": 0},
                np.array,
                [
                    vary("records", 60, LARGER, lambda drawn: int(drawn.sum())),
                    vary("size", 6, LARGER, len),
                    vary("random_state", 1, DIFFERENT),
                ],
            ),
            (
                "probability",
                {"event": first_is_larger, "draws": 400},
                lambda p: p.value,
                [
                    vary("event", lambda theta: ~first_is_larger(theta), SMALLER),
                    vary("draws", 1600, SMALLER, lambda p: p.standard_error),
                    vary("random_state", 1, DIFFERENT),
                ],
            ),
            (
                "compare",
                {"other": OTHER},
                lambda compared: compared.probability,
                [vary("other", POSTERIOR, DIFFERENT)],
            ),
            (
                "difference",
                {"first": "a", "second": "b"},
                lambda found: found.interval(),
                [
                    vary("first", "c", DIFFERENT),
                    vary("second", "c", DIFFERENT),
                    vary("random_state", 1, DIFFERENT),
                ],
            ),
            (
                "ratio",
                {"first": "a", "second": "b"},
                lambda found: found.interval(),
                [vary("first", "c", SMALLER), vary("second", "c", LARGER)],
            ),
            ("odds", {"label": "a"}, lambda found: found.mean(), [vary("label", "b", SMALLER)]),
            (
                "quantile",
                {"level": 0.5, "edges": [0, 1, 2, 3]},
                lambda found: found.value.mean(),
                [vary("level", 0.7, LARGER), vary("edges", [0, 2, 4, 6], LARGER)],
            ),
            (
                "quantiles",
                {"levels": [0.5], "edges": [0, 1, 2, 3]},
                lambda found: next(iter(found.values())).value.mean(),
                [vary("levels", [0.7], LARGER), vary("edges", [0, 2, 4, 6], LARGER)],
            ),
            (
                "quantity",
                {"function": lambda p: p["a"] - p["b"], "draws": 400},
                lambda found: found.mean(),
                [
                    vary("function", lambda p: p["b"] - p["a"], SMALLER),
                    vary("label", "lead", DIFFERENT, repr),
                    vary("of", "counts", LARGER),
                    vary("draws", 1600, SMALLER, lambda found: found.standard_error),
                    vary("random_state", 1, DIFFERENT),
                ],
            ),
            (
                "to_frame",
                {},
                lambda frame: frame["upper"].sum() - frame["lower"].sum(),
                [vary("level", 0.99, LARGER)],
            ),
            (
                "to_arviz",
                {"draws": 5},
                lambda data: data.posterior["theta"].values,
                [
                    vary("draws", 6, LARGER, lambda data: data.posterior.sizes["draw"]),
                    vary("random_state", 1, DIFFERENT),
                ],
            ),
        )
        for method in [getattr(ob.NoiseAwarePosterior, name)]
        for row in rows(method, {"self": POSTERIOR, **base}, of, *varied)
    ),
    *(
        row
        for name in ("interval", "places", "row")
        for row in rows(
            getattr(QuantilePosterior, name),
            {"self": QUANTILE},
            lambda found: found[1] if len(found) == 2 else found[4],
            smaller={"level": 0.001},
        )
    ),
    *(
        row
        for kind, made in (
            (CategoryPosterior, POSTERIOR["a"]),
            (CountsPosterior, PRIVATE.posterior.counts),
            (NumberPosterior, PRIVATE.posterior.records),
        )
        for name, base, of, varied in (
            (
                "interval",
                {},
                lambda ends: float(np.diff(np.array(list(ends)), axis=0).sum()),
                [vary("level", 0.99, LARGER)]
                + [vary("kind", "hdi", SMALLER)] * (kind is CategoryPosterior),
            ),
            (
                "pdf" if kind is CategoryPosterior else "pmf",
                {"values": 1.0},
                lambda p: float(np.sum(p)),
                [vary("values", 0.5, DIFFERENT)],
            ),
            ("cdf", {"values": 0.5}, lambda p: float(np.sum(p)), [vary("values", 1.0, LARGER)]),
            (
                "sample",
                {"size": 5, "random_state": 0},
                np.array,
                [vary("size", 6, LARGER, len), vary("random_state", 1, DIFFERENT)],
            ),
        )
        for row in rows(getattr(kind, name), {"self": made, **base}, of, *varied)
    ),
    *rows(
        of_variables(ob.NoiseAwarePosterior.marginal),
        {"self": TABLE, "variables": ["x"]},
        first_mean,
        larger={"variables": ["y"]},
    ),
    *rows(
        of_variables(ob.NoiseAwarePosterior.conditional),
        {"self": TABLE, "variables": ["x"], "y": "a"},
        first_mean,
        refused={"variables": ["y"]},
    ),
    *(
        row
        for method, base in (
            (GroupedRelease.pooled, {"self": GROUPS}),
            (ob.Release.pooled, {"self": TABLE_RELEASE, "by": "x"}),
        )
        for row in rows(
            method,
            base,
            pooled_mean,
            vary("ess", 1000, LARGER, number_of_draws, ess=1),
            different={"kappa_prior": stats.gamma(400, scale=10), "random_state": 1},
            larger={"m_prior": [50.0, 1.0]},
        )
    ),
    *rows(
        ob.Release.pooled,
        {"self": TABLE_RELEASE, "by": "x"},
        list,
        vary("by", "y", DIFFERENT, lambda p: [p[key].mean().tolist() for key in p]),
    ),
    *rows(Pooled.to_frame, {"self": POOLED}, pooled_width, larger={"level": 0.99}),
    *rows(Pooled.sheet, {"self": POOLED}, repr, different={"level": 0.99}),
    *rows(
        Pooled.plot,
        {"self": POOLED},
        lambda ax: ends_drawn(ax.figure),
        vary("title", "Votes", DIFFERENT, lambda ax: ax.get_title(loc="left")),
        vary("ax", PICTURE, DIFFERENT, lambda ax: ax is PICTURE),
        different={"level": 0.99},
    ),
    *rows(
        ob.NoiseAwarePosterior.plot,
        {"self": POSTERIOR},
        lambda ax: ends_drawn(ax.figure),
        vary("title", "Votes", DIFFERENT, lambda ax: ax.get_title(loc="left")),
        vary("ax", PICTURE, DIFFERENT, lambda ax: ax is PICTURE),
        different={"level": 0.99},
    ),
    *rows(Quantity.interval, {"self": ODDS}, np.diff, larger={"level": 0.99}),
    *rows(Quantity.cdf, {"self": ODDS, "values": 1.0}, float, larger={"values": 2.0}),
    *rows(Quantity.probability, {"self": ODDS}, lambda p: p.value, smaller={"above": 2.0}),
    *rows(Quantity.row, {"self": ODDS}, list, different={"level": 0.5}),
    *rows(
        Quantity.sample,
        {"self": ODDS, "size": 5, "random_state": 0},
        list,
        vary("size", 6, LARGER, len),
        different={"random_state": 1},
    ),
    *rows(
        Comparison.cdf,
        {"self": COMPARED, "values": 0.0},
        lambda found: float(found[0]),
        larger={"values": 0.3},
    ),
    *rows(
        Comparison.sample,
        {"self": COMPARED, "size": 5, "random_state": 0},
        np.ravel,
        vary("size", 6, LARGER, len),
        different={"random_state": 1},
    ),
    *rows(Comparison.interval, {"self": COMPARED}, first_width, larger={"level": 0.99}),
    *(
        row
        for distance in (ob.mechanisms.hellinger_distance, ob.mechanisms.bhattacharyya_angle)
        for row in rows(
            distance, {"a": (2, 1), "b": (1, 2)}, float, larger={"a": (4, 1), "b": (1, 4)}
        )
    ),
]
