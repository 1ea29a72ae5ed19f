"""Exact losses and profiles against ball arithmetic over all pairs: never below the truth."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes import KNormParameters, LaplaceParameters, exact_loss, privacy_profile
from opendp_bayes.accounting import losses as module, pairs as pairs_module
from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    Block,
    concentrated,
    hockey_stick,
)
from opendp_bayes.accounting.exponential import enumeration, two_categories
from opendp_bayes.accounting.losses import delta_from_bounds, loss_of, worst_pair
from opendp_bayes.accounting.noise import NoisePairs
from opendp_bayes.accounting.pairs import pairs_of, work_of
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mechanisms import (
    HellingerExponential,
    PermuteAndFlip,
    SmoothHellingerExponential,
    global_sensitivity,
)
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import oracles
from tests.helpers.sweeps import slow, some_of

#: How far above the truth a certified bound may lie: of a loss, relative where it exceeds one; of a
#: δ, absolute.
ABOVE = 1e-9
#: Orders for the concentrated loss; the package's own lie elsewhere.
ORDERS = (1.001, 1.2, 1.6, 2.2, 3.3, 5.0, 8.0, 20.0)
SHARES = (0.0, 0.03, 0.4, 0.8, 0.999)

Case = tuple[Any, int, tuple[float, ...]]


def random_prior(rng: np.random.Generator, k: int) -> tuple[float, ...]:
    """Equal entries, or all different, or two equal ones of three, from 0.01 to 10."""
    values = [float(10 ** rng.uniform(-2, 1)) for _ in range(k)]
    kind = rng.integers(3)
    if kind == 0:
        values = [values[0]] * k
    elif kind == 1 and k == 3:
        values[int(rng.integers(3))] = values[int(rng.integers(3))]
    return tuple(values)


def random_cases(seed: int, number: int, largest: dict[int, int]) -> Iterator[Case]:
    """At random; `largest` is the largest size for each number of categories."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        k = 2 if rng.random() < 0.6 else 3
        scale = float(np.exp(rng.uniform(math.log(0.05), math.log(20))))
        gamma = float(10 ** rng.uniform(math.log10(0.02), math.log10(5)))
        beta = float(10 ** rng.uniform(-2.5, 0.3))
        choices = ["floored", "discrete"], ["remainder", "bounded"]
        noise, total = (str(rng.choice(of)) for of in choices)
        smooth = SmoothHellingerExponential(scale, gamma=gamma)
        every: list[Any] = [HellingerExponential(scale)]
        every += [HellingerExponential(scale, sensitivity="local"), smooth, smooth]
        every += [SmoothHellingerExponential(scale, beta=beta)]
        every.append(LaplaceParameters(max(scale, 0.2), noise=noise, total=total))
        mechanism = every[rng.integers(6)]
        if isinstance(mechanism, LaplaceParameters):
            noised = k - (mechanism.total == "remainder")
            yield (
                mechanism,
                int(rng.integers(4, {1: largest[2], 2: min(largest[3], 8), 3: 4}[noised] + 1)),
                (1.0,) * k,
            )
        else:
            yield mechanism, int(rng.integers(1, largest[k] + 1)), random_prior(rng, k)


def ball_laws(mechanism: Any, size: int, prior: tuple[float, ...]) -> oracles.BallLaws:
    if isinstance(mechanism, LaplaceParameters):
        return oracles.ball_laplace_laws(
            size, len(prior), mechanism.scale, mechanism.noise, mechanism.total
        )
    if isinstance(mechanism, SmoothHellingerExponential):
        widths = oracles.ball_widths(
            "smooth", size, prior, gamma=mechanism.gamma, beta=mechanism.beta
        )
    else:
        widths = oracles.ball_widths(
            "one" if mechanism.sensitivity == "global" else "local", size, prior
        )
    return oracles.ball_exponential_laws(size, prior, mechanism.scale, widths)


def excess(bound: float, truth: oracles.arb) -> float:
    """How far above the truth the bound lies at most, relative where the truth exceeds one."""
    above = (oracles.real(bound) - truth) / max(truth, oracles.arb(1), key=float)
    return float(above.upper())


