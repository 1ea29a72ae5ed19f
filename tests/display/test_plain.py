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


def test_says_where_intervals_are_about_those_of_the_prior(groups):
    said = "are about as wide as the prior's own"
    hidden = replace(groups, mechanism=ob.LaplaceParameters(1e4, total="private"))
    assert f"The intervals {said}" in str(hidden.sheet())
    assert f"The intervals {said}" in str(hidden["north"].sheet())
    for narrow in (groups.sheet(), groups["north"].sheet()):
        assert said not in str(narrow)
    one = replace(hidden, noisy_counts=((5, 1), (200000, 400000)))
    assert f"The intervals of 1 of the 2 groups {said}" in str(one.sheet())
