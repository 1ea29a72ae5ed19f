"""Unlisted values are shown by the law accounted for, and nothing of the others leaves."""

import io
import itertools
import math
import pickle
from collections import defaultdict
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted.laws_for_budgets import loss_of_discovery
from opendp_bayes.unlisted.thresholds import Discovery, OptimalThreshold
from opendp_bayes.unlisted.trusted import discovery as module
from opendp_bayes.unlisted.trusted.keys import CountedKeys, Keys, counted_in_frames

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

CANARY = "Ada Lovelace of 12 St James Square"
APPROXIMATE = dp.approximate(dp.max_divergence())
SMALL = OptimalThreshold(1.0, 0.05)


def context_of(frame: pl.LazyFrame, **arguments: Any) -> Any:
    of = {"privacy_unit": dp.unit_of(contributions=1), "split_evenly_over": 1}
    of["privacy_loss"] = dp.loss_of(epsilon=1.0, delta=1e-8)
    return ob.context(frame, **of | arguments)


def asked(frame: pl.LazyFrame, column: str = "key", **arguments: Any) -> Any:
    return ob.discover(context_of(frame).query(), column, **{"nulls": ob.DROP} | arguments)


def counted(frame: pl.DataFrame, keys: Keys) -> CountedKeys:
    return counted_in_frames(keys, ())(frame.lazy())


# --- the law that is drawn is the law that is accounted for
class Scripted:
    """Draws from a list, in place of the CSPRNG."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
        self.values: list[int] = []
        monkeypatch.setattr(kind, "draws", lambda law, number: self.take(number))

    def take(self, number: int) -> np.ndarray[Any, Any]:
        taken, self.values = self.values[:number], self.values[number:]
        return np.array(taken, dtype=np.int64)


def outcomes(scripted, rows, listed, law, discovery=None):
    """The exact law of what `_shown` gives, by listing all draws of the noise of every value."""
    first, masses = law.masses
    keys = Keys("key", "text", listed)
    of_rows = counted(pl.DataFrame({"key": rows}, schema={"key": pl.String}), keys)
    batches = [batch.sort("key") for batch in of_rows.batches()]  # as draws are in this order
    frame, number = CountedKeys(lambda: iter(batches)), len(set(rows))
    found: dict[Any, float] = defaultdict(float)
    space = keys.space
    for draws in itertools.product(range(masses.size), repeat=number + len(listed)):
        scripted.values = [first + at for at in draws]
        labels, noisy, *_ = module._shown(frame, space, discovery or Discovery(law))
        found[labels, noisy] += math.prod(masses[at] for at in draws)
    return found


def divergence(p: dict[Any, float], q: dict[Any, float], epsilon: float) -> float:
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(at, 0.0)) for at, mass in p.items())


PAIRS = [([*more], [*less]) for more, less in (("a", ""), ("aa", "a"), ("ab", "a"), ("abb", "bb"))]
PAIRS += [([*of], [*of[:-1]]) for of in ("aaaa", "x", "xa")]
PAIRS.append((["x", "x", "a"], ["x", "a"]))


@pytest.mark.parametrize(("more", "less"), PAIRS)
@pytest.mark.parametrize("listed", [(), ("x",)])
def test_all_outcomes_of_the_callback_keep_the_promise(monkeypatch, more, less, listed):
    law = OptimalThreshold(2.0, 0.1)
    scripted = Scripted(monkeypatch, OptimalThreshold)
    p, q = (outcomes(scripted, rows, listed, law) for rows in (more, less))
    assert sum(p.values()) == pytest.approx(1.0)
    loss = loss_of_discovery(Discovery(law), 1, concentrated=False)
    for one, other in ((p, q), (q, p)):
        assert divergence(one, other, loss.epsilon) <= loss.delta + 1e-12


def test_a_threshold_that_is_one_less_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what is shown is decided in the callback, by `>=` and by no other."""
    law = OptimalThreshold(2.0, 0.1)
    scripted = Scripted(monkeypatch, OptimalThreshold)
    lower = SimpleNamespace(draws=scripted.take, threshold=law.threshold - 1)
    wrong = SimpleNamespace(law=lower, rest=None, within=None)
    p, q = (outcomes(scripted, rows, (), law, wrong) for rows in (["a"], []))
    assert divergence(p, q, 2.0) > 0.5