def check(case: Case, judged_by: Any = None) -> None:
    """`judged_by` is the mechanism whose bounds are taken, for the negative controls."""
    mechanism, size, prior = case
    bounded = judged_by or mechanism
    laws, loss = ball_laws(*case), exact_loss(bounded, size=size, prior=prior)
    epsilon, spread = laws.losses()
    for name, bound, truth in (("epsilon", loss.epsilon, epsilon), ("range", loss.range, spread)):
        assert 0 <= excess(bound, truth) <= ABOVE, f"{name}: {bound} for {truth} of {case}"
    few = ORDERS if len(laws.p) <= 30 else ORDERS[2::3]
    assert laws.rho(few) <= oracles.real(loss.rho), f"rho of {case}"
    profile = privacy_profile(bounded, size=size, prior=prior)
    for share in SHARES:
        at = share * float(epsilon)
        delta, truth = profile(at), laws.delta(at)
        assert truth <= oracles.real(delta), f"delta({at}) = {delta} is below {truth} for {case}"
        assert oracles.real(delta) <= truth + ABOVE, (
            f"delta({at}) = {delta} is above {truth} for {case}"
        )
    assert profile(math.nextafter(loss.epsilon, math.inf)) == 0.0
    delta = profile(0.4 * loss.epsilon)
    if 0 < delta < 1:
        found = profile.epsilon(delta)
        assert laws.delta(found) <= oracles.real(delta), f"epsilon({delta}) = {found} for {case}"
        assert found == pytest.approx(0.4 * loss.epsilon, rel=1e-6, abs=1e-8)


QUICK = [(seed, 10, {2: 14, 3: 4}) for seed in range(6)]


@pytest.mark.parametrize(
    ("seed", "number", "largest"),
    [*some_of(QUICK, 2), *slow((seed, 26, {2: 40, 3: 8}) for seed in range(100, 120))],
)
def test_random_mechanisms(seed: int, number: int, largest: dict[int, int]) -> None:
    for case in random_cases(seed, number, largest):
        check(case)


@pytest.mark.parametrize("factor", [0.5, 0.999_99, 1.000_01, 2.0])
@pytest.mark.parametrize(
    "kind", [HellingerExponential, SmoothHellingerExponential, LaplaceParameters]
)
def test_notices_another_scale(kind: Any, factor: float) -> None:
    """Negative control: one part in a hundred thousand of the scale."""
    honest = kind(0.7)
    with pytest.raises(AssertionError, match=r"epsilon: .* for "):
        check((replace(honest, scale=0.7 * factor), 12, (1.0, 1.0)), judged_by=honest)


