"""Every argument matters: two values of each, whose results differ, and which is larger."""

import inspect
from typing import Any

import definitions
import opendp.prelude as dp
import pytest

import opendp_bayes_smoothed as obs
from tests.helpers.argument_rows import DIFFERENT, LARGER, Row, check, rows, vary

PI = [[0.5, 0.5], [0.9, 0.1]]
WITH = "with"
IS_PURE = "the same: its guarantee is pure"
OF_THE_HISTOGRAM = "the same: the loss is that of the histogram of the sample"
HISTOGRAM_ONLY = "the same: what is drawn does not depend on it"


def measured(constructor: Any, measure: dp.Measure, d_in: int = 1, **parameters: Any) -> Any:
    """What the map of a measurement states."""
    return (definitions.posterior_of(10) >> constructor(measure, **parameters)).map(d_in)


def noisy(output_measure: dp.Measure, scale: float, rate: float, d_in: int) -> Any:
    return measured(obs.then_noisy_sampling_histogram, output_measure, d_in, scale=scale, rate=rate)


def histogram(output_measure: dp.Measure, rate: float, replacement: str, d_in: int) -> Any:
    return measured(
        obs.then_sampling_histogram, output_measure, d_in, rate=rate, replacement=replacement
    )


def average(output_measure: dp.Measure, rate: float, values: list[float], d_in: int) -> Any:
    return measured(obs.then_sampling_average, output_measure, d_in, rate=rate, values=values)


def smoothed_at(distributions: Any, size: int) -> Any:
    """δ of a map under the measure."""
    loss = measured(obs.then_sampling_histogram, obs.smoothed(distributions, size=size), rate=0.3)
    return loss.delta(0.5)


def loss(rate: float = 0.3) -> obs.SmoothedLoss:
    found = measured(obs.then_sampling_histogram, obs.smoothed(PI, size=10), rate=rate)
    assert isinstance(found, obs.SmoothedLoss)
    return found


