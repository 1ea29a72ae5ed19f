"""A mechanism of a known family is one file: its law gives loss, posterior, plan and audit."""

import ast
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mathematics.validation import as_counts, as_scale
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms import registry
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.noisy_counts import NoisyCounts
from tests.helpers import oracles
from tests.helpers.releases import guarantee

SIZE, PRIOR = 4, (1.0, 0.5, 2.0)


@dataclass(frozen=True)
class NearestLaplace(NoisyCounts):
    """Discrete Laplace noise on every count, moved to the nearest counts of the same size."""

    scale: float
    name: ClassVar[str] = "nearest_laplace"

    def __post_init__(self) -> None:
        as_scale(self.scale)

    def check(self, *, size: int | None, prior: Any) -> None:
        if size is None:
            raise ValueError("size=None: must be public.")

    def law(self, size: int | None, prior: Any) -> AdditiveNoise:
        return AdditiveNoise(DiscreteLaplace(self.scale), (True,) * prior.size)

    def project(self, drawn: Any, size: int | None) -> Any:
        return nearest_counts(drawn, size)

    def log_pmf(self, counts: Any, prior: Any) -> Any:
        """By enumeration of the noise as far as it matters, for tests."""
        counts = as_counts(counts)
        reach = math.ceil(22 * self.scale)
        noise = np.indices((2 * reach + 1,) * counts.size).reshape(counts.size, -1).T - reach
        weights = np.exp(DiscreteLaplace(self.scale).log_mass(noise).sum(axis=1))
        size = int(counts.sum())
        places = ranks(nearest_counts(counts + noise, size), size)
        return candidates(size, counts.size), np.log(np.bincount(places, weights))

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        """Loose, so that what the accounting finds is seen."""
        # As one that is built in, it is asked for distances too.
        epsilon = 4 * int(getattr(d_in, "records", d_in)) / self.scale
        return ob.PrivacyLoss(epsilon=epsilon, range=2 * epsilon, rho=epsilon**2 / 2)


PACKAGE = Path(ob.__file__).parent
#: Where a mechanism is named outside `mechanisms`: its constructor, what
#: `auto` and a plan compare unless told otherwise, what has a law of OpenDP's noise; and the door.
NAMED_IN = {"__init__.py", "queries/constructors.py", "results/external_counts.py"}
NAMED_IN |= {f"planning/{of}.py" for of in ("automatic", "plan")}


def named_in(source: str) -> set[str]:
    """The mechanisms that a module names."""
    mechanisms = {kind.__name__ for kind in registry.BUILT_IN}
    if not any(name in source for name in mechanisms):
        return set()
    fields = [
        getattr(node, field, None)
        for node in ast.walk(ast.parse(source))
        for field in ("id", "attr", "name")
    ]
    return mechanisms.intersection(fields)


def test_nobody_else_asks_which_mechanism_it_holds() -> None:
    """Negative control."""
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    naming = {
        place
        for place, path in paths.items()
        if not place.startswith("mechanisms/") and named_in(path.read_text(encoding="utf-8"))
    }
    assert naming == NAMED_IN
    question = "isinstance(mechanism, mechanisms.KNormParameters)"
    assert named_in(f"def loss(mechanism):\n    return {question}") == {"KNormParameters"}
    assert named_in("from opendp_bayes.mechanisms import KNormParameters") == {"KNormParameters"}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line of the registry."""
    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, NearestLaplace))


def test_its_loss_is_that_of_two_moved_counts_and_its_profile_covers_all_neighbours() -> None:
    loss = ob.exact_loss(NearestLaplace(1.0), size=SIZE, prior=PRIOR)
    assert loss.method == "exact"
    assert loss.rho == ob.exact_loss(ob.LaplaceParameters(1.0), size=SIZE, prior=PRIOR).rho
    mechanism = NearestLaplace(0.5)
    profile = ob.privacy_profile(mechanism, size=SIZE, prior=PRIOR)
    laws = {sets: oracles.law_of(mechanism, sets, PRIOR) for sets in oracles.data_sets(SIZE, 3)}
    for first, second in ((x, y) for x in laws for y in oracles.neighbours(x)):
        for epsilon in (0.0, 1.0, 2.5):
            delta = sum(
                max(p - math.exp(epsilon) * laws[second].get(outcome, 0.0), 0.0)
                for outcome, p in laws[first].items()
            )
            assert delta <= profile(epsilon) + 1e-6


def test_its_posterior_a_plan_and_an_audit_follow_from_the_law() -> None:
    drawn = (3, -1, 4)
    release = ob.Release(drawn, ("a", "b", "c"), PRIOR, NearestLaplace(1.5), guarantee(SIZE))
    sets = np.array(oracles.data_sets(SIZE, 3))
    weights = np.exp(-np.abs(sets - drawn).sum(axis=1) / 1.5)
    weights *= stats.dirichlet_multinomial.pmf(sets, PRIOR, SIZE)
    expected = weights @ (sets + PRIOR) / weights.sum() / (SIZE + sum(PRIOR))
    assert release.posterior.mean() == pytest.approx(expected, abs=1e-4)
    assert release.counts == tuple(nearest_counts(np.array(drawn), SIZE).tolist())
    found = ob.plan(size=60, prior=PRIOR, epsilon=1.0, mechanisms=[NearestLaplace(1.0)])
    assert found.rows[0].loss is not None
    assert 0 < found.rows[0].errors["balanced"].hellinger < 1
    audited = research.audit(NearestLaplace(0.5), size=SIZE, prior=PRIOR, draws=5000)
    assert audited.passed
    assert audited.fits


def test_unregistered_it_keeps_its_proven_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUILT_IN", registry.BUILT_IN[:-1])
    loss = ob.exact_loss(NearestLaplace(1.0), size=SIZE + 1, prior=PRIOR)
    assert (loss.method, loss.epsilon) == ("proven", 4.0)


def test_a_subclass_that_draws_otherwise_is_not_taken_at_its_law() -> None:
    class Louder(NearestLaplace):
        def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
            return NearestLaplace(10 * self.scale).sample(counts, prior, size)

    from opendp_bayes.mechanisms.protocol import is_lawful, law_of

    assert is_lawful(NearestLaplace(1.0))
    assert not is_lawful(Louder(1.0))
    assert law_of(Louder(1.0), SIZE, np.array(PRIOR)) is None
