"""Two things at once, of which each alone is tested elsewhere: ε and δ, rules and surveys."""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.measurements import measured_sampler
from opendp_bayes.mechanisms import PermuteAndFlip
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries import mechanism_choice
from opendp_bayes.surveys import survey_query
from opendp_bayes.trusted import measurements, measurements as pacing
from opendp_bayes.trusted.budget import loss_in, unit_in_words
from opendp_bayes.trusted.contexts import CheckedContext
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace
from tests.helpers.contexts import plain_context

AGES = ["30", "20", "10", "40"]
_COLUMNS = {"who": list(range(20)) * 3, "age": AGES * 15, "vote": [True, True, False] * 20}
FRAME = pl.DataFrame(_COLUMNS, schema_overrides={"age": pl.Enum(AGES)})
AGE: dict[str, Any] = {"column": "age", "nulls": "10"}
VOTE: dict[str, Any] = {"column": "vote", "nulls": False}
Bound = dp.polars.Bound


def query(loss: dict[str, float] | None = None, **unit: Any) -> Any:
    return plain_context(
        FRAME.lazy(), unit or {"contributions": 3}, loss or {"epsilon": 1.0}
    ).query()


# --- losses in two numbers
@pytest.mark.parametrize(
    ("loss", "mechanism"),
    [
        ({"epsilon": 1.0, "delta": 1e-6}, ob.LaplaceParameters(2.9, total="private")),
        ({"epsilon": 1.0}, ob.LaplaceParameters(2.9, total="private")),
        ({"rho": 0.1, "delta": 1e-6}, ob.GaussianParameters(6.7)),
        ({"epsilon": 1.0, "delta": 1e-6}, ob.GaussianParameters(12.0)),
    ],
)
def test_a_mechanism_that_exceeds_one_part_of_its_budget_is_refused(loss, mechanism):
    """Three records: ε = 3 / 2.9 above 1, with a δ of 0 that is well below its own limit."""
    asked = ob.posterior(query(loss), **AGE, mechanism=mechanism)
    with pytest.raises(ValueError, match=r"privacy loss .* budget of the query"):
        asked.resolve()
    with pytest.raises(ValueError, match=r"privacy loss .* budget of the query"):
        ob.survey(query(loss), {"age": {**AGE, "mechanism": mechanism}, "vote": VOTE}).resolve()


@pytest.mark.parametrize("exceeded", [0, 1])
def test_a_survey_exceeds_either_part_of_its_budget_alone(exceeded, monkeypatch):
    """The negative control of the division, of ε and of δ: one of them given to every question."""
    loss = {"epsilon": 1.0, "delta": 1e-6}
    whole, divided = list(loss.values())[exceeded], survey_query.divided
    monkeypatch.setattr(
        survey_query,
        "divided",
        lambda limit, of: (limit,) * len(of) if limit == whole else divided(limit, of),
    )
    gaussian = {"mechanism": "gaussian_parameters"}
    made = ob.survey(query(loss), {"age": {**AGE, **gaussian}, "vote": {**VOTE, **gaussian}})
    with pytest.raises(ValueError, match="more than the budget"):
        made.resolve()


def test_numbers_of_a_loss_and_columns_keep_their_order() -> None:
    loss = PrivacyLoss(epsilon=1.0, range=1.5, rho=0.25, delta=1e-6)
    pure, concentrated = dp.max_divergence(), dp.zero_concentrated_divergence()
    assert loss_in(dp.approximate(pure))(loss) == (1.0, 1e-6)
    assert loss_in(dp.approximate(concentrated))(loss) == (0.25, 0.0)
    columns = ["vote", "age"]
    policy = {"vote": False, "age": "10"}
    asked = {"column": columns, "nulls": policy, "prior": "learned"}
    for ordered in (["vote", "age"], ["age", "vote"], ["vote", "age", "vote"]):
        made = ob.survey(query(), {"table": {**asked, "ordered": ordered}})
        (question,) = made.questions.values()
        assert question.question.ordered == tuple(dict.fromkeys(ordered))


def checked(unit: Any, loss: Any, evenly: Any, weights: Any) -> Any:
    """The arguments of a Context, without opening one."""
    of = {"privacy_unit": unit, "privacy_loss": loss}
    return CheckedContext.checked(of | {"split_evenly_over": evenly, "split_by_weights": weights})


