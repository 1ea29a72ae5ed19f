"""Plans: expected errors against sums and draws made otherwise, and recommendations."""

import copy
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes import (
    GaussianParameters,
    KNormParameters,
    LaplaceParameters,
    Release,
    exact_loss,
    plan,
)
from opendp_bayes.accounting.calibration import relative_loss, smallest_scale
from opendp_bayes.mechanisms import (
    HellingerExponential,
    PermuteAndFlip,
    SmoothHellingerExponential,
    hellinger_distance,
)
from opendp_bayes.mechanisms.neighbours import ONE_RECORD
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning import release_law
from opendp_bayes.planning.automatic import choose, usual
from opendp_bayes.planning.compare import Plan, PlanRow
from opendp_bayes.planning.expected_error import errors_at, expected_error
from opendp_bayes.planning.plan import default_mechanisms
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import some_of

#: Standard errors between an expectation and its simulation. Five are exceeded once in 1.7 million
#: times.
DEVIATIONS = 5.0

LISTED: list[tuple[Any, list[int]]] = [
    (LaplaceParameters(1.5), [12, 30]),
    (LaplaceParameters(1.5), [0, 30]),
    (LaplaceParameters(1.0, "floored"), [3, 4, 5]),
    (LaplaceParameters(1.0, "floored", "bounded"), [3, 4, 5]),
    (LaplaceParameters(0.7, total="bounded"), [2, 9]),
    (KNormParameters(1.2), [4, 30]),
    (KNormParameters(0.8), [2, 5, 20]),
    (KNormParameters(0.5), [1, 2, 3, 4]),
    (HellingerExponential(0.1), [5, 35]),
    (SmoothHellingerExponential(1.2, gamma=0.3), [7, 20, 3]),
    (PermuteAndFlip(0.2), [10, 10]),
]


@pytest.mark.parametrize(("mechanism", "counts"), LISTED, ids=str)
def test_an_expectation_is_the_sum_over_the_whole_law(mechanism: Any, counts: list[int]) -> None:
    prior = np.linspace(0.5, 1.5, len(counts))
    found = expected_error(Setting.of(mechanism, sum(counts), prior), np.array(counts))
    outcomes, log_p = mechanism.log_pmf(counts, prior)
    released, true = outcomes + prior, np.array(counts) + prior
    assert found.method == "exact"
    assert found.hellinger == pytest.approx(
        np.exp(log_p) @ hellinger_distance(released, true), rel=1e-5
    )


DRAWN: list[tuple[Any, list[int], int]] = [
    (LaplaceParameters(1.0), [200_000, 800_000], 20_000),
    (LaplaceParameters(1.0, total="private"), [50, 60, 7], 10_000),
    (LaplaceParameters(2.0, "floored", "private"), [50, 60, 7, 0, 3], 6_000),
    (LaplaceParameters(2.0, "discrete", "bounded"), [50, 60, 7, 0, 3], 3_000),
    (KNormParameters(10.0), [27, 27, 26], 3_000),
    (KNormParameters(1.0), [10, 20, 30, 40, 50, 0], 6_000),
    (HellingerExponential(0.05), [300, 500, 400, 900], 30_000),
    (SmoothHellingerExponential(1.5, gamma=0.1), [70_000, 30_000], 50_000),
    (PermuteAndFlip(1.0), [25, 20, 25, 15], 3_000),
]


def deviations(mechanism: Any, counts: list[int], draws: int, factor: float = 1.0) -> float:
    """How many standard errors lie between the expected Hellinger error and the mean over draws of
    the mechanism's own sampler.
    """
    prior = np.ones(len(counts))
    setting = Setting.of(mechanism, sum(counts), prior).changed(scale=factor * mechanism.scale)
    expected = expected_error(setting, np.array(counts))
    distance = hellinger_distance(
        mechanism.sample(counts, prior, draws) + prior, np.array(counts) + prior
    )
    return abs(float(distance.mean()) - expected.hellinger) / math.hypot(
        expected.standard_error, float(distance.std()) / math.sqrt(draws)
    )


@pytest.mark.parametrize(("mechanism", "counts", "draws"), some_of(DRAWN, 4), ids=str)
def test_an_expectation_is_the_mean_over_releases(mechanism, counts, draws):
    assert deviations(mechanism, counts, draws) < DEVIATIONS


def test_a_scale_that_is_off_by_a_tenth_is_seen() -> None:
    """The negative control of the test above."""
    assert deviations(LaplaceParameters(1.0), [200_000, 800_000], 20_000, factor=1.1) > DEVIATIONS
    assert deviations(KNormParameters(1.0), [10, 20, 30, 40, 50, 0], 6_000, factor=1.1) > DEVIATIONS


