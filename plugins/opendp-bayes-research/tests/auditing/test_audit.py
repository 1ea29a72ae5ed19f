"""The audit of mechanisms that keep their claims, which pass, and of broken ones, which do not.

Every audit here has `confidence = 1 - FALSE_ALARM`, so a correct mechanism fails one with
probability at most 1e-6. Where draws have to catch a broken one, the bound that is expected lies at
least 8 of its standard deviations above the claim (measured over 14 repetitions).
"""

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from opendp_bayes import (
    GaussianParameters,
    KNormParameters,
    LaplaceParameters,
    calibrate,
    exact_loss,
)
from opendp_bayes.mechanisms import (
    HellingerExponential,
    SmoothHellingerExponential,
    global_sensitivity,
)
from opendp_bayes_research import audit
from opendp_bayes_research.auditing.audit import typical_pairs
from opendp_bayes_research.auditing.audited_draws import chi_square_p_value, log_ratio_bound
from tests.helpers import oracles
from tests.helpers.broken_mechanisms import (
    ConstantSensitivity,
    FloatLaplace,
    LocalAsSmooth,
    SinglePrecisionCounts,
    half_scale,
)
from tests.helpers.sweeps import slow, some_of

CONFIDENCE = 1 - oracles.FALSE_ALARM
ONES, SMALL, TINY = (1.0, 1.0), (0.01, 0.01), (0.001, 0.001)
ONES_3 = (1.0, 1.0, 1.0)


def audited(mechanism, size, prior, *, draws=5000, **options):
    return audit(mechanism, size=size, prior=prior, draws=draws, confidence=CONFIDENCE, **options)


HONEST: dict[str, tuple[Any, int | None, tuple[float, ...]]] = {
    "discrete Laplace": (LaplaceParameters(1.0), 20, ONES),
    "floored Laplace": (LaplaceParameters(0.5, noise="floored"), 12, ONES),
    "Laplace on every count": (LaplaceParameters(1.0, total="bounded"), 4, ONES_3),
    "Laplace, private size": (LaplaceParameters(1.0, total="private"), None, ONES),
    "Laplace, too many outcomes to list": (LaplaceParameters(1.0), 2**25 + 4, ONES),
    "K-norm": (KNormParameters(1.0), 6, ONES_3),
    "EHD": (HellingerExponential(0.5), 10, ONES),
    "EHD, three categories": (HellingerExponential(0.5), 6, (0.1, 1.0, 3.0)),
    "EHDL": (HellingerExponential(2.0, sensitivity="local"), 50, ONES),
    "EHDS": (SmoothHellingerExponential(4.0), 20, ONES),
    "β": (SmoothHellingerExponential(2.0, beta=0.1), 20, ONES),
}


@pytest.mark.parametrize("name", some_of(HONEST, 6))
def test_a_mechanism_that_keeps_its_claim_passes(name: str) -> None:
    mechanism, size, prior = HONEST[name]
    found = audited(mechanism, size, prior, draws=2000)
    assert found.failures == ()
    assert found.passed
    assert found.certified
    exact = exact_loss(mechanism, size=size, prior=prior)
    assert found.epsilon == found.exact.epsilon == exact.epsilon
    assert [claim.delta for claim in found.claims] == [0.0, 1e-6, 1e-3]
    assert all(earlier.epsilon >= later.epsilon for earlier, later in pairwise(found.claims))


def test_draws_come_close_to_a_claim_which_is_kept_where_calibrated() -> None:
    """A test that refutes nothing would pass everything. The event has probability 1/2 and more."""
    claim = audited(LaplaceParameters(1.0), 20, ONES, draws=20_000).claims[0]
    assert claim.refutable == pytest.approx(0.88, abs=0.02)
    assert 0.75 < claim.refuted <= 1.0
    mechanism = calibrate(HellingerExponential(1.0), size=10, prior=ONES, epsilon=1.0)
    assert audited(mechanism, 10, ONES, epsilon=1.0).passed


