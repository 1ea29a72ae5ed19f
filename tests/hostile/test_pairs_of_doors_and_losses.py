"""Every door × measure × unit: the ledger has what the map says, and releases what was done."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.trusted import budget
from opendp_bayes.trusted.account import Loss
from tests.helpers.asked_of_contexts import (
    DISCOVERED,
    DISCOVERIES,
    DOORS,
    LISTED,
    LOSSES,
    NOT_OF_ENGINES,
    UNITS,
    Unit,
    opened,
    releases_of,
)
from tests.helpers.sweeps import pairs_of, some_of

KINDS = ("polars", "engine")


def can_be_asked(kind: str, door: str, unit: Unit) -> bool:
    if door in DISCOVERIES and not unit.discovers:
        return False
    return kind == "polars" or (unit.engines and door not in NOT_OF_ENGINES)


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Every door with every unit, and with every measure, which go round."""
    turn = 0
    for kind in KINDS:
        for door in DOORS:
            measures = [of for of in LOSSES if door in LISTED or "Approximate" in of]
            asked = [name for name, unit in UNITS.items() if can_be_asked(kind, door, unit)]
            for name in asked:
                turn += 1
                yield kind, door, measures[turn % len(measures)], name


CASES = list(cases())


def test_every_pair_is_there() -> None:
    """Of the measures that a ledger adds, and of all doors and units."""
    assert set(LOSSES) == set(MEASURES)
    for measure, loss in LOSSES.items():
        assert budget.name_of(dp.loss_of(**loss)[0]) == measure
    for door in DOORS:
        asked = [case for case in CASES if case[1] == door]
        wanted = {of for of in LOSSES if door in LISTED or "Approximate" in of}
        assert {measure for _, _, measure, _ in asked} == wanted, door
        units = {name for name, unit in UNITS.items() if door in LISTED or unit.discovers}
        assert {unit for *_, unit in asked} == units, door


def parts(loss: Any) -> tuple[float, float]:
    """A loss in a measure of OpenDP's as two numbers."""
    return (*loss, 0.0)[:2] if isinstance(loss, tuple) else (loss, 0.0)


def quarter(loss: dict[str, float]) -> dict[str, float]:
    return {name: part / 4 for name, part in loss.items()}


def query_of(kind: str, door: str, measure: str, unit: Unit, ledger: Any) -> Any:
    context = opened(kind, unit, LOSSES[measure], ledger)
    size = {"size": unit.size} if unit.size is not None else {}
    plan = unit.plan(context.query(**quarter(LOSSES[measure])))
    return DOORS[door](plan, **size), context


def made(path: Path, of: str) -> ob.Ledger:
    """A ledger that keeps ε or ρ."""
    total = {"epsilon": 1e3} if of == "epsilon" else {"rho": 1e3}
    return ob.Ledger(path, **total, delta=0.5)


def check_entries(book: ob.Ledger, stated: tuple[float, float], measure: str) -> None:
    """The ledger's entry has this loss, ε or ρ and δ, and adds it to its sums."""
    last = book.account.entries[-1]
    assert last.state == "spent"
    assert last.loss == Loss.of(MEASURES[measure], *stated), "as entered"
    value, delta = last.loss.within(book.total.kind) or (None, None)
    assert value is not None
    assert book.spent.value == pytest.approx(float(value))
    assert book.spent.delta == pytest.approx(float(delta))
    assert Fraction(book.spent.delta) >= Fraction(stated[1])


