"""Surveys: what they cost together, what they promise jointly, and what is refused."""

import math
import os
import signal
import time
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import opendp_bayes as ob
from opendp_bayes.trusted.cells import Cells
from tests.helpers.contexts import plain_context
from tests.helpers.neighbours import neighbours
from tests.helpers.sweeps import slow

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

VOTE, AGE = ["yes", "no"], ["young", "middle", "old"]
REGION = ["north", "south"]
ROWS = [(vote, age, region) for vote in VOTE for age in AGE for region in REGION] * 5
LOSSES = {
    "epsilon": ({"epsilon": 1.0}, lambda loss: (loss.epsilon,)),
    "epsilon, delta": ({"epsilon": 1.0, "delta": 1e-6}, lambda loss: (loss.epsilon, loss.delta)),
    "rho": ({"rho": 0.1}, lambda loss: (loss.rho,)),
    "rho, delta": ({"rho": 0.1, "delta": 1e-7}, lambda loss: (loss.rho, 0.0)),
}


def frame(rows=ROWS):
    types = {"vote": pl.Enum(VOTE), "age": pl.Enum(AGE), "region": pl.Enum(REGION)}
    return pl.LazyFrame(list(rows), schema=types, orient="row")


def context(loss=None, unit=None, rows=ROWS, **arguments):
    return plain_context(
        frame(rows), unit or {"contributions": 2}, loss or {"epsilon": 1.0}, None, **arguments
    )


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def questions(size=None):
    vote = {"column": "vote", "nulls": "no", "size": size}
    nulls = {"vote": "no", "age": "old"}
    return {
        "vote": vote,
        "by region": {**vote, "by": "region", "categories": {"region": REGION}},
        "table": {"column": ["vote", "age"], "nulls": nulls, "prior": 0.5, "size": size},
    }


LAPLACE = "laplace_parameters"


# --- what it costs
@pytest.mark.parametrize(
    ("loss", "size"),
    [
        *((loss, None) for loss in LOSSES),
        # The choice among all mechanisms for few records takes seconds.
        *slow((loss, len(ROWS)) for loss in LOSSES),
    ],
)
def test_the_losses_add_up_in_the_context(loss, size):
    """A filter that debits what is spent: half of it is left after a survey of half of it."""
    arguments, expressed = LOSSES[loss]
    whole = context(arguments, {"contributions": 2} if size is None else {"changes": 2})
    half = {name: value / 2 for name, value in arguments.items()}
    weights = {"vote": 1, "by region": 2, "table": 3.3}
    query = ob.survey(whole.query(**half), questions(size), share=weights)
    answers = query.release()
    spent = as_tuple(whole.current_privacy_loss())
    parts = zip(*(expressed(release.loss) for release in answers.values()), strict=True)
    for stated, losses in zip(expressed(answers.loss), parts, strict=True):
        exact = sum(map(Fraction, losses))
        assert exact <= Fraction(stated) <= exact * (1 + Fraction(1, 1 << 51))
    for debited, stated, limit in zip(spent, expressed(answers.loss), half.values(), strict=True):
        assert debited == pytest.approx(stated, rel=1e-15)
        assert (0.999 * limit if stated else 0) <= stated <= limit
    for name, release in answers.items():
        part = Fraction(weights[name]) / sum(map(Fraction, weights.values()))
        assert 0.999 * part * half[loss.split(",")[0]] <= expressed(release.loss)[0]
        assert Fraction(expressed(release.loss)[0]) <= part * Fraction(half[loss.split(",")[0]])
        assert release.d_in == 2
    ob.survey(whole.query(**half), questions(size)).release()
    with pytest.raises(ValueError, match="exceeds what is left"):
        ob.survey(whole.query(**half), questions(size)).release()


@settings(max_examples=6, deadline=None)
@given(
    # No share is so small that its noise is beyond what a mechanism may add.
    st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6),
    st.floats(0.1, 20.0),
    st.sampled_from(sorted(LOSSES)),
)
def test_no_weights_exceed_the_budget(weights, factor, loss):
    arguments = {name: value * factor for name, value in LOSSES[loss][0].items()}
    query = context(arguments, split_evenly_over=1).query()
    names = [str(number) for number in range(len(weights))]
    asked = ob.survey(
        query,
        {name: {"column": "age", "nulls": "old", "mechanism": LAPLACE} for name in names},
        share=dict(zip(names, weights, strict=True)),
    )
    spent = as_tuple(asked.resolve().map(2))
    assert all(a <= b for a, b in zip(spent, as_tuple(asked._d_out), strict=True))
    assert spent[0] >= 0.99 * as_tuple(asked._d_out)[0]


# --- what it promises: all releases of all neighbours of small frames
SMALL = [(vote, age, "north") for vote in VOTE for age in AGE]
STEPS = 6