# K-norm noise, whose outcomes are infinitely many; truncated where the rest of the probability is
# below 1e-13.
@pytest.mark.parametrize(
    ("k", "scale", "norm"), [(2, 0.4, 20), (2, 3.0, 110), (3, 0.3, 14), (3, 0.8, 36), (4, 0.3, 15)]
)
def test_knorm(k: int, scale: float, norm: int) -> None:
    """Vectors enumerated before they return to counts; a closed loss, three outcomes."""
    p, q = oracles.ball_knorm_pair(k, scale, norm)
    prior = (1.0,) * k
    profile = privacy_profile(KNormParameters(scale), size=200, prior=prior)
    epsilon = max((a / b).log() for a, b in zip(p, q, strict=True))
    assert 0 <= excess(profile.loss.epsilon, epsilon) <= ABOVE
    for share in SHARES:
        factor = oracles.real(share / scale).exp()
        truth = sum(
            (a - factor * b for a, b in zip(p, q, strict=True) if a > factor * b),
            start=oracles.arb(0),
        )
        assert float(truth) - 1e-12 <= profile(share / scale) <= float(truth) + ABOVE
    rho = exact_loss(KNormParameters(scale), size=200, prior=prior).rho
    orders = [1.001, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0]

    def divergence(order):
        terms = (a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
        return sum(terms, start=oracles.arb(0)).log() / order / (order - 1)

    truth = max(map(divergence, map(oracles.real, orders)))
    assert float(truth) - 1e-12 <= rho <= 1.05 * float(truth)


@pytest.mark.parametrize(
    ("size", "k", "scale"), [(1, 2, 1.0), (4, 3, 0.7), (7, 3, 2.0), (2, 4, 0.8)]
)
def test_knorm_as_released(size: int, k: int, scale: float) -> None:
    """What is released is a function of the noised counts, and loses no more."""
    mechanism, prior = KNormParameters(scale), (1.0,) * k
    _, log_p = oracles.log_laws(mechanism, size, prior)
    away = oracles.distances(size, k)
    profile = privacy_profile(mechanism, size=size, prior=prior)
    exact = oracles.over_pairs(log_p, away, 1, oracles.epsilon_between)
    assert exact <= profile.loss.epsilon + 1e-12
    assert (
        oracles.over_pairs(log_p, away, 1, oracles.rho_between)
        <= exact_loss(mechanism, size=size, prior=prior).rho + 1e-12
    )
    for share in SHARES:
        assert (
            oracles.over_pairs(log_p, away, 1, oracles.hockey_stick(share / scale))
            <= profile(share / scale) + 1e-12
        )


# Published exact losses at nominal ε = 1 under the papers' calibration.
CALIBRATED: dict[str, Any] = {
    "EHD": lambda size: HellingerExponential(2 * global_sensitivity(size, (1.0, 1.0))),
    "EHDL": lambda size: HellingerExponential(2.0, sensitivity="local"),
    "EHDS, γ = 1": lambda size: SmoothHellingerExponential(4.0),
    "EHDS, γ = 0.1": lambda size: SmoothHellingerExponential(2.2, gamma=0.1),
}
PUBLISHED = {
    10: (0.6328, 0.6328, 0.3181, 0.5762),
    100: (0.5314, 0.8039, 0.3999, 0.4820),
    1000: (0.5036, 0.9076, 0.4429, 0.4576),
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_losses(size: int) -> None:
    losses = [exact_loss(make(size), size=size, prior=(1.0, 1.0)) for make in CALIBRATED.values()]
    assert tuple(round(loss.epsilon, 4) for loss in losses) == PUBLISHED[size]
    assert {loss.method for loss in losses} == {"exact" if size == 10 else "windowed"}


def test_the_papers_constant_and_moves_beyond_a_limit_are_noticed() -> None:
    """`sqrt(1 - pi/4)` as the global sensitivity, where the true one is larger."""
    scale = 2 * math.sqrt(1 - math.pi / 4)
    assert exact_loss(HellingerExponential(scale), size=10, prior=(0.01, 0.01)).epsilon > 1.13
    widest = HellingerExponential(2 * global_sensitivity(10, (0.01, 0.01)))
    assert exact_loss(widest, size=10, prior=(0.01, 0.01)).epsilon <= 1
    prior = (1.0, 1.0, 1.0)
    cases = (1.0, 64, True), (1.0, 65, False), (1 / 40, 2, True), (1 / 41, 2, False)
    for scale, distance, followed in (*cases, (1 / 41, 1, True)):
        setting = Setting.of(KNormParameters(scale), 100, prior)
        found = pairs_of(setting, Distance.of(distance), 10**6)
        assert (found is not None) is followed


# Groups.
GROUPS: list[Case] = [
    (HellingerExponential(0.3), 9, (1.0, 1.0)),
    (HellingerExponential(1.0, sensitivity="local"), 9, (0.02, 0.5)),
    (SmoothHellingerExponential(1.0, gamma=0.3), 12, (0.05, 0.05)),
    (SmoothHellingerExponential(0.4, beta=0.2), 4, (1.0, 1.0, 0.3)),
    (HellingerExponential(0.5), 4, (0.5, 0.5, 0.5)),
    (LaplaceParameters(1.5, noise="floored"), 8, (1.0, 1.0)),
    (LaplaceParameters(1.5), 4, (1.0, 1.0, 1.0)),
    # Where neighbours, or data sets at distance 2, differ more than any at distance 3.
    (SmoothHellingerExponential(0.14, gamma=0.42), 4, (0.03, 0.03)),
    (HellingerExponential(0.28, sensitivity="local"), 4, (0.49, 0.14)),
]


@pytest.mark.parametrize("case", GROUPS, ids=str)
def test_groups(case: Case) -> None:
    """Certified for every pair within the distance, and the largest where all are examined."""
    mechanism, size, prior = case
    laws = ball_laws(*case)
    earlier = 0.0
    for d_in in (1, 2, 3):
        epsilon, spread = laws.losses(d_in)
        loss = exact_loss(mechanism, size=size, prior=prior, d_in=d_in)
        profile = privacy_profile(mechanism, size=size, prior=prior, d_in=d_in)
        assert 0 <= excess(loss.epsilon, epsilon) <= ABOVE
        assert 0 <= excess(loss.range, spread) <= ABOVE
        assert laws.rho((1.001, 2.2, 8.0), d_in) <= oracles.real(loss.rho)
        for share in SHARES:
            truth = laws.delta(share * float(epsilon), d_in)
            assert truth <= oracles.real(profile(share * float(epsilon)))
            if not isinstance(mechanism, LaplaceParameters) or len(prior) == 2 or d_in == 1:
                assert oracles.real(profile(share * float(epsilon))) <= truth + ABOVE
        assert loss.epsilon >= earlier
        earlier = loss.epsilon


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 0.5, 0.5)])
def test_large_groups(prior: tuple[float, ...]) -> None:
    """Non-decreasing, at most the proven bound and the sum; beyond the size nothing changes."""
    size = 30 if len(prior) == 2 else 6
    mechanism = SmoothHellingerExponential(2.0, gamma=0.3)
    losses = {
        d_in: exact_loss(mechanism, size=size, prior=prior, d_in=d_in)
        for d_in in (0, 1, 2, 3, 5, 7, 8, 9, 13, 17, 24, 40, 10**9)
    }
    for field in ("epsilon", "range", "rho"):
        values = [getattr(loss, field) for loss in losses.values()]
        assert values == sorted(values)
        assert math.isfinite(values[-1])
    assert losses[0].epsilon == 0.0
    assert losses[40] == losses[10**9]
    for d_in, loss in losses.items():
        proven = mechanism.proven_loss(d_in, size=size, prior=np.array(prior))
        assert loss.epsilon <= proven.epsilon
        assert loss.epsilon <= min(d_in, size) * losses[1].epsilon * (1 + 1e-12)
    assert losses[2].epsilon < 2 * losses[1].epsilon


