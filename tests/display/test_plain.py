"""Sheets as text, for a prompt."""

from dataclasses import replace

import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease


@pytest.fixture
def groups():
    loss = ob.PrivacyLoss(epsilon=1.0, rho=0.5, range=2.0)
    promise = ob.PrivacyGuarantee(None, 1, loss, "MaxDivergence")
    of_groups = ("north", "south"), ((5, 1), (2, 4)), ("yes", "no"), (1.0, 1.0)
    return GroupedRelease(*of_groups, ob.LaplaceParameters(1.0, total="private"), promise)


def test_groups_of_a_release_and_questions_of_a_survey_are_named(groups):
    lines = str(groups.sheet()).splitlines()
    assert [line.split()[0] for line in lines if "yes" in line] == ["north", "south"]
    survey = ob.Survey(("vote", "by region"), (groups["north"], groups))
    text = str(survey.sheet())
    assert [line.split()[:3] for line in text.splitlines() if "by region " in line][::2] == [
        ["by", "region", "north"],
        ["by", "region", "south"],
    ]


def test_of_long_tables_the_first_rows_are_shown(groups):
    lines = str(groups.sheet().first(3)).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["north", "north", "south"]
    assert lines[4] == "and 1 more"
    assert "more" not in str(groups.sheet().first(4))


def test_blanks_around_a_label_are_seen(groups):
    lines = str(replace(groups, categories=("yes", "yes ")).sheet()).splitlines()
    assert lines[1].split()[:3] == ["north", "yes", "5"]
    assert lines[2].split()[:4] == ["north", "'yes", "'", "1"]
    assert "'no'" not in str(groups.sheet())


def test_says_where_intervals_are_about_those_of_the_prior(groups):
    said = "are about as wide as the prior's own"
    hidden = replace(groups, mechanism=ob.LaplaceParameters(1e4, total="private"))
    assert f"The intervals {said}" in str(hidden.sheet())
    assert f"The intervals {said}" in str(hidden["north"].sheet())
    for narrow in (groups.sheet(), groups["north"].sheet()):
        assert said not in str(narrow)
    one = replace(hidden, noisy_counts=((5, 1), (200000, 400000)))
    assert f"The intervals of 1 of the 2 groups {said}" in str(one.sheet())