def loss_of(honest: Any, size: int) -> dict[str, Any]:
    """The exact claim of a mechanism, for one that only says it is the same."""
    return {"epsilon": exact_loss(honest, size=size, prior=ONES).epsilon}


#: Mechanism, size, prior, options, and by what it is caught.
EHD_HALVED, EHDS_HALVED = HellingerExponential(0.5), SmoothHellingerExponential(1.0)
PRIVATE_NOISE = LaplaceParameters(1.0, total="private")
LOCAL, CONSTANT = HellingerExponential(2.0, sensitivity="local"), ConstantSensitivity.constant
FEW, MANY = {"draws": 1000}, {"draws": 50_000}
BOTH = {"draws", "fit"}
BROKEN: dict[str, tuple[Any, int | None, tuple[float, ...], dict[str, Any], set[str]]] = {
    "half the scale: Laplace": (half_scale(LaplaceParameters(1.0)), 20, ONES, {}, BOTH),
    "half the scale: private size": (half_scale(PRIVATE_NOISE), None, ONES, {}, {"draws"}),
    "half the scale: K-norm": (half_scale(KNormParameters(1.0)), 6, ONES_3, {}, BOTH),
    "half the scale: EHD": (half_scale(EHD_HALVED), 10, ONES, loss_of(EHD_HALVED, 10), BOTH),
    "half the scale: EHDS": (half_scale(EHDS_HALVED), 20, ONES, loss_of(EHDS_HALVED, 20), BOTH),
    "the local sensitivity, known to be": (
        *(LOCAL, 200, SMALL),
        {"epsilon": 1.0} | FEW,
        {"accounting", "law"},
    ),
    "as a smooth one": (LocalAsSmooth(2.0, 0.01), 200, SMALL, {"epsilon": 1.001} | FEW, {"law"}),
    "the papers' constant": (
        *(ConstantSensitivity(2 * CONSTANT), 5, TINY),
        {"draws": 100_000},
        {"law", "draws"},
    ),
    "float Laplace, its law counted": (FloatLaplace(0.25), 20, ONES, {}, {"law"}),
    "of 8 bits": (FloatLaplace(2.0, bits=8, counted=False), 20, ONES, MANY, {"fit"}),
    "in single precision": (SinglePrecisionCounts(1.0), 2**25 + 4, ONES, MANY, {"draws"}),
}


@pytest.mark.parametrize("name", slow(BROKEN, but={*BROKEN} - {"the papers' constant"}))
def test_a_broken_mechanism_is_caught(name: str) -> None:
    mechanism, size, prior, options, caught_by = BROKEN[name]
    found = audited(mechanism, size, prior, **options)
    assert caught_by <= set(found.failures)
    certain = {"accounting", "law"}
    assert caught_by & certain == certain & set(found.failures)
    assert not found.passed


@pytest.mark.parametrize(("size", "prior"), [(5, TINY), (200, SMALL)])
def test_the_same_settings_without_the_mistake_pass(size: int, prior: tuple[float, ...]) -> None:
    mechanism = HellingerExponential(2 * global_sensitivity(size, prior))
    assert audited(mechanism, size, prior, epsilon=1.0, draws=1000).passed


def test_the_bound_from_what_is_not_seen_and_from_everything() -> None:
    """Outcomes below 2^-50; the sampler is caught once it states its own law."""
    assert audited(ConstantSensitivity(2 * CONSTANT), 10, ONES, draws=1000).passed
    found = audited(FloatLaplace(0.25, counted=False), 20, ONES, draws=20_000)
    assert found.passed
    counted = audited(FloatLaplace(0.25), 20, ONES)
    assert counted.law is not None
    assert counted.law.epsilon == math.inf
    assert audited(SinglePrecisionCounts(1.0), 2**24, ONES).passed
    assert log_ratio_bound(0, 100, 0, 100, 0.0, 0.01) == -math.inf
    assert log_ratio_bound(10, 100, 0, 100, 0.5, 0.01) == -math.inf
    assert log_ratio_bound(100, 100, 100, 100, 0.0, 0.01) < 0
    low = stats.binomtest(30, 100).proportion_ci(0.98, "exact").low
    high = stats.binomtest(5, 100).proportion_ci(0.98, "exact").high
    assert log_ratio_bound(30, 100, 5, 100, 0.01, 0.02) == pytest.approx(
        math.log((low - 0.01) / high), rel=1e-12
    )