@pytest.mark.usefixtures("fresh")
def test_a_group_beyond_those_examined_is_bounded_by_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most two records examined: five are twice two and one, and never below the truth."""
    mechanism, size, prior = SmoothHellingerExponential(1.0, gamma=0.3), 12, (0.05, 0.2)
    laws = ball_laws(mechanism, size, prior)
    one, two = (exact_loss(mechanism, size=size, prior=prior, d_in=d_in).epsilon for d_in in (1, 2))
    monkeypatch.setattr(pairs_module, "LARGEST_GROUP", 2)
    module._loss_of_pairs.cache_clear()
    five = exact_loss(mechanism, size=size, prior=prior, d_in=5).epsilon
    profile = privacy_profile(mechanism, size=size, prior=prior, d_in=5)
    assert profile.method == "proven"
    for at in (0.0, 0.2 * five, 0.7 * five):
        assert laws.delta(at, 5) <= oracles.real(profile(at))
    assert five == pytest.approx(2 * two + one, rel=1e-12)
    assert laws.losses(5)[0] <= oracles.real(five)


@pytest.mark.usefixtures("fresh")
def test_one_record_more_than_are_examined_loses_no_less_than_it_does(monkeypatch):
    mechanism, size, prior = SmoothHellingerExponential(1.0, gamma=0.3), 12, (0.05, 0.2)
    examined = exact_loss(mechanism, size=size, prior=prior, d_in=3)
    monkeypatch.setattr(pairs_module, "LARGEST_GROUP", 2)
    module._loss_of_pairs.cache_clear()
    bound = exact_loss(mechanism, size=size, prior=prior, d_in=3)
    assert bound.epsilon > examined.epsilon
    assert bound.range > examined.range
    assert bound.rho > examined.rho


# Bounds that use ε and the range alone.
@pytest.mark.parametrize(
    ("epsilon", "spread"),
    [(1.0, 1.0), (1.0, 2.0), (0.3, 0.4), (2.0, 1e-3), (20.0, 40.0), (0.5, 0.5)],
)
def test_delta_from_bounds(epsilon: float, spread: float) -> None:
    """Against every admissible law of two outcomes: never below, and attained."""
    loss = PrivacyLoss(epsilon=min(epsilon, spread), range=spread, rho=1.0)
    highest = np.linspace(0, 1, 4001)[1:] * min(epsilon, spread)
    lowest = np.maximum(highest - spread, -min(epsilon, spread))
    with np.errstate(over="ignore"):
        # Of the outcome with the high ratio.
        p = np.exp(highest) * -np.expm1(lowest) / (np.exp(highest) - np.exp(lowest))
    for at in np.linspace(0, min(epsilon, spread), 23):
        truth = float(np.max(np.where(highest > at, p * -np.expm1(at - highest), 0.0)))
        bound = delta_from_bounds(loss, float(at))
        assert truth * (1 - 1e-12) <= bound
        # What either bound alone allows: the two together are a little less.
        assert bound <= min(1.0, 1.5 * truth + 1e-9) or spread > epsilon


def test_a_proven_bound_uses_its_delta_and_looks_at_no_pairs() -> None:
    """Also of an exponential mechanism, whose exact ε stays what it is without δ."""
    public: Any = {"size": 30, "prior": np.array([1.0, 1.0])}
    for mechanism in (HellingerExponential(0.2), LaplaceParameters(1.0)):
        setting = Setting.of(mechanism, 30, (1.0, 1.0))
        spent = loss_of(setting, 1, delta=0.05, accounting="proven")
        pure = mechanism.proven_loss(1, **public)
        assert spent.epsilon < pure.epsilon
        assert spent.delta == 0.05
        curve = module.curve_of(setting, Distance.of(1), "proven")
        assert (curve.loss, curve.pairs) == (pure, None)
        assert spent.epsilon == curve.epsilon(0.05)
        assert module.curve_of(setting, Distance.of(1)).pairs


@pytest.mark.parametrize("prior", [(0.3, 2.0), (1.0, 1.0, 0.5)])
@pytest.mark.parametrize("mechanism", [HellingerExponential(0.4), PermuteAndFlip(0.4)])
def test_pairs_are_compared_where_the_work_is_allowed(mechanism, prior, monkeypatch):
    """Up to what is allowed, not beyond; of neighbours, unless a distance is given."""
    of_flips = isinstance(mechanism, PermuteAndFlip)
    work = enumeration.work(9, prior, 1)
    if len(prior) == 2 and not of_flips:
        work = two_categories.work(9, (prior[0], prior[1]))
    assert of_flips or work_of(9, prior) == work
    assert pairs_of(Setting.of(mechanism, 9, prior), Distance.of(1), work) is not None
    assert pairs_of(Setting.of(mechanism, 9, prior), Distance.of(1), work - 1) is None
    monkeypatch.setattr(module, "LARGEST_WORK", work)
    assert worst_pair(Setting.of(mechanism, 9, prior)) is not None
    assert work_of(None, prior) == 0  # only noise has a private size


def test_the_range_alone_bounds_the_concentrated_loss_where_divergences_take_long(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RENYI_WORK", 0)
    loss = exact_loss(HellingerExponential(0.37), size=9, prior=(1.0, 1.0))
    assert Fraction(loss.rho) >= Fraction(loss.range) ** 2 / 8
    assert loss.rho == pytest.approx(loss.range**2 / 8, rel=1e-15)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (20.0, 1.0)])
def test_worst_pair(prior: tuple[float, float]) -> None:
    """Its own log-ratio is the exact loss; at the edge where neighbours differ most."""
    mechanism, size = HellingerExponential(0.5), 20
    worst = worst_pair(Setting.of(mechanism, size, prior))
    assert worst is not None
    _, p = mechanism.log_pmf(worst.first, prior)
    _, q = mechanism.log_pmf(worst.second, prior)
    assert np.abs(p - q).max() == pytest.approx(worst.epsilon, rel=1e-12)
    assert (
        worst.epsilon
        <= exact_loss(mechanism, size=size, prior=prior).epsilon
        <= worst.epsilon * (1 + 1e-9)
    )
    assert worst_pair(Setting.of(LaplaceParameters(1.0), 20, prior)) is None


LAPLACE = LaplaceParameters(1.0)
OF_TWO: Any = {"size": 3, "prior": [1.0, 1.0]}
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: exact_loss(1.0, **OF_TWO), TypeError, r"=1\.0: .*mechanism value, .*LaplaceParam"),
    (lambda: exact_loss(LAPLACE, **OF_TWO | {"size": None}), ValueError, "needs a public number"),
    (lambda: exact_loss(LAPLACE, **OF_TWO, d_in=-1), ValueError, "d_in=-1: must be 0 or greater"),
    (lambda: exact_loss(LAPLACE, **OF_TWO | {"size": 0}), ValueError, "size=0: must be between 1"),
    (lambda: privacy_profile(LAPLACE, size=3, prior=[1.0]), ValueError, r"has shape \(1,\)"),
    (lambda: privacy_profile(LAPLACE, **OF_TWO)(-0.1), ValueError, r"=-0\.1: must be at least 0\."),
    (lambda: privacy_profile(LAPLACE, **OF_TWO)([0.0, math.nan]), ValueError, "epsilon=.*least 0"),
    (lambda: privacy_profile(LAPLACE, **OF_TWO).epsilon(1.5), ValueError, r"=1\.5: .*0 and 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refuses(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_delta_from_bounds_is_at_most_one_and_errors_grow_with_exponents() -> None:
    pairs = pairs_of(Setting.of(PermuteAndFlip(1e-8), 3, (1.0, 1.0)), Distance.of(1), 10**6)
    assert pairs.log_error > 2.0**-53 / 1e-8
    for epsilon in (600.0, 900.0):
        loss = PrivacyLoss(epsilon=epsilon, range=epsilon, rho=math.inf)
        assert delta_from_bounds(loss, 0.0) == 1.0
    local = HellingerExponential(2.0, sensitivity="local").proven_loss(1, size=10, prior=np.ones(2))
    assert delta_from_bounds(local, 3.0) == 1.0


# Errors of the probabilities, so large that each part of a certificate shows.
@dataclass(frozen=True)
class Known:
    """One pair whose log-probabilities are known within `log_error`."""

    log_p: tuple[float, ...]
    log_q: tuple[float, ...]
    log_error: float
    method: str = "exact"

    def blocks(self) -> Iterator[Block]:
        logs = (np.array(of)[:, None] for of in (self.log_p, self.log_q))
        yield Block(np.array([[0, 1]]), np.array([[1, 0]]), *logs)


def spoiled(p: Any, q: Any, up: Any, error: float) -> Known:
    """Laws computed wrongly by all of the error: P too low and Q too high where `up`."""
    change = np.where(up, error, -error)
    return Known(tuple(np.log(p) - change), tuple(np.log(q) + change), error)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Without what was kept, and keeping nothing of what a test has changed."""
    # Before they are replaced.
    caches = (module._loss_of_pairs, pairs_of, module._examine, module.curve_of)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


