"""A release of groups: mapping, JSON, frame, the loss of one group, table and plot."""

import copy
import json
import pickle
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import changed, guarantee

LOSS = ob.PrivacyLoss(epsilon=0.5, rho=0.125, range=1.0)
NOISE = ob.LaplaceParameters(2.0, total="private")
OF_TWO: Any = (("yes", "no"), (1.0, 0.5), NOISE, guarantee(None, LOSS))
ADDED = GroupedRelease(("north", "south", None), ((3, 1), (0, -4), (7, 20)), *OF_TWO)
CHANGED = replace(
    ADDED, mechanism=ob.KNormParameters(2.0), guarantee=guarantee(40, LOSS), rest=13
)  # one draw for all groups and the rest


def pickled(made):
    return pickle.loads(pickle.dumps(made))  # noqa: S301 - our own


def test_a_mapping_from_groups_to_releases():
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


def test_without_a_public_number_of_records_a_group_stands_for_itself():
    assert ADDED["north"] == ob.Release((3, 1), *OF_TWO)
    assert ADDED.whole is None


def test_with_a_public_number_of_records_the_groups_are_parts_of_one_table():
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


def test_counts_of_a_group_add_up_to_its_own_number_where_that_is_public():
    sizes = (4, 3, 30)
    made = replace(CHANGED, sizes=sizes, rest=3)
    assert tuple(map(sum, made.counts)) == sizes
    assert [one.group_size for one in made.values()] == [*sizes]


def test_the_rest_goes_with_a_public_number_of_records():
    with pytest.raises(ValueError, match=r"rest=3: .*what was drawn .* size=None"):
        replace(ADDED, rest=3)
    with pytest.raises(ValueError, match=r"rest=None: .*what was drawn .* size=40"):
        replace(CHANGED, rest=None)


@pytest.mark.parametrize(
    "release",
    [
        ADDED,
        CHANGED,
        replace(ADDED, groups=(True, 2, "3")),
        replace(ADDED, groups=(("a", 1), ("a", None), ("b", 1))),
        replace(CHANGED, axes=("x", "y"), categories=(("a", 1), ("b", 2))),
        replace(ADDED, grouped_by=("region",)),
        replace(ADDED, groups=(("a", 1), ("b", 1), ("b", 2)), grouped_by=("region", "sex")),
        replace(CHANGED, sizes=(4, 3, 30)),
        changed(ADDED, loss=ob.PrivacyLoss(0.5, 0.125, float("inf"))),
    ],
)
def test_json_both_ways(release):
    again = ob.Release.from_json(release.to_json())
    assert again == release
    assert [type(group) for group in again.groups] == [type(group) for group in release.groups]
    assert ob.Release.from_json(release.to_json().encode()) == release


MALFORMED = {
    "not JSON": ("{", "is not a release in JSON"),
    "format": ({"format": "x"}, r"Invalid enum value 'x' - at `\$\.format`"),
    "version": ({"version": 4}, "version=4: this package reads version 3"),
    "version 2": ({"version": 2}, "version=2: .* reads version 3, and one from before 1.0.0"),
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


def test_json_must_be_text():
    with pytest.raises(TypeError, match="text: must be str or bytes"):
        ob.Release.from_json({})


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deep", "pickle"]
)
def test_copies_are_equal_before_and_after_the_posteriors_were_read(copied):
    made = replace(ADDED)
    assert copied(made) == made
    mean = made["north"].posterior.mean()
    again = copied(made)
    assert again == made
    assert hash(again) == hash(made)
    assert again["north"] == made["north"]
    assert again["north"].posterior.mean() == pytest.approx(mean)


def test_counts_are_the_projection_of_what_was_drawn():
    assert ADDED.noisy_counts[1] == (0, -4)
    assert ADDED.counts == ((3, 1), (0, 0), (7, 20))
    assert ADDED["south"].noisy_counts == (0, -4)


def test_the_frame_of_tables_in_groups_of_several_columns():
    cells = {"axes": ("group", "vote"), "categories": (("a", "yes"), ("b", "no"))}
    made = replace(CHANGED, groups=(("n", 1), ("n", None), ("s", 1)), **cells)
    frame = made.to_frame()
    assert frame.columns[:4] == ["group_", "group", "vote", "mean"]
    assert frame["group_"].to_list() == ["n, 1"] * 2 + ["n, (null)"] * 2 + ["s, 1"] * 2
    assert frame["vote"].to_list() == ["yes", "no"] * 3
    shown = [row[0] for row in made.sheet().tables[0].rows]
    assert shown == ["n, 1"] * 2 + ["n, (null)"] * 2 + ["s, 1"] * 2