def test_a_claim_that_is_neither_proven_nor_refuted() -> None:
    @dataclass(frozen=True)
    class Unaccounted:
        """EHDL, as a mechanism that the accounting does not know."""

        scale: float
        name: ClassVar[str] = "unaccounted"

        def __post_init__(self) -> None:
            object.__setattr__(self, "inner", HellingerExponential(self.scale, sensitivity="local"))

        def check(self, *, size: int | None, prior: Any) -> None:
            """Nothing is refused."""

        def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> Any:
            return self.inner.log_pmf(counts, prior)

        def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Any:
            return self.inner.sample(counts, prior, size)

        def proven_loss(self, d_in, *, size, prior, delta=0.0):
            return self.inner.proven_loss(d_in, size=size, prior=prior)

    found = audited(Unaccounted(2.0), 20, ONES, epsilon=1.0)
    assert found.passed
    assert not found.certified
    assert found.computed is None
    assert found.law is not None
    assert audited(Unaccounted(2.0), 20, ONES, epsilon=0.9 * found.law.epsilon).failures == ("law",)


def test_the_law_check_finds_the_largest_log_ratio_of_all_neighbours() -> None:
    turned = HellingerExponential(0.5), 6, (3.0, 1.0, 0.1)  # and so is the worst ratio
    names = "K-norm", "EHD, three categories", "EHDS", "Laplace on every count"
    for mechanism, size, prior in [turned, *(HONEST[name] for name in names)]:
        assert size is not None
        found = audited(mechanism, size, prior, draws=1000).law
        assert found is not None
        sets, log_p = oracles.log_laws(mechanism, size, prior)
        away = oracles.distances(size, len(prior))
        assert found.epsilon == pytest.approx(
            oracles.over_pairs(log_p, away, 1, oracles.epsilon_between), abs=found.error
        )
        assert (found.pairs, found.complete) == (int((away == 1).sum()) // 2, True)
        assert found.second in oracles.neighbours(found.first)
        one, other = sets.index(found.first), sets.index(found.second)
        assert float(oracles.epsilon_between(log_p[one], log_p[other])) == pytest.approx(
            found.epsilon, abs=found.error
        )


def test_outcomes_that_only_one_law_lists_have_an_infinite_ratio() -> None:
    @dataclass(frozen=True)
    class Shifted(LaplaceParameters):
        """Lists the outcomes within one record of the count alone."""

        name: ClassVar[str] = "shifted"

        def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> Any:
            outcomes, log_p = super().log_pmf(counts, prior)
            near = np.abs(outcomes - np.asarray(counts)).max(axis=1) <= 1
            return outcomes[near], log_p[near] - np.log(np.exp(log_p[near]).sum())

        def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Any:
            outcomes, log_p = self.log_pmf(counts, prior)
            return outcomes[np.random.default_rng().choice(len(outcomes), size, p=np.exp(log_p))]

    found = audited(Shifted(1.0), 6, ONES)
    assert found.failures == ("law", "draws")
    assert found.law is not None
    assert found.law.epsilon == math.inf


# The statistics.
@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.1, 0.02), (0.99, 0.9), (0.3, 0.3)])
def test_the_bound_exceeds_the_truth_with_at_most_its_level(p, q, delta):
    """Over every outcome of both experiments; without the confidence bounds it is far more."""
    n, m, level = 60, 80, 0.1
    a, b = np.arange(n + 1), np.arange(m + 1)
    probability = stats.binom.pmf(a, n, p)[:, None] * stats.binom.pmf(b, m, q)
    truth = math.log((p - delta) / q)
    bound = log_ratio_bound(a[:, None], n, b, m, delta, level)
    assert bound.shape == (n + 1, m + 1)
    wrong = float(probability[bound > truth].sum())
    assert 0 < wrong <= level
    with np.errstate(divide="ignore", invalid="ignore"):
        plug_in = np.log(np.maximum(a[:, None] / n - delta, 0) / (b / m))
    assert float(probability[plug_in > truth].sum()) > 3 * level