P, Q = np.array([0.25, 0.6, 0.15]), np.array([0.2, 0.6, 0.2])


@pytest.mark.parametrize("error", [1e-3, 0.05, 0.5])
def test_a_delta_holds_for_every_law_within_the_error(error: float) -> None:
    """Ratios are off by two errors, which at some ε hides every outcome that counts."""
    unnoticed = 0
    for up in product((True, False), repeat=3):
        pairs = spoiled(P, Q, up, error)
        for epsilon in np.linspace(0, 0.3, 31):
            truth = max(
                sum(max(a - math.exp(epsilon) * b, 0) for a, b in zip(*pair, strict=True))
                for pair in ((P, Q), (Q, P))
            )
            assert truth <= module._delta_of(pairs, float(epsilon)) + 1e-16
            unnoticed += (
                float(np.max(hockey_stick(next(pairs.blocks()), float(epsilon))))
                < (1 - 3 * error) * truth
            )
    assert unnoticed or error > 0.3  # negative control: the computed divergence itself is too small


def test_a_delta_has_room_for_the_rounding_of_its_sum_and_is_never_zero() -> None:
    """`2^-32` is above `2^20` roundings; and what is below the floats is not nothing."""
    certain = Known(tuple(np.log(P)), tuple(np.log(Q)), 0.0)
    computed = float(hockey_stick(next(certain.blocks()), 0.1)[0])
    assert Fraction(module._delta_of(certain, 0.1)) >= Fraction(computed) * (1 + Fraction(1, 2**32))
    rare = Known((0.0, -800.0), (0.0, -900.0), 0.0)
    assert hockey_stick(next(rare.blocks()), 0.1) == 0
    assert module._delta_of(rare, 0.1) >= math.exp(-700)
    assert module._delta_of(replace(certain, log_error=101.0), 0.1) == 1.0
    loss = PrivacyLoss(epsilon=1.0, range=2.0, rho=1.0)
    pure = -math.expm1(0.3 - 1.0) / (1 + math.exp(-1.0))
    assert Fraction(delta_from_bounds(loss, 0.3)) >= Fraction(pure) * (1 + Fraction(1, 2**33))
    wide = replace(loss, range=800.0)
    assert Fraction(delta_from_bounds(wide, 0.3)) >= Fraction(pure) * (1 + Fraction(1, 2**33))
    close = PrivacyLoss(epsilon=1.0, range=1.0, rho=1.0)
    spread = (math.exp(0.5) * -math.expm1((0.3 - 1.0) / 2)) ** 2 / math.expm1(1.0)
    assert spread < pure
    assert Fraction(delta_from_bounds(close, 0.3)) >= Fraction(spread) * (1 + Fraction(1, 2**33))


