"""A release of groups: a mapping, its JSON and frame, the loss of one group, the table and the
plot.
"""

import json
import sys
from dataclasses import FrozenInstanceError, replace
from io import StringIO

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from rich.console import Console

import opendp_bayes as ob

LOSS = ob.PrivacyLoss(epsilon=0.5, rho=0.125, range=1.0)
ADDED = ob.GroupedRelease(
    groups=("north", "south", None),
    counts=((3, 1), (0, 0), (7, 20)),
    categories=("yes", "no"),
    prior=(1.0, 0.5),
    mechanism=ob.LaplaceParameters(2.0, total="private"),
    size=None,
    d_in=1,
    loss=LOSS,
    measure="MaxDivergence",
)
CHANGED = replace(ADDED, size=40, mechanism=ob.LaplaceParameters(4.0, total="private"))


def test_a_mapping_from_groups_to_releases():
    assert list(ADDED) == ["north", "south", None]
    assert len(ADDED) == 3
    assert [release.counts for release in ADDED.values()] == [(3, 1), (0, 0), (7, 20)]
    assert "south" in ADDED
    assert "west" not in ADDED
    assert ADDED["north"] is ADDED["north"], "so that its posterior is computed once"
    with pytest.raises(
        KeyError, match=r"'west': is not a group; the groups are 'north', 'south', None"
    ):
        ADDED["west"]
    with pytest.raises(FrozenInstanceError):
        ADDED.size = 3
    assert len({ADDED, replace(ADDED), CHANGED}) == 2
    assert (ADDED.relation, CHANGED.relation) == ("add/remove", "change-one")


def test_one_group_states_the_loss_of_records_that_join_or_leave_it():
    """Of a record added the loss is that of the whole; of one changed it is that of two, added and
    removed, which may be in the same group.
    """
    assert ADDED["north"] == ob.Release(
        (3, 1),
        ("yes", "no"),
        (1.0, 0.5),
        ob.LaplaceParameters(2.0, total="private"),
        None,
        1,
        LOSS,
        "MaxDivergence",
    )
    one = CHANGED["north"]
    assert (one.size, one.d_in, one.relation) == (None, 2, "add/remove")
    assert one.loss == ob.exact_loss(one.mechanism, size=None, prior=one.prior, d_in=2)
    assert one.epsilon == 0.5
    restated = CHANGED.with_loss(d_in=3, loss=replace(LOSS, epsilon=1.5), measure="MaxDivergence")
    assert (restated.d_in, restated.epsilon, restated["north"].d_in, restated["north"].epsilon) == (
        3,
        1.5,
        6,
        1.5,
    )


def test_a_stated_delta_is_used_for_one_group_too():
    one = replace(CHANGED, loss=replace(LOSS, delta=0.05))["north"]
    assert one.delta == 0.05
    assert one.epsilon < 0.5


@pytest.mark.parametrize(
    "release",
    [
        ADDED,
        CHANGED,
        replace(ADDED, groups=(True, 2, "3")),
        replace(ADDED, loss=ob.PrivacyLoss(0.5, 0.125, float("inf"))),
    ],
)
def test_json_both_ways(release):
    again = ob.GroupedRelease.from_json(release.to_json())
    assert again == release
    assert [type(group) for group in again.groups] == [type(group) for group in release.groups]
    assert ob.GroupedRelease.from_json(release.to_json().encode()) == release