@pytest.mark.parametrize("delta", [1.0, 1.5])
def test_a_delta_of_a_context_is_below_1_beside_either(delta: float) -> None:
    for measure in (dp.max_divergence(), dp.zero_concentrated_divergence()):
        given = dp.approximate(measure), (1.0, delta)
        with pytest.raises(ValueError, match=rf"delta={delta}: must be at least 0 and below 1"):
            checked(dp.unit_of(contributions=1), given, None, None)


def test_limits_are_at_least_1_and_units_in_words_have_every_part() -> None:
    loss = dp.loss_of(epsilon=1.0)
    good = Bound(by=["age"], per_group=2, num_groups=3)
    for limit in ("per_group", "num_groups"):
        for bad in (0, 2**31):
            broken = Bound(by=["vote"], **{"per_group": 2, "num_groups": 3, limit: bad})
            for bounds in ([broken], [good, broken], [broken, good]):
                unit = dp.unit_of(contributions=bounds)
                with pytest.raises(ValueError, match=f"Bound.{limit}={bad}: must be between 1"):
                    checked(unit, loss, None, None)
    assert unit_in_words(dp.hamming_distance(), 3) == "changes: 3"
    assert unit_in_words(dp.change_one_distance(), 3) == "changes: 3"
    assert unit_in_words(dp.insert_delete_distance(), 3) == "contributions: 3"
    bounds = [Bound(by=["age"], per_group=2, num_groups=3), Bound(by=["age"], num_groups=4)]
    words = unit_in_words(*dp.unit_of(contributions=bounds, identifier="who"))
    stated = "(by=age num_groups=4), (by=age per_group=2 num_groups=3), identifier: who"
    assert words == (f"contributions: {stated}")
    assert unit_in_words(*dp.unit_of(contributions=bounds[::-1], identifier="who")) == words
    changes = unit_in_words(*dp.unit_of(changes=2, identifier="who"))
    assert changes == "changes: 2, identifier: who"


# --- units in words, by which a ledger tells them apart


# --- what a release promises
def test_every_result_of_a_survey_is_promised_for_all_records_of_a_unit() -> None:
    survey = ob.survey(query(), {"age": AGE, "vote": VOTE}, share={"vote": 3, "age": 1}).release()
    assert [release.d_in for release in survey.values()] == [3, 3]
    assert [release.epsilon for release in survey.values()] == pytest.approx([0.25, 0.75])
    alone = ob.posterior(query(), **AGE).release()
    assert (alone.d_in, alone.epsilon) == (3, pytest.approx(1.0))
    one = ob.posterior(query(contributions=1), **AGE, mechanism=alone.mechanism)
    assert one.release().epsilon == pytest.approx(1 / 3)


@pytest.mark.parametrize("unit", [{"contributions": 2}, {"changes": 2}])
def test_a_fixed_rule_stays_the_rule_in_a_survey(unit: dict[str, int]) -> None:
    """Limits that draw have a name for this survey, and rows that were not limited have neither."""
    by_person = {**unit, "identifier": "who"}
    limited = query(**by_person).truncate_per_group(2, keep="first")
    drawn = query(**by_person).truncate_per_group(2)
    for made, start in ((limited, "the first 2 rows of each who"), (drawn, "rows drawn at random")):
        for release in ob.survey(made, {"age": AGE, "vote": VOTE}).release().values():
            assert release.guarantee.truncated
            assert release.guarantee.kept.startswith(start)
            assert release.d_in == 4 if "contributions" in unit else release.d_in in (4, 8)
    size = {"size": 60} if "changes" in unit else {}
    asked = {"age": {**AGE, **size}, "vote": {**VOTE, **size}}
    for release in ob.survey(query(**unit), asked).release().values():
        assert (release.guarantee.truncated, release.guarantee.kept) == (False, "")


