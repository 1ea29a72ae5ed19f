"""Every door × what its frame must be: one sentence, paid failures, no seed decides rows."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.boundary import ReleaseError
from tests.helpers.asked_of_contexts import DOORS, LOSSES, ROWS, keep, releases_of
from tests.helpers.contexts import checked_context

PERSON = {"contributions": 1, "identifier": "person"}
MEASURE = "Approximate(MaxDivergence)"


def without_order(file: Path) -> pl.LazyFrame:
    return pl.scan_parquet(file).unique(maintain_order=False)


#: The frame of a file, what becomes of the file before it is read, and what is said.
GUARDS: dict[str, tuple[Callable[[Path], pl.LazyFrame], Callable[[Path], Any], str]] = {
    "the file is there": (pl.scan_parquet, Path.unlink, "not there any more"),
    "the rows have an order": (without_order, lambda file: None, "no fixed order"),
}


def asked(door: str, frame: Any, how: str) -> Any:
    context = checked_context(frame, PERSON, LOSSES[MEASURE], None)
    return context, DOORS[door](keep(1, how)(context.query(**LOSSES[MEASURE])))


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_says_what_the_frame_lacks(door: str, guard: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    ROWS.write_parquet(file)
    frame, spoilt, said = GUARDS[guard]
    context, query = asked(door, frame(file), "first")
    spoilt(file)
    with pytest.raises(ReleaseError, match=f"{said}.*uses its budget"):
        query.release()
    assert context.current_privacy_loss()[0] > 0


def stale(query: Any) -> Any:
    return query.truncate_per_group(1, by=["town"]).with_columns(town=pl.col("age"))


#: Plans that no door lets through, and what is said of each.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no such column": (lambda q: keep(1)(q.filter(pl.col("who") == "x")), "cannot be carried out"),
    "other rows": (
        lambda q: keep(1)(q.filter(pl.col("age").is_unique())),
        "is not among the steps",
    ),
    "two rows for a half": (keep(1.5), "1.5 is not one whole number"),
    "all rows of a person": (lambda q: q, "must limit the rows of each"),
    "groups computed anew": (stale, "is computed anew"),
}


@pytest.mark.parametrize("door", DOORS)
def test_what_a_door_refuses_costs_nothing(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context, query = asked(door, ROWS.lazy(), "sample")
    for plan, said in REFUSED.values():
        with pytest.raises(ValueError, match=said):
            DOORS[door](plan(context.query(**LOSSES[MEASURE]))).release()
    with pytest.raises(ValueError, match="must belong to a Context"):
        query.release(ROWS.lazy())
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ValueError, match="by another process"):
            query.release()
    assert not any(context.current_privacy_loss())
    query.release()
    with pytest.raises(ValueError, match="exceeds what is left"):
        query.release()


AGE: dict[str, Any] = {"column": "age", "nulls": ob.DROP}
LISTED: dict[str, Any] = {**AGE, "categories": list("12345678"), "unknown": ob.DROP}
#: With noise that is next to nothing the counts tell which rows were kept.
CLEAR = {"epsilon": 30.0, "delta": 1e-6}
ASKED: dict[str, Callable[[Any], Any]] = {
    "posterior": lambda query: ob.posterior(query, **LISTED),
    "survey": lambda query: ob.survey(query, {"one": LISTED, "two": LISTED}),
    "discovery": lambda query: ob.discover(query, **AGE),
}


@pytest.mark.parametrize("door", ASKED)
def test_a_seed_of_the_session_keeps_no_rows(door: str) -> None:
    found = []
    for _ in range(4):
        context = checked_context(ROWS.lazy(), PERSON, CLEAR, None)
        query = ASKED[door](context.query(**CLEAR).truncate_per_group(1))
        pl.set_random_seed(1)
        each = [release.noisy_counts for release in releases_of(query.release())]
        assert len(set(each)) == 1, "questions of one survey are of the same rows"
        found += each[:1]
    assert len(set(found)) > 1