MALFORMED = {
    "not JSON": ("{", "is not a grouped release in JSON"),
    "a release": (ADDED["north"].to_json(), "is not a grouped release in JSON"),
    "format": ({"format": "x"}, "format='x': must be 'opendp-bayes grouped release'"),
    "version": ({"version": 2}, "version=2: this package reads version 1"),
    "unknown field": ({"extra": 1}, "unknown field `extra`"),
    "no groups": ({"groups": [], "counts": []}, r"groups=\[\]: must be at least 1, all different"),
    "a group twice": ({"groups": ["a", "a", None]}, "must be at least 1, all different"),
    "rows": ({"counts": [[1, 2]]}, r"counts=\[\[1, 2\]\]: must have 3 rows, one for each group"),
    "counts of a group": ({"counts": [[1, 2], [1, 2], [1]]}, r"counts=\[1\]: must be 2 numbers"),
    "negative": ({"counts": [[1, 2], [1, -2], [1, 1]]}, r"counts=\[1, -2\]: must be 2 numbers"),
    "prior": ({"prior": [1.0]}, r"prior=\[1\.0\]: must be 2 numbers"),
    "size": ({"size": 0}, "size=0: must be null or at least 1"),
    "mechanism": (
        {"mechanism": {"name": "nothing", "parameters": {}}},
        "mechanism='nothing': is not built in",
    ),
    "another mechanism": (
        {"mechanism": {"name": "knorm_parameters", "parameters": {"scale": 1.0}}},
        r"mechanism=KNormParameters\(scale=1\.0\): must be LaplaceParameters with total='private'",
    ),
    "another total": (
        {"mechanism": {"name": "laplace_parameters", "parameters": {"scale": 1.0}}},
        "must be LaplaceParameters with total='private'",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_document_that_no_release_has_is_refused(name):
    text, message = MALFORMED[name]
    if isinstance(text, dict):
        text = json.dumps({**json.loads(ADDED.to_json()), **text})
    with pytest.raises(ValueError, match=message):
        ob.GroupedRelease.from_json(text)


def test_json_must_be_text():
    with pytest.raises(TypeError, match="text: must be str or bytes, not dict"):
        ob.GroupedRelease.from_json({})


def test_the_frame_holds_the_posterior_of_every_group():
    frame = ADDED.to_frame(level=0.5)
    assert frame.columns == ["group", "category", "count", "mean", "std", "lower", "upper"]
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
    with pytest.raises(ValueError, match=r"level=2: must be between 0 and 1"):
        ADDED.to_frame(level=2)


def test_the_table_and_the_text():
    console = Console(width=100, record=True, file=StringIO())
    console.print(CHANGED)
    text = console.export_text()
    for part in (
        "north",
        "(null)",
        "yes",
        "20",
        "All groups together: ε = 0.5 for data sets that differ by 1 record changed.",
    ):
        assert part in text
    assert repr(ADDED).startswith(
        "GroupedRelease({'north': {'yes': 3, 'no': 1}, 'south': {'yes': 0, 'no': 0}, None: {'yes':"
        " 7, 'no': 20}}, prior=[1.0"
    )
    assert "size=40, d_in=1, epsilon=0.5" in repr(CHANGED)


def test_small_multiples():
    figure = ADDED.plot(columns=2)
    assert [ax.get_title() for ax in figure.axes] == ["north", "south", "(null)", ""]
    assert [ax.axison for ax in figure.axes] == [True, True, True, False]
    assert len({ax.get_xlim() for ax in figure.axes[:3]}) == 1, "on one scale"
    assert len(figure.legends) == 1
    assert figure.get_suptitle().startswith(
        "All groups together: ε = 0.5 for data sets that differ by 1 record"
    )
    assert figure.get_suptitle().endswith("Means with 95 % intervals.")
    assert all(ax.get_legend() is None for ax in figure.axes)
    assert len(ADDED.plot(columns=9).axes) == 3
    with pytest.raises(ValueError, match="columns=0: must be between 1"):
        ADDED.plot(columns=0)
    pyplot.close("all")


def test_categories_are_named_once_in_a_row():
    three = replace(
        ADDED,
        counts=((3, 1, 2), (0, 0, 9), (7, 20, 4)),
        categories=("a", "b", "c"),
        prior=(1.0,) * 3,
    )
    figure = three.plot(columns=2)
    assert [ax.yaxis.get_tick_params()["labelleft"] for ax in figure.axes[:3]] == [
        True,
        False,
        True,
    ]
    pyplot.close("all")


def test_without_matplotlib_the_plot_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=r"plot needs matplotlib: pip install 'opendp-bayes\[plot\]'"
    ):
        ADDED.plot()
