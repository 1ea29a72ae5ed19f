"""Unlisted values before a hostile reader: no data fail, and nobody has more than is stated."""

import itertools
import math
import signal
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from opendp_bayes.unlisted.laws_for_budgets import loss_of_discovery
from opendp_bayes.unlisted.thresholds import Discovery, LaplaceThreshold, OptimalThreshold
from opendp_bayes.unlisted.trusted import discovery as module, keys as counting
from opendp_bayes.unlisted.trusted.keys import CountedKeys, Keys, counted_in_frames

APPROXIMATE = dp.approximate(dp.max_divergence())


def context_of(frame: pl.LazyFrame, **arguments: Any) -> Any:
    of = {"privacy_unit": dp.unit_of(contributions=1), "split_evenly_over": 1}
    of["privacy_loss"] = dp.loss_of(epsilon=1.0, delta=1e-8)
    return ob.context(frame, **of | arguments)


def discovered(query: Any, **arguments: Any) -> Any:
    return ob.discover(query, "key", **{"nulls": ob.DROP} | arguments)


def outcome(values: pl.Series, **arguments: Any) -> str:
    """What an analyst sees of a release: that it was refused, that it failed, or an answer."""
    query = context_of(pl.LazyFrame({"key": values})).query()
    try:
        question = discovered(query, **arguments)
    except (TypeError, ValueError):
        return "refused"
    try:
        question.release()
    except ob.ReleaseError:
        return "failed"
    return "answered"


# --- no data fail that others do not
@pytest.mark.parametrize(
    ("dtype", "value", "arguments"),
    [
        (pl.UInt32, 7, {"always": [-1]}),
        (pl.UInt64, 7, {"always": [-1]}),
        (pl.Int32, 7, {"always": [2**40]}),
        (pl.String, "a", {"always": ["\ud800"]}),
        (pl.String, "a", {"nulls": "\ud800"}),
        (pl.UInt64, 2**63 + 5, {"nulls": -1}),
    ],
)
def test_one_record_makes_no_release_fail(dtype, value, arguments):
    """What the column cannot hold is not compared: a failure would tell of a record."""
    seen = {outcome(pl.Series([value] * rows, dtype=dtype), **arguments) for rows in (0, 1)}
    assert seen in ({"refused"}, {"answered"})


@pytest.mark.parametrize("day", [2**31 - 1, -(2**31), 95_026_602])
def test_a_date_that_has_no_text_makes_no_release_fail(day: int) -> None:
    ordinary, far = (pl.Series([each], dtype=pl.Int32).cast(pl.Date) for each in (0, day))
    assert outcome(far) == outcome(ordinary)


# --- noise whose law is not stated
@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", [-5.0, -0.01, 0.0, math.nan, math.inf])
def test_noise_of_the_rest_without_a_scale_is_refused(kind: Any, scale: float) -> None:
    """With a negative one the loss of the rest was below nothing, and the rest almost exact."""
    with pytest.raises((TypeError, ValueError), match="scale"):
        Discovery(LaplaceThreshold(1.0, 20), kind(scale))