#: Settings whose plans list every mechanism, with sums over all outcomes and, with 4 categories,
#: simulations.
SIMULATED: list[dict[str, Any]] = [
    {"size": 40, "prior": (1.0, 1.0), "epsilon": 1.0},
    {"size": 30, "prior": (1.0, 2.0, 0.5), "epsilon": 1.0},
    {"size": 150, "prior": (1.0, 1.0, 1.0, 1.0), "epsilon": 0.3},
    {"size": None, "guess_size": 40, "prior": (1.0, 1.0), "epsilon": 0.5},
    {"size": None, "guess_size": 60, "prior": (1.0, 1.0, 1.0, 1.0), "rho": 0.1},
]


def figures(mechanism, counts, prior, draws):
    """The two figures of an expected error, from draws; the width is the least of three for each
    category: of the posteriors, of normal laws and of the prior.
    """
    prior, true, records = np.array(prior), np.array(counts) + prior, sum(counts)
    released = mechanism.sample(counts, prior, draws) + prior
    gammas = np.random.default_rng(0).gamma(np.repeat(released, 10, axis=0))
    lower, upper = np.quantile(gammas / gammas.sum(axis=1, keepdims=True), [0.025, 0.975], axis=0)
    shares = released / released.sum(axis=1, keepdims=True)
    beforehand = stats.beta(prior, prior.sum() - prior)
    noise = shares.var(axis=0) * (1 + prior.sum() / records) ** 2
    of_release = shares.mean(axis=0) * (1 - shares.mean(axis=0)) / records + noise
    normal = 2 * stats.norm.ppf(0.975) / np.sqrt(1 / beforehand.var() + 1 / of_release)
    of_prior = beforehand.ppf(0.975) - beforehand.ppf(0.025)
    widths = np.minimum.reduce([upper - lower, normal, of_prior])
    return [float(np.mean(hellinger_distance(released, true))), float(widths.mean())]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SIMULATED, ids=str)
def test_every_figure_of_a_plan_is_within_one_percent_of_simulation(setting):
    """One percent, and what the simulation may be off: four standard errors of about 0.3 %."""
    found, batches = plan(**setting), 10
    for row, name in product(
        (row for row in found.rows if row.refused is None), ("skewed", "edge")
    ):
        error, drawn = row.errors[name], row.mechanism
        if isinstance(drawn, GaussianParameters) and found.size is None:
            drawn = replace(drawn, total="private")  # counts alone would give the size away
        simulated = np.array(
            [figures(drawn, error.counts, found.prior, 5_000) for _ in range(batches)]
        )
        expected = np.array([error.hellinger, error.interval_width])
        mean, deviation = simulated.mean(axis=0), simulated.std(axis=0, ddof=1) / math.sqrt(batches)
        away = np.abs(expected - mean)
        told = (row.mechanism, name, expected / mean - 1, deviation / mean)
        assert np.all(away < 0.01 * mean + 4 * deviation), told


def test_the_settings_that_are_simulated_list_every_mechanism() -> None:
    def kind_of(mechanism):
        options = (getattr(mechanism, of, None) for of in ("noise", "total", "sensitivity"))
        return type(mechanism), *options

    every = (
        default_mechanisms(of["size"], len(of["prior"]), pure="epsilon" in of) for of in SIMULATED
    )
    listed = {kind_of(mechanism) for mechanisms in every for mechanism in mechanisms}
    assert len(listed) == 2 * 3 + 6


