"""A failure costs what the release would have, at every door; what fails unread is free."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.combinators import (
    make_adaptive_composition,
    make_fully_adaptive_composition,
    make_privacy_filter,
)
from opendp.context import Context
from opendp.measurements import make_user_measurement
from opendp.mod import Measurement

import opendp_bayes as ob
import opendp_bayes_engines as engines
from opendp_bayes.trusted import queryable_proxy
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace
from tests.helpers.sweeps import pairs_of

_COLUMNS = {"vote": ["a", "b"] * 60, "town": ["x", "y", "z"] * 40, "age": [*"1234"] * 30}
DATA = pl.DataFrame(_COLUMNS, {name: pl.Enum(sorted(set(of))) for name, of in _COLUMNS.items()})
VOTE: dict[str, Any] = {"column": "vote", "categories": ["a", "b"], "nulls": "a", "unknown": "b"}
TOWN: dict[str, Any] = {"column": "town", "categories": ["x", "y", "z"]}
TOWN |= {"nulls": "x", "unknown": "y"}
TABLE: dict[str, Any] = {
    name: {"vote": VOTE[name], "town": TOWN[name]} for name in ("categories", "nulls", "unknown")
}
AGES = ob.levels("age", ["1", "2", "3", "4"], nulls="1", unknown="4")
UNIT = dp.unit_of(contributions=1)
#: What a Context has, and what each of its queries asks for, in every measure.
LOSSES: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "epsilon": ({"epsilon": 4.0}, {"epsilon": 1.0}),
    "epsilon, delta": ({"epsilon": 4.0, "delta": 4e-6}, {"epsilon": 1.0, "delta": 1e-6}),
    "rho": ({"rho": 0.4}, {"rho": 0.1}),
    "rho, delta": ({"rho": 0.4, "delta": 4e-6}, {"rho": 0.1, "delta": 1e-6}),
}
Ask = Callable[[], Any]


#: From a query to what its release is asked by.
BY_TOWN: dict[str, Any] = {"column": "vote", "by": "town", **TABLE}
QUERIES: dict[str, Callable[[Any], Any]] = {
    "posterior": lambda query: ob.posterior(query, **VOTE),
    "gaussian": lambda query: ob.posterior(query, **VOTE, mechanism="gaussian_parameters"),
    "joint table": lambda query: ob.posterior(query, column=["vote", "town"], **TABLE),
    "groups": lambda query: ob.posterior(query, **BY_TOWN),
    "survey": lambda query: ob.survey(query, {"vote": VOTE, "town": TOWN}),
    "survey of groups": lambda query: ob.survey(query, {"a": BY_TOWN}),
}
LEVELS: dict[str, Callable[[Any], Any]] = {"levels": lambda query: ob.survey(query, AGES)}
DISCOVERIES: dict[str, Callable[[Any], Any]] = {
    "discovery": lambda query: ob.discover(query, "town", nulls=ob.DROP),
    "survey that discovers": lambda query: ob.survey(
        query, {"vote": VOTE, "town": ob.discover(query, "town", nulls=ob.DROP)}
    ),
}


class Opened:
    """A Context on a file, its ledger, and ways to let it fail."""

    def __init__(self, folder: Path, kind: str, loss: str, split: str) -> None:
        self.file, (whole, self.part) = folder / "data.parquet", LOSSES[loss]
        DATA.write_parquet(self.file)
        total = {name: 100 * limit for name, limit in whole.items()}
        self.ledger = ob.Ledger(folder / "b.ledger", **total)
        shares: Any = {"split_evenly_over": 4} if split == "shares" else {}
        arguments = {"privacy_unit": UNIT, "privacy_loss": dp.loss_of(**whole), **shares}
        if kind == "opendp":
            self.context: Any = Context.compositor(pl.scan_parquet(self.file), **arguments)
        elif kind == "polars":
            self.context = ob.context(pl.scan_parquet(self.file), ledger=self.ledger, **arguments)
        else:
            frame = duckdb.read_parquet(str(self.file))
            self.context = engines.context(frame, ledger=self.ledger, **arguments)
        self.has_ledger, self.kind = kind != "opendp", kind

    def query(self) -> Any:
        shares = self.context.d_mids is not None
        return self.context.query() if shares else self.context.query(**self.part)

    def lost(self) -> tuple[float, ...]:
        """What the Context says that it has spent; fails where its ledger says another sum."""
        spent = self.context.current_privacy_loss()
        several = spent if isinstance(spent, list) else [spent]
        tuples = [one if isinstance(one, tuple) else (one,) for one in several]
        sums = tuple(map(sum, zip(*tuples, strict=True))) or (0.0,)
        if self.has_ledger:
            entered = self.ledger.spent
            # A query may be debited a whole share, of which it needs less.
            assert entered.value <= sums[0] * (1 + 1e-12)
            assert entered.value >= sums[0] * 0.97
        return sums


@contextmanager
def reading_fails(opened: Opened) -> Iterator[None]:
    """The file was there when the Context was opened."""
    content = opened.file.read_bytes()
    opened.file.write_bytes(content[: len(content) // 2])
    yield
    opened.file.write_bytes(content)


@contextmanager
def file_is_gone(opened: Opened) -> Iterator[None]:
    opened.file.rename(opened.file.with_suffix(".away"))
    yield
    opened.file.with_suffix(".away").rename(opened.file)


@contextmanager
def counting_fails(opened: Opened) -> Iterator[None]:
    """Of each way to count, by what comes after the frame was read."""

    def fail(*_: Any) -> None:
        raise MemoryError("Ada")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cells, "counts", fail)
        patch.setattr(CountsSpace, "counts", fail)
        patch.setattr(PosteriorSpace, "counts", fail)
        patch.setattr("opendp_bayes.unlisted.trusted.keys.counted_in_parts", fail)
        patch.setattr("opendp_bayes.unlisted.trusted.discovery._shown", fail)
        yield


FAILURES = {"reading": reading_fails, "gone": file_is_gone, "counting": counting_fails}


def check_paid(opened: Opened, ask: Ask, fails: Any) -> None:
    """A failure costs what a release does, and says so; the next is answered."""
    before = opened.lost()
    with fails(opened), pytest.raises(ob.ReleaseError, match="its budget all the same") as one:
        ask()
    assert "Ada" not in str(one.value)
    assert one.value.__cause__ is None
    failed = opened.lost()
    assert failed[0] > before[0]
    ask()
    assert tuple(2 * part for part in failed) == pytest.approx(opened.lost(), rel=1e-9)
    assert opened.lost()[0] == pytest.approx(2 * next(iter(opened.part.values())), rel=0.03)


@pytest.mark.parametrize(
    ("kind", "split", "loss", "failure"),
    pairs_of(product(("polars", "engine", "opendp"), ("filter", "shares"), LOSSES, FAILURES)),
)
def test_a_failure_of_a_posterior_costs_what_it_would_have(tmp_path, kind, split, loss, failure):
    opened = Opened(tmp_path, kind, loss, split)
    name = "gaussian" if "rho" in loss else "posterior"
    check_paid(opened, lambda: QUERIES[name](opened.query()).release(), FAILURES[failure])


@pytest.mark.parametrize(
    ("door", "kind", "split", "failure"),
    pairs_of(
        (door, kind, split, failure)
        for door in (*QUERIES, *LEVELS, *DISCOVERIES)
        for kind, split, failure in product(("polars", "engine"), ("filter", "shares"), FAILURES)
        if door != "gaussian" and (kind == "polars" or door in QUERIES or door == "discovery")
    ),
)
def test_a_failure_behind_every_door_costs_what_it_would_have(tmp_path, door, kind, split, failure):
    make = {**QUERIES, **LEVELS, **DISCOVERIES}[door]
    loss = "epsilon, delta" if "discover" in door else "epsilon"
    opened = Opened(tmp_path, kind, loss, split)
    if split == "filter":
        check_paid(opened, lambda: make(opened.query()).release(), FAILURES[failure])
    else:  # as a chain by hand
        measurement = make(opened.query()).resolve()
        check_paid(opened, lambda: opened.context(measurement), FAILURES[failure])


# --- chains by hand
def measured(opened: Opened, function: Callable[[Any], Any], loss: Any = None) -> Measurement:
    """A measurement of the user's own, for the share of a query unless a loss is given."""
    if loss is None:
        part, shares = tuple(opened.part.values()), opened.context.d_mids
        loss = shares[0] if shares else part if len(part) > 1 else part[0]
    of = opened.context.accountant
    made: Any = make_user_measurement(*of.input_space, of.output_measure, function, lambda _: loss)
    return made