def test_the_rest_is_the_sum_of_what_is_hidden_with_noise_of_its_own(monkeypatch):
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda law, number: np.array([7] * number))
    frame = pl.DataFrame({"key": ["a"] * 3 + ["b"] * 500 + ["c"] * 2 + ["x"] * 9})
    keys = Keys("key", "text", ("x",))
    law = OptimalThreshold(1.0, 1e-8, 0.8)
    discovery = Discovery(law, DiscreteLaplace(5.0))
    labels, _, rest = module._shown(counted(frame, keys), keys.space, discovery)
    assert labels == ("x", "b")
    assert rest == 3 + 2 + 7


# --- nothing of what is hidden leaves
@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Enum([CANARY, "common", "never"])], ids=str
)
def test_no_form_of_a_release_holds_a_hidden_label(dtype: Any) -> None:
    rows = pl.Series(["common"] * 300 + [CANARY] * 2, dtype=dtype)
    release = asked(pl.LazyFrame({"key": rows}), rest=0.2).release()
    assert release.categories == ("common",)
    arrow, picture = io.BytesIO(), io.BytesIO()
    table = release.to_frame()
    table.write_ipc(arrow)
    release.plot().figure.savefig(picture, format="svg")
    forms = [pickle.dumps(release), pickle.dumps(table), arrow.getvalue(), picture.getvalue()]
    forms += [str(of).encode() for of in (release, repr(release), release.to_json(), table)]
    forms += [release._repr_html_().encode()]
    assert not any(CANARY.encode() in form or b"Lovelace" in form for form in forms)
    assert all(b"common" in form for form in forms)


def test_a_filtered_column_would_hold_it() -> None:
    """Negative control of the test above: labels are rebuilt for a reason."""
    column = pl.Series([f"a common value of {number}" for number in range(2000)] + [CANARY])
    kept = column.filter(pl.Series([True] * 2000 + [False]))
    assert CANARY.encode() in pickle.dumps(kept)


def test_an_error_while_counting_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, number: int) -> Any:
        raise RuntimeError(CANARY)

    query = asked(pl.LazyFrame({"key": [CANARY] * 5}))
    query.resolve()
    monkeypatch.setattr(OptimalThreshold, "draws", failing)
    with pytest.raises(ob.ReleaseError) as error:
        query.release()
    assert CANARY not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("values", [[0.5], [[1]], [{"a": 1}]])
def test_other_types_are_refused_with_what_to_do(values: list[Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="key"):
        asked(pl.LazyFrame({"key": values}))


# --- who is protected
def people(rows: list[tuple[int, str]], **loss: Any) -> Any:
    """A query of rows of persons, who come and go."""
    frame = pl.LazyFrame(rows, schema=["id", "key"], orient="row")
    unit = dp.unit_of(contributions=1, identifier=pl.col("id"))
    return context_of(frame, privacy_unit=unit, **loss).query()


def test_people_are_counted_where_the_records_say_who_they_are() -> None:
    rows = [(person, "a") for person in range(300) for _ in range(5)]
    query = people(rows).truncate_per_group(5)
    found = ob.discover(query, "key", nulls=ob.DROP)
    release = found.release()
    assert release.people
    assert abs(release.noisy_counts[0] - 300) < 150  # noise of 12, and 1500 records
    assert found.summarize()["d_in"].item() == release.guarantee.distance.records == 5


def test_records_are_counted_where_the_plan_has_changed_who_they_are_of() -> None:
    rows = [(person, "a") for person in range(100) for _ in range(5)]
    query = people(rows).truncate_per_group(5)
    with pytest.raises(ValueError, match="'id' is computed anew"):
        ob.discover(query.with_columns(id=pl.lit(0)), "key", nulls=ob.DROP)
    found = ob.discover(query.select("key"), "key", nulls=ob.DROP)
    assert not found._bound.space.people
    assert abs(found.release().noisy_counts[0] - 500) < 60
    same = query.filter(pl.col("key") == "a").with_columns(other=pl.col("id"))
    found = ob.discover(same, "key", nulls=ob.DROP)
    assert found._bound.space.people


@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 0.0}])
def test_a_budget_without_delta_is_refused_with_one_to_ask_for(loss: dict[str, float]) -> None:
    context = context_of(pl.LazyFrame({"key": ["a"]}), privacy_loss=dp.loss_of(**loss))
    with pytest.raises(ValueError, match="delta=1e-8"):
        ob.discover(context.query(), "key", nulls=ob.DROP).release()


