"""Documents with one wrong entry that is not the first, and releases that differ in a field."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.compatible import check_given_once, check_releases, number_of_records
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.release_format.merging import merged_places, neighbours
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee

NOISE = ob.LaplaceParameters(4.0, total="private")
TWICE = ob.PrivacyLoss(epsilon=0.75, rho=0.28125, range=1.5)
CELLS = (("x", "p"), ("y", "p"), ("x", "q"), ("y", "q"), ("x", "r"), ("y", "r"))
#: A joint table whose posterior learns its prior; ε is 3 / 4 for three records.
PROMISED = PrivacyGuarantee(None, 3, TWICE, "MaxDivergence")
OF_ORDER = {"axes": ("w", "v"), "learned_prior": True, "ordered": ("v",)}
TABLE = ob.Release((9, -1, 5, 3, 0, 2), CELLS, (1.0,) * 6, NOISE, PROMISED, **OF_ORDER)
OF_THREE = ("late", "early", "between"), (1.0, 2.0, 3.0), NOISE, PROMISED
MERGED = ob.Release((9, -1, 5), *OF_THREE, parts=(("d",), ("a", "b"), ("c",)))
#: Of groups that two columns make.
OF_PAIRS = (("x", 1), ("y", 2)), ((1, 2), (3, 4)), ("a", "b"), (1.0, 1.0)
OF_TWO = GroupedRelease(*OF_PAIRS, NOISE, TABLE.guarantee, grouped_by=("g", "h"))


def edited(release: Any, path: str, value: Any) -> str:
    """The JSON with one field, or one within it, set."""
    document = json.loads(release.to_json())
    *parents, last = path.split(".")
    inner = document
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return json.dumps(document)


@pytest.mark.parametrize("release", [TABLE, MERGED])
def test_both_are_read_as_they_were(release: ob.Release) -> None:
    again = ob.Release.from_json(release.to_json())
    assert again == release
    assert again.values_of_axes == release.values_of_axes


def test_values_of_axes_are_those_of_each_column() -> None:
    """Of three columns, too, of which the first comes last in the alphabet."""
    assert TABLE.values_of_axes == {"w": ("x", "y") * 3, "v": ("p", "p", "q", "q", "r", "r")}
    cells = tuple((one, two, three) for one in "ab" for two in (1, 2, 3) for three in (True, False))
    three = ob.Release((1,) * 12, cells, (1.0,) * 12, NOISE, guarantee(None), ("z", "b", "a"))
    assert three.values_of_axes == {
        "z": tuple("a" * 6 + "b" * 6),
        "b": (1, 1, 2, 2, 3, 3) * 2,
        "a": (True, False) * 6,
    }


LOSS = ob.PrivacyLoss(epsilon=0.25, rho=0.03125, range=0.5)
OF_GROUPS = ("n", "m", "s"), ((3, 1), (0, -4), (7, 20)), ("yes", "no"), (1.0, 2.0)
GROUPS = GroupedRelease(*OF_GROUPS, NOISE, PrivacyGuarantee(None, 1, LOSS, "MaxDivergence"))


@pytest.mark.parametrize(
    ("release", "path", "value", "message"),
    [
        (TABLE, "prior", [1.0, 1.0, 1.0, 1.0, 1.0, 0.0], r"`float` > 0\.0 .*`\$\.prior\[5\]"),
        (TABLE, "prior", [1.0, 1.0, 1.0, -1.0, 1.0, 1.0], r"`float` > 0\.0 .*`\$\.prior\[3\]"),
        (TABLE, "axes", ["w", "w"], r"axes=\['w', 'w'\]: must be different"),
        (TABLE, "axes", ["w"], r"axes=\['w'\]: .*every category a list"),
        (TABLE, "ordered", ["u"], r"ordered=\['u'\]: .*of the table"),
        (TABLE, "nulls", ["p"], r"nulls=\['p'\]: .*label or null for each"),
        (TABLE, "unknown", ["x", "p", "q"], r"unknown=.*: .*label or null for each"),
        (TABLE, "columns", ["w"], r"columns=\['w'\]: must be the axes"),
        (TABLE, "ordered", ["w", "u"], "must be variables of the table"),
        (TABLE, "learned_prior", False, "only where learned_prior is true"),
        (MERGED, "ordered", ["v"], "only where learned_prior is true"),
        (MERGED, "parts", [["d"], ["a", "b"], ["b"]], "every label once"),
        (MERGED, "parts", [["d"], ["a", "a"], ["c"]], "every label once"),
        (MERGED, "parts", [["d"], ["a", "b"], []], r"length >= 1 - at `\$\.parts\[2\]`"),
        (MERGED, "parts", [["d"], ["a", "b"]], "labels that each of 3"),
        (OF_TWO, "groups", ["x", "y"], r"groups=.* by=\['g', 'h'\]"),
        (OF_TWO, "groups", [["x", 1], ["y"]], "all lists of one length"),
        (OF_TWO, "groups", [["x", 1, 2], ["y", 2, 3]], r"groups=.* by=\['g', 'h'\]"),
        (OF_TWO, "by", ["g"], r"groups=.* by=\['g'\]"),
        (
            MERGED,
            "noisy_counts",
            [9, -1, 2**63],
            r"`int` <= 9223372036854775807 - at `\$\.noisy_counts\[2\]`",
        ),
        (GROUPS, "groups", ["n", ["m", 1], "s"], "or all lists of one"),
        (GROUPS, "groups", [["n", 1], ["m"], ["s", 2]], "or all lists of one"),
        (GROUPS, "groups", ["n", "m", "m"], "all different"),
        (
            GROUPS,
            "noisy_counts",
            [3, 1, 0, -4, 7, 2**63],
            r"`int` <= .* - at `\$\.noisy_counts\[5\]`",
        ),
    ],
)
def test_an_entry_that_is_not_the_first_is_looked_at(release, path, value, message):
    assert ob.Release.from_json(release.to_json()) == release
    with pytest.raises(ValueError, match=message):
        ob.Release.from_json(edited(release, path, value))


def test_labels_may_be_any_of_the_table_s_and_a_draw_any_integer_of_the_machine() -> None:
    ordered = ob.Release.from_json(edited(TABLE, "ordered", ["v", "w"]))
    assert ordered.ordered == ("v", "w")
    assert (
        ob.Release.from_json(edited(MERGED, "noisy_counts", [2**63 - 1, 0, 1])).noisy_counts[0]
        == 2**63 - 1
    )


# --- groups
OF_TWENTY = PrivacyGuarantee(20, 1, ob.PrivacyLoss(9.0, 9.0, 9.0), "MaxDivergence")
EXPONENTIAL = {"mechanism": ob.mechanisms.HellingerExponential(1.0), "guarantee": OF_TWENTY}
PUBLIC = replace(GROUPS, noisy_counts=((3, 1), (0, 4), (2, 7)), rest=3, **EXPONENTIAL)


def test_counts_labels_and_orders_of_groups_tell_releases_apart() -> None:
    """Of three groups of two categories, none of whose counts are those of another."""
    of_28 = PrivacyGuarantee(28, 1, ob.PrivacyLoss(9.0, 9.0, 9.0), "MaxDivergence")
    made = replace(PUBLIC, mechanism=ob.KNormParameters(1.0), guarantee=of_28, rest=11)
    whole = made.whole
    assert len(set(whole.counts)) == len(whole.counts) == 7
    assert [made[group].counts for group in ("n", "m", "s")] == [
        whole.counts[at : at + 2] for at in (0, 2, 4)
    ]
    sizes = {"s": 8, "n": 5, "m": 3}
    sized = made.with_sizes(sizes)
    assert {group: sum(one.counts) for group, one in sized.items()} == sizes
    one, other = (replace(GROUPS, groups=(label, 2, 3)) for label in (1, True))
    assert one != other
    assert len({one, other}) == 2
    other = replace(TABLE, noisy_counts=(1, 2, 3, 4, 5, 6), ordered=("w",))
    with pytest.raises(ValueError, match=r"releases\[1\]: has ordered=\('w',\)"):
        check_releases((TABLE, other), draws_may_agree=False)


# --- releases read together
KNORM = ob.KNormParameters(2.0)
FIRST = ob.Release((3, 5, 2), ("a", "b", "c"), (1.0, 2.0, 3.0), KNORM, guarantee(10))
SECOND = replace(FIRST, noisy_counts=(4, 5, 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"learned_prior": True},
        {"prior": (1.0, 3.0, 2.0)},
        {"prior": (1.0, 2.0, 4.0)},
        {"categories": ("a", "c", "b")},
    ],
)
def test_releases_of_two_models_are_not_combined(changes: dict[str, Any]) -> None:
    (name,) = changes
    third = replace(FIRST, noisy_counts=(2, 5, 3))
    for releases in (
        (FIRST, replace(SECOND, **changes)),
        (FIRST, third, replace(SECOND, **changes)),
    ):
        with pytest.raises(ValueError, match=rf"releases\[\d\]: has {name}="):
            check_releases(releases, draws_may_agree=False)


def test_numbers_and_rules_of_the_same_records_are_equal() -> None:
    """Of two releases, and of three of which one says nothing."""
    private = replace(SECOND, mechanism=NOISE, guarantee=guarantee(None))
    for releases in ((FIRST, private), (private, FIRST)):
        assert number_of_records(releases) == 10
    assert number_of_records((private, private)) is None
    private = replace(SECOND, mechanism=NOISE, guarantee=guarantee(None))
    other = replace(SECOND, guarantee=guarantee(11))
    for releases in ((FIRST, other), (private, FIRST, other), (FIRST, private, other)):
        with pytest.raises(ValueError, match="their public numbers"):
            check_releases(releases, draws_may_agree=False)
    limited = replace(
        SECOND, guarantee=guarantee(10, truncated=True, kept="the first row of each id")
    )
    for releases in ((FIRST, limited), (limited, FIRST)):
        with pytest.raises(ValueError, match=r"releases\[1\]: .*their true counts"):
            check_releases(releases, draws_may_agree=False)


def test_equal_draws_of_other_tables_are_not_one_release() -> None:
    """Of other columns, of labels of other types, or of another number of records."""
    cells = tuple((one, two) for one in ("yes", "no") for two in ("yes", "no"))
    one = ob.Release((3, 1, 4, 2), cells, (1.0,) * 4, KNORM, guarantee(10), ("a", "b"))
    check_given_once({"one": one, "other": replace(one, axes=("b", "a"))})
    check_given_once({"one": one, "other": replace(one, guarantee=guarantee(11))})
    town, county = (replace(FIRST, columns=(column,)) for column in ("town", "county"))
    check_given_once({"town": town, "county": county})
    numbers, booleans = (
        tuple((a, b) for a in values for b in values) for values in ((0, 1), (False, True))
    )
    check_given_once(
        {"one": replace(one, categories=numbers), "other": replace(one, categories=booleans)}
    )
    for same in (
        one,
        replace(one, prior=(2.0,) * 4),
        replace(one, guarantee=guarantee(10, d_in=2)),
    ):
        with pytest.raises(ValueError, match=r"other: .*same release as one"):
            check_given_once({"one": one, "other": same})


def test_a_promise_of_nothing_keeps_its_number_and_merged_labels_their_parts() -> None:
    for size in (None, 7):
        assert (PrivacyGuarantee.none(size).size, PrivacyGuarantee.none(size).is_stated) == (
            size,
            False,
        )
    assert PrivacyGuarantee.none(7).relation == "change-one"
    labels = ["a", "b", "c", "d", "e"]
    merge = {"z": ["b"], "y": ["e", "a"], "x": ["d"], "w": ["c"]}
    assert merged_places(merge, labels).tolist() == [1, 0, 3, 2, 1]
    assert np.unique(merged_places(merge, labels)).size == 4


# --- merges of more than two labels


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        ({"z": ["b", "b"], "y": ["a", "c"]}, r"merge\['z'\]: 'b' is in 'z' already"),
        ({"z": ["b"], "y": ["a", "b", "c"]}, r"merge\['y'\]: 'b' is in 'z' already"),
        ({"z": ["b"], "y": ["a", "a", "c"]}, r"merge\['y'\]: 'a' is in 'y' already"),
        ({"z": ["b"], "y": ["a"]}, "leaves out 'c'"),
        ({"z": ["b"], "y": ["c"]}, "leaves out 'a'"),
    ],
)
def test_merges_that_do_not_have_every_label_once(merge: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merged_places(merge, ["a", "b", "c"])


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7])
def test_neighbours_hold_every_label_in_order(width: int) -> None:
    """The last group holds what is left, and is named by it."""
    labels = ["e", "d", "c", "b", "a"]
    merge = neighbours(labels, width)
    assert [label for part in merge.values() for label in part] == labels
    assert [len(part) for part in merge.values()][:-1] == [width] * (len(merge) - 1)
    assert 1 <= len(list(merge.values())[-1]) <= width
    names = [part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in merge.values()]
    assert list(merge) == names


# --- texts
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_in_either_order_of_bytes(encoding: str) -> None:
    text = ("\N{ZERO WIDTH NO-BREAK SPACE}" + TABLE.to_json()).encode(encoding)
    with pytest.raises(ValueError, match=r"not a result in JSON: .* in UTF-8"):
        ob.Release.from_json(text)


@pytest.mark.parametrize("cells", [{1: 3, 3: 1}, {2: 3}, {1: 6}])
def test_a_distance_is_read_with_all_of_its_norms(cells: dict[int, int]) -> None:
    """Of six records one cell has three, and no other more than one."""
    distance = Distance.among(6, cells)
    promise = replace(guarantee(None), d_in=distance)
    made = ob.Release((3, 2), ("a", "b"), (1.0, 1.0), ob.GaussianParameters(2.0), promise)
    read = ob.Release.from_json(made.to_json()).guarantee.d_in
    assert (read.records, read.squared, read.largest) == (6, distance.squared, distance.largest)
