"""A mechanism by name fits its budget or says what to ask, from the smallest δ to nearly 1."""

import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_smoothed as obs
from opendp_bayes.accounting import calibration, losses
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers.command_line import run
from tests.helpers.contexts import plain_context
from tests.helpers.sweeps import slow, some_of

FRAME = pl.LazyFrame({"vote": pl.Series(["a"] * 7 + ["b"] * 3, dtype=pl.Enum(["a", "b"]))})
SIZE, PRIOR = 10, [1.0, 1.0]
NEAR_ONE = 1 - 2.0**-53
_PAIRS = (1.0, 1e-6), (1.0, 0.5), (1e-9, 0.25), (50.0, 1e-9), (1.0, 0.9999999), (1.0, NEAR_ONE)
_PAIRS += (1.0, 5e-324), (1e-300, 1e-3)
BUDGETS: list[dict[str, float]] = [{"epsilon": 1.0}, {"rho": 0.1}, {"rho": 0.1, "delta": 1e-6}]
BUDGETS += [{"epsilon": epsilon, "delta": delta} for epsilon, delta in _PAIRS]
#: What a refusal may say: each with something to do.
REMEDIES = (
    "choose another mechanism or a larger loss, a larger δ where it needs one.",
    "One that needs a δ has no finite loss without it: give epsilon and delta.",
    "so that its release would have no posterior. For counts without one, call its constructor.",
    "has no ε without δ. Give delta as well, or rho, in a Context by dp.loss_of(",
)


def asked(mechanism: Any, budget: dict[str, float], **options: Any) -> ob.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analysis = plain_context(FRAME, {"changes": 1}, budget)
        return ob.posterior(
            analysis.query(), "vote", size=SIZE, nulls="a", mechanism=mechanism, **options
        ).release()


def remedied(error: ValueError) -> bool:
    return any(remedy in str(error) for remedy in REMEDIES)


@pytest.mark.parametrize(
    ("name", "budget"), some_of(product(["auto", *ob.available_mechanisms()], BUDGETS), 9), ids=str
)
def test_a_mechanism_by_name_fits_its_budget_or_is_refused_with_a_remedy(name, budget):
    try:
        release = asked(name, budget)
    except ValueError as error:
        assert remedied(error), str(error)  # noqa: PT017
        return
    if "rho" in budget:
        assert 0 < release.rho <= budget["rho"]
    else:
        assert (release.epsilon, release.delta) <= (budget["epsilon"], budget.get("delta", 0.0))
        assert release.delta <= budget.get("delta", 0.0)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_noise_on_a_sample_spends_its_delta(rate: float) -> None:
    """Pure at ε₀: a δ of a half lets the noise shrink to a half of what ε alone needs."""
    template = obs.NoisySamplingHistogram(1.0, rate)
    public: Any = {"size": SIZE, "prior": PRIOR}
    pure = ob.calibrate(template, epsilon=1.0, **public)
    spent = ob.calibrate(template, epsilon=1.0, delta=0.5, **public)
    assert spent.scale < 0.7 * pure.scale
    loss = losses.loss_of(Setting.of(spent, **public), 1, delta=0.5)
    assert (loss.epsilon, loss.delta) == (pytest.approx(1.0), 0.5)


def test_what_will_have_no_posterior_or_needs_a_delta_is_refused() -> None:
    """Noise on a sample has no list of outcomes; nothing is debited, and another is answered."""
    analysis = plain_context(FRAME, {"changes": 1})
    settled: Any = {"size": SIZE, "nulls": "a"}
    noisy = obs.NoisySamplingHistogram(5.0)
    with pytest.raises(ValueError, match=r"cannot be enumerated.*no posterior"):
        ob.posterior(analysis.query(), "vote", mechanism=noisy, **settled).release()
    release = ob.posterior(analysis.query(), "vote", **settled).release()
    assert 0 < release.posterior.mean()[0] < 1
    for delta in (0.0, 1.0, 1.5, -1e-9, float("nan")):
        with pytest.raises(ValueError, match=rf"delta={re.escape(repr(delta))}: must be between"):
            ob.calibrate(
                ob.LaplaceParameters(1.0), size=SIZE, prior=PRIOR, epsilon=1.0, delta=delta
            )
    template = obs.SamplingHistogram()
    public: Any = {"size": SIZE, "prior": PRIOR}
    for budget in ({"epsilon": 1.0}, {"rho": 0.1}):
        with pytest.raises(ValueError, match="no finite loss without it"):
            ob.calibrate(template, **public, **budget)
    with pytest.raises(ValueError, match="larger δ where it needs"):
        ob.calibrate(template, **public, epsilon=1.0, delta=1e-6)
    fitted = ob.calibrate(template, **public, epsilon=1.0, delta=0.1)
    assert asked(fitted, {"epsilon": 1.0, "delta": 0.1}).delta == 0.1


