"""Nobody comes by the data of a Context, a second draw, or around its ledger by public names."""

import copy
import gc
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.context import Context, Query
from opendp.extras.polars import OnceFrame
from opendp.mod import Measurement

import opendp_bayes as ob
import opendp_bayes_engines as engines
from opendp_bayes.trusted.queryable_proxy import handed_out
from tests.helpers.sweeps import slow

DATA = pl.DataFrame({"vote": [True] * 60 + [False] * 40})
VOTE = {"column": "vote", "categories": [True, False], "nulls": False}
UNIT = dp.unit_of(contributions=1)
NINE = dp.loss_of(epsilon=9.0)
SPLIT = {"filter": {}, "shares": {"split_evenly_over": 9}}


@pytest.fixture
def ledger(tmp_path: Path) -> ob.Ledger:
    return ob.Ledger(tmp_path / "b.ledger", epsilon=100.0)


def opened(ledger: ob.Ledger | None = None, frame: Any = DATA, **split: Any) -> Any:
    return ob.context(frame, privacy_unit=UNIT, privacy_loss=NINE, ledger=ledger, **split)


def over_an_engine(ledger: ob.Ledger | None = None, **split: Any) -> Any:
    frame = duckdb.from_arrow(DATA.to_arrow())
    return engines.context(frame, privacy_unit=UNIT, privacy_loss=NINE, ledger=ledger, **split)


OPEN = {"polars": opened, "engine": over_an_engine}


def counting(of: Context, epsilon: float = 0.01) -> Any:
    """OpenDP's own query for the number of rows."""
    query: Any = of.query() if of.d_mids else of.query(epsilon=epsilon)
    return query.select(dp.len(signed=True))


def measuring(of: Context) -> Measurement:
    """A measurement of this package, for a loss of 1."""
    query = of.query() if of.d_mids else of.query(epsilon=1.0)
    return ob.posterior(query, **VOTE).resolve()


# --- the data
def within_reach(value: Any) -> Iterator[Any]:
    """Everything that attributes lead to, by whatever name, and the items of collections."""
    seen: dict[int, Any] = {}
    rest = [value]
    while rest:
        one = rest.pop()
        if id(one) in seen or isinstance(one, (type, str, bytes, int, float, ob.Ledger)):
            continue
        seen[id(one)] = one
        yield one
        rest += vars(one).values() if hasattr(one, "__dict__") else []
        if isinstance(one, dict):
            rest += one.values()
        if isinstance(one, (list, tuple)):
            rest += one


def is_data(value: Any) -> bool:
    """True for a frame, and for what a Context over an engine holds for one."""
    name = type(value).__module__.split(".")[0]
    return (name == "polars" and isinstance(value, (pl.LazyFrame, pl.DataFrame))) or hasattr(
        value, "combinations"
    )


def leaks(value: Any) -> list[Any]:
    """The data within reach, their file, and OpenDP's own queryables."""
    raw = dp.OdometerQueryable, dp.Queryable, OnceFrame, ob.on_disk

    def is_handed(one):
        pointer = type(one).__name__ in ("AnyObjectPtr", "LP_AnyObject")
        return is_data(one) or type(one) in raw or pointer

    return [one for one in within_reach(value) if is_handed(one)]


@pytest.mark.parametrize("split", SPLIT.values(), ids=SPLIT)
@pytest.mark.parametrize("of", OPEN.values(), ids=OPEN)
def test_no_attribute_leads_to_the_data(of, split, ledger):
    context = of(ledger, **split)
    assert leaks(context) == []
    answer = context(measuring(context))
    assert leaks(answer) == leaks(context) == []
    assert answer.counts[0] > 0


def test_a_context_and_its_answers_lead_to_nothing_of_opendp(ledger):
    """Negative control."""
    plain = Context.compositor(DATA.lazy(), privacy_unit=UNIT, privacy_loss=NINE)
    assert any(map(is_data, leaks(plain)))
    assert plain.queryable.__opendp_dict__["__kwargs__"]["arg"].collect().height == 100
    assert len(leaks(counting(plain).release())) > 0
    context = opened(ledger)
    answers = [
        counting(context).release(),
        counting(context).release().collect(),
        context(counting(context).resolve() >> (lambda frame: frame.collect())),
        nested(context),
        counting(nested(context)).release(),
    ]
    for answer in answers:
        assert not hasattr(answer, "__opendp_dict__")
        assert [one for one in leaks(answer) if not isinstance(one, pl.DataFrame)] == []


