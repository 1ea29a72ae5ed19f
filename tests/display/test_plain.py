"""Sheets as text, for a prompt."""

from dataclasses import replace

import pytest

import opendp_bayes as ob
from opendp_bayes.display import plain
from opendp_bayes.display.sheet import Body, Column, Conclusion, Marked, Sheet, Table, columns
from opendp_bayes.results.release import GroupedRelease

HEADINGS = (Column("group", number=False), Column("category", number=False), Column("per\ncent"))
GROUPS = (
    Body((("yes", "25"), ("no", "75")), group="north"),
    Body((("yes", "100"), (Marked("no", "bad"), "0")), group="south"),
)


def test_a_group_stands_before_its_first_row():
    assert plain.rendered(Sheet((Table(HEADINGS, GROUPS),))).splitlines() == [
        "group  category  per cent",
        "north  yes             25",
        "       no              75",
        "south  yes            100",
        "       no               0",
    ]


def test_everything_but_how_to_read_it_is_there():
    sheet = Sheet(
        (Table(columns("a", "b"), (Body((("x", "1"),)),)),),
        notes=(("See ", Marked("this", "code"), "."),),
        title="Title",
        lead="Lead.",
        reading="How to read it.",
        refused=(("That", "It is slow."),),
        conclusion=Conclusion("PASSED", "it holds.", "good"),
    )
    assert plain.rendered(sheet).splitlines() == [
        "Title",
        "Lead.",
        "a  b",
        "x  1",
        "See this.",
        "That cannot be used. It is slow.",
        "PASSED: it holds.",
    ]


@pytest.fixture
def groups():
    loss = ob.PrivacyLoss(epsilon=1.0, rho=0.5, range=2.0)
    return GroupedRelease(
        groups=("north", "south"),
        drawn=((5, 1), (2, 4)),
        categories=("yes", "no"),
        prior=(1.0, 1.0),
        mechanism=ob.LaplaceParameters(1.0, total="private"),
        guarantee=ob.PrivacyGuarantee(size=None, d_in=1, loss=loss, measure="MaxDivergence"),
    )


def test_groups_of_a_release_and_questions_of_a_survey_are_named(groups):
    lines = plain.rendered(groups.sheet()).splitlines()
    assert [line.split()[0] for line in lines if "yes" in line] == ["north", "south"]
    survey = ob.Survey(("vote", "by region"), (groups["north"], groups))
    text = plain.rendered(survey.sheet())
    assert all(name in text for name in ("vote", "by region, north", "by region, south"))


def test_of_long_tables_the_first_rows_are_shown(groups):
    lines = plain.rendered(groups.sheet(), rows=3).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["north", "no", "south"]
    assert lines[4] == "and 1 more"
    assert "more" not in plain.rendered(groups.sheet(), rows=4)


def test_blanks_around_a_label_are_seen(groups):
    lines = plain.rendered(replace(groups, categories=("yes", "yes ")).sheet()).splitlines()
    assert lines[1].split()[:3] == ["north", "yes", "5"]
    assert lines[2].split()[:3] == ["'yes", "'", "1"]
    assert "'no'" not in plain.rendered(groups.sheet())


def test_says_where_intervals_are_about_those_of_the_prior(groups):
    said = "are about as wide as the prior's own"
    hidden = replace(groups, mechanism=ob.LaplaceParameters(1e4, total="private"))
    assert f"The intervals {said}" in plain.rendered(hidden.sheet())
    assert f"The intervals {said}" in plain.rendered(hidden["north"].sheet())
    for narrow in (groups.sheet(), groups["north"].sheet()):
        assert said not in plain.rendered(narrow)
    one = replace(hidden, drawn=((5, 1), (200000, 400000)))
    assert f"The intervals of 1 of the 2 groups {said}" in plain.rendered(one.sheet())
