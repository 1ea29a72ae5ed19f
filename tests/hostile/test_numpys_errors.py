"""Whatever `np.seterr` says, no map, door or posterior fails, and all is stated alike."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.mechanisms.registry import available_mechanisms, load_mechanism
from tests.helpers.asked_of_contexts import DOORS, LISTED, LOSSES, UNITS, opened
from tests.helpers.every_result import (
    called,
    made_anew,
    methods,
    plausible,
    properties,
    release,
    results,
)
from tests.helpers.sweeps import slow

PRIOR = (0.5, 1.0, 2.0)
#: Parameters of every mechanism, at both ends of what they may be.
SCALES = (1e-300, 1e-3, 1.0, 50.0, 1e300)
MEASURES = (
    dp.max_divergence(),
    dp.zero_concentrated_divergence(),
    dp.approximate(dp.max_divergence()),
)


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None, chains_anew: None) -> None:
    """In place of that of the folder: what was computed as usual is computed again."""


def outcome(ask: Callable[[], Any]) -> Any:
    """What it gives, or how it is refused."""
    try:
        return ask()
    except (ValueError, TypeError, dp.OpenDPException, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def both(ask: Callable[[], Any]) -> tuple[Any, Any]:
    """As usual, and where numpy raises whatever it can."""
    usual = outcome(ask)
    with np.errstate(all="raise"):
        return usual, outcome(ask)


def map_of(mechanism: Any, measure: Any, size: int | None) -> Any:
    """The map of a chain by hand, at a few distances."""
    changes = {} if size is None else {"size": size}
    space = (
        dp.vector_domain(dp.atom_domain(T=str), **changes),
        dp.symmetric_distance() if size is None else dp.change_one_distance(),
    )
    counts = ob.t.make_categorical_counts(*space, categories=["a", "b", "c"], unknown="a")
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=list(PRIOR))
    made = posterior >> ob.m.then_mechanism(measure, mechanism)
    return [made.map(d_in) for d_in in (0, 1, 2, 5)]


@pytest.mark.parametrize("name", [of for of in available_mechanisms() if "template" not in of])
def test_no_map_fails_and_none_is_another(name: str) -> None:
    kind = load_mechanism(name)
    for scale in SCALES:
        for size in (None, 4):
            mechanism = outcome(lambda: kind(scale))  # noqa: B023
            for measure in MEASURES:
                usual, raising = both(lambda: map_of(mechanism, measure, size))  # noqa: B023
                assert usual == raising


#: Every door, and every measure, which go round: what a measure computes, no door does again.
ASKED = [
    (door, measures[turn % len(measures)])
    for turn, door in enumerate(DOORS)
    for measures in [[of for of in LOSSES if door in LISTED or "Approximate" in of]]
]


@pytest.mark.parametrize(("door", "measure"), ASKED)
def test_no_door_fails_and_none_says_anything_else(door: str, measure: str) -> None:
    assert {of for _, of in ASKED} == set(LOSSES)

    def said() -> Any:
        context = opened("polars", UNITS["one record"], LOSSES[measure], None)
        query = DOORS[door](context.query(**{of: n / 4 for of, n in LOSSES[measure].items()}))
        result = query.release()
        return str(query.summarize()), result.loss, type(result)

    usual, raising = both(said)
    assert usual == raising


@pytest.mark.parametrize("k", [2, 12])
@pytest.mark.parametrize("name", [of for of in available_mechanisms() if "flip" not in of])
def test_no_mechanism_fails_with_many_records(name: str, k: int) -> None:
    """Most of what they sum up is as good as 0."""
    labels = [str(number) for number in range(k)]
    frame = pl.LazyFrame({"v": (labels * 3000)[:3000]})
    unit, loss = dp.unit_of(changes=1), dp.loss_of(epsilon=1.0, delta=1e-6)

    def said() -> Any:
        context = ob.context(frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
        query = ob.posterior(
            context.query(),
            "v",
            categories=labels,
            nulls="0",
            unknown="0",
            size=3000,
            mechanism=name,
        )
        summary = query.summarize()  # of which an expected width is of draws
        return summary.drop("interval_width").rows(), type(query.release())

    usual, raising = both(said)
    assert usual == raising


REFUSED: dict[str, Callable[[], Any]] = {
    "calibrate": lambda: ob.calibrate("laplace_parameters", size=9, prior=PRIOR, epsilon=1e-320),
    "plan": lambda: ob.plan(size=9, prior=PRIOR, epsilon=1e-320),
    "exact": lambda: ob.exact_loss(ob.LaplaceParameters(5e-324), size=9, prior=PRIOR),
    "profile": lambda: ob.privacy_profile(ob.LaplaceParameters(1e-9), size=9, prior=PRIOR)(1.0),
}


@pytest.mark.parametrize("door", REFUSED)
def test_no_refusal_is_another(door: str) -> None:
    usual, raising = both(lambda: str(REFUSED[door]()))
    assert usual == raising
    assert isinstance(usual, (str, pl.DataFrame))


#: Take seconds; or are tried with an argument that is no result's own.
SKIPPED = {"pooled", "from_json", "json_schema", "with_sizes"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("pictures")
def test_no_member_of_a_result_fails(tmp_path: Path) -> None:
    """Of a result of every kind, made where numpy raises whatever it can."""
    number = itertools.count()
    with np.errstate(all="raise"):
        for result in made_anew().values():
            for name in properties(result):
                getattr(result, name)
            for name, signature in methods(result):
                if name not in SKIPPED:
                    arguments = {
                        of: plausible(result, name, of, lambda: tmp_path / str(next(number)))
                        for of in signature.parameters
                    }
                    outcome(lambda: called(result, name, arguments))  # noqa: B023
                    plt.close("all")


def of_a_release(function: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: function(results()["release"])


#: Take seconds.
LONG = {"learned", "combine"}
COMPUTED: dict[str, Callable[[], Any]] = {
    "noise_aware_posterior": lambda: ob.noise_aware_posterior(release((50, 3000), "ab")).mean(),
    "learned": of_a_release(
        lambda one: ob.noise_aware_posterior(one, prior="learned", ordered=["v"]).std()
    ),
    "combine": lambda: ob.combine([release((50, 3000), "ab"), release((52, 2990), "ab")]).mean(),
    "log_likelihood": of_a_release(lambda one: ob.log_likelihood(one)([0.2, 0.3, 0.5])),
    "error_law": lambda: research.error_law(ob.LaplaceParameters(1.0), [40, 2], 1.0).values,
    "least_error": lambda: research.least_error(size=9, prior=PRIOR[:2], epsilon=1.0).value,
    "smallest": lambda: research.smallest_epsilon(0.2, size=50, prior=PRIOR[:2]),
    "sensitivity": lambda: ob.mechanisms.smooth_sensitivity([5, 900], [1, 1], gamma=9.0),
    "plan": lambda: repr(ob.plan(size=200, prior=PRIOR, epsilon=1.0).recommended).encode(),
    "profile": lambda: ob.privacy_profile(ob.LaplaceParameters(1.0), size=9, prior=PRIOR)(0.5),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", slow(COMPUTED, but={*COMPUTED} - LONG))
def test_no_function_fails_and_none_gives_another_number(name: str) -> None:
    usual, raising = both(COMPUTED[name])
    assert not isinstance(usual, str), usual
    np.testing.assert_equal(raising, usual)
