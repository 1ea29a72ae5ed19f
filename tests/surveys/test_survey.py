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


def test_is_an_immutable_mapping_whose_total_is_rounded_up():
    """The exact sum of the floats 0.1 and 0.2 is no float; and infinity stays."""
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
    loss = ob.Survey(("vote", "table"), (VOTE, TABLE)).loss
    assert Fraction(loss.epsilon) > Fraction(0.1) + Fraction(0.2)
    loss = SURVEY.loss
    assert loss.epsilon == pytest.approx(0.4, rel=1e-15)
    assert (loss.rho, loss.range) == (pytest.approx(0.015), pytest.approx(0.6))
    unbounded = replace(VOTE, guarantee=replace(PROMISE, loss=replace(LOSS, epsilon=math.inf)))
    assert ob.Survey(("a", "b"), (VOTE, unbounded)).loss.epsilon == math.inf


def changed(**changes):
    return json.dumps({**json.loads(SURVEY.to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "text: is not a result in JSON"),
        (b"\xff", "text: is not a result in JSON"),
        ('{"a":' * 1_000_000 + "1" + "}" * 1_000_000, r"text: .*lists too deep"),
        (VOTE.to_json(), r"bayes release': must be 'opendp-bayes survey'. .* Release"),
        (changed(extra=1), r"text: is not a survey .*extra"),
        (changed(format="other"), "format='other': must be 'opendp-bayes survey'"),
        (changed(version=3), r"version=3: .*version 2; .* and a newer"),
        (changed(version=1), "version=1: .* version 2; one from before"),
        (changed(releases={}), r"names=\(\): must be different"),
        (changed(releases={"a": {}}), r"releases\['a'\]: format='': must be 'opendp-bayes"),
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
