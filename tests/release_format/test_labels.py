"""One rule of equality for labels, by type and value, wherever they are compared or looked up."""

import copy
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import combinations, product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from matplotlib import pyplot

import opendp_bayes as ob
from opendp_bayes.release_format.labels import (
    ByLabel,
    are_same,
    distinct,
    identity,
    in_order,
    look_alike,
    place_of,
    places_of,
    spare,
    twins,
)
from opendp_bayes.release_format.merging import merged_places
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.contexts import plain_context
from tests.helpers.grouped import with_groups
from tests.helpers.releases import guarantee


class Answer(str, Enum):
    YES = "yes"


class Whole(IntEnum):
    ONE = 1


#: Everything that Python could take for another of these.
DIFFERENT = [
    *(1, True, 1.0, Decimal(1), "1", "yes", None, date(2020, 1, 1), datetime(2020, 1, 1)),
    *(("yes", 1), ("yes", True), ("yes",), (("yes", 1), 2), (("yes", True), 2)),
]
NUMBERS = [(True, np.bool_(True)), (1, np.int64(1)), ("yes", np.str_("yes"))]
NUMBERS += [("yes", Answer.YES), (1, Whole.ONE)]
CELLS = ((1, "yes"), (1, "no"), (True, "yes"), (True, "no"))
TABLE = ob.Release(
    (40, 10, 3, 7), CELLS, (1.0,) * 4, ob.KNormParameters(0.01), guarantee(60), ("region", "vote")
)
OF_GROUPS: Any = ((1, 2), ((30, 1), (2, 20)), ("yes", "no"), (1.0, 1.0))
GROUPED = GroupedRelease(*OF_GROUPS, ob.KNormParameters(2.0), guarantee(60), rest=7)


# --- the rule
@pytest.mark.parametrize(("one", "other"), list(combinations(DIFFERENT, 2)))
def test_labels_of_different_types_differ(one, other):
    assert not are_same(one, other)
    assert distinct([one, other, one]) == [one, other]
    assert [type(label) for label in distinct([one, other, one])] == [type(one), type(other)]
    assert (place_of(other, [one]), place_of(other, [one, other])) == (None, 1)
    assert places_of([one, other]) == {identity(one): 0, identity(other): 1}
    both = ByLabel([(one, "first"), (other, "second")], ("label", "labels"))
    assert (both[one], both[other], len(both)) == ("first", "second", 2)


@pytest.mark.parametrize(("value", "of_numpy"), NUMBERS)
def test_a_scalar_of_numpy_is_the_value_that_it_holds(value, of_numpy):
    assert are_same(value, of_numpy)
    assert are_same((value, 2), (of_numpy, 2))


