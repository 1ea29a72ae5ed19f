"""Arguments of the constructors and of queries in a Context."""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob
from opendp_bayes.unlisted import Discovery, GaussianThreshold, OptimalThreshold
from tests.helpers.argument_rows import DIFFERENT, LARGER, REFUSED, SMALLER, rows, vary
from tests.helpers.contexts import plain_context

EHD = ob.mechanisms.HellingerExponential(0.5)
PURE, APPROX = dp.max_divergence(), dp.approximate(dp.max_divergence())
ZCDP = dp.zero_concentrated_divergence()
ABC = pl.Enum(["a", "b", "c"])
_COLUMNS = {"x": ["a", "a", "b", None, "c", "c"], "y": ["b", "a", "b", None, "b", "b"]}
_COLUMNS |= {"s": list("aab?ab"), "t": list("bbbaaa")}
FRAME = pl.LazyFrame(_COLUMNS, {"x": ABC, "y": ABC, "s": pl.String, "t": pl.String})
DOMAIN = dp.domain_of(FRAME, infer=True)
OTHER_DOMAIN = dp.domain_of(pl.LazyFrame({"z": [1]}), infer=True)
SYMMETRIC, CHANGE_ONE = dp.symmetric_distance(), dp.change_one_distance()


def space(made: Any) -> dict[str, Any]:
    return {"input_domain": made.output_domain, "input_metric": made.output_metric}


def counting(size: int | None = 6, **column: Any) -> Any:
    column = column or {"column": "x", "nulls": "a"}
    metric = SYMMETRIC if size is None else CHANGE_ONE
    return ob.t.make_categorical_counts(DOMAIN, metric, size=size, **column)


STRINGS = {"column": "s", "categories": ["a", "b"], "unknown": "a", "nulls": "a"}
BINARY = counting(6, **STRINGS)
SOME_CELLS = [("a", "a"), ("b", "b"), ("c", "b")]
TABLE = {"column": ["x", "y"], "cells": SOME_CELLS, "unknown": "a", "nulls": "a"}


def of_three(size: int | None = 6, prior: float = 1.0) -> Any:
    return counting(size) >> ob.t.then_dirichlet_multinomial(prior=prior)


def counted(made: Any) -> Any:
    return made(FRAME)


def of_domain(made: Any) -> str:
    return repr(made.output_domain)


def map_of_one(made: Any) -> Any:
    return made.map(1)


BY_T = {"by": "t", "categories": {"t": ["a", "b"]}}
GROUPED = {**BY_T, "column": "x", "nulls": "a"}
MEASURED = {**space(of_three()), "output_measure": PURE, "scale": 1.0}
PRIVATE_METRIC = counting(None).output_metric
EVERY_MEASUREMENT = (
    vary("input_metric", PRIVATE_METRIC, REFUSED),
    vary("output_measure", ZCDP, DIFFERENT),
    vary("scale", 2.0, SMALLER),
)
DISCOVERED = ob.t.make_discovered_counts(DOMAIN, SYMMETRIC, column="x", nulls="a")
OPTIMAL = Discovery(OptimalThreshold(1.0, 1e-4))
OTHER_PRIOR = vary("input_domain", of_three(prior=0.1).output_domain, LARGER)
PROVEN = vary("accounting", "proven", LARGER)


def mechanism_of(made: Any) -> Any:
    return made(np.array([3.0, 2.0, 4.0])).mechanism


def epsilon_of_one(made: Any) -> float:
    return made.map(1)[0]


def spaces(domain: Any, metric: Any = SYMMETRIC) -> dict[str, Any]:
    return {"input_domain": domain, "input_metric": metric}