def small_survey(unit, size, epsilon=1.0):
    rows = SMALL[:2]
    of_age = LAPLACE if size is None else "knorm_parameters"
    questions = {
        "vote": {"column": "vote", "nulls": "no", "size": size, "mechanism": LAPLACE},
        "age": {"column": "age", "nulls": "old", "size": size, "mechanism": of_age},
    }
    query = context({"epsilon": epsilon}, unit, rows, split_evenly_over=1).query()
    asked = ob.survey(query, questions, share={"vote": 1, "age": 2})
    return asked, asked.release()


def counts(rows, column, labels):
    return np.array([sum(row[column] == label for row in rows) for label in labels])


def log_law(release, true, outcomes):
    """Log-probabilities up to a constant: Laplace on counts or all but one, or K-norm."""
    distance = np.abs(outcomes - true)
    if isinstance(release.mechanism, ob.KNormParameters):
        return -distance.sum(axis=1) / (2 * release.mechanism.scale)
    noised = distance[:, :-1] if release.mechanism.total == "remainder" else distance
    return -noised.sum(axis=1) / release.mechanism.scale


def joint_worst(answers, size):
    """The largest log-ratio over pairs of outcomes, and all neighbours of two records."""
    grids = {}
    for name, k in (("vote", 2), ("age", 3)):
        grid = np.array(list(product(range(-2, STEPS - 2), repeat=k)))
        grids[name] = grid if size is None else grid[grid.sum(axis=1) == size]
    pairs = neighbours(SMALL, 2, "add/remove" if size is None else "change-one")
    worst = 0.0
    for first, second in pairs:
        ratios = []
        for name, column, labels in (("vote", 0, VOTE), ("age", 1, AGE)):
            before, after = counts(first, column, labels), counts(second, column, labels)
            release, grid = answers[name], grids[name]
            ratios.append(log_law(release, before, grid) - log_law(release, after, grid))
        joint = np.add.outer(*ratios)  # of every pair of outcomes: their noise is independent
        worst = max(worst, float(np.abs(joint).max()))
    return worst


@pytest.mark.parametrize(("unit", "size"), [({"contributions": 1}, None), ({"changes": 1}, 2)])
def test_the_joint_loss_of_all_neighbours_is_what_is_debited(unit, size):
    asked, answers = small_survey(unit, size)
    claimed = asked.resolve().map(1)
    assert claimed <= 1.0
    assert joint_worst(answers, size) == pytest.approx(claimed, rel=1e-9)
    # Negative controls: a budget of 1 % more is noticed, and so is a whole budget for each question
    _, more = small_survey(unit, size, epsilon=1.01)
    assert joint_worst(more, size) > 1.005 * claimed

    def asked_alone(name, labels):
        query = context({"epsilon": 1.0}, unit, SMALL[:2], split_evenly_over=1).query()
        of = {"nulls": labels[-1], "size": size, "mechanism": answers[name].mechanism.name}
        return ob.posterior(query, name, **of).release()

    whole = {name: asked_alone(name, labels) for name, labels in (("vote", VOTE), ("age", AGE))}
    assert joint_worst(whole, size) > 1.9 * claimed


def test_questions_are_independent_and_as_single_queries():
    """The correlation of 3 × 200 pairs is below 5 / sqrt(600), where shared noise has 1. With
    almost no noise: the counts of the frame, in the order and of the kinds asked for.
    """
    asked = {name: {"column": "age", "nulls": "old"} for name in ("once", "again")}
    measurement = ob.survey(context(split_evenly_over=1).query(), asked).resolve()
    data = frame()
    drawn = np.array([[release.noisy_counts for release in measurement(data)] for _ in range(200)])
    noise = drawn - len(ROWS) // 3
    once, again = noise[:, 0].ravel(), noise[:, 1].ravel()
    limit = 5 / math.sqrt(once.size)
    assert abs(np.corrcoef(once, again)[0, 1]) < limit
    assert np.corrcoef(once, once)[0, 1] > limit
    query = context({"epsilon": 1e6}, split_evenly_over=1).query()
    answers = ob.survey(query, questions()).release()
    assert list(answers) == ["vote", "by region", "table"]
    assert answers["vote"].counts == (30, 30)
    assert answers["by region"].counts == ((15, 15), (15, 15))
    assert answers["table"].counts == (10,) * 6
    assert answers["table"].prior == (0.5,) * 6


# --- what comes back


@pytest.mark.parametrize("during", ["counting", "the first draw", "the last draw"])
def test_an_interrupt_after_the_counting_carries_the_survey(monkeypatch, during):
    """Nothing that was counted or drawn is lost."""
    whole = context(split_evenly_over=1)
    owner, name = (Cells, "counts") if during == "counting" else (ob.LaplaceParameters, "draw")
    carried_out, done = getattr(owner, name), []

    def interrupted(*args, **options):
        if not done:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.4)  # until the main thread has seen it
        done.append(name)
        return carried_out(*args, **options)

    floored = ob.LaplaceParameters(20.0, "floored", "private")  # drawn by us, not by OpenDP
    asked = {name: {"column": "vote", "nulls": "no"} for name in ("first", "second")}
    asked["first" if during == "the first draw" else "second"]["mechanism"] = floored
    query = ob.survey(whole.query(), asked)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:  # another would end pytest
            query.release()
    assert done
    assert isinstance(caught.value, ob.ReleaseInterrupted)
    assert list(caught.value.release) == list(asked)
    assert len(whole.current_privacy_loss()) == 1


