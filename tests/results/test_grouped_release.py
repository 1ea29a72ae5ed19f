"""A release of groups: mapping, JSON, frame, the loss of one group, table and plot."""

import json
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee

LOSS = ob.PrivacyLoss(epsilon=0.5, rho=0.125, range=1.0)
NOISE = ob.LaplaceParameters(2.0, total="private")
OF_TWO: Any = (("yes", "no"), (1.0, 0.5), NOISE, guarantee(None, LOSS))
ADDED = GroupedRelease(("north", "south", None), ((3, 1), (0, -4), (7, 20)), *OF_TWO)
CHANGED = replace(
    ADDED, mechanism=ob.KNormParameters(2.0), guarantee=guarantee(40, LOSS), rest=13
)  # one draw for all groups and the rest


def test_a_mapping_from_groups_to_releases_read_from_text_alone():
    assert list(ADDED) == ["north", "south", None]
    assert len(ADDED) == 3
    assert [release.counts for release in ADDED.values()] == [(3, 1), (0, 0), (7, 20)]
    assert "south" in ADDED
    assert "west" not in ADDED
    assert ADDED["north"] is ADDED["north"], "so that its posterior is computed once"
    with pytest.raises(KeyError, match=r"'west': .*not a group; .* 'south', None"):
        ADDED["west"]
    with pytest.raises(FrozenInstanceError):
        ADDED.size = 3
    assert len({ADDED, replace(ADDED), CHANGED}) == 2
    assert (ADDED.guarantee.relation, CHANGED.guarantee.relation) == ("add/remove", "change-one")
    with pytest.raises(TypeError, match="text: must be str or bytes"):
        ob.Release.from_json({})


def test_a_public_number_makes_groups_parts_of_one_table_with_a_rest():
    whole = CHANGED.whole
    assert whole.noisy_counts == (3, 1, 0, -4, 7, 20, 13)
    assert whole.prior == (1.0, 0.5) * 3 + (1.0,)
    assert sum(whole.counts) == whole.size == 40
    assert sum(map(sum, CHANGED.counts)) + whole.counts[-1] == 40
    for at, one in enumerate(CHANGED.values()):
        assert one.whole is whole, "so that its posterior is computed once"
        assert one.counts == whole.counts[2 * at : 2 * at + 2]
        assert one.guarantee == CHANGED.guarantee
        with pytest.raises(ValueError, match=r"to_json: .*one group of a table"):
            one.to_json()
    with pytest.raises(ValueError, match=r"rest=3: .*what was drawn .* size=None"):
        replace(ADDED, rest=3)
    with pytest.raises(ValueError, match=r"rest=None: .*what was drawn .* size=40"):
        replace(CHANGED, rest=None)


MALFORMED = {
    "not JSON": ("{", "is not a result in JSON"),
    "format": ({"format": "x"}, "format='x': must be 'opendp-bayes release'"),
    "version": ({"version": 4}, "version=4: this package reads version 3"),
    "version 2": ({"version": 2}, "version=2: .* reads version 3; one from before 1.0.0"),
    "unknown field": ({"extra": 1}, "unknown field `extra`"),
    "a group twice": ({"groups": ["a", "a", None]}, r"groups=\['a', 'a', None\]: must be all diff"),
    "draws of a group": (
        {"noisy_counts": [1, 2, 1, 2, 1]},
        r"noisy_counts=\[.*\]: must be 6 integers",
    ),
    "prior": ({"prior": [1.0]}, r"prior=\[1\.0\]: must be 2 numbers"),
    "size": ({"size": 0, "noisy_counts": [1] * 7}, r"Expected `int` >= 1 - at `\$\.size`"),
    "mechanism": (
        {"mechanism": {"name": "nothing", "parameters": {}}},
        "mechanism='nothing': is not built in",
    ),
    "a rest": ({"noisy_counts": [1] * 7}, r"noisy_counts=\[1, .*\]: must be 6 integers"),
    "no rest": ({"size": 40}, r"noisy_counts=\[.*\]: must be 7 integers"),
    "a large draw": (
        {"noisy_counts": [2**63] * 6},
        r"Expected `int` <= .* - at `\$\.noisy_counts\[0\]`",
    ),
    "keys of two lengths": (
        {"groups": [["a", "b"], ["a"], ["c", "d"]]},
        "all values or all lists of one length",
    ),
    "columns of another number": ({"by": ["region", "sex"]}, r"all lists of one length, that of"),
    "a learned prior": ({"learned_prior": True}, "learned_prior=True: belongs to one posterior"),
    "parts": ({"parts": [["a"], ["b"]]}, "parts=.*: belong to one posterior"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_document_that_no_release_has_is_refused(name):
    text, message = MALFORMED[name]
    if isinstance(text, dict):
        text = json.dumps({**json.loads(ADDED.to_json()), **text})
    with pytest.raises(ValueError, match=message):
        ob.Release.from_json(text)


def test_without_matplotlib_the_plot_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'opendp-bayes\[plot\]'"):
        ADDED.plot()


def test_a_prior_of_the_number_and_frames_of_several_columns():
    """Also where it is asked of one group of a table whose number is public."""
    prior = stats.poisson(40)
    with pytest.raises(ValueError, match=r"records_prior=.*: .* or None .*; it is size=40"):
        ob.noise_aware_posterior(CHANGED["north"], records_prior=prior)
    table = ob.Release((30, 20), ("a", "b"), (1.0, 1.0), NOISE, guarantee(None, LOSS))
    narrow = ob.noise_aware_posterior(table, records_prior=prior)
    assert narrow.records.std() < table.posterior.records.std()
    cells = {"axes": ("group", "vote"), "categories": (("a", "yes"), ("b", "no"))}
    made = replace(CHANGED, groups=(("n", 1), ("n", None), ("s", 1)), **cells)
    frame = made.to_frame()
    assert frame.columns[:4] == ["group_", "group", "vote", "mean"]
    assert frame["group_"].to_list() == ["n, 1"] * 2 + ["n, (null)"] * 2 + ["s, 1"] * 2
    assert frame["vote"].to_list() == ["yes", "no"] * 3
    shown = [row[0] for row in made.sheet().tables[0].rows]
    assert shown == ["n, 1"] * 2 + ["n, (null)"] * 2 + ["s, 1"] * 2


OF_THREE: Any = (("a", "b", "c"), (1.0,) * 3, ob.LaplaceParameters(1.0), guarantee(30))


PARTS = GroupedRelease(("n", "s"), ((9, 1, 2), (2, 3, 4)), *OF_THREE, rest=9)


@pytest.mark.parametrize("sizes", [(0, 8), (8, 0), (-1, 8), (20, 11), (5,), (5, 5, 5)])
def test_public_sizes_are_positive_and_together_no_more_than_all(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sizes=.*: must be a positive number"):
        replace(PARTS, sizes=sizes)
