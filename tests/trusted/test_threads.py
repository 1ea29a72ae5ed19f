"""Several threads that ask one Context."""

import threading
from concurrent.futures import ThreadPoolExecutor

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.measurements import make_user_measurement

import opendp_bayes as ob
from tests.helpers.contexts import checked_context, plain_context

THREADS = 8
DATA = pl.LazyFrame({"x": [True] * 60_000 + [False] * 40_000})


def context(**split):
    return plain_context(DATA, parts=None, **split)


def in_threads(work):
    ready = threading.Barrier(THREADS)

    def started(number):
        ready.wait()
        try:
            return work(number)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(started, range(THREADS)))


def release(query):
    return ob.posterior(query, "x", nulls=False).release()


def test_a_divided_budget_is_answered_in_every_thread():
    whole = context(split_evenly_over=THREADS)
    releases = in_threads(lambda _: release(whole.query()))
    assert [one.epsilon for one in releases] == [1 / THREADS] * THREADS
    assert whole.current_privacy_loss() == [1 / THREADS] * THREADS
    assert len({one.noisy_counts for one in releases}) > 1


def test_a_filter_never_answers_more_than_its_budget_nor_locks():
    """Each of eight asks for a quarter: four get it, and what is left can be spent."""
    whole = context()
    found = in_threads(lambda _: release(whole.query(epsilon=0.25)))
    refused = [one for one in found if isinstance(one, ValueError)]
    assert len(refused) == 4
    for error in refused:
        assert "exceeds what is left of the Context's budget" in str(error)
    assert whole.current_privacy_loss() == pytest.approx(1.0)
    whole = context()
    found = in_threads(lambda _: release(whole.query(epsilon=0.3)))
    assert sum(isinstance(one, ValueError) for one in found) == THREADS - 3
    assert release(whole.query(epsilon=0.05)).epsilon <= 0.05


@pytest.mark.parametrize("kind", ["compositor", "filter"])
def test_a_context_within_is_asked_in_turn_with_the_one_around_it(kind):
    whole = checked_context(DATA, parts=None)
    space, measure = whole.accountant.input_space, dp.max_divergence()
    within = whole(
        dp.c.make_adaptive_composition(*space, measure, 1, [0.5])
        if kind == "compositor"
        else dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, measure), 1, 0.5)
    )
    assert within.lock is whole.queryable.lock


def test_what_opendp_is_asked_meanwhile_gets_a_message():
    whole = context()
    inside, leave = threading.Event(), threading.Event()

    def slow(_):
        inside.set()
        leave.wait(600)
        return 0

    of = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    space = whole.accountant.input_space
    counts = dp.t.make_user_transformation(*space, *of, slow, lambda d_in: d_in)
    thread = threading.Thread(target=whole, args=(counts >> dp.m.then_laplace(10.0),))
    thread.start()
    assert inside.wait(600)
    try:
        with pytest.raises(dp.OpenDPException, match="one query at a time"):
            release(whole.query(epsilon=0.5))
    finally:
        leave.set()
        thread.join()
    assert release(whole.query(epsilon=0.5)).epsilon == 0.5
    assert whole.current_privacy_loss() == pytest.approx(0.6)


def test_a_context_of_ours_lets_every_query_wait_for_its_turn():
    """Also those of OpenDP's own, which in a Context of OpenDP's are refused meanwhile."""
    whole = checked_context(DATA, parts=None)
    inside, leave, answers = threading.Event(), threading.Event(), []

    def slow(_):
        inside.set()
        leave.wait(600)
        return 1

    def ask(function):
        space = *whole.accountant.input_space, dp.max_divergence()
        query = make_user_measurement(*space, function, lambda _: 0.25)
        return threading.Thread(target=lambda: answers.append(whole(query)))

    first, second = ask(slow), ask(lambda _: 2)
    first.start()
    assert inside.wait(600)
    second.start()
    second.join(0.3)
    is_waiting = second.is_alive()
    leave.set()
    first.join()
    second.join()
    assert is_waiting
    assert sorted(answers) == [1, 2]  # either thread may be the first to write its own
    assert whole.current_privacy_loss() == 0.5