@pytest.mark.usefixtures("short_chains")
def test_a_release_may_be_merged_and_learned_and_ordered() -> None:
    merge = {"old": ["40"], "young": ["20", "10"], "middle": ["30"]}
    merged, learned = {"merge": merge}, {"prior": "learned"}
    marked = {"both": {**AGE, **merged, **learned, "ordered": ["age"]}, "merged": {**AGE, **merged}}
    marked |= {"learned": {**AGE, **learned}, "neither": AGE}
    survey = ob.survey(query(), marked).release()
    parts = (("40",), ("20", "10"), ("30",))
    found = {
        name: (release.parts, release.learned_prior, release.ordered)
        for name, release in survey.items()
    }
    wanted = {"both": (parts, True, ("age",)), "merged": (parts, False, ())}
    assert found == wanted | {"learned": ((), True, ()), "neither": ((), False, ())}


@pytest.mark.parametrize("learned", [False, True])
def test_auto_is_among_noise_on_counts_for_a_prior_that_is_learned(learned, monkeypatch):
    asked: list[bool] = []
    monkeypatch.setattr(mechanism_choice, "choose", lambda *_, noise_only: asked.append(noise_only))
    fit: Any = mechanism_choice.fit_of(None, SPACE, is_value=False, is_tuned=False, learned=learned)
    fit(lambda setting: 1.0)
    assert asked == [learned]
    if learned:
        for of in ({"is_value": False, "is_tuned": True}, {"is_value": True, "is_tuned": False}):
            with pytest.raises(ValueError, match="prior"):
                mechanism_choice.fit_of(PermuteAndFlip(1.0), SPACE, **of, learned=True)


# --- maps at several records, and under unequal priors
SPACE = PosteriorSpace(("a", "b", "c"), 6, (0.25, 4.0, 1.0))


def test_what_a_map_states_with_delta_does_not_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where δ helps at one distance and not at the next, and ε is off by what a search leaves."""

    def found(setting: Any, d_in: Any, *, delta: float, accounting: str) -> PrivacyLoss:
        records = d_in.records
        epsilon = 1.0 - 1e-12 * records if records else 0.0
        return PrivacyLoss(epsilon, records / 2, 2.0 * records, delta if records == 1 else 0.0)

    monkeypatch.setattr(measurements, "loss_of", found)
    setting = Setting.of(ob.KNormParameters(1.0), SPACE.size, SPACE.prior)
    loss = measurements._losses(setting, 1e-6, "exact")
    stated = [loss(d_in) for d_in in (0, 1, 2, 3, 9)]
    assert [one.epsilon for one in stated] == [0.0, *[1.0 - 1e-12] * 4]
    assert [one.delta for one in stated] == [0.0, *[1e-6] * 4]


def test_draws_and_axes_keep_their_places() -> None:
    """With a scale of 1e-3 noise differs from 0 with probability below e^-999."""
    counts = [1, 20, 300]
    for mechanism in (ob.LaplaceParameters(1e-3), ob.GaussianParameters(1e-3)):
        sample = measured_sampler(mechanism, size=321, prior=[1.0, 2.0, 3.0])
        assert sample(counts, [1.0, 2.0, 3.0], 4).tolist() == [counts] * 4
    sample = measured_sampler(
        ob.LaplaceParameters(1e-3, total="private"), size=None, prior=[1.0, 2.0, 3.0]
    )
    assert sample(counts, [1.0, 2.0, 3.0], 4).tolist() == [counts] * 4
    space = CountsSpace((("x", 1), ("x", 2), ("y", 1), ("y", 2)), 6, axes=("w", "a"))
    posterior = ob.t.make_dirichlet_multinomial(space.domain, space.metric, prior=[1.0, 2, 3, 4])
    assert posterior.output_domain.descriptor.axes == ("w", "a")
    measurement = ob.m.make_knorm_parameters(*posterior.output_space, dp.max_divergence(), 1e-3)
    release = measurement(np.array([2.0, 4.0, 6.0, 4.0]))
    assert (release.axes, release.noisy_counts) == (("w", "a"), (1, 2, 3, 0))
    assert release.prior == (1.0, 2.0, 3.0, 4.0)


def test_noise_of_either_kind_is_drawn_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep(_: float) -> None:
        raise AssertionError

    monkeypatch.setattr(pacing, "sleep", asleep)
    for mechanism in (ob.KNormParameters(1.0), ob.LaplaceParameters(1.0)):
        measurement = ob.m.make_mechanism(
            SPACE.domain, SPACE.metric, dp.max_divergence(), mechanism
        )
        measurement(SPACE.prior_array + np.array([1, 2, 3]))