def test_values_of_rows_that_are_kept_by_order_need_one_without_a_rule_in_words() -> None:
    rows = pl.LazyFrame({"key": ["b", "a"] * 40, "id": [at % 40 for at in range(80)]})
    unit = dp.unit_of(contributions=1, identifier="id")

    def released(frame: pl.LazyFrame) -> Any:
        query = context_of(frame, privacy_unit=unit).query()
        limited = query.truncate_per_group(3, keep="first").truncate_per_group(1)
        return ob.discover(limited, "key", nulls=ob.DROP).release()

    assert released(rows).guarantee.kept == ""
    with pytest.raises(ob.ReleaseError, match="no fixed order"):
        released(rows.sort("key"))


def test_draws_are_those_of_the_law_that_was_given_whatever_becomes_of_it() -> None:
    """And whatever becomes of what is released. By the other law the value would be hidden."""
    frame = pl.LazyFrame({"key": ["a"] * 1000})
    chain = ob.t.make_discovered_counts(
        dp.domain_of(frame, infer=True), dp.symmetric_distance(), column="key", nulls=ob.DROP
    )
    discovery, other = (Discovery(OptimalThreshold(epsilon, 1e-8)) for epsilon in (1.0, 0.005))
    measurement = chain >> ob.m.make_discovery(*chain.output_space, APPROXIMATE, discovery)
    guarantee = measurement(frame).guarantee
    assert other.law.threshold > 2000
    loss = deepcopy(guarantee.loss)
    for changed in (discovery, measurement(frame).discovery):
        object.__setattr__(changed, "law", other.law)
        object.__setattr__(guarantee.loss, "epsilon", 0.005)
        release = measurement(frame)
        assert release.categories == ("a",)
        assert release.discovery == Discovery(OptimalThreshold(1.0, 1e-8))
        assert release.guarantee.loss == loss


def test_measures_state_epsilon_or_rho_with_delta_in_their_own_space() -> None:
    assert not module.is_concentrated(APPROXIMATE)
    assert module.is_concentrated(dp.approximate(dp.zero_concentrated_divergence()))
    for measure in (dp.max_divergence(), dp.zero_concentrated_divergence()):
        with pytest.raises(ValueError, match="must have a δ"):
            module.is_concentrated(measure)
    space = Keys("key", "text").space
    for domain, metric in (
        (dp.atom_domain(T=int), dp.absolute_distance(T=int)),
        (space.domain, dp.symmetric_distance()),
    ):
        with pytest.raises(ValueError, match="must be"):
            module.make_discovery(domain, metric, APPROXIMATE, Discovery(SMALL))
    with pytest.raises(TypeError, match="must be a Discovery"):
        module.make_discovery(space.domain, space.metric, APPROXIMATE, SMALL)


def test_the_values_of_a_person_are_limited_or_drawn() -> None:
    """Of six values of each of 600 people two are kept: 200 of each value, within 8 deviations
    of the draw, a false alarm in 1e14.
    """
    rows = [(person, f"k{value}") for person in range(50) for value in range(6)]
    limited = people(rows).truncate_per_group(3, by=["key"]).truncate_per_group(2)
    asked_of = ob.discover(limited, "key", nulls=ob.DROP)
    assert asked_of._bound.distance.records == 2
    changed = people(rows).with_columns(key=pl.col("id").cast(pl.String))
    of_others = ob.discover(changed.truncate_per_group(6), "key", nulls=ob.DROP)
    assert of_others._bound.distance.records == 6
    rows = [(person, f"k{value}") for person in range(600) for value in range(6) for _ in range(3)]
    query = people(rows, privacy_loss=dp.loss_of(epsilon=8.0, delta=1e-8))
    limited = query.truncate_per_group(1, by=["key"]).truncate_per_group(2)
    asked_of = ob.discover(limited, "key", nulls=ob.DROP)
    assert asked_of._bound.distance.records == 2
    release = asked_of.release()
    assert release.categories == tuple(f"k{value}" for value in range(6))
    spread = math.sqrt(600 * (1 / 3) * (2 / 3))
    assert np.abs(np.array(release.noisy_counts) - 200).max() < 8 * spread + 8