@pytest.mark.parametrize("error", [1e-3, 0.05, 0.5])
def test_a_loss_holds_for_every_law_within_the_error(error, fresh, monkeypatch):
    """Two errors of ε, four of the range, and the concentrated loss of every order."""
    ratio = np.log(P / Q)
    certain = Known(tuple(np.log(P)), tuple(np.log(Q)), 0.0)
    renyi = float(
        concentrated(next(certain.blocks()), 0.0, np.max(np.abs(ratio), keepdims=True))[0]
    )
    for up in product((True, False), repeat=3):
        pairs = spoiled(P, Q, up, error)
        monkeypatch.setattr(module, "pairs_of", lambda *arguments, pairs=pairs: pairs)
        module._examine.cache_clear()
        for with_renyi in (True, False):
            setting = Setting(HellingerExponential(1.0), 1, (1.0, 1.0))
            found, _ = module._examine(setting, 1, with_renyi)
            assert Fraction(found.epsilon) >= Fraction(float(abs(ratio).max())) - Fraction(1, 2**50)
            assert Fraction(found.range) >= Fraction(float(np.ptp(ratio))) - Fraction(1, 2**50)
            assert found.rho >= min(renyi, float(np.ptp(ratio)) ** 2 / 8) * (1 - 1e-12)
            assert found.rho <= found.range**2 / 8 * (1 + 1e-12)