GUARANTEE, NOISE = obs.SmoothedDP(10, ((0.5, 0.5),)), obs.NoisySamplingHistogram(4.0, 0.3)
ONE = {"counts": (6, 4), "rate": 0.5, "epsilon": 0.2}
SMOOTHED = {"distributions": PI, "size": 10, "rate": 0.5, "epsilon": 0.9}
PURE, APPROX = dp.max_divergence(), dp.approximate(dp.max_divergence())
OF_TEN = {"size": 10, "prior": (1.0, 1.0)}
SAMPLED, NOISY = obs.SamplingHistogram(1.0, 0.3), obs.NoisySamplingHistogram(4.0, 0.3)
SMOOTHED_TEN = obs.smoothed(PI, size=10)
EVEN = [[0.5, 0.5]]
ROWS: list[Row] = [
    *rows(
        *(obs.database_profile, ONE, float),
        different={"log": True},
        larger={"counts": (9, 1), "rate": 0.8},
        smaller={"epsilon": 0.4, "replacement": WITH},
    ),
    *rows(
        *(obs.smoothed_delta, SMOOTHED, float),
        different={"log": True},
        larger={"distributions": [[0.5, 0.5], [0.99, 0.01]], "rate": 0.8},
        smaller={"size": 20, "epsilon": 1.2, "replacement": WITH},
    ),
    *rows(
        obs.smoothed_epsilon,
        {"distributions": [[0.5, 0.5], [0.7, 0.3]], "size": 10, "rate": 0.3, "delta": 0.1},
        float,
        larger={"distributions": PI, "rate": 0.4},
        smaller={"size": 20, "delta": 0.2, "replacement": WITH},
    ),
    *rows(
        obs.smoothed_value,
        {"function": lambda counts: counts[0] == counts[1], "distributions": PI, "size": 10},
        float,
        larger={"function": lambda counts: counts[0] >= counts[1]},
        smaller={"distributions": [[0.6, 0.4], [0.9, 0.1]], "size": 20},
    ),
    *rows(
        *(obs.composed, {"losses": [(0.5, 0.1), (0.25, 0.1)]}, tuple),
        larger={"losses": [(0.5, 0.1), (0.5, 0.1)]},
    ),
    *rows(
        *(noisy, {"output_measure": PURE, "scale": 4.0, "rate": 0.3, "d_in": 1}),
        lambda found: found[0] if isinstance(found, tuple) else found,
        vary("output_measure", APPROX, DIFFERENT, lambda found: found),
        larger={"rate": 0.6, "d_in": 2},
        smaller={"scale": 8.0},
    ),
    *rows(
        *(histogram, {"output_measure": APPROX, "rate": 0.3, "replacement": "without", "d_in": 1}),
        lambda found: found[1] if isinstance(found, tuple) else found,
        vary("output_measure", SMOOTHED_TEN, DIFFERENT, repr),
        larger={"rate": 0.6, "d_in": 2},
        smaller={"replacement": WITH},
    ),
    *rows(
        *(average, {"output_measure": SMOOTHED_TEN, "rate": 0.3, "values": [0, 1], "d_in": 1}),
        *(lambda found: found.delta(0.5), vary("values", [0, 0], OF_THE_HISTOGRAM)),
        larger={"rate": 0.6},
        smaller={"output_measure": obs.smoothed(EVEN, size=10), "d_in": 0},
    ),
    *rows(
        *(smoothed_at, {"distributions": PI, "size": 10}, float),
        refused={"size": 20},
        smaller={"distributions": EVEN},
    ),
    *rows(
        obs.SmoothedLoss.delta, {"self": loss(), "epsilon": 0.4}, float, smaller={"epsilon": 0.9}
    ),
    *rows(obs.SmoothedLoss.epsilon, {"self": loss(), "delta": 0.2}, float, smaller={"delta": 0.25}),
    *rows(
        obs.SmoothedLoss.promised_delta,
        *({"self": obs.SmoothedLoss(GUARANTEE, NOISE), "epsilon": 0.1}, float),
        smaller={"epsilon": 0.12},
    ),
    *rows(
        *(obs.SmoothedLoss.statement, {"self": loss(), "epsilons": (0.4,)}, str),
        different={"epsilons": (0.9,)},
    ),
    *rows(
        obs.SamplingHistogram,
        {"scale": 1.0, "rate": 0.3, "replacement": "without"},
        lambda found: found.proven_loss(1, **OF_TEN, delta=1.0).delta,
        larger={"rate": 0.6},
        smaller={"scale": 3.0, "replacement": WITH},
    ),
    *rows(
        *(obs.NoisySamplingHistogram, {"scale": 4.0, "rate": 0.3}),
        lambda found: found.proven_loss(1, **OF_TEN).epsilon,
        larger={"rate": 0.6},
        smaller={"scale": 8.0},
    ),
    *rows(
        *(obs.SmoothedDP, {"size": 10, "vertices": ((0.5, 0.5), (0.9, 0.1))}),
        lambda guarantee: obs.SmoothedLoss(guarantee, NOISE).delta(0.1),
        smaller={"size": 20, "vertices": ((0.5, 0.5),)},
    ),
    *rows(
        *(obs.SmoothedLoss, {"guarantee": GUARANTEE, "mechanism": NOISE, "d_in": 1}),
        lambda found: found.delta(0.1),
        larger={"mechanism": obs.NoisySamplingHistogram(2.0, 0.3)},
        smaller={"guarantee": obs.SmoothedDP(20, ((0.5, 0.5),)), "d_in": 0},
    ),
    *rows(
        *(obs.SamplingHistogram.proven_loss, {"self": SAMPLED, "d_in": 1, **OF_TEN, "delta": 0.9}),
        *(lambda found: found.delta, vary("prior", (2.0, 1.0), HISTOGRAM_ONLY)),
        vary("delta", 0.1, LARGER, lambda found: found.epsilon),
        larger={"d_in": 2, "size": 15},
    ),
    *rows(
        obs.NoisySamplingHistogram.proven_loss,
        {"self": NOISY, "d_in": 1, **OF_TEN, "delta": 0.1},
        *(lambda found: found.epsilon, vary("prior", (2.0, 1.0), HISTOGRAM_ONLY)),
        vary("delta", 0.2, IS_PURE),
        larger={"d_in": 2, "size": 15},
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_argument_matters(row: Row) -> None:
    check(row)


#: Measurements, by the functions above that state what their maps do.
MAPS = {
    noisy: obs.then_noisy_sampling_histogram,
    histogram: obs.then_sampling_histogram,
    average: obs.then_sampling_average,
}
#: Sets of distributions: no losses.
NO_LOSSES = {"vertices"}


def parameters(function: Any) -> set[str]:
    return {name for name in inspect.signature(function).parameters if name != "self"}


def test_every_argument_has_a_row() -> None:
    public = {getattr(obs, name) for name in set(obs.__all__) - NO_LOSSES}
    mechanisms = {obs.SamplingHistogram, obs.NoisySamplingHistogram}
    made = {each for each in public if each.__name__.startswith(("make_", "then_"))}
    assert made == {each for each in public if each in MAPS.values()} | {
        getattr(obs, each.__name__.replace("then_", "make_")) for each in MAPS.values()
    }
    functions = (public - made) | {mechanism.proven_loss for mechanism in mechanisms}
    functions |= {
        method
        for name, method in inspect.getmembers(obs.SmoothedLoss, inspect.isfunction)
        if not name.startswith("_")
    }
    functions -= {obs.smoothed}
    expected = {(function, name) for function in functions for name in parameters(function)}
    expected |= {
        (stated, name)
        for stated, then in {**MAPS, smoothed_at: obs.smoothed}.items()
        for name in parameters(then) | ({"d_in"} if stated in MAPS else set())
    }
    assert {(row.function, row.argument) for row in ROWS} == expected