def test_the_data_are_there_as_long_as_anybody_asks_and_answers_pass():
    """What was dropped from sight is not dropped: neither the frame nor its temporary file."""
    frames = [counting(opened()).release(), counting(nested(opened())).release()]
    over = over_an_engine()
    gc.collect()
    assert [abs(frame.collect().item() - 100) < 10_000 for frame in frames] == [True, True]
    assert over(measuring(over)).epsilon == 1.0

    class Closed:
        __slots__ = ("value",)

    for value in (Closed(), 1, "a", None, (1, 2), {"a": 1}, DATA):
        answer = handed_out(value, None, None)
        assert answer is value or answer == value


# --- the ledger
def directly(context: Any, measurement: Measurement) -> Any:
    return context.queryable(measurement)


def by_opendp(context: Any, measurement: Measurement) -> Any:
    return Context.__call__(context, measurement)


def by_invoking(context: Any, measurement: Measurement) -> Any:
    ask = getattr(context.queryable, "invoke", context.queryable)
    return ask(measurement)


def by_another_context(context: Any, measurement: Measurement) -> Any:
    return Context(context.accountant, context.queryable, context.d_in, [1.0])(measurement)


def by_a_bare_query(context: Any, measurement: Measurement) -> Any:
    accountant = context.accountant
    return Query(
        measurement, accountant.output_measure, context.d_in, 1.0, context=context
    ).release()


def without_its_own_ledger(context: Any, measurement: Measurement) -> Any:
    vars(context)["ledger"] = None
    return context(measurement)


def with_another_distance(context: Any, measurement: Measurement) -> Any:
    vars(context)["d_in"] = 0
    return context(measurement)


WAYS = (
    *(directly, by_opendp, by_invoking, by_another_context, by_a_bare_query),
    *(without_its_own_ledger, with_another_distance),
)


HOW = [("polars", "filter"), ("polars", "shares"), ("engine", "shares")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("of", "split"),
    [
        *(pytest.param(OPEN[of], SPLIT[split], id=f"{of}-{split}") for of, split in HOW),
        *slow([(OPEN["engine"], SPLIT["filter"])]),
    ],
)
def test_every_way_to_a_release_is_entered(of, split, way, ledger):
    context = of(ledger, **split)
    measurement = measuring(context)
    assert ledger.spent.epsilon == 0.0
    assert way(context, measurement).epsilon == pytest.approx(1.0)
    assert ledger.spent.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_refused_where_the_ledger_has_no_room(way, tmp_path):
    context = opened(ob.Ledger(tmp_path / "b.ledger", epsilon=0.5))
    with pytest.raises(ob.LedgerError, match="would exceed"):
        way(context, measuring(context))
    assert context.current_privacy_loss() == 0.0


@pytest.mark.parametrize(
    "name", ["ledger", "d_in", "d_mids", "d_out", "queryable", "accountant", "x"]
)
@pytest.mark.parametrize("of", OPEN.values(), ids=OPEN)
def test_nothing_of_a_context_is_replaced(of, name, ledger):
    context = of(ledger)
    message = f"{name}: is what the (Checked|Engine)Context was made with, and stays"
    with pytest.raises(AttributeError, match=message):
        setattr(context, name, None)
    with pytest.raises(AttributeError, match=message):
        delattr(context, name)
    assert context.ledger is ledger


@pytest.mark.parametrize("name", ["path", "dataset", "note"])
def test_nothing_of_a_ledger_is_replaced(name, ledger, tmp_path):
    """Its entries would go elsewhere."""
    before = getattr(ledger, name)
    with pytest.raises(AttributeError, match=f"{name}: is what the Ledger was made with"):
        setattr(ledger, name, tmp_path / "other")
    with pytest.raises(AttributeError, match=f"{name}: is what the Ledger was made with"):
        delattr(ledger, name)
    assert getattr(ledger, name) == before


def test_bounds_that_somebody_changes_change_no_debit(ledger):
    bounds = [dp.polars.Bound(by=[], per_group=4)]
    unit = dp.unit_of(contributions=bounds)
    context = ob.context(DATA, privacy_unit=unit, privacy_loss=NINE, ledger=ledger)
    measurement = measuring(context)
    bounds[0].per_group = 1
    assert context.d_in[0].per_group == 1
    context(measurement)
    assert ledger.spent.epsilon == pytest.approx(1.0)
    assert ledger.account.unit == "contributions: (by= per_group=4)"