IN, OTHERS = spaces(DOMAIN), spaces(OTHER_DOMAIN, CHANGE_ONE)
OF_X: dict[str, Any] = {**IN, "column": "x", "nulls": "a"}
OF_TWO = {"input_domain": BINARY.output_domain}
OTHER_SIZE = vary("size", 7, DIFFERENT, of_domain, size=6, input_metric=CHANGE_ONE)
OF_CELLS = (vary("cells", SOME_CELLS[::-1], DIFFERENT, **TABLE),)
OF_CELLS += (vary("unknown", "c", DIFFERENT, **TABLE),)
OTHER_GROUPS = {"by": ["t", "y"], "column": "y", "categories": {"t": ["b", "a"]}, "nulls": "b"}
OTHER_GROUPS |= {"unknown": {"t": "c"}}
OF_DISCOVERY = {**space(DISCOVERED), "output_measure": APPROX, "discovery": OPTIMAL}
GAUSSIAN = Discovery(GaussianThreshold(3.0, 12))
OF_MECHANISM = {**space(of_three()), "output_measure": PURE, "mechanism": EHD}
WITH_DELTA = {"output_measure": APPROX, "accounting": "proven", "beta": 1.0}
LAPLACE = {"output_measure": APPROX, "mechanism": ob.LaplaceParameters(1.0)}
PRIORS = (ob.t.make_dirichlet_multinomial, counting()), (ob.t.make_beta_binomial, BINARY)
MAKE = ob.m
CONSTRUCTORS = [
    *rows(
        ob.t.make_categorical_counts,
        OF_X,
        counted,
        *(vary("categories", ["b", "a"], DIFFERENT, **STRINGS), OTHER_SIZE, *OF_CELLS),
        vary("unknown", "b", DIFFERENT, **STRINGS),
        different={"column": "y", "nulls": "b"},
        refused=OTHERS,
    ),
    *rows(
        *(ob.t.make_discovered_counts, OF_X, of_domain),
        different={"column": "y", "always": ["b"], "nulls": "b"},
        refused=spaces(OTHER_DOMAIN, dp.hamming_distance()),
    ),
    *rows(
        *(MAKE.make_discovery, OF_DISCOVERY, map_of_one),
        vary("delta", 1e-2, SMALLER, discovery=GAUSSIAN, delta=1e-3),
        refused={**IN, "output_measure": PURE},
        smaller={"discovery": Discovery(OptimalThreshold(0.5, 1e-4))},
    ),
    *rows(
        *(ob.t.make_categorical_counts, {**IN, **GROUPED}, counted, OTHER_SIZE, *OF_CELLS),
        different=OTHER_GROUPS,
        refused=OTHERS,
    ),
    *(
        row
        for constructor, made in PRIORS
        for row in rows(
            *(constructor, {**space(made), "prior": 1.0}, of_domain),
            different={"prior": 0.5},
            refused=spaces(DOMAIN, PRIVATE_METRIC),
        )
    ),
    *rows(
        *(ob.t.make_count_vector, space(counting()), map_of_one),
        vary("input_domain", BINARY.output_domain, DIFFERENT, of_domain),
        refused={"input_metric": PRIVATE_METRIC},
        smaller={"MO": "L2Distance<f64>"},
    ),
    *rows(
        *(MAKE.make_mechanism, OF_MECHANISM, map_of_one, OTHER_PRIOR, *EVERY_MEASUREMENT[:2]),
        *(vary("delta", 0.1, SMALLER, epsilon_of_one, **LAPLACE), PROVEN),
        smaller={"mechanism": ob.mechanisms.HellingerExponential(1.0)},
    ),
    *rows(
        *(MAKE.make_laplace_parameters, MEASURED, map_of_one, *EVERY_MEASUREMENT),
        vary("noise", "floored", DIFFERENT, mechanism_of),
        vary("total", "bounded", DIFFERENT, mechanism_of),
        refused=OF_TWO,
    ),
    *rows(MAKE.make_knorm_parameters, MEASURED, map_of_one, *EVERY_MEASUREMENT, refused=OF_TWO),
    *rows(
        *(MAKE.make_gaussian_parameters, {**MEASURED, "output_measure": ZCDP}, map_of_one),
        *(EVERY_MEASUREMENT[0], vary("total", "private", DIFFERENT, mechanism_of)),
        vary("delta", 1e-3, SMALLER, epsilon_of_one, output_measure=APPROX, delta=1e-6),
        refused={**OF_TWO, "output_measure": PURE},
        smaller={"scale": 2.0},
    ),
    *rows(
        *(MAKE.make_hellinger_exponential, MEASURED, map_of_one, OTHER_PRIOR),
        *(*EVERY_MEASUREMENT, PROVEN),
        larger={"sensitivity": "local"},
    ),
    *rows(
        *(MAKE.make_smooth_hellinger_exponential, MEASURED, map_of_one, *EVERY_MEASUREMENT),
        vary("gamma", 0.1, SMALLER, accounting="proven"),
        vary("beta", 0.1, SMALLER, accounting="proven", beta=1.0),
        *(vary("delta", 0.1, SMALLER, epsilon_of_one, **WITH_DELTA), PROVEN),
        different={"input_domain": of_three(prior=0.1).output_domain},
    ),
    *rows(
        MAKE.make_permute_and_flip, MEASURED, map_of_one, OTHER_PRIOR, *EVERY_MEASUREMENT, PROVEN
    ),
]


def query(budget: float = 1.0, delta: float | None = None, **unit: int) -> Any:
    context = plain_context(FRAME, unit or {"changes": 1}, {"epsilon": budget, "delta": delta})
    return context.query()


def fitted_scale(asked: Any) -> float:
    return asked.resolve().param


def release_of(asked: Any) -> Any:
    return asked.resolve()(FRAME)


def fitted_mechanism(asked: Any) -> Any:
    return release_of(asked).mechanism


QUERY = {"query": query(), "column": "x", "size": 6, "nulls": "a"}
BY_EHD = {"mechanism": "hellinger_exponential"}
ALMOST_WITHOUT_NOISE = {**STRINGS, "query": query(1e6), "column": "t"}
GROUPS = {"query": query(contributions=1), "size": None, **BY_T}