@pytest.mark.parametrize(
    "mechanism",
    [
        *(LaplaceParameters(scale) for scale in (0.8, 2.0)),
        *(LaplaceParameters(scale, "floored", "private") for scale in (0.8, 1.0)),
        *(KNormParameters(scale) for scale in (0.6, 1.0, 1.8)),
    ],
    ids=str,
)
@pytest.mark.parametrize("true", [(9, 20, 31), (3, 0, 0)])
def test_listed_and_simulated_noise_agree(
    mechanism: Any, true: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, setting = np.array(true), Setting.of(mechanism, sum(true), np.ones(3))
    listed = expected_error(setting, counts)
    monkeypatch.setattr(release_law, "_LARGEST_NOISE", 0)
    simulated = expected_error(setting, counts)
    assert (listed.method, simulated.method) == ("exact", "simulated")
    assert listed.standard_error == 0 < simulated.standard_error < 0.01 * simulated.hellinger
    assert abs(listed.hellinger - simulated.hellinger) < DEVIATIONS * simulated.standard_error
    assert simulated.interval_width == pytest.approx(listed.interval_width, rel=0.01)
    assert expected_error(setting, counts) == simulated, "the same question has the same answer"


def test_the_interval_width_is_that_of_noise_aware_intervals_away_from_the_edge() -> None:
    counts, prior, mechanism = np.array([80, 120]), np.ones(2), LaplaceParameters(5.0)
    widths = []
    for shift in mechanism.sample(counts, prior, 40).tolist():
        release = Release(tuple(shift), ("a", "b"), (1.0, 1.0), mechanism, guarantee(200))
        lower, upper = release.posterior.interval(0.95)
        widths.append(upper[0] - lower[0])
    found = expected_error(Setting.of(mechanism, 200, prior), counts)
    assert found.interval_width == pytest.approx(np.mean(widths), rel=0.03)


# --- the recommendation
def pickled(found: Plan) -> Any:
    return pickle.loads(pickle.dumps(found))  # noqa: S301 - our own


def settings() -> Iterator[dict[str, Any]]:
    """216 public settings."""
    for size, k, epsilon, alpha in product(
        (3, 10, 50, 500), (2, 3, 5), (0.1, 0.5, 1.0, 3.0), (0.5, 1.0, 20.0)
    ):
        yield {"size": size, "prior": (alpha,) * k, "epsilon": epsilon}
    for size, k, rho, alpha in product((50, 500), (2, 3, 5), (0.01, 0.1, 0.5, 2.0), (0.5, 1.0)):
        yield {"size": size, "prior": (alpha,) * k, "rho": rho}
    for epsilon, alpha in product((0.1, 0.5, 1.0, 3.0), (0.5, 1.0)):
        yield {"size": 5000, "prior": (alpha,) * 2, "epsilon": epsilon}
    for size, rho, alpha in product((20, 30), (0.1, 0.3, 0.5, 0.8), (0.5, 1.0)):
        yield {"size": size, "prior": (alpha,) * 2, "rho": rho}


def excess(setting: dict[str, Any]) -> tuple[float, float]:
    """The scores of the plan's recommendation and of `choose`, relative to the best mechanism's."""
    found = plan(**setting)
    prior, loss = np.array(found.prior), relative_loss(**found.budget)
    chosen = choose(fit(loss), found.size, prior)
    best = min(row.score for row in found.rows)
    score = PlanRow(
        chosen.mechanism, None, errors_at(chosen, found.proportions, found.records)
    ).score
    return found.rows[0].score / best, score / best


#: Every size and budget, at settings that are quick.
QUICK = {2, 17, 57, 147}


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(setting, marks=() if i in QUICK else pytest.mark.slow)
        for i, setting in enumerate(settings())
    ],
    ids=str,
)
def test_the_recommendation_is_within_five_percent_of_the_best(setting: dict[str, Any]) -> None:
    recommended, automatic = excess(setting)
    assert recommended <= 1.01
    assert automatic <= 1.05


def test_what_auto_stands_for_is_the_usual_noise_where_it_is_small() -> None:
    loss = relative_loss(epsilon=1.0)
    for size, k in ((None, 2), (None, 5), (1000, 2), (1000, 4), (10**9, 3)):
        prior = np.ones(k)
        chosen = choose(fit(loss), size, prior).mechanism
        assert replace(chosen, scale=1.0) == usual(size, k)


def fit(loss: Any) -> Any:
    return lambda template: smallest_scale(
        template, lambda setting: loss(setting, ONE_RECORD, "exact")
    )


#: Records, categories and a budget; what is best by a margin of more than 2 %.
BUDGETS: list[tuple[int | None, int, dict[str, float], type]] = [
    (5000, 2, {"rho": 0.1}, GaussianParameters),
    (5000, 3, {"rho": 0.1}, GaussianParameters),
    (200, 2, {"rho": 0.1}, GaussianParameters),
    (5000, 3, {"rho": 2.0}, KNormParameters),
    (5000, 2, {"rho": 2.0}, LaplaceParameters),
    (5000, 2, {"epsilon": 1.0}, LaplaceParameters),
    (5000, 3, {"epsilon": 1.0, "delta": 1e-6}, KNormParameters),
    (5000, 3, {"delta": 1e-2}, GaussianParameters),
    (None, 2, {"rho": 0.1}, GaussianParameters),
    (None, 3, {"rho": 0.1}, GaussianParameters),
    (None, 3, {"rho": 2.0}, LaplaceParameters),
    (None, 3, {"epsilon": 1.0}, LaplaceParameters),
    (None, 3, {"epsilon": 1.0, "delta": 1e-6}, LaplaceParameters),
    (None, 2, {"delta": 1e-2}, GaussianParameters),
]