# --- one draw for one debit
def test_a_frame_is_drawn_once(ledger):
    answer = counting(opened(ledger)).release()
    assert isinstance(answer, OnceFrame)
    for lazy in (answer.lazy, lambda: OnceFrame.lazy(answer)):
        with pytest.raises((ValueError, AttributeError)):
            lazy()
    with pytest.raises(ValueError, match=r"draw anew .* Use collect\(\)"):
        answer.lazy()
    assert answer.collect().shape == (1, 1)
    with pytest.raises(ValueError, match="was collected already"):
        answer.collect()
    assert ledger.spent.epsilon == 0.01


def nested(context: Any) -> Context:
    """A Context within, for a loss of 1."""
    query = object.__getattribute__(context.query(epsilon=1.0), "_query")
    inner: Context = query.compositor(split_evenly_over=2).release()
    return inner


def two(context: Any) -> Measurement:
    measurement = counting(context).resolve()
    return dp.c.make_composition([measurement, measurement])


def filtered(context: Any) -> Measurement:
    space = context.accountant.input_space
    whole = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    return dp.c.make_privacy_filter(whole, 1, 1.0)


def test_a_frame_of_a_context_within_is_drawn_once(ledger):
    context = opened(ledger)
    frames = [
        counting(nested(context)).release(),
        context(filtered(context))(counting(context).resolve()),
    ]
    for frame in frames:
        with pytest.raises(ValueError, match="draw anew"):
            frame.lazy()
        assert frame.collect().shape == (1, 1)
    with pytest.raises(ValueError, match="draw anew"):
        context(counting(context).resolve() >> (lambda frame: frame)).lazy()


FREED: dict[str, Callable[[Any], Measurement]] = {
    "composition": two,
    "of compositions": lambda context: dp.c.make_composition([two(context)] * 2),
    "of queryables": lambda context: dp.c.make_composition([filtered(context)] * 2),
    "in a mapping": lambda context: counting(context).resolve() >> (lambda frame: {"a": (frame,)}),
}


@pytest.mark.parametrize("of", FREED.values(), ids=FREED)
def test_what_opendp_has_freed_is_not_handed_out(of, ledger):
    """Collecting it reads memory that is somebody else's by then, or ends the interpreter."""
    context = opened(ledger)
    with pytest.raises(ValueError, match=r"has one within, .*OpenDP has freed"):
        context(of(context))
    assert ledger.spent.epsilon == pytest.approx(context.current_privacy_loss())
    assert counting(context).release().collect().shape == (1, 1)


def test_a_thousand_draws_for_one_debit():
    """Negative control: what OpenDP's own Context gives."""
    plain = Context.compositor(DATA.lazy(), privacy_unit=UNIT, privacy_loss=NINE)
    lazy = counting(plain).release().lazy()
    assert len({lazy.collect().item() for _ in range(20)}) > 5
    assert plain.current_privacy_loss() == 0.01


@pytest.mark.parametrize("split", SPLIT.values(), ids=SPLIT)
def test_a_lazyframe_is_no_answer(split, ledger):
    context = opened(ledger, **split)
    lazily = counting(context).resolve() >> (lambda frame: [frame.lazy()])
    with pytest.raises(ValueError, match=r"answer is a LazyFrame, .* not handed"):
        context(lazily)
    loss = context.current_privacy_loss()
    assert ledger.spent.epsilon == pytest.approx(sum(loss) if isinstance(loss, list) else loss)
    if context.d_mids is not None:
        assert (len(context.d_mids), len(context.d_mids_consumed)) == (8, 1)
    assert counting(context).release().collect().shape == (1, 1), "and the next is as planned"


def test_a_failure_of_collect_shows_no_value(tmp_path, ledger):
    """OpenDP's own message quotes it."""
    table = tmp_path / "votes.csv"
    table.write_text("age\n41\n42\nSecret\n")
    frame = pl.scan_csv(table, infer_schema_length=2)

    def answer(of: Any) -> Any:
        return of.query(epsilon=1.0).select(pl.col("age").dp.count(signed=True)).release()

    released = answer(opened(ledger, frame))
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"collecting its answer, .*debited.* failed"
        ) as caught:
            released.collect()
        assert "Secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__cause__ is None is caught.value.__context__
    assert ledger.spent.epsilon == 1.0
    plain = Context.compositor(frame, privacy_unit=UNIT, privacy_loss=NINE)
    with pytest.raises(dp.OpenDPException, match="Secret"):  # the negative control
        answer(plain).collect()


