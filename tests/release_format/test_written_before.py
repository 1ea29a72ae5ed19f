"""Documents that earlier versions of the package wrote, which are read as what they were."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease

WRITTEN = sorted(Path(__file__).with_name("written_before").joinpath("before_1.0").glob("*.json"))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in WRITTEN}
GROUPED = [name for name in TEXTS if name.startswith("groups")]
ALONE = [name for name in TEXTS if name not in GROUPED and name != "survey"]


def as_tuples(labels: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(label) if isinstance(label, list) else label for label in labels)


def test_there_are_both_kinds_in_two_formats() -> None:
    formats = {json.loads(text)["format"] for text in TEXTS.values()}
    assert len(formats) == 3
    assert (len(GROUPED), len(ALONE)) == (4, 5)


@pytest.mark.parametrize("name", ALONE)
def test_a_release_is_read_as_it_was(name: str) -> None:
    written = json.loads(TEXTS[name])
    read = ob.Release.from_json(TEXTS[name])
    assert type(read) is ob.Release
    assert (read.drawn, read.categories) == (
        tuple(written["drawn"]),
        as_tuples(written["categories"]),
    )
    assert read.epsilon == (written["loss"]["epsilon"] or float("inf"))
    assert ob.Release.from_json(read.to_json()) == read


@pytest.mark.parametrize("name", GROUPED)
def test_a_release_of_groups_is_read_as_it_was_and_written_as_a_release(name: str) -> None:
    written = json.loads(TEXTS[name])
    read = ob.Release.from_json(TEXTS[name].encode())
    assert type(read) is GroupedRelease
    assert read.groups == as_tuples(written["groups"])
    assert [one.drawn for one in read.values()] == list(map(tuple, written["drawn"]))
    assert (read.rest, read.grouped_by) == (written.get("rest"), ())
    assert read.sizes == (tuple(written["sizes"]) if "sizes" in written else None)
    anew = json.loads(read.to_json())
    assert anew["format"] == "opendp-bayes release"
    rest = [written["rest"]] if "rest" in written else []
    assert anew["drawn"] == [*chain(*written["drawn"]), *rest]
    assert ob.Release.from_json(read.to_json()) == read


def test_a_survey_of_both_is_read() -> None:
    read = ob.Survey.from_json(TEXTS["survey"])
    assert list(map(type, read.values())) == [ob.Release, GroupedRelease]
    assert read["by region"] == ob.Release.from_json(TEXTS["groups"])
    assert ob.Survey.from_json(read.to_json()) == read


MISTAKES = {
    "a row too few": ({"drawn": [[1, 2]]}, "must have 3 rows, one for each group"),
    "no groups": ({"groups": [], "drawn": []}, r"length >= 1 - at `\$\.drawn`"),
    "a draw too few": ({"drawn": [[1, 2], [1, 2, 3], [1]]}, "one for each group, of 2 integers"),
    "a row that is none": ({"drawn": [[1, 2], 3, [1, 2]]}, "is not a release in JSON: Expected"),
    "a rest": ({"rest": 3}, r"drawn=\[.*, 3\]: must be 6 integers"),
    "no rest": ({"size": 40}, r"drawn=\[.*\]: must be 7 integers"),
    "a group twice": ({"groups": ["a", "a", None]}, "must be all different"),
    "an unknown field": ({"extra": 1}, "unknown field `extra`"),
    "a later version": ({"version": 3}, "version=3: this package reads version 2"),
    "version 1": ({"version": 1}, "version=1: does not hold what the mechanism drew"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_was_refused_then_is_refused_now(name: str) -> None:
    change, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        ob.Release.from_json(json.dumps(json.loads(TEXTS["groups"]) | change))


def test_a_name_twice_is_refused() -> None:
    twice = TEXTS["groups"].replace('"d_in":1', '"d_in":1,"d_in":2')
    assert twice != TEXTS["groups"]
    with pytest.raises(ValueError, match="one of the two"):
        ob.Release.from_json(twice)