@pytest.mark.parametrize(
    ("size", "k", "budget", "best"),
    [pytest.param(*of, marks=[pytest.mark.slow] * (at != 6)) for at, of in enumerate(BUDGETS)],
    ids=str,
)
def test_auto_and_plan_agree_under_every_budget(size, k, budget, best):
    prior = np.ones(k)
    noises = [
        mechanism
        for mechanism in default_mechanisms(size, k, pure=set(budget) == {"epsilon"})
        if isinstance(mechanism, (LaplaceParameters, KNormParameters, GaussianParameters))
    ]
    guess = 5000 if size is None else None
    found = plan(size=size, prior=prior, guess_size=guess, mechanisms=noises, **budget)
    chosen = choose(fit(relative_loss(**budget)), size, prior).mechanism
    assert isinstance(chosen, best)
    assert found.recommended == replace(chosen, scale=found.recommended.scale)
    assert chosen.scale == pytest.approx(found.recommended.scale, rel=1e-6)
    if isinstance(chosen, LaplaceParameters):
        assert chosen.noise == "discrete"


def test_errors_with_a_private_number_of_records_do_not_use_it() -> None:
    """Gaussian noise is projected to the sum of the counts only where that is public."""
    counts, prior, mechanism = np.array([90, 60]), np.ones(2), GaussianParameters(4.0)
    public, private = (
        expected_error(Setting.of(mechanism, size, prior), counts) for size in (150, None)
    )
    assert private.hellinger > 1.02 * public.hellinger
    clamped = GaussianParameters(4.0, total="private")
    assert expected_error(Setting.of(clamped, 150, prior), counts) == private
    drawn = np.maximum(mechanism.draw(counts, prior, 4_000), 0)
    distance = hellinger_distance(drawn + prior, counts + prior)
    assert abs(distance.mean() - private.hellinger) < DEVIATIONS * distance.std() / math.sqrt(4_000)


@pytest.mark.parametrize(("size", "floored"), [(20, True), (500, False)])
def test_auto_takes_floored_noise_where_it_is_better(size: int, floored: bool) -> None:
    """Under ρ a smaller scale is as private, which matters with tens of records."""
    prior = np.full(2, 0.5)
    chosen = choose(fit(relative_loss(rho=0.5)), size, prior).mechanism
    assert (getattr(chosen, "noise", None) == "floored") is floored


def test_auto_passes_over_what_is_refused() -> None:
    def refusing(template: Setting) -> Setting:
        if not isinstance(template.mechanism, LaplaceParameters):
            raise ValueError("too much is asked for")
        return template.changed(scale=20.0)

    assert isinstance(choose(refusing, 10, np.ones(2)).mechanism, LaplaceParameters)


# --- the plan
def test_a_plan_is_best_first_and_says_what_it_costs() -> None:
    three = [LaplaceParameters(1.0), KNormParameters(7.0), HellingerExponential(1.0)]
    found = plan(size=60, prior=[1.0, 2.0, 1.0], epsilon=1.0, mechanisms=three)
    assert [row.score for row in found.rows] == sorted(row.score for row in found.rows)
    assert found.recommended == KNormParameters(1.0)
    for row in found.rows:
        assert row.loss is not None
        assert row.loss.epsilon <= 1.0
        assert row.loss.epsilon == pytest.approx(1.0, rel=1e-6)
        assert [sum(error.counts) for error in row.errors.values()] == [60, 60, 60]
    assert found.rows[0].loss == exact_loss(KNormParameters(1.0), size=60, prior=[1.0, 2.0, 1.0])
    assert "KNormParameters(scale=1) has an expected Hellinger error of" in found.reason
    text = repr(found).splitlines()
    assert text[0] == "Plan for ε = 1"
    assert text[1].split()[:3] == ["Mechanism,", "best", "first"]
    assert text[2].split() == ["balanced", "skewed", "edge", "balanced"]
    assert text[3].split()[:3] == ["KNormParameters", "1", "1"]
    assert " ".join(text).endswith(f"Recommended: {found.reason}")