TO_DISCOVER = {"query": query(delta=1e-6, contributions=1), "column": "x", "nulls": "a"}

QUERIES = rows(
    ob.posterior,
    QUERY,
    fitted_scale,
    vary("column", "s", DIFFERENT, lambda q: release_of(q).counts, **ALMOST_WITHOUT_NOISE),
    vary("by", ["t", "y"], DIFFERENT, lambda q: release_of(q).groups, **GROUPS),
    vary("categories", {"t": ["b"]}, DIFFERENT, lambda q: release_of(q).groups, **GROUPS),
    vary("prior", 0.1, LARGER, **BY_EHD),
    vary("prior", "learned", DIFFERENT, lambda q: release_of(q).learned_prior),
    vary("prior", "learned", REFUSED, **BY_EHD),
    vary("ordered", ["x"], DIFFERENT, lambda q: release_of(q).learned_prior),
    vary("categories", ["b", "a"], DIFFERENT, lambda q: release_of(q).categories, **STRINGS),
    vary("size", 3, DIFFERENT, **BY_EHD),
    vary("nulls", "none", DIFFERENT, lambda q: release_of(q).categories),
    vary("unknown", "none", DIFFERENT, lambda q: release_of(q).categories, **STRINGS),
    vary("mechanism", "hellinger_exponential", DIFFERENT, fitted_mechanism),
    vary("cells", SOME_CELLS[::-1], DIFFERENT, lambda q: release_of(q).categories, **TABLE),
    vary("unknown", "-", DIFFERENT, lambda q: release_of(q).categories, **TABLE),
    vary("gamma", 0.1, DIFFERENT, fitted_mechanism, mechanism="smooth_hellinger_exponential"),
    smaller={"query": query(2.0)},
)
QUERIES += rows(
    ob.discover,
    TO_DISCOVER,
    lambda q: q.summarize()["threshold"].item(),
    vary("column", "t", DIFFERENT, lambda q: q.summarize()["column"].item()),
    vary("always", ["b"], DIFFERENT, lambda q: release_of(q).listed),
    vary("rest", 0.2, DIFFERENT, lambda q: q.summarize()["rest_std"].item()),
    vary("nulls", ob.DROP, DIFFERENT, lambda q: q._bound.space.listed),
    different={"mechanism": "laplace_threshold"},
    smaller={"query": query(2.0, delta=1e-6, contributions=1)},
)

_KNORM = {"column": "x", "size": 6, "nulls": "a", "mechanism": "knorm_parameters"}
QUESTIONS = {"first": _KNORM, "second": _KNORM}


def first_scale(asked: Any) -> float:
    return asked.resolve()(FRAME)[0].mechanism.scale


_SHARE = {"alone": QUESTIONS["first"]}, {"first": 3, "second": 1}
QUERIES += rows(
    *(ob.survey, {"query": query(), "questions": QUESTIONS}, first_scale),
    smaller={"query": query(2.0), "questions": _SHARE[0], "share": _SHARE[1]},
)


def shares_of(questions: Any) -> list[tuple[str, float]]:
    return [(name, question["share"]) for name, question in questions.items()]


_HALVES = {"half": {"a": list(range(30)), "b": list(range(30, 60))}}
_OTHER: dict[str, Any] = {"categories": list(range(120)), "branching": 5, "merges": _HALVES}
QUERIES += rows(
    *(ob.levels, {"column": "x", "categories": list(range(60))}, shares_of),
    vary("budget", "rho", LARGER, len),
    different={"column": "y", **_OTHER},
)


def scale_in(context: Any) -> float:
    kwargs = {} if context.d_mids else {"epsilon": 0.5}
    return fitted_scale(ob.posterior(context.query(**kwargs), "x", nulls="a"))


def counts_in(context: Any) -> Any:
    return ob.posterior(context.query(), "x", nulls="a").release().counts


def space_of_queries(context: Any) -> str:
    return repr(context.accountant.input_space)


CLEAR = {"privacy_loss": dp.loss_of(epsilon=1e6)}
_LOSSES = [dp.loss_of(epsilon=epsilon) for epsilon in (1.0, 2.0)]
_ONE = {"split_evenly_over": 1}
_UNITS = [dp.unit_of(contributions=number) for number in (1, 2)]
QUERIES += rows(
    ob.context,
    {"data": FRAME, "privacy_unit": _UNITS[0], "privacy_loss": _LOSSES[0], **_ONE},
    scale_in,
    vary("data", pl.concat([FRAME, FRAME]), DIFFERENT, counts_in, **CLEAR),
    vary("split_by_weights", [1, 3], SMALLER, split_by_weights=[1, 9], split_evenly_over=None),
    vary("margins", [dp.polars.Margin(by=["t"], max_length=9)], DIFFERENT, space_of_queries),
    larger={"privacy_unit": _UNITS[1], "split_evenly_over": 2},
    refused={"ledger": "b.ledger"},
    smaller={"privacy_loss": _LOSSES[1]},
)
