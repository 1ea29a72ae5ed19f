"""Releases from frames of engines are entered in a ledger, and refused by it."""

from pathlib import Path

import duckdb
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
import opendp_bayes_engines as engines

VOTE = {"column": "vote", "categories": ["a", "b"], "nulls": ob.DROP, "unknown": ob.DROP}


def test_every_release_is_entered(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE votes AS SELECT 'a' AS vote FROM range(30)")
    ledger = ob.Ledger(tmp_path / "b.ledger", epsilon=1.5)
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=9.0)
    table = connection.table("votes")
    context = engines.context(table, privacy_unit=unit, privacy_loss=loss, ledger=ledger)
    assert ob.posterior(context.query(epsilon=1.0), **VOTE).release().epsilon == 1.0
    assert ledger.remaining.epsilon == 0.5
    connection.execute("DROP TABLE votes")  # what is refused is not read
    with pytest.raises(ob.LedgerError, match=r"would exceed .* epsilon=0\.5\."):
        ob.posterior(context.query(epsilon=1.0), **VOTE).release()


def test_a_context_takes_a_ledger_alone() -> None:
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    table = duckdb.sql("SELECT 'a' AS vote")
    with pytest.raises(TypeError, match=r"ledger='b': must be a Ledger"):
        engines.context(table, privacy_unit=unit, privacy_loss=loss, ledger="b")
