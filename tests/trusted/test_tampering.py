"""Nothing that anybody holds changes what a measurement promises or draws."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import Domain, Measurement, Transformation

import opendp_bayes as ob
from tests.helpers.contexts import plain_context

COUNTS = (14, 6)
DISTANCES = (1, 2, 5, 100, 1000)  # also above those at which maps are checked when they are made


@dataclass(frozen=True)
class Listed:
    """A plugin's mechanism with a field that can be changed in place."""

    scale: float
    weights: list[float]
    name: ClassVar[str] = "listed"

    def check(self, *, size: int | None, prior: Any) -> None: ...

    def log_pmf(self, counts: Any, prior: Any) -> Any: ...

    def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
        return np.tile(counts, (size, 1)) * int(self.weights[0])

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        loss = d_in * self.weights[0] / self.scale
        return ob.PrivacyLoss(epsilon=loss, rho=loss, range=loss)


#: So little noise that a draw is the data: with probability below 1e-9 it is another.
PRECISE: dict[str, Callable[[], ob.Mechanism]] = {
    "Laplace": lambda: ob.LaplaceParameters(2.0**-7),
    "K-norm": lambda: ob.KNormParameters(2.0**-7),
    "EHD": lambda: ob.mechanisms.HellingerExponential(2.0**-10),
    "EHDS": lambda: ob.mechanisms.SmoothHellingerExponential(2.0**-10, gamma=1.0),
    "permute-and-flip": lambda: ob.mechanisms.PermuteAndFlip(2.0**-10),
    "plugin": lambda: Listed(1.0, [1.0, 2.0]),
}


def tamper(value: Any, seen: dict[int, Any] | None = None) -> int:
    """Change every plain value within reach by public names, frozen or not; return how many."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return 0
    seen[id(value)] = value  # kept, so that no other object gets its identity
    if isinstance(value, (tuple, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return sum(tamper(part, seen) for part in inner)
    if isinstance(value, list):
        changed = sum(tamper(part, seen) for part in value)
        value[:] = [other(part) for part in value]
        return changed + len(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = 0
        for field in fields(value):
            part = getattr(value, field.name)
            changed += tamper(part, seen)
            if (new := other(part)) is not part:
                object.__setattr__(value, field.name, new)
                changed += 1
        return changed
    changed = 0
    if isinstance(value, (Domain, Measurement, Transformation)) or callable(value):
        for name in ("__wrapped__", *(name for name in dir(value) if not name.startswith("_"))):
            try:
                part = getattr(value, name)
            except Exception:  # noqa: BLE001, S112 - many attributes of OpenDP's objects raise
                continue
            changed += tamper(part, seen)
    return changed


def other(value: Any) -> Any:
    """Another value of the same type; the value itself where that is not a plain one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 1024
    if isinstance(value, str):
        return value + "!"
    if isinstance(value, tuple):
        return tuple(other(part) for part in value)
    return value


def posterior() -> Transformation:
    frame = pl.LazyFrame({"x": [True] * COUNTS[0] + [False] * COUNTS[1]})
    domain, metric = dp.domain_of(frame, infer=True), dp.change_one_distance()
    labels = {"column": "x", "categories": [True, False], "nulls": True, "size": sum(COUNTS)}
    counts = ob.t.make_categorical_counts(domain, metric, **labels)
    return counts >> ob.t.then_dirichlet_multinomial(prior=[1.0, 2.0])


CONCENTRATION = np.array(COUNTS) + np.array([1.0, 2.0])


def promised(measurement: Measurement) -> list[float]:
    return [measurement.map(d_in) for d_in in DISTANCES]


@pytest.mark.parametrize("name", PRECISE)
def test_neither_map_nor_draws_change(name: str) -> None:
    own = PRECISE[name]()
    chain = posterior()
    measurement = ob.m.make_mechanism(*chain.output_space, dp.max_divergence(), own)
    release = measurement(CONCENTRATION)
    assert release.counts == COUNTS
    before = promised(measurement)
    assert tamper(release) >= 12
    assert tamper(own) >= 1
    assert tamper(measurement) >= 1
    assert tamper(chain) >= 1
    assert own != PRECISE[name]() != release.mechanism, "the control: these did change"
    assert promised(measurement) == before
    again = measurement(CONCENTRATION)
    assert again.counts == COUNTS
    assert (again.mechanism, again.prior) == (PRECISE[name](), (1.0, 2.0))
    assert again.loss.epsilon == before[0]
    anew = ob.m.make_mechanism(*posterior().output_space, dp.max_divergence(), PRECISE[name]())
    assert promised(anew) == before, "no cached loss was changed"


