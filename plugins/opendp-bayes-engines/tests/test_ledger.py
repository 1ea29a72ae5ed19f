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
    context = engines.context(
        connection.table("votes"),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=9.0),
        ledger=ledger,
    )
    assert ob.posterior(context.query(epsilon=1.0), **VOTE).release().epsilon == 1.0
    assert ledger.remaining.epsilon == 0.5
    connection.execute("DROP TABLE votes")  # what is refused is not read
    with pytest.raises(ob.LedgerError, match=r"would exceed .* epsilon=0\.5\."):
        ob.posterior(context.query(epsilon=1.0), **VOTE).release()


def test_a_context_takes_a_ledger_alone() -> None:
    with pytest.raises(TypeError, match=r"ledger='b': must be a Ledger"):
        engines.context(
            duckdb.sql("SELECT 'a' AS vote"),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            ledger="b",
        )
