"""Counts of all values of a column: what they mean, in parts and of people, and their door."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.extend.framework import Keys, counting_values
from opendp_bayes.trusted.kinds import ColumnKind
from opendp_bayes.unlisted.discovered_counts import make_discovered_counts
from opendp_bayes.unlisted.thresholds import Discovery, LaplaceThreshold
from opendp_bayes.unlisted.trusted import discovery, keys as module
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.kinds import kinds_in

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

TEXTS = ["a", "a ", "A", "é", "e\u0301", "", "null", "a\0b", "🙂", None, None, "a"]
WIDE = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2, None, 1]


def counted(frame: pl.DataFrame, column: str, nulls: Any) -> dict[Any, int]:
    count = make_discovered_counts(
        dp.domain_of(frame.lazy(), infer=True), dp.symmetric_distance(), column=column, nulls=nulls
    )
    found: dict[Any, int] = {}
    for batch in count(frame.lazy()).batches():
        for key, number in batch.rows():
            assert key not in found
            found[key] = number
    return found


def days(*numbers: int | None) -> pl.Series:
    return pl.Series(numbers, dtype=pl.Int32).cast(pl.Date)


@pytest.mark.parametrize("nulls", ["missing", "null", ob.DROP])
@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(sorted({*TEXTS} - {None}))])
def test_text_is_its_characters(nulls: Any, dtype: Any) -> None:
    expected = Counter(nulls if text is None else text for text in TEXTS)
    del expected[ob.DROP]
    assert counted(pl.DataFrame({"x": pl.Series(TEXTS, dtype=dtype)}), "x", nulls) == expected


def test_integers_and_dates_of_any_size_are_themselves() -> None:
    """Polars would make them as narrow as the label, and stop at a large one. Of some of them
    polars makes no text, and one record would have stopped every release.
    """
    for nulls in (-1, 1, 2**63 - 1):
        frame = pl.DataFrame({"x": pl.Series(WIDE, dtype=pl.UInt64)})
        assert counted(frame, "x", nulls) == Counter(nulls if x is None else x for x in WIDE)
    frame = pl.DataFrame({"x": pl.Series([1, 2, None], dtype=pl.Int32)})
    assert counted(frame, "x", 2**40) == {1: 1, 2: 1, 2**40: 1}
    frame = pl.DataFrame({"x": days(0, -719162, 2932896, 2932897, 2**31 - 1, -(2**31), None, 0)})
    numbers = {f"{end} days": 1 for end in (2**31 - 1, -(2**31))} | {"2932897 days": 2}
    dates = {"1970-01-01": 2, "0001-01-01": 1, "9999-12-31": 1}
    assert counted(frame, "x", "2932897 days") == dates | numbers
    frame = pl.DataFrame({"x": [date(2026, 5, 1), None]})
    assert counted(frame, "x", "2026-05-01") == {"2026-05-01": 2}


@pytest.mark.parametrize("dtype", [pl.String, pl.Int64, pl.Date])
def test_parts_count_as_a_whole_does(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    number = pl.Series("key", [at * at % 997 for at in range(5000)])
    rows = pl.DataFrame({"key": number.cast(pl.Int32).cast(dtype)}).lazy()
    (whole,) = module.counted_in_parts(rows)
    monkeypatch.setattr(module, "MOST_AT_ONCE", 100)
    parts = list(module.counted_in_parts(rows))
    assert len(parts) == 64
    assert sum(part.height > 0 for part in parts) > 50
    assert pl.concat(parts).sort("key").equals(whole.sort("key"))  # so no value is in two


class NoNoise:
    threshold = 5

    def draws(self, number: int) -> Any:
        return np.zeros(number, np.int64)


#: By type, values of a column, values that are listed, and labels of nulls.
UNLISTED: dict[Any, tuple[list[Any], list[Any], list[Any]]] = {
    pl.String: (["a", "a ", "", "null", "b"], ["a", "z"], ["null", "none", "a"]),
    pl.Categorical: (["b", "a", "c"], ["c", "d"], ["a", "none"]),
    pl.Enum(["b", "a", "c"]): (["b", "a", "c"], ["a"], ["c", "none"]),
    pl.Boolean: ([True, False], [True], [False, True]),
    pl.Int32: ([1, -1, 2**31 - 1, 0], [0, 300], [-1, 0, 2**40]),
    pl.UInt64: ([1, 0, 2**63, 2**64 - 1], [0, 1, -1], [0, -1]),
    pl.Date: ([date(2026, 5, 1), date(1, 1, 1)], ["2026-05-01"], ["none", "0001-01-01"]),
}


@pytest.mark.parametrize("dtype", UNLISTED, ids=str)
def test_what_is_shown_of_any_column_is_what_occurs(dtype: Any, monkeypatch: Any) -> None:
    """Records or people, of the first rows of each, in parts and slices of any number, with values
    that are listed, a label of nulls among them or not, and a rest.
    """
    values, listed, labels = UNLISTED[dtype]
    draws = random.Random(1)
    for people, rest, computed, nulls in product([0, 1], [0, 1], [0, 1], [ob.DROP, *labels]):
        few = draws.choice([1, 3, 10**6])
        monkeypatch.setattr(module, "MOST_AT_ONCE", few)
        monkeypatch.setattr(module, "_PARTS", min(few, 5))
        monkeypatch.setattr(discovery, "_AT_A_TIME", few)
        rows = [(draws.randrange(9), draws.choice([*values, None])) for _ in range(40)]
        frame = pl.DataFrame(rows, {"person": pl.Int64, "x": dtype}, orient="row").lazy()
        of: Any = {"contributions": 1} | ({"identifier": "person"} if people + computed else {})
        query = plain_context(frame, of, {"epsilon": 1.0, "delta": 1e-6}).query()
        if of.get("identifier"):
            query = query.truncate_per_group(3, keep="first")
            rows = [row for at, row in enumerate(rows)
                    if sum(row[0] == before for before, _ in rows[:at]) < 3]  # fmt: skip
        if not people and computed:
            query = query.select("x")
        always = draws.sample(listed, draws.randint(0, len(listed)))
        asked = ob.discover(query, "x", always=always, nulls=nulls)._bound
        assert asked.space.people == bool(people)

        keys = [(person, nulls if of is None else str(of) if dtype == pl.Date else of)
                for person, of in rows if of is not None or nulls is not ob.DROP]  # fmt: skip
        counts = Counter(key for _, key in ({*keys} if people else keys))
        law: Any = SimpleNamespace(law=NoNoise(), rest=NoNoise() if rest else None)
        shown, noisy, others = discovery._shown(asked.chain(frame), asked.space, law)
        own = [*always, *([] if nulls is ob.DROP or nulls in always else [nulls])]
        many = sorted(key for key in counts if counts[key] >= NoNoise.threshold and key not in own)
        assert (sorted(shown[: len(own)]), list(shown[len(own) :])) == (sorted(own), many)
        assert list(noisy) == [counts[key] for key in shown]
        assert others == (sum(counts.values()) - sum(noisy) if rest else None)


@pytest.mark.parametrize("keep", ["sample", "first", "last"])
def test_parts_see_one_choice_of_the_rows_of_each_person(keep, monkeypatch):
    """Of everybody as many values as were kept, though each part is read by itself."""
    monkeypatch.setattr(module, "MOST_AT_ONCE", 10)
    frame = pl.DataFrame({"person": [at % 200 for at in range(8000)], "x": range(8000)}).lazy()
    context = plain_context(
        frame, {"contributions": 1, "identifier": "person"}, {"epsilon": 1.0, "delta": 1e-8}
    )
    query = context.query().truncate_per_group(3, keep=keep)
    asked = ob.discover(query, "x", nulls=ob.DROP)
    counts = asked._bound.chain
    assert (counts.output_domain.descriptor.people, counts.map(1)) == (
        True,
        ob.Distance(3, squared=3, largest=1),
    )
    found = pl.concat(counts(frame).batches())
    assert found["number"].to_list() == [1] * 600
    assert found["key"].n_unique() == 600


def of_persons(**unit: int) -> Any:
    frame, loss = pl.LazyFrame({"person": [1, 2], "x": ["a", "b"]}), {"epsilon": 1.0, "delta": 1e-8}
    return plain_context(frame, {**unit, "identifier": "person"}, loss).query()


@pytest.mark.parametrize("unit", ["contributions", "changes"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("nulls", ["a", "none", ob.DROP])
def test_people_that_come_and_go_are_those_of_the_unit(unit: str, number: int, nulls: Any) -> None:
    """Each count moves by as many people as there are, two where one is exchanged."""
    query = of_persons(**{unit: number}).truncate_per_group(3)
    asked = ob.discover(query, "x", nulls=nulls)
    people = number * (2 if unit == "changes" else 1)
    assert asked._bound.distance == ob.Distance.limited(3 * people, people)


@pytest.mark.parametrize(("nulls", "largest"), [(ob.DROP, 1), ("a", 2), ("none", 2)])
def test_nulls_under_a_label_are_another_value_of_a_bound(nulls: Any, largest: int) -> None:
    bound = dp.polars.Bound(by=["x"], per_group=1, num_groups=3)
    context = checked_context(
        pl.LazyFrame({"x": ["a", "b"]}), {"contributions": [bound]}, {"epsilon": 1.0, "delta": 1e-8}
    )
    asked = ob.discover(context.query(), "x", nulls=nulls)
    assert asked._bound.distance == ob.Distance.limited(3, largest)


@pytest.mark.parametrize(
    ("step", "people"),
    [
        (lambda query: query, True),
        (lambda query: query.with_columns(y=pl.col("person") % 2), True),
        (lambda query: query.select("person", "x"), True),
        (lambda query: query.select("x"), False),
    ],
)
def test_people_are_those_of_the_column_that_the_unit_names(step: Any, people: bool) -> None:
    """Without it records are counted."""
    query: Any = of_persons(contributions=1)
    asked = ob.discover(step(query.truncate_per_group(3)), "x", nulls=ob.DROP)._bound
    assert asked.space.people is people
    assert asked.distance == ob.Distance.limited(3, 1 if people else 3)


def test_a_unit_that_is_computed_of_a_column_is_refused() -> None:
    """polars calls it after the column, which tells more people apart: ten are one unit."""
    frame = pl.LazyFrame({"person": [1, 2, 11], "x": ["a", "a", "b"]})
    unit = {"contributions": 1, "identifier": pl.col("person") // 10}
    query = plain_context(frame, unit, {"epsilon": 1.0, "delta": 1e-8}).query()
    with pytest.raises(ValueError, match="an identifier in the frame before"):
        ob.discover(query.truncate_per_group(3), "x", nulls=ob.DROP)


def test_a_person_is_counted_once_and_nothing_is_copied() -> None:
    frame = pl.DataFrame(
        {"person": [1, 1, 1, 2, None, None], "x": ["a", "a", None, None, "a", "a"]}
    )
    context = plain_context(
        frame.lazy(), {"contributions": 1, "identifier": "person"}, {"epsilon": 1.0, "delta": 1e-8}
    )
    query = context.query().truncate_per_group(5)
    for nulls, expected in (("a", {"a": 3}), ("none", {"a": 2, "none": 2}), (ob.DROP, {"a": 2})):
        counts = ob.discover(query, "x", nulls=nulls)._bound.chain
        assert dict(pl.concat(counts(frame.lazy()).batches()).rows()) == expected
    counts = module.CountedKeys(lambda: iter([pl.DataFrame({"key": ["a secret"], "number": [1]})]))
    with pytest.raises(TypeError, match="are not copied"):
        counts.__reduce__()
    assert "secret" not in repr(counts)


# --- The door for other data
def through_the_door(batches, kind="text", *, nulls=None, epsilon=60.0):
    """What is drawn of batches that an adapter hands over."""

    def hand_over(data: Any, keys: Keys) -> Iterator[pl.DataFrame]:
        yield from batches

    domain = dp.vector_domain(dp.atom_domain(T=int))
    space = (domain, dp.symmetric_distance())
    known = {"x": ColumnKind(kind, "Date" if kind == "other" else "", nulls is not None)}
    counts = counting_values(*space, "x", known, hand_over, "test", nulls=nulls)
    law = Discovery(LaplaceThreshold(1 / epsilon, 5))
    measure = dp.approximate(dp.max_divergence())
    return (counts >> discovery.make_discovery(*counts.output_space, measure, law))([])


def batch(*rows: tuple[Any, int], dtype: Any = pl.String) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"key": dtype, "number": pl.Int64}, orient="row")


def test_batches_are_one_set_of_counts() -> None:
    release = through_the_door([batch(("b", 9), ("z", 1)), batch(), batch(("a", 7))])
    assert (release.categories, release.noisy_counts) == (("a", "b"), (7, 9))
    some = batch((date(2026, 5, 1), 9), (None, 8), dtype=pl.Date)
    release = through_the_door([some], "other", nulls="none")
    assert (release.categories, release.noisy_counts) == (("none", "2026-05-01"), (8, 9))
    release = through_the_door([batch(("a", 3), (None, 4)), batch(("a", 5))], nulls="a")
    assert (release.categories, release.noisy_counts) == (("a",), (12,))


@pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt32, pl.Int64, pl.UInt64, pl.Int128])
def test_the_ends_of_every_type_of_an_adapter_are_values(dtype: Any) -> None:
    ends = pl.select(least=dtype.min(), most=dtype.max()).row(0)
    found = through_the_door([batch(*((end, 9) for end in ends), dtype=dtype)], "integer")
    assert (found.categories, found.noisy_counts) == (ends, (9, 9))


@pytest.mark.parametrize("batches", [[batch(("a", 9), ("a", 9))], [batch(("a", 9))] * 2])
def test_a_value_that_would_be_shown_twice_is_not_shown(batches: list[pl.DataFrame]) -> None:
    """Its noise would have been drawn twice; of a hidden one nothing is said."""
    with pytest.raises(OpenDPException, match="The cause is withheld"):
        through_the_door(batches)
    hidden = [batch(("a", 1), ("a", 1)), batch(("b", 9))]
    assert through_the_door(hidden).categories == ("b",)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("integer", pl.Float64), ("boolean", pl.Int8), ("text", pl.Binary)]
)
def test_keys_of_another_kind_are_refused(kind: Any, dtype: Any) -> None:
    with pytest.raises(OpenDPException, match="The cause is withheld"):
        through_the_door([pl.DataFrame(schema={"key": dtype, "number": pl.Int64})], kind)


def test_what_a_batch_holds_ends_with_a_failure() -> None:
    ended = []

    def hand_over(data: Any, keys: Keys) -> Iterator[pl.DataFrame]:
        try:
            yield batch((1, 1), dtype=pl.Int64)
        finally:
            ended.append(True)

    frame = pl.DataFrame({"x": ["a"]}).lazy()
    space = dp.domain_of(frame, infer=True), dp.symmetric_distance()
    counts = counting_values(*space, "x", kinds_in(frame), hand_over, "test", nulls=ob.DROP)
    with pytest.raises(TypeError, match="of another kind") as caught:
        list(counts(frame).batches())
    assert caught.value is not None  # its frames are alive
    assert ended == [True]