def test_transformations_do_not_change() -> None:
    chain = posterior()
    member = CONCENTRATION - [1.0, 2.0]
    update = ob.t.make_dirichlet_multinomial(
        *(posterior().input_space >> count()).output_space, prior=[1.0, 2.0]
    )
    assert tamper(chain.output_domain.descriptor) >= 3
    assert tamper(update.output_domain.descriptor) >= 3
    assert tamper(update.input_domain.descriptor) >= 2
    assert update(member.astype(np.int64)).tolist() == CONCENTRATION.tolist()


def count() -> Any:
    return ob.t.then_categorical_counts(
        column="x", categories=[True, False], nulls=True, size=sum(COUNTS)
    )


@pytest.mark.parametrize("mine", [True, False])
def test_a_cached_loss_of_another_mechanism_is_not_poisoned(mine: bool) -> None:
    """Two scales of one hash: a value turned into the other would be found in a cache."""
    strong, weak = 2.0**21, 2.0**-40
    assert hash(strong) == hash(weak)
    space = posterior().output_space
    own = ob.LaplaceParameters(strong)
    measurement = ob.m.make_mechanism(*space, dp.max_divergence(), own)
    release = measurement(CONCENTRATION)
    object.__setattr__(own if mine else release.mechanism, "scale", weak)
    other = ob.m.make_mechanism(*space, dp.max_divergence(), ob.LaplaceParameters(weak))
    assert other.map(1) == 2.0**40
    assert measurement.map(1) == 2.0**-21


def test_a_context_debits_what_the_query_was_made_of_with_its_groups() -> None:
    votes = pl.LazyFrame({"vote": ["a", "b"]}, schema={"vote": pl.Enum(["a", "b"])})
    context = plain_context(votes, {"contributions": 100}, {"epsilon": 2.0}, None)
    own = ob.LaplaceParameters(200.0, total="private")
    query = ob.posterior(context.query(epsilon=1.0), "vote", nulls="a", mechanism=own)
    assert tamper(own) > 0
    release = query.release()
    assert release.mechanism == ob.LaplaceParameters(200.0, total="private")
    assert tamper(release) > 8
    assert context.current_privacy_loss() == 0.5
    assert query.release().epsilon == 0.5
    assert context.current_privacy_loss() == 1.0
    towns = pl.LazyFrame(
        {"region": ["north"] * 5, "vote": ["a"] * 5},
        schema={"region": pl.Enum(["north", "south"]), "vote": pl.Enum(["a", "b"])},
    )
    context = plain_context(towns, loss={"epsilon": 400.0}, parts=2)
    query = ob.posterior(context.query(), "vote", by="region", nulls="a")
    assert query.release().counts == ((5, 0), (0, 0))
    assert tamper(query.resolve()) >= 1
    again = query.release()
    assert (again.groups, again.categories) == (("north", "south"), ("a", "b"))
    assert again.counts == ((5, 0), (0, 0))
    assert context.current_privacy_loss() == [200.0, 200.0]


def test_a_hand_made_release_of_cells_is_that_of_groups() -> None:
    towns = pl.LazyFrame(
        {"region": ["north"], "vote": ["a"]},
        schema={"region": pl.Enum(["north"]), "vote": pl.Enum(["a", "b"])},
    )
    space = dp.domain_of(towns, infer=True), dp.symmetric_distance()
    counts = ob.t.make_categorical_counts(*space, by="region", column="vote", nulls="a")
    cells = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
    noise = ob.m.then_laplace_parameters(dp.max_divergence(), 2.0)
    release: Any = (cells >> noise)(towns)
    assert (release.groups, release.categories) == (("north",), ("a", "b"))
    assert ob.Release.from_json(release.to_json()) == release