def test_the_errors_of_a_loss_are_added_exactly_and_rounded_up(fresh, monkeypatch):
    for error in np.linspace(1e-9, 0.3, 40).tolist():
        pairs = Known((-1.0, -2.0), (-2.0, -1.0 - 2.0**-20), error)
        monkeypatch.setattr(module, "pairs_of", lambda *arguments, pairs=pairs: pairs)
        module._examine.cache_clear()
        found, _ = module._examine(Setting(HellingerExponential(1.0), 1, (1.0, 1.0)), 1, False)
        assert Fraction(found.epsilon) >= 1 + 2 * Fraction(error)
        assert Fraction(found.range) >= 2 - Fraction(1, 2**20) + 4 * Fraction(error)
        assert Fraction(found.rho) >= Fraction(found.range) ** 2 / 8


def test_a_pair_is_passed_over_only_where_its_error_is_counted(fresh, monkeypatch):
    """The loss is at least that of each pair, or what its range with four errors allows."""
    error, second, between = 4e-3, 2.0, 0

    def symmetric(spread: float) -> tuple[Any, Any]:
        log_p = np.log([1 / (1 + math.exp(-spread / 2)), 1 / (1 + math.exp(spread / 2))])
        return log_p, log_p[::-1]

    class Several(Known):
        def blocks(self) -> Iterator[Block]:
            # The rare one has the largest range, which would otherwise bound all of them.
            rare = np.array([0.0, -30 * math.log(10)]), np.array([0.0, -33 * math.log(10)])
            for p, q in (symmetric(self.log_p[0]), rare, symmetric(second)):
                yield Block(np.array([[0, 1]]), np.array([[1, 0]]), p[:, None], q[:, None])

    for spread in np.linspace(1.0, 2.0, 201).tolist():
        pairs = Several((spread,), (), error)
        monkeypatch.setattr(module, "pairs_of", lambda *arguments, pairs=pairs: pairs)
        module._examine.cache_clear()

        def bound(block):
            widest = np.nanmax(np.abs(block.log_ratio), axis=0)
            by_range = (np.ptp(block.log_ratio) + 4 * error) ** 2 / 8
            return min(float(concentrated(block, error, widest)[0]), by_range)

        alone = list(map(bound, pairs.blocks()))
        allowed = alone[2]
        found, _ = module._examine(Setting(HellingerExponential(1.0), 1, (1.0, 1.0)), 1, True)
        assert found.rho >= max(alone) * (1 - 1e-12)
        assert found.range >= max(np.ptp(block.log_ratio) for block in pairs.blocks())
        assert found.epsilon >= max(np.abs(block.log_ratio).max() for block in pairs.blocks())
        between += (second + 2 * error) ** 2 / 8 <= max(alone[:2]) < allowed
    assert between > 0


def test_losses_of_groups_are_rounded_up(fresh, monkeypatch) -> None:
    """Beyond what is examined: `d^2` times neighbours', or an eighth of the squared range."""
    values = [0.1, 0.3, 0.7]
    for number, rest in product(range(1, 12), range(3)):
        largest = max(map(Fraction, values[:rest]), default=Fraction(0))
        assert Fraction(module._repeated(values, number, rest)) >= number * Fraction(0.7) + largest
    monkeypatch.setattr(module, "largest_group", lambda setting: 1)
    mechanism = HellingerExponential(1.0, sensitivity="local")
    for value in np.linspace(0.1, 3.3, 30).tolist():
        for of_pair, spread in ((value, 1e3), (1e6, value)):
            found = PrivacyLoss(epsilon=9.0, range=spread, rho=of_pair), ()
            monkeypatch.setattr(module, "_examine", lambda *arguments, found=found: found)
            module._loss_of_pairs.cache_clear()
            rho = Fraction(exact_loss(mechanism, size=5, prior=(1.0, 1.0), d_in=3).rho)
            assert rho >= min(9 * Fraction(of_pair), Fraction(spread) ** 2 / 8)


