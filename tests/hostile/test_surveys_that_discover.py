"""Surveys of questions whose categories nobody listed, beside others: what they cost together, what
they count, and what is refused.
"""

from collections import Counter

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.results.discovered import DiscoveredRelease

CODES = ["A01"] * 400 + ["B02"] * 300 + ["C03"] * 200 + [f"rare {n}" for n in range(100)]
TOWNS = [["here", "there"][n % 2] for n in range(len(CODES))]
VOTES = [["yes", "no"][n % 3 == 0] for n in range(len(CODES))]
LOSSES = {
    "epsilon": {"epsilon": 6.0, "delta": 1e-6},
    "rho": {"rho": 2.0, "delta": 1e-6},
}
VOTE = {
    "column": "vote",
    "categories": ["yes", "no"],
    "nulls": ob.DROP,
    "unknown": ob.DROP,
}
CODE = {"column": "code", "categories": "discover", "nulls": ob.DROP}
TOWN = {"column": "town", "categories": "discover", "nulls": ob.DROP}


def context(loss="epsilon", rows=1, **unit):
    data = {
        "person": [n // rows for n in range(len(CODES))],
        "code": CODES,
        "town": TOWNS,
        "vote": VOTES,
    }
    return dp.Context.compositor(
        data=pl.LazyFrame(data),
        privacy_unit=dp.unit_of(**({"contributions": 1} | unit)),
        privacy_loss=dp.loss_of(**LOSSES[loss]),
        split_evenly_over=1,
    )


def questions(**of_code):
    return {"code": {**CODE, **of_code}, "vote": VOTE, "again": VOTE, "town": TOWN}


@pytest.mark.parametrize("loss", LOSSES)
def test_discovered_questions_have_their_shares_of_the_loss_and_count_what_is_there(loss):
    query = ob.survey(context(loss).query(), questions(rest=0.2, share=3.0, always=["none"]))
    answers = query.release()
    assert [type(one) for one in answers.values()] == [
        DiscoveredRelease,
        ob.Release,
        ob.Release,
        DiscoveredRelease,
    ]
    spent, limits = query.resolve().map(1), tuple(LOSSES[loss].values())
    assert all(one <= limit for one, limit in zip(spent, limits, strict=True))
    assert spent[0] >= 0.99 * limits[0]
    value = "rho" if loss == "rho" else "epsilon"
    parts = {name: getattr(one, value) for name, one in answers.items()}
    assert parts["code"] == pytest.approx(3 * parts["town"], rel=1e-6)
    assert parts["code"] == pytest.approx(limits[0] / 2, rel=1e-6)
    assert answers.loss.delta == pytest.approx(sum(one.delta for one in answers.values()))
    assert answers.loss.delta <= 1e-6
    code = answers["code"]
    assert code.categories == ("none", "A01", "B02", "C03")
    true = Counter(CODES)
    assert all(abs(code.counts[n] - true[code.categories[n]]) < 60 for n in range(4))
    assert abs(code.rest.drawn - 100) < 60
    assert answers["town"].categories == ("here", "there")
    assert abs(answers["vote"].counts[0] - Counter(VOTES)["yes"]) < 60


def test_questions_of_an_identifier_count_people_and_the_others_keep_their_rows_together():
    """Two discovered questions begin at the frame of the Context, and the others behind one pass:
    the composition has them in the order in which they were asked.
    """
    query = context(rows=2, identifier="person").query().truncate_per_group(1)
    answers = ob.survey(query, questions()).release()
    assert tuple(answers) == ("code", "vote", "again", "town")
    assert answers["code"].people
    assert answers["town"].people
    assert answers["code"].d_in == answers["vote"].d_in == 1
    assert all(one.promise.truncated for one in answers.values())
    # Discovered values have rows of their own, and share no draw of them with anybody.
    assert answers["code"].promise.kept == answers["town"].promise.kept == ""
    kept = answers["vote"].promise.kept
    assert kept.startswith("rows drawn at random, once for survey")
    assert answers["again"].promise.kept == kept
    assert abs(answers["code"].counts[0] - 200) < 40
    assert sum(answers["vote"].counts) == pytest.approx(500, abs=60)


def test_a_survey_may_have_discovered_questions_alone():
    answers = ob.survey(context().query(), {"code": CODE, "town": TOWN}).release()
    assert answers["code"].categories == ("A01", "B02", "C03")


def test_a_limit_of_several_rows_is_a_limit_of_several_values():
    query = context(rows=4, identifier="person").query().truncate_per_group(3)
    asked = ob.survey(query, {"code": CODE, "vote": VOTE})
    rows = {row["question"]: row for row in asked.summarize().iter_rows(named=True)}
    assert rows["code"]["d_in"] == rows["vote"]["d_in"] == 3
    assert asked.resolve().map(1)[0] <= 6.0


def test_the_composition_is_checked_against_the_budget(monkeypatch):
    """Negative control: a discovered part of twice its share is noticed."""
    path = "opendp_bayes.questions.survey_query.divided"
    monkeypatch.setattr(path, lambda limit, weights: [limit / 2] * len(weights))
    with pytest.raises(ValueError, match="more than the budget"):
        ob.survey(context().query(), questions()).resolve()


def test_the_summary_has_a_row_for_every_question():
    found = ob.survey(context().query(), questions(rest=0.25, always=["x"])).summarize()
    assert found["question"].to_list() == ["code", "vote", "again", "town"]
    assert found["mechanism"][0] == found["mechanism"][3] == "OptimalThreshold"
    assert found["categories"][0] == "discovered, besides 'x'"
    assert found["scale"].is_null().to_list() == [True, False, False, True]
    assert found["threshold"].is_null().to_list() == [False, True, True, False]
    half, nine, ninety_nine = found.row(0, named=True), found["shown_95"][0], found["shown_99"][0]
    assert half["threshold"] == half["shown_half"] <= nine <= ninety_nine
    assert found["rest_std"].is_null().to_list() == [False, True, True, True]
    assert found["epsilon"].sum() <= 6.0


def test_a_survey_says_what_was_discovered(tmp_path):
    asked = ob.survey(context().query(), questions(rest=0.25))
    assert "DiscoveryQuery(values of 'code'" in repr(asked)
    answers = asked.release()
    assert ob.Survey.from_json(answers.to_json()) == answers
    assert "code      3 categories shown" in str(answers)
    assert "DiscoveredRelease({'A01':" in repr(answers)
    sheet = answers.sheet(wait=False)
    assert any("Everything else together" in str(note) for note in sheet.notes)
    frame = answers.to_frame()
    for question, rows in frame.group_by("question"):
        assert rows["mean"].sum() == pytest.approx(1, abs=0.01), question
    code = frame.filter(question="code")
    assert code["category"].to_list() == ["A01", "B02", "C03", None]
    assert code["count"].to_list() == [*answers["code"].counts, answers["code"].rest.drawn]
    assert ((code["lower"] <= code["mean"]) & (code["mean"] <= code["upper"])).all()
    # Where the rest was not bought, the shares are those among what is shown.
    assert frame.filter(question="town")["category"].to_list() == ["here", "there"]


def test_a_picture_has_the_most_frequent_first_and_everything_else_last():
    pytest.importorskip("matplotlib")
    answers = ob.survey(context().query(), questions(rest=0.25, always=["A00"])).release()
    axes = answers.plot().axes
    code = next(ax for ax in axes if ax.get_title(loc="left") == "code")
    labels = [text.get_text() for text in code.get_yticklabels()]
    assert labels == ["A01", "B02", "C03", "A00", "and everything else"]
    assert any(ax.get_title(loc="left") == "town: of those shown" for ax in axes)


def test_nothing_shown_is_an_answer_too():
    rare = {**CODE, "column": "person", "rest": 0.5}
    answers = ob.survey(context().query(), {"who": rare, "vote": VOTE}).release()
    assert answers["who"].categories == ()
    assert answers["who"].rest.drawn == pytest.approx(1000, abs=60)
    assert ob.Survey.from_json(answers.to_json()) == answers
    frame = answers.to_frame().filter(question="who")
    assert frame["category"].to_list() == [None]
    assert frame["mean"].to_list() == [1.0]
    assert "who       0 categories shown" in str(answers)
    answers.sheet()
    pytest.importorskip("matplotlib")
    answers.plot()
    without = ob.survey(context().query(), {"who": {**CODE, "column": "person"}}).release()
    assert without.to_frame().height == 0
    without.sheet()
    without.plot()


@pytest.mark.parametrize(
    ("of_code", "arguments", "message"),
    [
        ({"by": "town"}, {}, r"questions\['code'\]: by='town': must be left out"),
        ({"prior": 2.0}, {}, "prior=2.0: must be left out"),
        ({"merge": {"a": ["b"]}}, {}, "merge=.*: must be left out"),
        ({"gamma": 0.1}, {}, "gamma=0.1: is no argument"),
        (
            {
                "column": "vote",
                "by": "town",
                "categories": {"vote": ["a"], "town": "discover"},
                "unknown": "b",
            },
            {},
            r"questions\['code'\]: categories\['town'\]='discover': column 'town' must have",
        ),
        ({"rest": 1.5}, {}, "rest=1.5: must be the share"),
        ({"nulls": None}, {}, "nulls=None: column 'code' may hold nulls"),
        ({"column": ["code", "town"]}, {}, "the name of one column"),
        ({"categories": ["A01"], "rest": 0.2}, {}, "rest=0.2: goes with categories='discover'"),
    ],
)
def test_what_does_not_go_with_discovery_is_refused_with_the_question(of_code, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ob.survey(context().query(), questions(**of_code), **arguments)


def test_groups_of_the_query_and_budgets_without_a_delta_are_refused():
    with pytest.raises(ValueError, match=r"questions\['code'\]: by=.*left out"):
        ob.survey(context().query().group_by("town"), {"code": CODE})
    pure = dp.Context.compositor(
        data=pl.LazyFrame({"code": CODES}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    with pytest.raises(ValueError, match=r"questions\['code'\]: output_measure=.*must have a δ"):
        ob.survey(pure.query(), {"code": CODE})


def test_no_posterior_is_made_of_discovered_questions_together_with_others():
    survey = ob.survey(context().query(), questions())
    with pytest.raises(ValueError, match="that are to be discovered"):
        survey.check_joint()
    answers = survey.release()
    with pytest.raises(ValueError, match=r"releases\['code'\]: .* were discover"):
        answers.posterior  # noqa: B018
    others = {name: answers[name] for name in ("vote", "again")}
    together = ob.combine(others, records="same", draws_may_agree=True)
    assert tuple(together.variables) == ("vote",)