DELTAS = [5e-324, 1e-300, 1e-6, 0.5, 0.9999999, NEAR_ONE]


@pytest.mark.parametrize(
    ("epsilon", "delta", "accounting"),
    some_of(product([1e-300, 1e-9, 1.0, 50.0], DELTAS, ["exact", "proven"]), 6),
)
def test_what_is_calibrated_has_the_loss_that_was_asked_for(epsilon, delta, accounting):
    for name in ob.available_mechanisms():
        kind = ob.load_mechanism(name)
        budget = {"epsilon": epsilon, "delta": delta}
        try:
            found = ob.calibrate(
                kind(scale=1.0), size=SIZE, prior=PRIOR, accounting=accounting, tune=False, **budget
            )
        except ValueError as error:
            assert remedied(error), str(error)  # noqa: PT017
            continue
        loss = losses.loss_of(Setting.of(found, SIZE, PRIOR), 1, delta=delta, accounting=accounting)
        assert loss.epsilon <= epsilon, (found, loss)
        assert loss.delta <= delta, (found, loss)


@pytest.mark.parametrize("delta", [5e-324, NEAR_ONE, *slow([1e-12, 0.5, 0.9999999])])
def test_a_plan_is_made_at_every_delta(delta: float) -> None:
    found = ob.plan(size=SIZE, prior=PRIOR, epsilon=1.0, delta=delta)
    losses = [row.loss for row in found.rows if row.loss is not None]  # others say why not
    assert losses
    assert all(loss.delta <= delta and loss.epsilon <= 1 for loss in losses)


@pytest.mark.parametrize(
    "delta", [5e-324, pytest.param(0.9999999, marks=pytest.mark.slow), NEAR_ONE]
)
def test_the_commands_answer_at_every_delta(delta, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("v.csv").write_text("v\n" + "a\nb\n" * 20)
    budget = ("--epsilon", 1, "--delta", delta)
    assert "Recommended" in run("plan", "--size", 20, "--prior", "1,1", *budget)
    run("release", "v.csv", "--column", "v", "--categories", "a,b", *budget, "-o", "v.json")
    release = ob.Release.from_json(Path("v.json").read_bytes())
    assert (release.epsilon, release.delta) <= (1, delta)


def test_a_search_that_only_follows_the_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: relative to a δ near 1 the loss hardly depends on the scale."""

    def following(_allowed: Any, _refused: Any, scale: float, value: float, *_: Any) -> float:
        steps.append(scale)
        if len(steps) > 200:
            raise OverflowError
        return scale * value * (1 + 1e-9)

    steps: list[float] = []
    monkeypatch.setattr(calibration, "_next", following)
    with pytest.raises(OverflowError):
        ob.calibrate(
            ob.GaussianParameters(1.0), size=SIZE, prior=PRIOR, epsilon=1.0, delta=0.9999999
        )


def test_a_map_that_does_not_use_its_delta_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""
    template = obs.NoisySamplingHistogram(1.0)
    public: Any = {"size": SIZE, "prior": PRIOR}
    setting = Setting.of(ob.calibrate(template, epsilon=1.0, delta=0.5, **public), **public)
    assert losses.loss_of(setting, 1, delta=0.5).epsilon <= 1
    monkeypatch.setattr(losses.Curve, "epsilon", lambda self, delta: self.loss.epsilon)
    assert losses.loss_of(setting, 1, delta=0.5).epsilon > 1
