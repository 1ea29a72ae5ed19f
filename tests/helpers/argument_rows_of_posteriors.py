"""Arguments of posteriors and of the methods of one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.pooled_release import Pooled
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.argument_rows import DIFFERENT, LARGER, SMALLER, of_methods, rows, vary
from tests.helpers.releases import changed, guarantee

LAPLACE = ob.LaplaceParameters(1.0)


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
#: Too many data sets for a list.
BY_DRAWS = released((400, 350, 250), 1000, ob.mechanisms.HellingerExponential(0.5))
PRIVATE = released((6, 3), None, ob.LaplaceParameters(1.0, total="private"))
LEARNED = replace(PRIVATE, learned_prior=True)
POSTERIOR = released((6, 3, 1), 10, LAPLACE).posterior
OTHERS = replace(released((6, 3, 1), 10, LAPLACE), columns=("v",), unknown=("c",)).posterior
QUANTILE = POSTERIOR.quantile(0.65, edges=[0, 1, 2, 3])
OTHER = released((3, 6, 1), 10, LAPLACE).posterior
PICTURE = Figure().subplots()
LEAD = POSTERIOR.difference("a", "b")

AXES, CELLS = ("x", "y"), (("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"))
TABLE_RELEASE = ob.Release((9, 1, 2, 3), CELLS, (1.0,) * 4, LAPLACE, guarantee(15), AXES)
TABLE = TABLE_RELEASE.posterior
OF_KNORM = changed(TABLE_RELEASE, mechanism=ob.KNormParameters(1.0))

GROUPS = GroupedRelease(
    (1, 2), ((9, 1), (2, 3)), ("a", "b"), (1.0, 1.0), PRIVATE.mechanism, guarantee(None)
)
COUNTS = np.array([[9, 1], [2, 3]])
NOISY = PooledGroups(
    (1, 2), ("a", "b"), DrawnCounts.of(COUNTS, DiscreteLaplace(1.0), COUNTS > 0), None
)
POOLED = Pooled(NOISY, guarantee(None), np.full((20, 2), 3.0), np.tile(COUNTS, (20, 1, 1)), 20.0)


def of_variables(method: Any) -> Any:
    """The method with its variables as one argument."""

    def function(self: Any, variables: Any, **given: Any) -> Any:
        return method(self, *variables, **given)

    function.__qualname__ = method.__qualname__
    return function


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


RELEASE, TWO = released((6, 3, 1), 10, LAPLACE), [released((6, 3, 1), 10, LAPLACE)] * 2
MORE = {"larger": {"level": 0.99}}
OTHER_LEVEL = {"different": {"level": 0.99}}
#: Draws, so many and by a seed.
DRAWN = {"size": 5, "random_state": 0}
SIZE, SEED = vary("size", 6, LARGER, len), {"different": {"random_state": 1}}
PICTURES = (
    vary("title", "Votes", DIFFERENT, lambda ax: ax.get_title(loc="left")),
    vary("ax", PICTURE, DIFFERENT, lambda ax: ax is PICTURE),
    OTHER_LEVEL,
)
PAIR = {"first": "a", "second": "b"}
BINS = {"edges": [0, 1, 2, 3]}


def ends_of(ax: Any) -> list[Any]:
    return ends_drawn(ax.figure)


def quantile_of(found: Any) -> float:
    return found.value.mean()


def mean_of(found: Any) -> float:
    return found.mean()


def sum_of(p: Any) -> float:
    return float(np.sum(p))


def difference_of(ends: Any) -> float:
    return float(np.diff(np.array(list(ends)), axis=0).sum())


def first_quantile_of(found: Any) -> float:
    return quantile_of(next(iter(found.values())))


MECHANISM = {"mechanism": "laplace_parameters"}
MORE_OF_A = vary("among", "answered", LARGER, lambda frame: frame["mean"][0], self=OTHERS)
OTHER_MECHANISM = {"mechanism": "gaussian_parameters", "size": 30}
LATER = {"values": 0.4}
OF_VALUES = {"values": 0.3}
THAT = {"different": {"first": "c", "second": "c"}}
HIGHER: dict[str, Any] = {"larger": {"level": 0.7, "edges": [0, 2, 4, 6]}}
HIGHER_ONES: dict[str, Any] = {"larger": {"levels": [0.7], "edges": [0, 2, 4, 6]}}
POSTERIORS = [
    *rows(
        *(ob.combine, {"releases": TWO, "draws_may_agree": True}, first_mean),
        different={"prior": "learned"},
        larger={"releases": [released((8, 1, 1), 10, LAPLACE)] * 2},
        refused={"draws_may_agree": False},
    ),
    *rows(
        ob.noisy_counts,
        {"counts": [6, 3, 1], "categories": [*"abc"], "scale": 1, **MECHANISM},
        lambda release: release.posterior.mean()[0],
        vary("categories", ["x", "y", "z"], DIFFERENT, lambda release: release.categories),
        different=OTHER_MECHANISM,
        larger={"counts": [9, 3, 1]},
        refused={"noise": "floored", "merge": {"ab": ["a", "b"], "c": ["c"]}},
        smaller={"scale": 9.0, "prior": 20.0},
    ),
    *rows(
        ob.noisy_tables,
        {"measured": [MEASURED], "keys": {"v": ["a", "b", "c"]}, **MECHANISM},
        lambda tables: tables["v"].posterior.mean()[0],
        vary("keys", {"v": ["x", "b", "c"]}, DIFFERENT, lambda tables: tables["v"].categories),
        different=OTHER_MECHANISM,
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
        *(ob.log_likelihood, {"release": RELEASE}, lambda of: float(of([0.7, 0.2, 0.1]))),
        smaller={"release": released((2, 3, 5), 10, LAPLACE)},
    ),
    *rows(
        *(ob.noise_aware_posterior, {"release": BY_DRAWS, "ess": 100}, first_mean),
        vary("prior", "learned", DIFFERENT, release=PRIVATE),
        vary("release", LEARNED, DIFFERENT, release=PRIVATE),
        vary("ordered", ["a"], DIFFERENT, release=PRIVATE, prior="learned"),
        vary("records_prior", stats.poisson(30), DIFFERENT, release=PRIVATE),
        vary("ess", 4000, LARGER, lambda p: p.diagnostics.ess.min()),
        vary("random_state", 1, DIFFERENT, release=PRIVATE, prior="learned"),
        larger={"release": released((9, 1, 0), 10, LAPLACE)},
    ),
    *of_methods(
        POSTERIOR,
        {
            "pdf": (OF_VALUES, np.array, {"different": LATER}),
            "cdf": (OF_VALUES, lambda p: p[0], {"larger": LATER}),
            "interval": ({}, first_width, {"larger": {"level": 0.99, "kind": "simultaneous"}}),
            "summary": (
                *({}, lambda frame: float((frame[:, 4] - frame[:, 3]).sum())),
                *(vary("kind", "hdi", SMALLER), MORE_OF_A, MORE),
            ),
            "sample": (DRAWN, np.array, SIZE, SEED),
            "merged": (
                *({"groups": {"x": ["a", "c"]}}, first_mean),
                {"smaller": {"groups": {"x": ["b", "c"]}}},
            ),
            "given": ({"categories": [*"ac"]}, first_mean, {"smaller": {"categories": [*"bc"]}}),
            "predictive": (
                *({"records": 50, **DRAWN}, np.array),
                *(vary("records", 60, LARGER, lambda drawn: int(drawn.sum())), SIZE, SEED),
            ),
            "compare": (
                *({"other": OTHER}, lambda compared: compared["a"].mean()),
                {"different": {"other": POSTERIOR}},
            ),
            "difference": (PAIR, lambda found: found.interval(), THAT),
            "quantile": ({"level": 0.5, **BINS}, quantile_of, HIGHER),
            "quantiles": ({"levels": [0.5], **BINS}, first_quantile_of, HIGHER_ONES),
            "quantity": (
                *({"function": lambda p: p["a"] - p["b"], "draws": 400}, mean_of),
                vary("function", lambda p: p["b"] - p["a"], SMALLER),
                vary("label", "lead", DIFFERENT, repr),
                vary("draws", 1600, SMALLER, lambda found: found.standard_error),
                {**SEED, "larger": {"of": "counts"}},
            ),
            "to_frame": ({}, lambda frame: frame["upper"].sum() - frame["lower"].sum(), MORE),
            "plot": ({}, ends_of, *PICTURES),
        },
    ),
    *of_methods(
        QUANTILE,
        {
            name: ({}, lambda row: row[1 if len(row) == 2 else 4], {"smaller": {"level": 0.001}})
            for name in ("interval", "row")
        },
    ),
    *(
        row
        for value in (PRIVATE.posterior.counts, PRIVATE.posterior.records)
        for row in of_methods(
            value,
            {
                "interval": ({}, difference_of, MORE),
                "pmf": ({"values": 1.0}, sum_of, {"different": {"values": 0.5}}),
                "cdf": ({"values": 0.5}, sum_of, {"larger": {"values": 1.0}}),
                "sample": (DRAWN, np.array, SIZE, SEED),
            },
        )
    ),
    *rows(
        of_variables(ob.NoiseAwarePosterior.marginal),
        *({"self": TABLE, "variables": ["x"]}, first_mean),
        larger={"variables": ["y"]},
    ),
    *rows(
        of_variables(ob.NoiseAwarePosterior.conditional),
        *({"self": TABLE, "variables": ["x"], "y": "a"}, first_mean),
        refused={"variables": ["y"]},
    ),
    *(
        row
        for method, base in (
            (GroupedRelease.pooled, {"self": GROUPS}),
            (ob.Release.pooled, {"self": OF_KNORM, "by": "x"}),
        )
        for row in rows(
            *(method, base, pooled_mean, vary("ess", 1000, LARGER, number_of_draws, ess=1)),
            different={"kappa_prior": stats.gamma(400, scale=10), "random_state": 1},
            larger={"m_prior": [50.0, 1.0]},
        )
    ),
    *rows(
        *(ob.Release.pooled, {"self": OF_KNORM, "by": "x"}, list),
        vary("by", "y", DIFFERENT, lambda p: [p[key].mean().tolist() for key in p]),
    ),
    *of_methods(
        POOLED,
        {
            "to_frame": ({}, pooled_width, MORE),
            "sheet": ({}, repr, OTHER_LEVEL),
            "plot": ({}, ends_of, *PICTURES),
        },
    ),
    *of_methods(
        LEAD,
        {
            "interval": ({}, np.diff, MORE),
            "cdf": ({"values": 0.0}, float, {"larger": {"values": 0.5}}),
            "probability": ({}, lambda p: p.value, {"smaller": {"above": 0.5}}),
            "row": ({}, list, {"different": {"level": 0.5}}),
            "sample": (DRAWN, list, SIZE, SEED),
        },
    ),
    *rows(
        ob.mechanisms.hellinger_distance,
        {"a": (2, 1), "b": (1, 2)},
        float,
        larger={"a": (4, 1), "b": (1, 4)},
    ),
]
#: Of every result that has estimates.
SHEETS = of_methods(
    POOLED,
    {
        "sheet": ({}, repr, {"different": {"title": "t", "percent": True}, "refused": {"wait": 3}}),
        "estimates": ({}, repr, OTHER_LEVEL),
    },
)