# --- refusals
OF_VOTE = {"column": "vote", "nulls": "no"}
OF_BOTH = {"by": ["region", "vote"]}


@pytest.mark.parametrize(
    ("asked", "share", "message"),
    [
        ([], "equal", r"questions: .*mapping from names"),
        ({}, "equal", "questions: must hold at least one"),
        ({1: {"column": "vote"}}, "equal", "questions: the name 1"),
        ({"a": "vote"}, "equal", r"questions\['a'\]='vote': .*mapping .*column"),
        ({"a": {"colum": "vote", "categories": VOTE}}, "equal", r"keys are \['colum', .* you"),
        ({"a": {"column": "none"}}, "equal", r"questions\['a'\]: .*none"),
        ({"a": OF_VOTE | {"shares": 2}}, "equal", r"questions\['a'\]: .*shares"),
        (
            {"a": OF_VOTE | {"catgories": VOTE}},
            "equal",
            r"catgories=\['yes', 'no'\]: .* you mean 'categories'",
        ),
        ({"a": OF_VOTE | {"by": 3}}, "equal", r"questions\['a'\]: by=3: .*a name"),
        ({"a": OF_VOTE | OF_BOTH}, "equal", r"questions\['a'\]: .*by=.*no column twice"),
        (None, "errors", "share='errors': must be 'equal', or a mapping from every"),
        (None, ["equal"], r"share=\['equal'\]: must be 'equal', or a mapping"),
        ({"a": OF_VOTE | {"share": 0}}, {"a": 1}, r"questions\['a'\]: share=0: must be finite"),
        (None, {"vote": 1}, r"weight for .*'vote', 'by region', 'table'"),
        (None, {"vote": 1, "by region": 0, "table": 1}, r"share\['by region'\]=0: must be finite"),
        (None, {"vote": 1, "by region": "2", "table": 1}, r"share\['by region'\]='2': must be a n"),
    ],
)
def test_refusals_before_any_data_are_read(asked, share, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ob.survey(context().query(epsilon=1.0), questions() if asked is None else asked, share)


def test_parts_that_add_up_to_more_than_the_budget_are_refused(monkeypatch):
    """A negative control of the division."""
    monkeypatch.setattr(
        "opendp_bayes.surveys.survey_query.divided", lambda limit, weights: [limit] * len(weights)
    )
    with pytest.raises(ValueError, match=r"budget of the query, 1\.0"):
        ob.survey(context(split_evenly_over=1).query(), questions()).resolve()


@pytest.mark.parametrize("order", [("noise", "none"), ("none", "noise")])
def test_groups_without_noise_are_not_pooled_wherever_the_question_stands(order):
    vote = {"column": "vote", "nulls": "no", "size": 60}
    asked = {"noise": vote, "none": vote | {"mechanism": "hellinger_exponential"}}
    unit = {"changes": 1}
    query = ob.survey(context(unit=unit).query(epsilon=1.0), {name: asked[name] for name in order})
    query.check_pooled("noise")
    with pytest.raises(ValueError, match=r"questions\['none'\]: pooled: needs noise"):
        query.check_pooled("none")


@pytest.mark.parametrize(
    ("order", "limited"), [(["found", "vote", "ages"], False), (["vote", "found", "ages"], True)]
)
def test_each_question_has_its_answer_whatever_stands_before_it(order, limited):
    """One with discovered values, counted by itself, between two that are counted together."""
    rows = {"who": [*range(90)] * 2, "vote": ["yes", "no", "no"] * 60, "age": [1, 2, 3, 3, 3] * 36}
    of = {"contributions": 1} | ({"identifier": "who"} if limited else {})
    query = plain_context(pl.LazyFrame(rows), of, {"epsilon": 100.0, "delta": 1e-6}).query()
    query = query.truncate_per_group(1, keep="first") if limited else query
    both = {"nulls": ob.DROP, "unknown": ob.DROP, "mechanism": "laplace_parameters"}
    asked = {
        "vote": {"column": "vote", "categories": ["yes", "no"], **both},
        "ages": {"column": "age", "categories": [1, 2, 3], **both},
        "found": ob.discover(query, "vote", nulls=ob.DROP, mechanism="laplace_threshold"),
    }
    share = {"found": 2, "ages": 1, "vote": 1}
    survey = ob.survey(query, {name: asked[name] for name in order}, share)
    assert (list(survey.share), survey.share["found"]) == (list(order), 0.5)
    released, each = survey.release(), 1 if limited else 2
    assert list(released) == list(order)
    assert released["vote"].noisy_counts == (30 * each, 60 * each)
    assert released["ages"].noisy_counts == (18 * each, 18 * each, 54 * each)
    assert dict(zip(released["found"].categories, released["found"].noisy_counts, strict=True)) == {
        "yes": 30 * each,
        "no": 60 * each,
    }
