"""Arguments of posteriors and of the methods of one."""

from typing import Any

import numpy as np
from argument_rows import DIFFERENT, LARGER, SMALLER, rows, vary
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference.posterior import Comparison

LAPLACE = ob.LaplaceParameters(1.0)


def released(counts: tuple[int, ...], size: int | None, mechanism: Any) -> ob.Release:
    loss = ob.PrivacyLoss(1.0, 1.0, 1.0)
    prior = (1.0,) * len(counts)
    labels = tuple("abc"[: len(counts)])
    return ob.Release(counts, labels, prior, mechanism, size, 1, loss, "MaxDivergence")


BY_CHAINS = released((600, 300, 100), 10**6, ob.LaplaceParameters(1e3))
PRIVATE = released((6, 3), None, ob.LaplaceParameters(1.0, total="private"))
POSTERIOR = released((6, 3, 1), 10, LAPLACE).posterior
OTHER = released((3, 6, 1), 10, LAPLACE).posterior
COMPARED = POSTERIOR.compare(OTHER)


def first_is_larger(theta: Any) -> Any:
    return theta[0] > theta[1]


def first_mean(posterior: ob.NoiseAwarePosterior) -> float:
    return float(posterior.mean()[0])


def first_width(interval: Any) -> float:
    return float(interval[1][0] - interval[0][0])


POSTERIORS = [
    *rows(
        ob.noise_aware_posterior,
        {"release": BY_CHAINS, "effective_draws": 100},
        first_mean,
        vary("release", released((9, 1, 0), 10, LAPLACE), LARGER),
        vary("size_prior", stats.poisson(30), DIFFERENT, release=PRIVATE),
        vary("effective_draws", 12_000, LARGER, lambda p: p.diagnostics.draws),
        vary("seed", 1, DIFFERENT),
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
                "sample",
                {"size": 5, "seed": 0},
                np.array,
                [vary("size", 6, LARGER, len), vary("seed", 1, DIFFERENT)],
            ),
            (
                "predictive",
                {"size": 50, "draws": 5, "seed": 0},
                np.array,
                [
                    vary("size", 60, LARGER, lambda drawn: int(drawn.sum())),
                    vary("draws", 6, LARGER, len),
                    vary("seed", 1, DIFFERENT),
                ],
            ),
            (
                "probability",
                {"event": first_is_larger, "draws": 400},
                lambda p: p.value,
                [
                    vary("event", lambda theta: ~first_is_larger(theta), SMALLER),
                    vary("draws", 1600, SMALLER, lambda p: p.standard_error),
                    vary("seed", 1, DIFFERENT),
                ],
            ),
            (
                "compare",
                {"other": OTHER},
                lambda compared: compared.probability,
                [vary("other", POSTERIOR, DIFFERENT), vary("seed", 1, DIFFERENT)],
            ),
            (
                "to_arviz",
                {"draws": 5},
                lambda data: data.posterior["theta"].values,
                [
                    vary("draws", 6, LARGER, lambda data: data.posterior.sizes["draw"]),
                    vary("seed", 1, DIFFERENT),
                ],
            ),
        )
        for method in [getattr(ob.NoiseAwarePosterior, name)]
        for row in rows(method, {"self": POSTERIOR, **base}, of, *varied)
    ),
    *rows(Comparison.interval, {"self": COMPARED}, first_width, vary("level", 0.99, LARGER)),
    *rows(
        ob.binomial_beta,
        {"n": 10, "x": 4},
        np.array,
        vary("n", 11, DIFFERENT),
        vary("x", 5, DIFFERENT),
        vary("prior", 0.5, DIFFERENT),
    ),
    *rows(
        ob.multinomial_dirichlet,
        {"x": (1, 2, 3)},
        np.array,
        vary("x", (2, 2, 3), DIFFERENT),
        vary("prior", 0.5, DIFFERENT),
    ),
    *(
        row
        for distance in (ob.hellinger_distance, ob.bhattacharyya_angle)
        for row in rows(
            distance,
            {"a": (2, 1), "b": (1, 2)},
            float,
            vary("a", (4, 1), LARGER),
            vary("b", (1, 4), LARGER),
        )
    ),
]