@pytest.mark.parametrize("d_in", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_plan_states_the_losses_at_its_distance(d_in: int) -> None:
    """Of `d_in` records, whose loss is what was asked for; that of one record is less."""
    prior = [1.0, 1.0, 1.0]
    mechanisms = [LaplaceParameters(1.0), KNormParameters(1.0), HellingerExponential(1.0)]
    found = plan(size=20, prior=prior, epsilon=1.0, d_in=d_in, mechanisms=mechanisms)
    assert found.d_in == d_in
    assert len(found.rows) == len(mechanisms)
    for row in found.rows:
        assert row.loss is not None
        assert row.loss == exact_loss(row.mechanism, size=20, prior=prior, d_in=d_in)
        assert row.loss.epsilon == pytest.approx(1.0, rel=1e-6)
        of_one = exact_loss(row.mechanism, size=20, prior=prior).epsilon
        assert (of_one < 0.9) == (d_in > 1)


def test_of_mechanisms_that_are_as_good_the_simplest_is_recommended() -> None:
    two = [KNormParameters(1.0), LaplaceParameters(1.0)]
    found = plan(size=50, prior=[1.0, 1.0], rho=0.5, mechanisms=two)
    assert isinstance(found.recommended, KNormParameters), (
        "the first of two that are the same noise"
    )
    assert "is within 1 % of it" in found.reason


@pytest.fixture(scope="module")
def found() -> Plan:
    return plan(size=50, prior=[1.0, 1.0], epsilon=1.0)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deep", "pickle"]
)
def test_a_plan_can_be_copied(copied: Any, found: Plan) -> None:
    again = copied(found)
    assert again == found
    assert again.recommended == found.recommended
    assert again.sheet() == found.sheet()


def test_stated_proportions_decide() -> None:
    """Nearly all in one category, floored noise helps; on average it does not."""
    mechanisms = [LaplaceParameters(1.0), LaplaceParameters(1.0, "floored")]
    assert plan(
        size=1000, prior=[1.0, 1.0], epsilon=1.0, mechanisms=mechanisms
    ).recommended == LaplaceParameters(1.0)
    stated = plan(
        size=1000, prior=[1.0, 1.0], epsilon=1.0, mechanisms=mechanisms, proportions=[0, 5]
    )
    assert stated.recommended == LaplaceParameters(1.0, "floored")
    assert stated.proportions["stated"] == (0.0, 1.0)
    assert stated.rows[0].score == stated.rows[0].errors["stated"].hellinger


def test_a_private_number_of_records_is_guessed_and_leaves_laplace_noise() -> None:
    found = plan(guess_size=300, prior=[1.0, 1.0], epsilon=0.5, d_in=2)
    assert found.recommended == LaplaceParameters(4.0, total="private")
    refused = [row for row in found.rows if row.refused is not None]
    others = {HellingerExponential, SmoothHellingerExponential, PermuteAndFlip}
    assert {type(row.mechanism) for row in refused} == {KNormParameters, *others}
    assert all(row.loss is None and row.score == math.inf and not row.errors for row in refused)
    assert "A private number of records, guessed to be 300," in repr(found)


def test_mechanisms_without_an_error_are_equal() -> None:
    two = [LaplaceParameters(1.0), KNormParameters(1.0)]
    found = plan(size=9, prior=[1.0, 1.0], epsilon=1e300, mechanisms=two)
    assert found.rows[0].score == 0
    assert found.reason.endswith(
        "KNormParameters(scale=9.09495e-13) is within 1 % of it (0) and no simpler."
    )


def test_a_single_mechanism_needs_no_comparison() -> None:
    assert plan(
        size=9, prior=[1.0, 1.0], epsilon=1.0, mechanisms=[LaplaceParameters(1.0)]
    ).reason.endswith("and no other mechanism can be used.")


def test_a_frame_holds_every_row() -> None:
    two = [LaplaceParameters(1.0, total="private"), KNormParameters(1.0)]
    of = {"size": None, "guess_size": 50, "prior": [1.0, 1.0]}
    found = plan(epsilon=1.0, delta=1e-6, mechanisms=two, **of)
    frame = found.to_frame()
    assert frame.height == 4
    assert frame["proportions"].to_list() == ["balanced", "skewed", "edge", None]
    assert frame["refused"].null_count() == 3
    errors = found.rows[0].errors.values()
    assert frame["hellinger"].to_list() == [*(error.hellinger for error in errors), None]
    assert frame["delta"].to_list() == [1e-6] * 3 + [None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": None}, "size=None, guess_size=None: give one of them"),
        ({"guess_size": 5}, "size=9, guess_size=5: give one of them"),
        ({"size": 0}, "size=0: must be between 1"),
        ({"epsilon": None}, "both of these, or rho"),
        ({"proportions": [1.0]}, r"proportions=.*2 numbers of at"),
        (
            {"mechanisms": [LaplaceParameters(1.0, total="private")], "epsilon": 1e-30},
            r"mechanisms: none .*first .*mechanism=LaplaceParameters",
        ),
        ({"mechanisms": []}, r"mechanisms=\[\]: must be .*at least one"),
    ],
)
def test_impossible_plans(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**{"size": 9, "prior": [1.0, 1.0], "epsilon": 1.0, **arguments})
