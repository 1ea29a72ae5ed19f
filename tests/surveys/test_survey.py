"""A survey as data: mapping, frame, tables, JSON both ways."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease

pytestmark = pytest.mark.usefixtures("computed_once")

LOSS = ob.PrivacyLoss(epsilon=0.1, rho=0.005, range=0.2)
PROMISE = ob.PrivacyGuarantee(None, 1, LOSS, "MaxDivergence")
NOISE = ob.LaplaceParameters(10.0, total="private")
VOTE = ob.Release((60, 40), ("yes", "no"), (1.0, 1.0), NOISE, PROMISE)
CELLS = ("yes", "n"), ("yes", "s"), ("no", "n"), ("no", "s")
OF_TABLE = replace(PROMISE, loss=replace(LOSS, epsilon=0.2))
TABLE = ob.Release((30, 30, 20, 20), CELLS, (1.0,) * 4, NOISE, OF_TABLE, ("vote", "region"))
GROUPS = GroupedRelease(
    ("n", None), ((30, 20), (30, 20)), ("yes", "no"), (1.0, 1.0), NOISE, PROMISE
)
SURVEY = ob.Survey(("vote", "table", "groups"), (VOTE, TABLE, GROUPS))


def test_is_an_immutable_mapping():
    assert dict(SURVEY) == {"vote": VOTE, "table": TABLE, "groups": GROUPS}
    assert (len(SURVEY), list(SURVEY)) == (3, ["vote", "table", "groups"])
    assert SURVEY.measure == "MaxDivergence"
    assert hash(SURVEY) == hash(ob.Survey.from_json(SURVEY.to_json()))
    with pytest.raises(AttributeError):
        SURVEY.names = ()
    with pytest.raises(TypeError):
        SURVEY["vote"] = TABLE
    with pytest.raises(KeyError, match=r"not a question; .* 'table', 'gr"):
        SURVEY["votes"]


def test_questions_of_which_the_same_was_drawn_have_one_posterior():
    """They are draws of their own; of releases that are given by name that has to be said."""
    twice = dict.fromkeys(("first", "second"), replace(VOTE, columns=("vote",)))
    survey = ob.Survey(tuple(twice), tuple(twice.values()))
    assert survey.posterior.tables == (("vote",),)
    with pytest.raises(ValueError, match="draws_may_agree=True"):
        ob.combine_tables(twice)
    other = replace(VOTE, categories=("red", "blue"), columns=("colour",))
    found = ob.combine_tables({"vote": VOTE, "colour": other})  # is of other labels
    assert found.tables == (("vote",), ("colour",))


def test_the_total_is_rounded_up():
    """The exact sum of the floats 0.1 and 0.2 is no float; and infinity stays."""
    loss = ob.Survey(("vote", "table"), (VOTE, TABLE)).loss
    assert Fraction(loss.epsilon) > Fraction(0.1) + Fraction(0.2)
    loss = SURVEY.loss
    assert loss.epsilon == pytest.approx(0.4, rel=1e-15)
    assert (loss.rho, loss.range) == (pytest.approx(0.015), pytest.approx(0.6))
    unbounded = replace(VOTE, guarantee=replace(PROMISE, loss=replace(LOSS, epsilon=math.inf)))
    assert ob.Survey(("a", "b"), (VOTE, unbounded)).loss.epsilon == math.inf


def test_a_frame_of_everything():
    frame = SURVEY.to_frame(level=0.9)
    assert frame.columns == [
        *("question", "group", "category"),
        *("mean", "std", "lower", "upper", "level", "count"),
    ]
    assert frame["question"].to_list() == ["vote"] * 2 + ["table"] * 4 + ["groups"] * 4
    assert frame["group"].to_list() == [None] * 6 + ["n", "n", "(null)", "(null)"]
    assert frame["category"].to_list()[2:4] == ["yes, n", "yes, s"]
    assert frame["mean"].to_list()[:2] == pytest.approx(VOTE.posterior.mean())
    lower, upper = GROUPS["n"].posterior.interval(0.9)
    assert frame["lower"].to_list()[6:8] == pytest.approx(lower)
    assert frame["upper"].to_list()[6:8] == pytest.approx(upper)


def test_tables_name_the_questions_and_state_every_loss():
    sheet = SURVEY.sheet()
    first = [row[:2] for table in sheet.tables for row in table.rows[::2]]
    assert first == [
        *(("vote", "yes"), ("table", "yes"), ("table", "no"), ("groups", "n"), ("groups", "(null)"))
    ]
    said = "All together: ε = 0.4001 for one privacy unit, the sum of the losses below."
    assert sheet.notes[0] == said
    said = "table: ε = 0.2 for data sets that differ by 1 record added or removed."
    assert f"{said} The number of records is private." in sheet.notes
    page = SURVEY._repr_html_()
    assert page.count("<table") == 3
    assert "(null)" in page
    assert repr(SURVEY).startswith("Survey({'vote': Release({'yes': 60, 'no': 40}")
    title, headings, *questions, together = str(SURVEY).splitlines()
    assert (title, headings.split()) == ("Survey", ["Question", "Counts", "Mechanism", "Loss"])
    mechanism = "discrete Laplace noise, scale 10"
    counts = ("2 categories", "4 cells", "2 categories in 2 groups")
    each = zip(questions, SURVEY, counts, ("0.1", "0.2", "0.1"), strict=True)
    for line, name, counts, loss in each:
        assert line.split() == [name, *counts.split(), *mechanism.split(), "ε", "=", loss]
    assert together == "All together: ε = 0.4001 for one privacy unit."


def test_json_both_ways():
    text = SURVEY.to_json()
    assert ob.Survey.from_json(text) == ob.Survey.from_json(text.encode()) == SURVEY
    assert json.loads(text)["format"] == "opendp-bayes survey"


def changed(**changes):
    return json.dumps({**json.loads(SURVEY.to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "text: is not a survey"),
        (b"\xff", "text: is not a survey"),
        ('{"a":' * 1_000_000 + "1" + "}" * 1_000_000, r"text: .*lists too deep"),
        (VOTE.to_json(), r"is a release; .*Release\.from_json"),
        (changed(extra=1), r"text: is not a survey .*extra"),
        (changed(format="other"), r"enum value 'other' - at `\$\.format`"),
        (changed(version=3), r"version=3: .*version 2, and a newer"),
        (changed(version=1), "version=1: .* version 2, and one from before"),
        (changed(releases={}), r"names=\(\): must be different"),
        (changed(releases={"a": {}}), r"releases\['a'\]: text: .*not a release"),
    ],
)
def test_what_is_no_survey_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ob.Survey.from_json(text)


def test_refusals():
    with pytest.raises(TypeError, match="text: must be str or bytes"):
        ob.Survey.from_json(1)
    with pytest.raises(ValueError, match=r"names=.*: must be different"):
        ob.Survey(("a", "a"), (VOTE, TABLE))
    with pytest.raises(ValueError, match="as many as releases, 1"):
        ob.Survey(("a", "b"), (VOTE,))
    other = replace(VOTE, guarantee=replace(PROMISE, measure="ZeroConcentratedDivergence"))
    with pytest.raises(ValueError, match="be of one privacy measure"):
        ob.Survey(("a", "b"), (VOTE, other))


def test_every_part_of_the_total_is_a_sum():
    """Of losses that differ in all of their parts, the last being the largest."""
    losses = [ob.PrivacyLoss(0.1 * i, 0.005 * i**2, 0.3 * i, 1e-7 * i, "exact") for i in (1, 2, 4)]
    releases = [replace(VOTE, guarantee=replace(PROMISE, loss=loss)) for loss in losses]
    total = ob.Survey(("a", "b", "c"), tuple(releases)).loss
    for name in ("epsilon", "rho", "range", "delta"):
        exact = sum(Fraction(getattr(loss, name)) for loss in losses)
        assert exact <= Fraction(getattr(total, name)) <= exact * (1 + Fraction(1, 1 << 50))


@pytest.mark.parametrize("part", ["epsilon", "rho", "range", "delta"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_sum_that_floats_round_down_is_rounded_up(part, order):
    """Of a half and of what it takes in without a change, in either order."""
    loss = ob.PrivacyLoss(epsilon=0.5, rho=0.5, range=0.5, delta=0.5)
    losses = [loss, replace(loss, **{part: 2.0**-60})][::order]
    assert 0.5 + 2.0**-60 == 0.5
    releases = tuple(replace(VOTE, guarantee=replace(PROMISE, loss=one)) for one in losses)
    total = ob.Survey(("one", "other"), releases).loss
    for name in ("epsilon", "rho", "range", "delta"):
        exact = sum(Fraction(getattr(one, name)) for one in losses)
        assert exact <= Fraction(getattr(total, name)) <= exact + Fraction(2) ** -52


def test_a_survey_of_counts_without_a_stated_loss_states_none():
    """An infinite epsilon would read as a promise that was made."""
    noise = {"mechanism": "laplace_parameters", "scale": 2.0}
    counts = [ob.noisy_counts([7, number], ["a", "b"], **noise) for number in (3, 4)]
    survey = ob.Survey(("one", "two"), tuple(counts))
    figure = " ".join(text.get_text() for text in survey.plot().texts)
    for shown in (survey._repr_html_(), str(survey.sheet().notes), figure):
        assert "No privacy loss is stated here." in shown
        assert "ε" not in shown
    with pytest.raises(ValueError, match="one privacy measure, not MaxDivergence"):
        ob.Survey(("a", "b"), (VOTE, counts[0]))