def test_the_frame_holds_the_posterior_of_every_group():
    frame = ADDED.to_frame(level=0.5)
    assert frame.columns == [
        *("group", "category", "mean", "std", "lower", "upper", "level", "count")
    ]
    assert frame["group"].to_list() == ["north", "north", "south", "south", None, None]
    assert frame["count"].to_list() == [3, 1, 0, 0, 7, 20]
    posterior = ADDED[None].posterior
    rows = frame.filter(pl.col("group").is_null())
    for name, values in zip(
        ("mean", "std", "lower", "upper"),
        (posterior.mean(), posterior.std(), *posterior.interval(0.5)),
        strict=True,
    ):
        assert np.array_equal(rows[name].to_numpy(), values)
    with pytest.raises(ValueError, match=r"level=2: .*between 0 and 1"):
        ADDED.to_frame(level=2)


def test_the_table_and_the_text():
    text = str(CHANGED)
    said = "All groups together: ε = 0.5 for data sets that differ by 1 record changed."
    for part in ("north", "(null)", "yes", "20", said):
        assert part in text
    assert repr(ADDED).startswith(
        "GroupedRelease({'north': {'yes': 3, 'no': 1}, 'south': {'yes': 0, 'no': 0}, None: {'yes':"
        " 7, 'no': 20}}, prior=[1.0"
    )
    assert "size=40, d_in=1, loss=PrivacyLoss(epsilon=0.5" in repr(CHANGED)
    lines = str(ADDED).splitlines()
    assert lines[0].split()[:4] == ["Group", "Category", "Released", "count"]
    assert [line.split()[0] for line in lines[1:7:2]] == ["north", "south", "(null)"]
    assert lines[7].startswith("All groups together: ε = 0.5")


def test_the_picture_has_a_row_for_each_group_and_a_colour_for_each_category():
    ax = ADDED.plot(level=0.9, title="Groups")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["north", "south", "(null)"]
    frame = ADDED.estimates(0.9)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["yes", "no"]
    for name, drawn in zip(names, ax.containers, strict=True):
        shown = frame.filter(category=name)
        assert drawn.lines[0].get_xdata() == pytest.approx(shown["mean"].to_numpy())
    said = ax.texts[0].get_text()
    assert said.startswith("All groups together: ε = 0.5 for data sets that differ by 1 record")
    assert "Means with 90 % intervals." in said
    assert ax.get_title(loc="left") == "Groups"
    with pytest.raises(ValueError, match="level"):
        ADDED.plot(level=2)
    pyplot.close("all")


def test_without_matplotlib_the_plot_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'opendp-bayes\[plot\]'"):
        ADDED.plot()


# --- Groups that are parts of one table
OF_THREE: Any = (("a", "b", "c"), (1.0,) * 3, ob.LaplaceParameters(1.0), guarantee(30))
PARTS = GroupedRelease(("n", "s"), ((9, 1, 2), (2, 3, 4)), *OF_THREE, rest=9)


def test_another_prior_of_a_group_is_that_of_its_table() -> None:
    whole = PARTS.whole
    assert whole is not None
    for at, group in enumerate(PARTS):
        cells = whole.categories[3 * at : 3 * at + 3]
        expected = ob.noise_aware_posterior(whole, prior=5.0).given(cells).mean()
        found = ob.noise_aware_posterior(PARTS[group], prior=5.0).mean()
        assert found == pytest.approx(expected)
        assert found != pytest.approx(PARTS[group].posterior.mean(), abs=0.01)


@pytest.mark.parametrize("sizes", [(0, 8), (8, 0), (-1, 8), (20, 11), (5,), (5, 5, 5)])
def test_public_sizes_are_positive_and_together_no_more_than_all(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sizes=.*: must be a positive number"):
        replace(PARTS, sizes=sizes)


def test_a_group_of_a_public_size_has_so_many_records() -> None:
    sizes = {"n": 13, "s": 8}
    for group, release in PARTS.with_sizes(sizes).items():
        posterior = release.posterior
        assert posterior.records.interval() == (sizes[group], sizes[group])
        assert posterior.counts.mean().sum() == pytest.approx(sizes[group])