# --- one account
@pytest.mark.parametrize("of", OPEN.values(), ids=OPEN)
def test_a_context_and_its_copy_have_one_budget(of, ledger):
    context = of(ledger)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(ValueError, match="ctypes objects containing pointers"):
            copied(context)
    copy.copy(context)(measuring(context))
    assert context.current_privacy_loss() == pytest.approx(1.0) == ledger.spent.epsilon


def in_a_child(ask: Any, measurement: Measurement) -> int:
    """How a forked process ends that asks: 0 where it is refused for what it is."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ask(measurement)
        except ValueError as error:
            code = 0 if "was opened by another process" in str(error) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.parametrize("of", OPEN.values(), ids=OPEN)
def test_a_forked_process_spends_nothing_of_its_own(of):
    context = of()
    measurement = measuring(context)
    assert in_a_child(context, measurement) == 0
    assert context(measurement).epsilon == 1.0


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.parametrize("within", [nested, lambda context: context(filtered(context))])
def test_a_forked_process_spends_nothing_of_what_is_within_a_context(within):
    context = opened()
    measurement = counting(context).resolve()
    ask = within(context)
    assert in_a_child(ask, measurement) == 0
    assert ask(measurement).collect().shape == (1, 1)


@pytest.mark.parametrize("query", ["odometer", "a text", None, 1.0, {"vote": 1}])
def test_what_is_no_measurement_is_refused(query):
    """OpenDP ends the interpreter at an odometer."""
    context = opened()
    asked: Any = query
    if query == "odometer":
        space = context.accountant.input_space
        asked = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    with pytest.raises(TypeError, match="a Context answers a Measurement"):
        context(asked)
    assert context(measuring(context)).epsilon == 1.0


def test_shares_that_somebody_changed_buy_no_more(ledger):
    context = opened(ledger, split_evenly_over=9)
    context.d_mids[0] = 9.0
    with pytest.raises(dp.OpenDPException, match="insufficient budget"):
        counting(context).release()
    context.d_mids[:] = [1.0] * 10
    for _ in range(9):
        counting(context).release()
    with pytest.raises(dp.OpenDPException, match="out of queries"):
        counting(context).release()
    assert ledger.spent.epsilon == pytest.approx(9.0)


def test_an_entry_that_fails_comes_before_the_data_and_costs_nothing(ledger, monkeypatch):
    context = opened(ledger, split_by_weights=[1, 8])
    query = counting(context)

    def full(*_: object) -> None:
        raise ob.LedgerError("cannot be written")

    with monkeypatch.context() as patched:
        patched.setattr(ob.Ledger, "_enter", full)
        with pytest.raises(ob.LedgerError, match="cannot be written"):
            query.release()
    assert ledger.spent.epsilon == 0
    assert ob.posterior(context.query(), **VOTE).release().epsilon == pytest.approx(1.0)
    assert ledger.spent.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("way", [directly, by_opendp])
def test_between_check_and_debit_there_is_no_other(way, ledger):
    """Eight threads ask for 2 of 9 each, two around the Context; too late is a new round."""
    rounds = (in_eight_threads(way, ledger) for _ in range(20))
    assert next(filter(None, rounds), None), "in 20 rounds one that asks around was too late"


def in_eight_threads(way, ledger) -> bool:
    """Whether the round counts: nobody who asks around the Context came too late."""
    before = ledger.spent.epsilon
    context = opened(ledger)
    measurement = ob.posterior(context.query(epsilon=2.0), **VOTE).resolve()
    ready, made, late, after = threading.Barrier(8), [], [], []

    def ask(number: int) -> None:
        ready.wait()
        if number % 2 and number < 4:
            try:
                made.append(way(context, measurement))
            except dp.OpenDPException:
                late.append(number)
            return
        query = ob.posterior(context.query(epsilon=2.0), **VOTE)
        try:
            made.append(query.release())
        except ValueError as error:
            assert "exceeds what is left" in str(error)  # noqa: PT017 - of a thread
        except dp.OpenDPException:
            after.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent.epsilon - before == pytest.approx(2.0 * len(made))
    if late:
        return False
    assert not after
    assert 2 <= len(made) <= 4
    assert context.current_privacy_loss() == pytest.approx(2.0 * len(made))
    return True