@pytest.fixture
def few_seconds() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise AssertionError("takes too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(8)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("few_seconds")
@pytest.mark.parametrize(
    "parameters", [(1e-17, 1e-8), (1e-300, 1e-20), (1.0, 1e-8, 1e-300), (1.0, 0.5, 1e-300)]
)
def test_a_law_of_too_many_values_is_refused_at_once(parameters: tuple[float, ...]) -> None:
    """The number of them was not a number, which is not above any limit."""
    try:
        law = OptimalThreshold(*parameters)
    except ValueError:
        return
    assert len(law.weights) < 10**6


def release_of(categories: tuple[Any, ...], law: Any, d_in: int = 1) -> DiscoveredRelease:
    loss = loss_of_discovery(Discovery(law), Distance.limited(d_in, 1), concentrated=False)
    guarantee = PrivacyGuarantee(None, d_in, loss, "Approximate(MaxDivergence)")
    drawn = (law.threshold + 20,) * len(categories)
    return DiscoveredRelease("key", categories, drawn, 0, Discovery(law), None, guarantee)


def test_labels_that_people_wrote_are_shown_without_commands_to_the_terminal() -> None:
    labels = ("\x1b[2Ja", "\u202eabc", "b\0")
    release = release_of(tuple(sorted(labels)), OptimalThreshold(1.0, 1e-8))
    for shown in (str(release), release._repr_html_()):
        marks = [of for of in shown if unicodedata.category(of) in ("Cc", "Cf") and of != "\n"]
        assert not marks


# --- the rest, by listing all outcomes
def outcomes_with_rest(monkeypatch, rows, listed, discovery):
    """For every outcome that is shown, the law of what is hidden together, without its noise."""
    first, masses = discovery.law.masses
    keys = Keys("key", "text", listed)
    frame = pl.LazyFrame({"key": rows}, schema={"key": pl.String})
    batches = [each.sort("key") for each in counted_in_frames(keys, ())(frame).batches()]
    asked: list[int] = []
    script: list[int] = []

    def take(law: Any, number: int) -> Any:
        asked.append(number)
        taken = [script.pop(0) for _ in range(number)]
        return np.array(taken, dtype=np.int64)

    monkeypatch.setattr(type(discovery.law), "draws", take)
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda law, number: np.zeros(number, np.int64))
    found: dict[Any, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    needed = len(set(rows)) + len(listed)
    for draws in itertools.product(range(masses.size), repeat=needed):
        asked.clear()
        script[:] = [first + at for at in draws]
        shown = module._shown(CountedKeys(lambda: iter(batches)), keys.space, discovery)
        assert sum(asked) == needed, "every value has noise of its own, hidden or not"
        found[shown[:2]][shown[2]] += math.prod(masses[at] for at in draws)
    return found


def divergence_with_rest(p: Any, q: Any, epsilon: float, scale: float) -> float:
    reach = math.ceil(40 * scale)
    r = np.arange(-reach, reach + 1)
    law = np.exp(-np.abs(r) / scale)
    law /= law.sum()

    def noised(hidden: dict[int, float]) -> Any:
        total = np.zeros(r.size + 20)
        for number, mass in hidden.items():
            total[number : number + r.size] += mass * law
        return total

    every = {**p, **q}
    pairs = ((noised(p.get(at, {})), noised(q.get(at, {}))) for at in every)
    return float(sum(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in pairs))


@pytest.mark.parametrize("listed", [(), ("x",)])
@pytest.mark.parametrize(
    ("more", "less"), [("a", ""), ("aaa", "aa"), ("x", ""), ("aab", "ab"), ("ax", "a")]
)
def test_all_outcomes_with_the_rest_keep_the_promise(monkeypatch, more, less, listed):
    discovery = Discovery(OptimalThreshold(2.0, 0.1, 1.0), DiscreteLaplace(1.0))
    loss = loss_of_discovery(discovery, 1, concentrated=False)
    assert loss.epsilon == 2.0
    both = [*more], [*less]
    p, q = (outcomes_with_rest(monkeypatch, rows, listed, discovery) for rows in both)
    for one, other in ((p, q), (q, p)):
        assert divergence_with_rest(one, other, loss.epsilon, 1.0) <= loss.delta + 1e-12


def test_a_law_that_falls_too_fast_for_the_rest_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the rest is free only where the decay leaves room."""
    discovery = Discovery(OptimalThreshold(2.0, 0.1), DiscreteLaplace(1.0))
    assert loss_of_discovery(discovery, 1, concentrated=False).epsilon > 2.0
    rows: list[list[str]] = [["a", "a", "a"], ["a", "a"], ["a"], []]
    laws = [outcomes_with_rest(monkeypatch, each, (), discovery) for each in rows]
    both = [two for pair in itertools.pairwise(laws) for two in (pair, pair[::-1])]
    worst = max(divergence_with_rest(*two, 2.0, 1.0) for two in both)
    assert worst > 0.11


# --- whose records are counted, and how often
@pytest.mark.parametrize("parts", [False, True])
def test_a_frame_that_draws_its_values_counts_every_record_once(monkeypatch, parts):
    """Read once for each part, a record that is another each time would be in several values."""
    monkeypatch.setattr(counting, "MOST_AT_ONCE", 10 if parts else 10**7)
    frame = pl.LazyFrame({"key": range(2000)}).with_columns(key=pl.col("key").shuffle()).head(40)
    for _ in range(5):
        counts = counted_in_frames(Keys("key", "integer"), ())(frame)
        assert sum(batch["number"].sum() for batch in counts.batches()) == 40


@pytest.mark.parametrize(
    ("metric", "records"), [(dp.symmetric_distance(), 1), (dp.change_one_distance(), 2)]
)
def test_a_changed_record_leaves_one_value_and_comes_to_another(metric: Any, records: int) -> None:
    domain = dp.lazyframe_domain([dp.series_domain("key", dp.atom_domain(T=str))])
    law = OptimalThreshold(1.0, 1e-8)
    counts = (domain, metric) >> ob.t.then_discovered_counts(column="key")
    chain = counts >> ob.m.then_discovery(APPROXIMATE, Discovery(law))
    for d_in in (1, 2, 3):
        distance = Distance.limited(records * d_in, d_in)
        loss = loss_of_discovery(Discovery(law), distance, concentrated=False)
        assert chain.map(d_in) == (loss.epsilon, loss.delta)


# --- losses