def boom(_: Any) -> None:
    raise RuntimeError("the number of Adas is 3")


@pytest.mark.parametrize("kind", ["polars", "engine"])
@pytest.mark.parametrize("split", ["filter", "shares"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_measurement_by_hand_that_fails_is_paid_for(tmp_path, kind, split, loss):
    opened = Opened(tmp_path, kind, loss, split)
    for number in (1, 2):
        with pytest.raises(ob.ReleaseError, match="its budget all the same"):
            opened.context.queryable(measured(opened, boom))
        wanted = [number * part for part in opened.part.values()]
        assert opened.lost() == pytest.approx(tuple(wanted))
    assert opened.context(measured(opened, lambda _: 7)) == 7
    assert opened.lost()[0] == pytest.approx(3 * wanted[0] / 2)


def test_a_query_of_opendp_s_own_that_fails_is_paid_for(tmp_path: Path) -> None:
    opened = Opened(tmp_path, "polars", "epsilon", "filter")
    counting = opened.query().select(dp.len(signed=True))
    chain = counting.resolve() >> (lambda frame: frame.collect())
    check_paid(opened, lambda: opened.context(chain), reading_fails)
    with file_is_gone(opened), pytest.raises(RuntimeError, match="was debited when it was"):
        counting.release().collect()
    assert opened.lost() == (3.0,)


def test_a_record_that_reads_like_a_message_of_ours_shows_no_other_record() -> None:
    frame = pl.LazyFrame({"x": ["RuntimeError: look", "Ada is 36"]})
    margins = [dp.polars.Margin(max_length=10)]
    context = ob.context(
        frame.with_columns(n=pl.col("x").cast(pl.Int64)),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=margins,
    )
    summed = context.query().select(pl.col("n").fill_null(0).dp.sum((0, 10)))
    with pytest.raises(ob.ReleaseError, match="The cause is withheld") as caught:
        context(summed.resolve() >> (lambda answer: answer.collect()))
    assert "Ada" not in str(caught.value)


def nested(opened: Opened, kind: str, loss: float) -> Any:
    """A compositor or a filter of OpenDP's within the Context, for two queries of this loss."""
    space, measure = opened.context.accountant.input_space, dp.max_divergence()
    if kind == "compositor":
        made: Any = make_adaptive_composition(*space, measure, 1, [loss, loss])
    else:
        made = make_privacy_filter(make_fully_adaptive_composition(*space, measure), 1, 2 * loss)
    return opened.context(made)


@pytest.mark.parametrize("kind", ["compositor", "filter"])
@pytest.mark.parametrize("split", ["filter", "shares"])
def test_a_failure_within_a_context_within_takes_its_share(tmp_path, kind, split):
    opened = Opened(tmp_path, "polars", "epsilon", split)
    within = nested(opened, kind, 0.5)
    assert opened.lost() == (1.0,)
    with pytest.raises(ob.ReleaseError, match="its budget all the same"):
        within(measured(opened, boom, 0.5))
    assert within(measured(opened, lambda _: 7, 0.5)) == 7
    for function in (boom, lambda _: 7):
        with pytest.raises(dp.OpenDPException, match=r"out of queries|exhausted"):
            within(measured(opened, function, 0.5))
    assert opened.lost() == (1.0,), "the whole was debited when it was handed out"


@pytest.mark.parametrize("loss", LOSSES)
def test_what_a_filter_has_no_room_for_tells_nothing_of_a_failure(tmp_path, loss):
    """A filter refuses after it has run: a query above its budget would tell for nothing."""
    messages = []
    whole = tuple(2 * part for part in LOSSES[loss][0].values())
    above = whole if len(whole) > 1 else whole[0]
    for function in (boom, lambda _: 7):
        folder = tmp_path / function.__name__
        folder.mkdir()
        opened = Opened(folder, "polars", loss, "filter")
        measurement = measured(opened, function, above)
        with pytest.raises((dp.OpenDPException, ob.LedgerError)) as caught:
            opened.context.queryable(measurement)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    plain = Opened(tmp_path, "opendp", loss, "filter")  # the negative control
    with pytest.raises(dp.OpenDPException, match="Adas is 3"):
        plain.context(measured(plain, boom, above))


# --- before a record is read
DEAR = ob.LaplaceParameters(1e-3)
OF_NUMBERS = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def of_a_map_that_raises(opened: Opened) -> Any:
    space = opened.context.accountant.input_space
    return opened.context(make_user_measurement(*space, dp.max_divergence(), len, boom))


BEFORE: dict[str, Callable[[Opened], Any]] = {
    "a column that is not there": lambda opened: ob.posterior(opened.query(), "none"),
    "categories": lambda opened: ob.posterior(opened.query(), "vote", categories=["a", "a"]),
    "a plan": lambda opened: ob.posterior(opened.query().unique(), **VOTE),
    "what is no measurement": lambda opened: opened.context("vote"),
    "too much": lambda opened: opened.context(measured(opened, lambda _: 7, 100.0)),
    "too dear": lambda opened: ob.posterior(opened.query(), **VOTE, mechanism=DEAR).release(),
    "of others": lambda opened: opened.context(dp.m.make_laplace(*OF_NUMBERS, 1.0)),
    "a map that raises": of_a_map_that_raises,
}


@pytest.mark.parametrize("split", ["filter", "shares"])
@pytest.mark.parametrize("door", BEFORE)
def test_what_fails_before_a_record_is_read_costs_nothing(tmp_path, door, split):
    opened = Opened(tmp_path, "polars", "epsilon", split)
    with file_is_gone(opened), pytest.raises((ValueError, TypeError, dp.OpenDPException)):
        BEFORE[door](opened)
    assert opened.ledger.spent.epsilon == 0.0
    if not (door == "too much" and split == "filter"):  # which then refuses everything
        assert opened.lost() == (0.0,)
        assert ob.posterior(opened.query(), **VOTE).release().epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["polars", "engine", "opendp"])
@pytest.mark.parametrize("split", ["filter", "shares"])
def test_failures_use_up_a_budget(tmp_path: Path, kind: str, split: str) -> None:
    """The fifth of four is refused unread, so that no sixth failure tells anything."""
    opened = Opened(tmp_path, kind, "epsilon", split)
    query = ob.posterior(opened.query(), **VOTE)
    for _ in range(4):
        with counting_fails(opened), pytest.raises(ob.ReleaseError):
            query.release()
    with (
        file_is_gone(opened),
        pytest.raises((ValueError, dp.OpenDPException), match=r"exceeds? what|out of queries"),
    ):
        query.release()
    assert opened.lost() == pytest.approx((4.0,))


def test_a_failure_takes_the_share_that_was_next(tmp_path: Path) -> None:
    DATA.write_parquet(tmp_path / "data.parquet")
    file, loss = pl.scan_parquet(tmp_path / "data.parquet"), dp.loss_of(epsilon=4.0)
    context = ob.context(file, privacy_unit=UNIT, privacy_loss=loss, split_by_weights=[1, 2, 5])
    for consumed, left in (([0.5], [1.0, 2.5]), ([0.5, 1.0], [2.5])):
        query = ob.posterior(context.query(), **VOTE)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Cells, "counts", lambda *_: 1 / 0)
            with pytest.raises(ob.ReleaseError):
                query.release()
        assert (context.d_mids_consumed, context.d_mids) == (consumed, left)
    assert ob.posterior(context.query(), **VOTE).release().epsilon == 2.5


def test_it_is_this_that_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: as OpenDP debits, a failure is free, and may be had again and again."""
    monkeypatch.setattr(queryable_proxy, "debited", lambda ask, query, d_in: lambda: ask(query))
    opened = Opened(tmp_path, "opendp", "epsilon", "filter")
    for _ in range(9):
        with counting_fails(opened), pytest.raises(dp.OpenDPException):
            ob.posterior(opened.query(), **VOTE).release()
    assert opened.lost() == (0.0,)
