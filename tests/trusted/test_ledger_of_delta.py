"""A ledger with a δ, and what its second call finds: the file as the first one left it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.account import Loss
from tests.helpers.contexts import checked_context

DATA = pl.DataFrame({"vote": [True] * 60 + [False] * 40})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "b.ledger"


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_a_total_is_another_where_its_delta_is(path: Path, kind: str) -> None:
    ob.Ledger(path, **{kind: 1.0}, delta=1e-6)
    assert ob.Ledger(path, **{kind: 1.0}, delta=1e-6).total.delta == 1e-6
    for delta in (None, 2e-6):
        with pytest.raises(ValueError, match=f"{kind}=1.0: the total of 'b' in .*δ = 1e-06"):
            ob.Ledger(path, **{kind: 1.0}, delta=delta)
    ledger = ob.Ledger(path, **{kind: 1.0}, delta=1e-6)
    ledger.set_total(**{kind: 2.0}, delta=1e-5)
    assert (ledger.total.value, ledger.total.delta) == (2.0, 1e-5)
    ledger.set_total(**{kind: 2.0})
    assert (ledger.total.value, ledger.total.delta) == (2.0, 0.0)
    for delta in (1.0, 1, 1.5, -1e-9):
        with pytest.raises(ValueError, match=r"delta=.*: .*at least 0 and below"):
            ledger.set_total(**{kind: 2.0}, delta=delta)
    with pytest.raises(TypeError, match="delta=True: must be a number"):
        ledger.set_total(**{kind: 2.0}, delta=True)


def test_the_delta_of_a_release_is_entered_and_limits_the_next(path: Path) -> None:
    ledger = ob.Ledger(path, epsilon=9.0, delta=1.5e-6, note="why")
    context = checked_context(DATA, loss={"epsilon": 9.0, "delta": 1e-5}, parts=None, ledger=ledger)
    asked = {"column": "vote", "nulls": False, "mechanism": "gaussian_parameters"}
    first = ob.posterior(context.query(epsilon=1.0, delta=1e-6), **asked).release()
    assert first.delta == pytest.approx(1e-6)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (first.epsilon, first.delta)
    with pytest.raises(ob.LedgerError, match="exceed what the ledger has"):
        ob.posterior(context.query(epsilon=1.0, delta=1e-6), **asked).release()
    second = ob.posterior(context.query(epsilon=1.0, delta=4e-7), **asked).release()
    assert ledger.spent.delta >= first.delta + second.delta
    assert [entry.note for entry in ledger.account.entries] == ["", "why", "why"]


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_each_part_of_what_is_left_is_less_by_what_was_spent_of_it(path: Path, kind: Any) -> None:
    """In the account, and after each entry of its sheet."""
    ledger = ob.Ledger(path, **{kind: 1.0}, delta=0.5)
    for spent in (1, 2):
        with ledger.entered(Loss.of(kind, 0.25, 0.125), "contributions: 1"):
            pass
        left = 1 - spent / 4, 0.5 - spent / 8
        lines = [of for _, of in ledger.account.lines()]
        for one in (ledger.remaining, lines[-1]):
            assert (one.kind, one.value, one.delta) == (kind, *left)
        assert (ledger.spent.value, ledger.spent.delta) == (spent / 4, spent / 8)


def test_the_only_data_set_of_a_file_is_meant_whatever_the_file_is_called(path: Path) -> None:
    ob.Ledger(path, dataset="census", epsilon=1.0)
    assert ob.Ledger(path, epsilon=1.0).dataset == "census"
    assert ob.Ledger(path).dataset == "census"
    assert len(ob.Ledger(path).account.entries) == 1