@pytest.mark.parametrize("prior", [(1.0, 1.0, 1.0), (0.3, 2.0)])
def test_the_error_of_the_mechanism_is_that_of_its_pairs(prior, fresh, monkeypatch):
    for kind in (HellingerExponential, SmoothHellingerExponential):
        monkeypatch.setattr(kind, "log_error", lambda self, size, prior: 0.1)
        pairs = pairs_of(Setting.of(kind(0.7), 5, prior), Distance.of(1), 10**6)
        assert pairs is not None
        assert pairs.log_error >= 0.1
    monkeypatch.setattr(pairs_module, "LAW_ERROR", 0.1)
    pairs = pairs_of(Setting.of(PermuteAndFlip(2.0**-20), 5, prior), Distance.of(1), 10**6)
    assert pairs is not None
    assert Fraction(pairs.log_error) >= Fraction(0.1) + Fraction(1, 2**30)


def test_the_error_of_noise_is_that_of_every_count_that_moves(fresh, monkeypatch):
    monkeypatch.setattr(pairs_module, "laplace_error", lambda moved, scale: 0.1 * moved)
    monkeypatch.setattr(pairs_module, "knorm_error", lambda k, scale: 0.1)
    for mechanism, size, prior, d_in, error in (
        (LaplaceParameters(1.0), 5, (1.0, 1.0), 3, 0.3),
        (LaplaceParameters(1.0), 5, (1.0, 1.0, 1.0), 2, 0.4),
        (LaplaceParameters(1.0, total="bounded"), 5, (1.0, 1.0), 1, 0.2),
        (LaplaceParameters(1.0, total="private"), None, (1.0, 1.0), 2, 0.2),
        (KNormParameters(1.0), 5, (1.0, 1.0, 1.0), 1, 0.1),
    ):
        pairs = pairs_of(Setting.of(mechanism, size, prior), Distance.of(d_in), 10**6)
        assert pairs is not None
        assert pairs.log_error >= error


def test_the_concentrated_loss_of_noise_counts_its_error_for_every_copy() -> None:
    certain = module._concentrated_of(NoisePairs((np.log(P), np.log(Q)), 0.0, copies=2))
    block = next(NoisePairs((np.log(P), np.log(Q)), 0.0).blocks())
    with_error, without = (
        2 * concentrated(block, error, np.max(block.log_ratio, axis=0), FINE_ORDERS_LESS_ONE)[0]
        for error in (0.05, 0.0)
    )
    assert certain == without < 0.5 * with_error
    spoilt = module._concentrated_of(NoisePairs((np.log(P), np.log(Q)), 0.05, copies=2))
    assert spoilt == with_error


@pytest.mark.parametrize(
    ("mechanism", "size", "prior"),
    [
        (HellingerExponential(0.125), 6, (1.0, 1.0)),
        (SmoothHellingerExponential(1.0, gamma=1.0), 3, (1e-3,) * 3),
        (PermuteAndFlip(1.0), 4, (1e3,) * 3),
        (HellingerExponential(7.3), 30, (0.3, 0.3)),
    ],
)
@pytest.mark.parametrize("d_in", [1, 2, 3])
def test_a_concentrated_loss_of_a_group_is_that_of_its_pairs(mechanism, size, prior, d_in):
    """Not `d^2` times that of neighbours: within 6 % of the supremum over orders and pairs."""
    sets = [tuple(row) for row in candidates(size, len(prior)).tolist()]
    logs = {counts: mechanism.log_pmf(list(counts), list(prior))[1] for counts in sets}
    orders, largest = 1 + np.geomspace(1e-3, 1e5, 600)[:, None], 0.0
    for first, second in product(sets, sets):
        if 0 < np.abs(np.subtract(first, second)).sum() <= 2 * d_in:
            tilted = orders * logs[first] + (1 - orders) * logs[second]
            renyi = special.logsumexp(tilted, axis=1) / (orders[:, 0] - 1) / orders[:, 0]
            largest = max(largest, float(renyi.max()))
    rho = exact_loss(mechanism, size=size, prior=prior, d_in=d_in).rho
    assert largest <= rho <= 1.06 * largest


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "mechanism",
    [
        ob.mechanisms.HellingerExponential(0.5),
        ob.mechanisms.SmoothHellingerExponential(3.0, gamma=1.0),
        ob.mechanisms.PermuteAndFlip(0.5),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_pairs_are_compared_up_to_a_limit_that_counts_those_of_the_distance(mechanism, k, records):
    setting = Setting.of(mechanism, 7, (1.0,) * k)
    of_flips = mechanism.name == "permute_and_flip"
    work = (enumeration.work if of_flips else work_of)(7, (1.0,) * k, records)
    assert pairs_of(setting, Distance.of(records), work) is not None
    assert pairs_of(setting, Distance.of(records), work - 1) is None
