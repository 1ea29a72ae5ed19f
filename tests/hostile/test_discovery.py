"""Unlisted values before a hostile reader: no data fail, and nobody has more than is stated."""

import itertools
import math
import signal
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.trusted.plan_validation import check_plan
from opendp_bayes.trusted.truncation import Truncation
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from opendp_bayes.unlisted.laws_for_budgets import loss_of_discovery
from opendp_bayes.unlisted.threshold_losses import gaussian_delta
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)
from opendp_bayes.unlisted.trusted import discovery as module, keys as counting
from opendp_bayes.unlisted.trusted.keys import CountedKeys, Keys, counted_in_frames

APPROXIMATE = dp.approximate(dp.max_divergence())
IDENTIFIER: Any = pl.col("id")


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
    batches = [each.sort("key") for each in counted_in_frames(keys, Truncation())(frame).batches()]
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


def test_a_listed_value_is_no_part_of_the_rest() -> None:
    """Its count is shown with noise already; in the rest it would be told twice."""
    frame = pl.LazyFrame({"key": ["x"] * 10_000 + ["a"] * 2})
    release = discovered(context_of(frame).query(), always=["x"], rest=0.2).release()
    assert abs(release.noisy_rest) < 1000


def test_values_of_equal_counts_have_noise_of_their_own() -> None:
    rows = [f"{key}" for key in range(300) for _ in range(60)]
    release = discovered(context_of(pl.LazyFrame({"key": rows})).query()).release()
    assert len(set(release.noisy_counts)) > 3
    listed = [f"{key}" for key in range(300)]
    frame = pl.LazyFrame({"key": rows})
    release = discovered(context_of(frame).query(), always=listed).release()
    assert len(set(release.noisy_counts)) > 3


# --- whose records are counted, and how often
@pytest.mark.parametrize("parts", [False, True])
def test_a_frame_that_draws_its_values_counts_every_record_once(monkeypatch, parts):
    """Read once for each part, a record that is another each time would be in several values."""
    monkeypatch.setattr(counting, "MOST_AT_ONCE", 10 if parts else 10**7)
    frame = pl.LazyFrame({"key": range(2000)}).with_columns(key=pl.col("key").shuffle()).head(40)
    for _ in range(5):
        counts = counted_in_frames(Keys("key", "integer"), Truncation())(frame)
        assert sum(batch["number"].sum() for batch in counts.batches()) == 40


def test_parts_count_what_is_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.LazyFrame({"key": [f"{key}" for key in range(100) for _ in range(key % 7 + 1)]})
    whole = dict(next(counted_in_frames(Keys("key", "text"), Truncation())(frame).batches()).rows())
    monkeypatch.setattr(counting, "MOST_AT_ONCE", 10)
    parts = list(counted_in_frames(Keys("key", "text"), Truncation())(frame).batches())
    rows = [row for batch in parts for row in batch.rows()]
    assert len(parts) > 1
    assert len(rows) == 100
    assert dict(rows) == whole


def test_an_identifier_that_a_group_is_called_by_is_not_kept() -> None:
    source = pl.LazyFrame({"id": [1], "x": [1], "key": [1]})
    kept = source.filter(pl.col("x") > 0).with_columns(y=pl.col("id"))
    assert check_plan(kept, source).computed == {"y"}
    for plan in (
        source.with_columns(id=pl.col("x")).select("id", "key"),
        source.select(pl.col("x").alias("id"), "key"),
    ):
        assert "id" in check_plan(plan, source).computed


def test_people_move_a_value_by_no_more_than_their_number() -> None:
    frame = pl.LazyFrame({"id": [1, 2], "key": ["a", "b"]})
    seen = []
    units: list[Any] = [{"contributions": 1}, {"contributions": 2}, {"changes": 1}]
    for unit in units:
        context = context_of(frame, privacy_unit=dp.unit_of(identifier=IDENTIFIER, **unit))
        asked = discovered(context.query().truncate_per_group(3))._bound
        seen.append(asked.distance)
    assert seen == [Distance(3, 3, 1), Distance(6, 12, 2), Distance(6, 12, 2)]


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


def test_no_seed_of_the_session_decides_whose_rows_are_kept(monkeypatch):
    """Each of 200 people has 20 values and keeps one: which ones these are differs each time."""
    rows = [(person, f"{value}") for person in range(200) for value in range(20)]
    frame = pl.LazyFrame(rows, schema=["id", "key"], orient="row")
    unit = dp.unit_of(contributions=1, identifier=IDENTIFIER)
    inner: Any = module._shown
    seen: list[Any] = []

    def spying(keys: Any, *others: Any) -> Any:
        batches = [batch.sort("key") for batch in keys.batches()]
        seen.append(tuple(row for batch in batches for row in batch.rows()))
        return inner(CountedKeys(lambda: iter(batches)), *others)

    monkeypatch.setattr(module, "_shown", spying)
    for _ in range(3):
        pl.set_random_seed(1)
        context = context_of(frame, privacy_unit=unit)
        discovered(context.query().truncate_per_group(1)).release()
    assert len(set(seen)) == 3


# --- losses
@pytest.mark.parametrize("law", [OptimalThreshold(0.5, 1e-3), LaplaceThreshold(2.0, 12)])
def test_a_value_that_is_new_with_several_records_is_within_delta(law: Any) -> None:
    """Of records in any values, all may be in one, which is shown far more often than as many."""
    for records in (1, 2, 3, 4):
        loss = loss_of_discovery(Discovery(law), records, concentrated=False)
        people = loss_of_discovery(Discovery(law), Distance.limited(records, 1), concentrated=False)
        assert float(law.shown(records)) <= loss.delta * (1 + 1e-12)
        assert 1 - (1 - float(law.shown(1))) ** records <= people.delta * (1 + 1e-9)
    assert float(law.shown(4)) > people.delta, "as many people's values are another relation"


def test_gaussian_losses_of_records_count_the_likeliest_new_values() -> None:
    law = GaussianThreshold(2.0, 9)
    for records in (1, 2, 3, 4):
        loss = loss_of_discovery(Discovery(law), records, concentrated=True)
        assert float(law.shown(records)) <= loss.delta * (1 + 1e-9)
        assert 1 - (1 - float(law.shown(1))) ** records <= loss.delta * (1 + 1e-9)
        assert loss.rho >= records**2 / (2 * law.scale**2)


@pytest.mark.parametrize("records", [1, 2, 4])
def test_no_epsilon_hides_that_a_new_value_is_shown(records: int) -> None:
    law = GaussianThreshold(2.0, 9)
    assert gaussian_delta(law, 60.0, Distance.of(records)) >= float(law.shown(records)) * (1 - 1e-9)


@pytest.mark.parametrize(("growth", "decay"), [(1.3, 0.13), (2.0, 0.2), (2.0, 0.4)])
def test_rounded_weights_that_fall_more_slowly_are_within_delta(growth, decay):
    """Weights that were rounded and not checked at the decay exceed δ here, by some 1e-39."""
    law = OptimalThreshold(growth, 0.01, decay)
    with localcontext() as context:
        context.prec = 120
        rise, fall = Decimal(growth).exp(), Decimal(decay).exp()
        hidden, seen, most = Decimal(2) ** 128, Decimal(0), Decimal(0)
        for weight, after in itertools.pairwise([0, *law.weights, 0]):
            later = hidden - after
            seen += max(Decimal(0), weight - rise * after)
            most = max(most, seen + max(Decimal(0), hidden - fall * later))
            hidden = later
        assert most <= Decimal.from_float(law.delta) * 2**128