def test_chi_square_pools_rare_outcomes_and_is_that_of_scipy() -> None:
    law = (np.array([[0, 2], [1, 1], [2, 0]]), np.log([0.2, 0.5, 0.3]))
    drawn = np.repeat(law[0], [230, 480, 290], axis=0)
    assert chi_square_p_value(drawn, law) == pytest.approx(
        stats.chisquare([230, 480, 290], [200, 500, 300]).pvalue, rel=1e-12
    )
    outcomes = np.arange(5)[:, None]
    drawn = np.repeat(outcomes, [520, 440, 20, 15, 5], axis=0)
    # 15, 10 and 5 expected of the last three: one cell of 30. What is not listed is pooled with the
    # rarest.
    expected = stats.chisquare([520, 440, 40], [500, 470, 30]).pvalue
    assert chi_square_p_value(
        drawn, (outcomes, np.log([0.5, 0.47, 0.015, 0.01, 0.005]))
    ) == pytest.approx(expected, rel=1e-12)
    assert chi_square_p_value(
        drawn, (outcomes[:4], np.log([0.5, 0.47, 0.015, 0.01]))
    ) == pytest.approx(expected, rel=1e-12)


def test_print_shows_the_verdict_every_claim_and_every_check() -> None:
    found = audited(LaplaceParameters(1.0), 20, ONES)
    first, losses, pure, *claims, accounting, law, draws, fit = str(found).splitlines()
    assert first.endswith(
        "size 20, prior (1, 1): passed. ε = 1 is certified, and nothing refutes it."
    )
    assert losses == "proven ε 1, exact (exact) ε 1"
    assert re.fullmatch(r"δ 0: claimed ε 1, refuted below 0\.\d+ \(up to 0\.\d+ expected\)", pure)
    assert [line.split(":")[0] for line in claims] == ["δ 1e-06", "δ 0.001"]
    assert accounting == "accounting: the largest loss from the probabilities is 1"
    assert law.startswith(
        "law: the largest log-ratio over all 20 pairs of neighbours is 1, for counts"
    )
    assert re.fullmatch(r"draws: \d+ for each of .* refute no more than is claimed", draws)
    assert fit.startswith("fit: the smallest p-value is ")
    failed = str(audited(LaplaceParameters(1.0), 20, ONES, epsilon=0.5))
    assert "failed, accounting, law" in failed
    assert "The claim of ε = 0.5 does not hold as stated." in failed
    gaussian = str(audited(GaussianParameters(5.0), 20, ONES))
    assert ": passed. ρ = " in gaussian


def test_chi_square_of_an_impossible_outcome_and_of_too_few_draws() -> None:
    outcomes = np.arange(3)[:, None]
    with np.errstate(divide="ignore"):
        law = (outcomes, np.log([0.5, 0.5, 0.0]))
    assert chi_square_p_value(np.repeat(outcomes, [500, 499, 1], axis=0), law) == 0
    assert chi_square_p_value(np.repeat([[0], [1], [7]], [500, 499, 1], axis=0), law) == 0
    assert chi_square_p_value(np.repeat(outcomes, [15, 15, 0], axis=0), law) is None


@pytest.mark.parametrize(("size", "k"), [(1, 2), (7, 2), (7, 3), (100, 4)])
def test_typical_pairs_are_neighbours(size: int, k: int) -> None:
    for first, second in typical_pairs(size, k):
        assert sum(first) == size
        assert second in oracles.neighbours(first)
    for first, second in typical_pairs(None, k):
        assert np.abs(np.subtract(first, second)).sum() == 1
