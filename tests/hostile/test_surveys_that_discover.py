"""Surveys of unlisted categories beside others: their costs, counts and refusals."""

from collections import Counter

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from tests.helpers.contexts import plain_context

CODES = ["A01"] * 400 + ["B02"] * 300 + ["C03"] * 200 + [f"rare {n}" for n in range(100)]
TOWNS = [["here", "there"][n % 2] for n in range(len(CODES))]
VOTES = [["yes", "no"][n % 3 == 0] for n in range(len(CODES))]
LOSSES = {"epsilon": {"epsilon": 6.0, "delta": 1e-6}, "rho": {"rho": 2.0, "delta": 1e-6}}
VOTE = {"column": "vote", "categories": ["yes", "no"], "nulls": ob.DROP, "unknown": ob.DROP}
CODE = {"column": "code", "nulls": ob.DROP}
TOWN = {"column": "town", "nulls": ob.DROP}


def context(loss="epsilon", rows=1, **unit):
    persons = [n // rows for n in range(len(CODES))]
    data = {"person": persons, "code": CODES, "town": TOWNS, "vote": VOTES}
    return plain_context(pl.LazyFrame(data), {"contributions": 1} | unit, LOSSES[loss])


def questions(query, **of_code):
    code, town = ob.discover(query, **CODE | of_code), ob.discover(query, **TOWN)
    return {"code": code, "vote": VOTE, "again": VOTE, "town": town}


def survey(query, share="equal", **of_code):
    return ob.survey(query, questions(query, **of_code), share)


@pytest.mark.parametrize("loss", LOSSES)
def test_discovered_questions_have_their_shares_of_the_loss_and_count_what_is_there(loss):
    shares = {"code": 3, "vote": 1, "again": 1, "town": 1}
    query = survey(context(loss).query(), shares, rest=0.2, always=["none"])
    answers = query.release()
    kinds = [DiscoveredRelease, ob.Release, ob.Release, DiscoveredRelease]
    assert [type(one) for one in answers.values()] == kinds
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
    assert abs(code.rest.noisy_count - 100) < 60
    assert answers["town"].categories == ("here", "there")
    assert abs(answers["vote"].counts[0] - Counter(VOTES)["yes"]) < 60


def test_questions_of_an_identifier_count_people_and_the_others_keep_their_rows_together():
    """Two begin at the frame, the others behind one pass, in the order asked."""
    query = context(rows=2, identifier="person").query().truncate_per_group(1)
    answers = survey(query).release()
    assert tuple(answers) == ("code", "vote", "again", "town")
    assert answers["code"].people
    assert answers["town"].people
    assert answers["code"].d_in == answers["vote"].d_in == 1
    assert all(one.guarantee.truncated for one in answers.values())
    # Discovered values have rows of their own, and share no draw of them with anybody.
    assert answers["code"].guarantee.kept == answers["town"].guarantee.kept == ""
    kept = answers["vote"].guarantee.kept
    assert kept.startswith("rows drawn at random, once for survey")
    assert answers["again"].guarantee.kept == kept
    assert abs(answers["code"].counts[0] - 200) < 40
    assert sum(answers["vote"].counts) == pytest.approx(500, abs=60)


def test_a_survey_may_have_discovered_questions_alone_with_a_picture():
    query = context().query()
    asked = {"code": ob.discover(query, **CODE), "town": ob.discover(query, **TOWN)}
    answers = ob.survey(query, asked).release()
    assert answers["code"].categories == ("A01", "B02", "C03")
    pytest.importorskip("matplotlib")
    answers = survey(context().query(), rest=0.25, always=["A00"]).release()
    axes = answers.plot().axes
    code = next(ax for ax in axes if ax.get_title(loc="left") == "code")
    labels = [text.get_text() for text in code.get_yticklabels()]
    assert labels == ["A01", "B02", "C03", "A00", "and everything else"]
    assert any(ax.get_title(loc="left") == "town: of those shown" for ax in axes)


def test_limits_of_several_rows_are_checked_against_the_budget(monkeypatch):
    """Negative control: a discovered part of twice its share is noticed."""
    query = context(rows=4, identifier="person").query().truncate_per_group(3)
    asked = ob.survey(query, {"code": ob.discover(query, **CODE), "vote": VOTE})
    rows = {row["question"]: row for row in asked.summarize().iter_rows(named=True)}
    assert rows["code"]["d_in"] == rows["vote"]["d_in"] == 3
    assert asked.resolve().map(1)[0] <= 6.0
    path = "opendp_bayes.surveys.survey_query.divided"
    monkeypatch.setattr(path, lambda limit, weights: [limit / 2] * len(weights))
    with pytest.raises(ValueError, match="more than the budget"):
        survey(context().query()).resolve()


def test_the_summary_has_a_row_for_every_question():
    found = survey(context().query(), rest=0.25, always=["x"]).summarize()
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
    asked = survey(context().query(), rest=0.25)
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
    assert code["count"].to_list() == [*answers["code"].counts, answers["code"].rest.noisy_count]
    assert ((code["lower"] <= code["mean"]) & (code["mean"] <= code["upper"])).all()
    # Where the rest was not bought, the shares are those among what is shown.
    assert sorted(frame.filter(question="town")["category"]) == ["here", "there"]


def test_nothing_shown_is_an_answer_too():
    query = context().query()
    rare = ob.discover(query, "person", nulls=ob.DROP, rest=0.5)
    answers = ob.survey(query, {"who": rare, "vote": VOTE}).release()
    assert answers["who"].categories == ()
    assert answers["who"].rest.noisy_count == pytest.approx(1000, abs=60)
    assert ob.Survey.from_json(answers.to_json()) == answers
    frame = answers.to_frame().filter(question="who")
    assert frame["category"].to_list() == [None]
    assert frame["mean"].to_list() == [1.0]
    assert "who       0 categories shown" in str(answers)
    answers.sheet()
    pytest.importorskip("matplotlib")
    answers.plot()
    query = context().query()
    without = ob.survey(query, {"who": ob.discover(query, "person", nulls=ob.DROP)}).release()
    assert without.to_frame().height == 0
    without.sheet()
    without.plot()


def test_discovered_questions_are_of_their_own_context():
    """The distance of that Context may be another one, too."""
    other = context(contributions=5).query()
    for asked in (ob.discover(other, **CODE), ob.discover(context().query(), **CODE)):
        with pytest.raises(ValueError, match=r"questions\['code'\]: query: is of another Context"):
            ob.survey(context().query(), {"code": asked, "vote": VOTE})
    mine = context()
    answers = ob.survey(mine.query(), {"code": ob.discover(mine.query(), **CODE), "vote": VOTE})
    assert answers.release()["code"].categories == ("A01", "B02", "C03")
    asked = {**VOTE, "by": "town", "categories": {"vote": ["a", "b"], "town": "discover"}}
    message = (
        r"questions\['code'\]: categories\['town'\]='discover': .* ob\.discover\(query, 'town'\)"
    )
    with pytest.raises(TypeError, match=message):
        ob.survey(context().query(), {"code": asked})


def test_plans_and_groups_go_together_but_no_posterior_with_discovered_questions():
    query = context().query()
    of_some = ob.discover(query.filter(pl.col("vote") == "yes"), **CODE)
    listed = {"column": "vote", "categories": {"vote": ["yes", "no"], "town": ["here"]}}
    more = {"nulls": ob.DROP, "unknown": ob.DROP}
    asked = ob.survey(query, {"code": of_some, "vote": {"by": "town", **listed, **more}})
    answers = asked.release()
    assert answers["code"].counts[0] == pytest.approx(267, abs=60)
    assert answers["vote"].groups == ("here",)
    asked = survey(context().query())
    with pytest.raises(ValueError, match="that are to be discovered"):
        asked.check_joint()
    answers = asked.release()
    with pytest.raises(ValueError, match=r"releases\['code'\]: .* were discover"):
        answers.posterior  # noqa: B018
    others = {name: answers[name] for name in ("vote", "again")}
    together = ob.combine_tables(others, draws_may_agree=True)
    assert tuple(together.variables) == ("vote",)