@pytest.mark.parametrize(("kind", "door", "measure", "name"), pairs_of(CASES))
def test_what_is_entered_and_stated_is_what_the_map_says(tmp_path, kind, door, measure, name):
    unit = UNITS[name]
    of_epsilon = MEASURES[measure] == "epsilon"
    book = made(tmp_path / "b.ledger", MEASURES[measure])
    query, context = query_of(kind, door, measure, unit, book)
    stated = parts(query.resolve().map(context.d_in))
    assert stated[0] > 0
    assert (stated[1] > 0) <= (measure == budget.WITH_DELTA or door in DISCOVERIES)
    if door in DISCOVERIES:
        assert stated[1] > 0
    shown = query.summarize()
    result = query.release()
    # what is entered, and what the Context says
    check_entries(book, stated, measure)
    assert parts(context.current_privacy_loss()) == stated
    # what is stated
    each = releases_of(result)
    whole = result.loss
    said = (whole.epsilon if of_epsilon else whole.rho, whole.delta)
    assert said == pytest.approx(stated, rel=1e-12, abs=0)
    for row, release in zip(shown.iter_rows(named=True), each, strict=True):
        guarantee = release.guarantee
        assert guarantee.measure == measure
        assert (guarantee.size, guarantee.truncated) == (unit.size, unit.truncated)
        assert guarantee.distance.records == row["d_in"] == unit.d_in
        assert guarantee.distance.largest == row["largest"]
        for number in ("epsilon", "rho", "delta"):
            assert row[number] == getattr(guarantee.loss, number)
        assert guarantee.relation == row.get("neighbours", "add/remove")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", LISTED)
def test_a_number_of_records_is_stated_where_it_is_public_and_nowhere_else(kind, door):
    for unit in UNITS.values():
        if can_be_asked(kind, door, unit):
            query = unit.plan(opened(kind, unit, LOSSES["MaxDivergence"], None).query(epsilon=1.0))
            wrong = {"size": 960} if unit.size is None else {}
            said = "size=960: .* is private here" if wrong else "size=None: .*; pass size="
            with pytest.raises(ValueError, match=said):
                DOORS[door](query, **wrong)


def shown(release: Any) -> dict[str, int]:
    """The counts of what occurs, which a discovery shows alone."""
    pairs = zip(release.categories, release.counts, strict=True)
    return {label: count for label, count in pairs if count > 0}


SURVEYS = "survey", "survey that discovers", "survey that also discovers"
OF_SURVEYS = [of for of in product(KINDS, SURVEYS, UNITS) if can_be_asked(*of[:2], UNITS[of[2]])]


@pytest.mark.parametrize(("kind", "door", "name"), some_of(OF_SURVEYS, 9))
def test_questions_of_the_same_rows_say_so_and_others_do_not(kind, door, name, monkeypatch):
    """The noise is less than any difference, so that equal counts are of the same rows."""
    monkeypatch.setitem(DISCOVERED, "mechanism", "laplace_threshold")  # the best is a list of 1/ε
    unit = UNITS[name]
    loss = {"epsilon": 600.0 if "discovers" in door else 4e4, "delta": 0.4}
    context = opened(kind, unit, loss, None)
    size = {"size": unit.size} if unit.size is not None else {}
    before: set[str] = set()
    for _ in range(2):
        query = DOORS[door](unit.plan(context.query(**quarter(loss))), **size)
        result = query.release()
        of_age = [
            of for of in result.releases if "age" in (getattr(of, "columns", ()) or (of.column,))
        ]
        kept = {of.guarantee.kept for of in of_age}
        counts = [shown(of) for of in of_age]
        if unit.kept or not unit.truncated:
            assert kept == {unit.kept}
            assert counts[0] == counts[-1]
            continue
        assert (len(kept) == 1 and "" not in kept) == (counts[0] == counts[-1])
        assert not kept & before - {""}, "another survey draws other rows"
        before = kept


def test_a_table_notices_a_delta_that_is_not_entered(monkeypatch, tmp_path):
    """Negative control."""
    whole = Loss.of

    def without(kind: Any, value: float, delta: float) -> Loss:
        return whole(kind, value, 0.0 if kind == "rho" else delta)

    monkeypatch.setattr("opendp_bayes.trusted.budget.Loss.of", without)
    with pytest.raises(AssertionError):
        test_what_is_entered_and_stated_is_what_the_map_says(
            tmp_path, "polars", "discovery", "Approximate(ZeroConcentratedDivergence)", "one record"
        )