def test_a_mapping_by_label_is_in_their_order_and_says_which_there_are():
    assert in_order({"b": 2, "a": 1}, ["a", "b"]) == [1, 2]
    for given in ({"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, Answer.YES: 2}):
        assert in_order(given, ["a", "b"]) is None
    assert in_order({True: 1}, [1]) is None
    known = ByLabel([(1, "one"), ("a", "A")], ("word", "words"))
    assert list(known) == [1, "a"]
    assert repr(known) == "{1: 'one', 'a': 'A'}"
    assert True not in known
    for label in (True, 1.0, [1]):
        with pytest.raises(KeyError, match=r"not a word; .* 1, 'a'"):
            known[label]
    known = ["Clinton", "Café", 1, ("North", "yes")]
    spelled = {"clinton": "Clinton", " Clinton ": "Clinton", "CAFE\u0301": "Café", "1": 1}
    for label, meant in (spelled | {("north ", "YES"): ("North", "yes")}).items():
        assert look_alike(label, known) == meant
    for label in ("Clinton", "Clintons", 1, True, "", ("yes", "north")):
        assert look_alike(label, known) is None


FORMS = ("Caf\u00e9", "Cafe\u0301", " Caf\u00e9", "Cafe\u0301 ")


@pytest.mark.parametrize("pair", list(combinations(FORMS, 2)))
def test_labels_that_look_the_same_are_twins_and_no_others(pair):
    assert twins(["Cafe", pair[0], "caf\u00e9", pair[1], "Cafe"]) == pair
    assert twins(["Cafe", pair[0], "caf\u00e9", pair[0]]) is None


# --- where labels are counted
def counts_of(frame, **arguments):
    count = ob.t.make_categorical_counts(
        dp.domain_of(frame, infer=True), dp.symmetric_distance(), **arguments
    )
    return dict(
        zip(map(identity, count.output_domain.descriptor.categories), count(frame), strict=True)
    )


def test_spare_names_and_cells_of_another_type_are_told_apart():
    """It counted `(True, True)`, the cell for all others, as `(1, True)`."""
    taken = ["Other", "(other)", "((OTHER)) "]
    for number in range(4):
        assert spare("other", taken[:number]) == "(" * number + "other" + ")" * number
    frame = pl.LazyFrame({"a": [0, 0, 1, 1, 1], "b": [True, False, True, True, False]})
    of = {"column": ["a", "b"], "categories": {"a": [0, 1]}, "nulls": {"a": 0, "b": True}}
    unknown = {"a": True, "b": True}
    found = counts_of(frame, unknown=unknown, cells=[(1, True), (0, True)], **of)
    assert found == {identity((1, True)): 2, identity((0, True)): 1, identity((True, True)): 2}
    frame = pl.LazyFrame({"a": [1, 2, None, None], "b": [True, False, True, True]})
    of = {"column": ["a", "b"], "categories": {"a": [1, 2]}, "unknown": {"a": 2}}
    found = counts_of(frame, nulls={"a": True, "b": True}, **of)
    wanted = [1, 0, 0, 1, 2, 0]
    cells = product([1, 2, True], [True, False])
    assert found == dict(zip(map(identity, cells), wanted, strict=True))


def query(frame, **unit):
    return plain_context(frame, unit).query()


FRAME = pl.LazyFrame({"a": [0, 1], "b": [0, 1], "vote": ["yes", "no"]})
VOTE = {"categories": ["yes", "no"], "nulls": "no", "unknown": "no"}


def test_keys_priors_and_values_are_of_the_types_that_were_stated():
    """`(True, 0)` was the group of `(1, 0)`, under the name `(True, 0)`."""
    keys = with_groups(VOTE, {"a": [1, True], "b": [1, 0]})
    with pytest.raises(TypeError, match=r"True does not fit .*Int64"):
        ob.posterior(query(FRAME, contributions=1), "vote", by=["a", "b"], **keys)
    integers = {"categories": [0, 1], "nulls": 0, "unknown": 0}
    with pytest.raises(ValueError, match="entry for each of 0, 1"):
        ob.posterior(query(FRAME, contributions=1), "a", **integers, prior={0: 1.0, True: 2.0})
    asked = {"column": "vote", **VOTE}
    with pytest.raises(TypeError, match="be a str, not Answer"):
        ob.survey(query(FRAME, contributions=1), {Answer.YES: asked})
    ob.survey(query(FRAME, contributions=1), {"yes": asked}, share={Answer.YES: 1})
    marginal = TABLE.posterior.marginal("region")
    assert [type(label) for label in marginal.categories] == [int, bool]
    assert marginal.mean() == pytest.approx([52 / 64, 12 / 64], abs=0.01)
    of_true = TABLE.posterior.conditional("vote", region=True)
    assert of_true.mean() == pytest.approx([4 / 12, 8 / 12], abs=0.01)
    with pytest.raises(ValueError, match=r"region=1\.0: is not a value"):
        TABLE.posterior.conditional("vote", region=1.0)
    axes = TABLE.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "True"]
    pyplot.close(axes.figure)


# --- where results are looked up


@pytest.mark.usefixtures("short_chains")
def test_groups_of_a_table_of_different_types_stay_apart():
    pooled = TABLE.pooled("region", ess=20)
    assert pooled[1].mean()[0] > 0.6 > pooled[True].mean()[0]
    with pytest.raises(KeyError, match=r"not a group; .* 1, True"):
        pooled[1.0]


@pytest.mark.parametrize("key", [True, 1.0, "1", [1]])
def test_a_group_is_found_by_its_own_label_only(key):
    with pytest.raises(KeyError, match=r"not a group; .* 1, 2"):
        GROUPED[key]
    assert GROUPED[np.int64(1)] == GROUPED[1]


def test_documents_and_sizes_of_groups_of_different_types():
    assert GROUPED.with_sizes({2: 20, 1: 31}).sizes == (31, 20)
    with pytest.raises(ValueError, match="for each group, 1, 2"):
        GROUPED.with_sizes({True: 31, 2: 20})
    made = replace(GROUPED, groups=(1, True))
    read = ob.Release.from_json(made.to_json())
    assert [type(group) for group in read] == [int, bool]
    assert (read[1].noisy_counts, read[True].noisy_counts) == ((30, 1), (2, 20))
    assert dict(zip(map(identity, read), read.values(), strict=True)).keys() == {
        identity(1),
        identity(True),
    }


def test_categories_functions_and_releases_are_by_their_own_label():
    release = ob.Release((3, 5), (0, 1), (1.0, 1.0), ob.LaplaceParameters(1.0), guarantee(8))
    posterior = release.posterior
    assert posterior[np.int64(1)].mean() == posterior[1].mean()
    for label in (True, 1.0, "1", Answer.YES, "yes"):
        with pytest.raises(KeyError, match=r"not a category; .* 0, 1"):
            posterior[label]
        with pytest.raises(KeyError, match="is not a category"):
            posterior.counts[label]
        with pytest.raises(ValueError, match="is not a category"):
            posterior.given([0, label])
    release = ob.Release(
        (30, 5, 2), (0, 1, True), (1.0,) * 3, ob.KNormParameters(0.01), guarantee(37)
    )
    posterior = release.posterior
    mean = posterior.quantity(lambda p: p[1]).mean()
    assert mean == pytest.approx(6 / 40, abs=0.01)
    of_true = posterior.quantity(lambda p: p[True]).mean()
    assert of_true == pytest.approx(3 / 40, abs=0.01)
    cumulative = posterior.cumulative()
    assert cumulative[0].mean() == pytest.approx(31 / 40, abs=0.01)
    with pytest.raises(KeyError, match=r"not a quantity; .* 0, 1"):
        cumulative[True]
    numbers = ob.Release((3, 5), (0, 1), (1.0, 1.0), ob.LaplaceParameters(1.0), guarantee(8))
    booleans = replace(numbers, categories=(False, True))
    with pytest.raises(ValueError, match=r"release all .*same categories"):
        ob.combine([numbers, booleans])
    with pytest.raises(ValueError, match=r"compare .*the same categories"):
        numbers.posterior.compare(booleans.posterior)


ONE, OTHER = ((0, 1), (False, True))
NUMBERED = ob.Release((40, 20), ONE, (1.0, 1.0), ob.KNormParameters(0.01), guarantee(60))
#: Releases that differ by the types of labels alone.
NUMBERED_2, GROUPED_2 = replace(NUMBERED, categories=OTHER), replace(GROUPED, groups=(True, 2))
GROUPED_1, GROUPED_3 = (replace(GROUPED, categories=of) for of in (ONE, OTHER))
BY_TYPE = {
    "categories": (NUMBERED, NUMBERED_2),
    "one category": (NUMBERED, replace(NUMBERED, categories=(0, True))),
    "cells": (TABLE, replace(TABLE, categories=CELLS[2:] + CELLS[:2])),
    "groups": (GROUPED, GROUPED_2),
    "categories of groups": (GROUPED_1, GROUPED_3),
    **{
        name: tuple(replace(NUMBERED, **{name: (of[0],)}) for of in (ONE, OTHER))
        for name in ("nulls", "unknown")
    },
    "a group": (GROUPED_1[1], GROUPED_3[1]),
    "the table of a group": (GROUPED[2], GROUPED_2[2]),
    "a survey": tuple(ob.Survey(("a",), (of,)) for of in (NUMBERED, NUMBERED_2)),
}


@pytest.mark.parametrize("name", BY_TYPE)
def test_releases_of_other_labels_are_not_equal(name):
    one, other = BY_TYPE[name]
    assert one != other
    assert len({one, other}) == 2
    for release in (one, other):
        copied = copy.deepcopy(release)
        assert copied == release
        assert hash(copied) == hash(release)


def test_releases_are_equal_by_every_field_and_by_the_types_of_labels() -> None:
    same = replace(NUMBERED, categories=(np.int64(0), np.int64(1)))
    assert (same, hash(same)) == (NUMBERED, hash(NUMBERED))
    changes = {"noisy_counts": (41, 19)}, {"categories": (1, 0)}, {"prior": (1.0, 2.0)}
    others = {"mechanism": ob.KNormParameters(0.02)}, {"guarantee": guarantee(61)}
    for changed in (*changes, *others, {"group_size": 60}):
        assert replace(NUMBERED, **changed) != NUMBERED
    assert replace(GROUPED, rest=8) != GROUPED
    assert GroupedRelease != NUMBERED
    assert merged_places({"yes": [True], "one": [1, "1"]}, [1, True, "1"]).tolist() == [1, 0, 1]
