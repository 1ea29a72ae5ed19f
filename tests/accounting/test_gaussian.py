"""The Gaussian pair against all neighbours, a second accountant, and too little noise."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from opendp_bayes import GaussianParameters, calibrate, exact_loss, privacy_profile
from opendp_bayes.accounting import gaussian as gaussian_module
from opendp_bayes.mechanisms.integer_noise import log_theta
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes_research import privacy_loss_distribution
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

EPSILONS = (0.0, 0.1, 0.5, 1.0, 3.0, 12.0)
ORDERS = (1.001, 1.5, 2.0, 3.0)


def mass(scale: float, shift: int, reach: int) -> Any:
    """`P(z) ∝ exp(-z^2 / (2 scale^2))`, summed to one, moved by `shift`."""
    z = np.arange(-reach, reach + 1)
    far = np.arange(-reach - 50, reach + 51)
    return np.exp(-(((z - shift) / scale) ** 2) / 2) / np.exp(-((far / scale) ** 2) / 2).sum()


def moved(scale: float, moves: tuple[int, ...]) -> tuple[Any, Any]:
    """The laws of noised counts, before and after each moves by so much: all outcomes."""
    reach = math.ceil(9 * scale) + max(map(abs, moves))
    p = q = np.ones(1)
    for move in moves:
        p = np.multiply.outer(p, mass(scale, 0, reach)).ravel()
        q = np.multiply.outer(q, mass(scale, move, reach)).ravel()
    return p, q


def delta(p: Any, q: Any, epsilon: float) -> float:
    factor = math.exp(epsilon)
    return max(float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p)))


def rho(p: Any, q: Any) -> float:
    """The largest Renyi divergence over its order on a grid of orders."""
    seen = (p > 0) & (q > 0)
    p, q = np.log(p[seen]), np.log(q[seen])
    return max(float(logsumexp(a * p - (a - 1) * q)) / (a - 1) / a for a in ORDERS)


def every_move(d_in: int, public: bool) -> list[tuple[int, ...]]:
    """How three counts can move at a distance of up to `d_in`."""
    steps = product(range(-d_in, d_in + 1), repeat=3)
    if public:
        return [s for s in steps if sum(s) == 0 and 0 < sum(map(abs, s)) <= 2 * d_in]
    return [s for s in steps if 0 < sum(map(abs, s)) <= d_in]


@pytest.mark.parametrize(
    ("public", "scale", "d_in"), some_of(product([True, False], [0.3, 0.8, 1.7], [1, 2]), 6)
)
def test_all_neighbours(public: bool, scale: float, d_in: int) -> None:
    """The largest over all neighbours, which noise of a smaller scale exceeds."""
    size = 50 if public else None
    mechanism = GaussianParameters(scale)
    profile = privacy_profile(mechanism, size=size, prior=[1.0] * 3, d_in=d_in)
    loss = exact_loss(mechanism, size=size, prior=[1.0] * 3, d_in=d_in)
    assert (profile.method, loss.method, loss.epsilon) == ("exact", "exact", math.inf)
    assert loss.rho == pytest.approx((2 if public else 1) * d_in**2 / 2 / scale**2, rel=1e-15)
    pairs = [moved(scale, moves) for moves in every_move(d_in, public)]
    for epsilon in EPSILONS:
        largest = max(delta(p, q, epsilon) for p, q in pairs)
        assert largest <= profile(epsilon) + 1e-15
        assert largest == pytest.approx(profile(epsilon), rel=1e-8, abs=1e-15)
    assert max(rho(p, q) for p, q in pairs) == pytest.approx(loss.rho, rel=1e-6)
    too_little = [moved(0.9 * scale, moves) for moves in every_move(d_in, public)]
    assert max(delta(p, q, 1.0) for p, q in too_little) > profile(1.0)
    assert max(rho(p, q) for p, q in too_little) > loss.rho


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("scale", [2.0**-40, 0.2, 1.0, 6.0, 90.0])
@pytest.mark.parametrize("distance", [1, 3, 40])
def test_pair(copies: int, scale: float, distance: int) -> None:
    """Against the sum over the noise, by convolution."""
    reach = math.ceil(12 * scale) + 1
    z = np.arange(-copies * reach, copies * reach + 1)
    p = mass(scale, 0, reach)
    p = np.convolve(p, p) if copies == 2 else p
    with np.errstate(over="ignore"):
        loss = copies * distance * (2 * z + copies * distance) / (2 * copies * scale**2)
    for epsilon in EPSILONS:
        truth = float(np.sum(p * -np.expm1(np.minimum(epsilon - loss, 0.0))))
        found = gaussian_module.GaussianPair(scale, distance, copies).delta(epsilon)
        assert truth * (1 - 1e-13) - 1e-17 <= found <= truth * (1 + 1e-9) + 1e-16


@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("scale", [0.3, 0.6, 1.0, 2.5])
def test_moving_one_count_dominates_moving_several(scale: float, parts: tuple[int, ...]) -> None:
    shared, alone = moved(scale, parts), moved(scale, (sum(parts),))
    for epsilon in np.linspace(0, sum(parts) ** 2 / scale**2, 40):
        assert delta(*shared, epsilon) <= delta(*alone, epsilon) + 1e-14
    assert delta(*shared, 0.5) < delta(*alone, 0.5)


def test_beyond_the_largest_table_delta_follows_from_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above what a sum gives, also for losses below 0, and said to be proven."""
    cases = (300.0, 1, 1), (300.0, 60, 2), (900.0, 500, 1), (150.0, 900, 2)
    for scale, distance, copies in cases:
        for epsilon in (-0.7, 0.0, 0.01, 0.4, 2.0, 30.0):
            truth = gaussian_module.GaussianPair(scale, distance, copies).delta(epsilon)
            with monkeypatch.context() as patched:
                patched.setattr(gaussian_module, "_LARGEST_TABLE", scale * math.sqrt(copies) - 1)
                found = gaussian_module.GaussianPair(scale, distance, copies).delta(epsilon)
            assert truth <= found <= 1
            assert epsilon <= 0 or found < max(20 * truth, 1e-250) or truth > 0.05
    profile, beyond = (
        privacy_profile(GaussianParameters(scale), size=None, prior=[1.0, 1.0], d_in=10**4)
        for scale in (1e5, 1.0001e5)
    )
    assert (profile.method, beyond.method) == ("exact", "proven")
    assert profile.epsilon(1e-6) < beyond.epsilon(1e-6) < 1.25 * profile.epsilon(1e-6)


def test_sums_are_taken_up_to_large_scales() -> None:
    found = gaussian_module.GaussianPair(2000.0, 1, 1).delta(0.0)
    mu = 1 / 2000.0
    assert found == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-6)


@pytest.mark.parametrize("copies", [3, 4, 7, 20, 64])
@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 1.9, 2.0, 6.0, 40.0])
def test_several_counts(copies: int, scale: float) -> None:
    """Against the sum over the noise, by convolution, also where losses are below 0."""
    reach = math.ceil(9 * scale) + 1
    one = mass(scale, 0, reach)
    p = one
    for _ in range(copies - 1):
        p = np.convolve(p, one)
    z = np.arange(p.size) - p.size // 2
    loss = copies * (2 * z + copies) / (2 * copies * scale**2)
    for epsilon in (-3.0, -0.2, *EPSILONS):
        truth = float(np.sum(p * -np.expm1(np.minimum(epsilon - loss, 0.0))))
        found = gaussian_module.GaussianPair(scale, 1, copies).delta(epsilon)
        assert truth * (1 - 1e-12) - 1e-17 <= found <= truth * (1 + 1e-11) + 1e-16


@pytest.mark.parametrize("moved", [1, 2])
@pytest.mark.parametrize("scale", [0.4, 30.0])
def test_no_worst_pair_is_farther_apart_than_all_records_in_one_count(scale, moved):
    """Nor has it so many counts that the remainders of a narrow law cannot be told apart."""
    for records, largest in product((1, 2, 3, 4, 7, 200), repeat=2):
        distance = Distance.limited(records, largest)
        pair = gaussian_module.GaussianPair.worst(scale, distance, moved)
        assert pair.moved % moved == 0
        squared = pair.moved // moved * pair.distance**2
        assert distance.squared <= squared <= records**2
        assert scale > gaussian_module._ALIKE or pair.moved <= gaussian_module._MOST_APART


def test_remainders_are_alike_from_where_they_are_taken_for_so() -> None:
    """The weights of all remainders, as they are found where the scale is smaller."""
    scale = gaussian_module._ALIKE * (1 - 1e-9)
    for copies in (2, 3, 10, 64):
        apart = gaussian_module.GaussianPair(scale, 1, copies)._log_weights
        assert apart.size == copies
        assert np.ptp(apart) < 3e-14
        assert apart == pytest.approx(-log_theta(scale * math.sqrt(copies), 0.0), rel=1e-13)
        too_small = gaussian_module.GaussianPair(scale / 3, 1, copies)._log_weights
        assert np.ptp(too_small) > 1e-3


@pytest.mark.parametrize(
    "scale", [0.3, 1.0, 5.2, 60.0, pytest.param(5000.0, marks=pytest.mark.slow)]
)
def test_a_tail_is_enclosed(scale: float) -> None:
    """By ball arithmetic, also where it is tiny or nearly one."""
    for first in (-3, 0, 1, 2, round(2.5 * scale), round(6 * scale), round(9 * scale)):
        low, high = gaussian_module.GaussianPair(scale, 1, 1).tail(first)
        truth = _tail_in_balls(scale, first)
        assert oracles.real(low) <= truth <= oracles.real(high)
        assert high - low <= high * Fraction(2, 10**11)


def _tail_in_balls(scale: float, first: int) -> Any:
    variance = 2 * oracles.real(scale) ** 2
    reach = math.ceil(14 * scale) + 14 + abs(first)
    weights = {z: (-(oracles.real(z) ** 2) / variance).exp() for z in range(reach + 1)}
    total = weights[0] + 2 * sum(list(weights.values())[1:])
    return sum(weights[abs(z)] for z in range(first, reach + 1)) / total


def test_the_stated_error_covers_that_of_a_sum_and_deltas_are_from_0_to_1() -> None:
    """By ball arithmetic, of terms whose exponents are small and large."""
    rng = np.random.default_rng(0)
    for size, depth in ((10, 1.0), (1000, 40.0), (30, 700.0)):
        log_p, factors = -depth * rng.random(size), rng.random(size)
        found, error = gaussian_module._summed(log_p, factors)
        pairs = zip(log_p.tolist(), factors.tolist(), strict=True)
        truth = sum(oracles.real(x).exp() * oracles.real(f) for x, f in pairs)
        assert abs(oracles.real(found) - truth) <= error <= 1e-10 * found
        assert error >= found * 2.0**-53 * size
    # The last term that is taken is of less than e^-40 of the first.
    assert gaussian_module._REACH**2 / 2 >= 40
    pair = gaussian_module.GaussianPair(1.0, 1, 2)
    assert 0 < pair.delta(1e9) < 1e-300
    assert gaussian_module.GaussianPair(2.0**-40, 10**6, 1).delta(0.0) == 1.0


@pytest.mark.parametrize("size", [50, None])
@pytest.mark.parametrize(
    ("asked", "limit"), [({"epsilon": 1.0, "delta": 1e-6}, 1e-6), ({"rho": 0.1}, 0)]
)
def test_calibration_meets_the_budget(size, asked, limit):
    found = calibrate(GaussianParameters(1.0), size=size, prior=[1.0, 1.0], **asked)
    smaller = GaussianParameters(found.scale * 0.999)
    if limit:
        for mechanism, within in ((found, True), (smaller, False)):
            profile = privacy_profile(mechanism, size=size, prior=[1.0, 1.0])
            assert (profile(1.0) <= limit) is within
            assert (profile.epsilon(limit) <= 1.0) is within
    else:
        assert exact_loss(found, size=size, prior=[1.0, 1.0]).rho <= 0.1
        assert exact_loss(smaller, size=size, prior=[1.0, 1.0]).rho > 0.1


def test_the_profile_is_better_than_a_conversion_from_rho() -> None:
    mechanism = GaussianParameters(6.0)
    profile = privacy_profile(mechanism, size=50, prior=[1.0, 1.0])
    proven = mechanism.proven_loss(1, size=50, prior=np.ones(2), delta=1e-6)
    assert proven.delta == 1e-6
    assert profile.epsilon(1e-6) < 0.85 * proven.epsilon
    assert profile.epsilon(0.0) == math.inf
    with pytest.raises(ValueError, match=r"no ε without δ.* or rho"):
        calibrate(GaussianParameters(1.0), size=50, prior=[1.0, 1.0], epsilon=1.0)


# A second accountant.
@pytest.mark.parametrize(
    ("scale", "d_in", "size"), some_of(product((1.0, 3.5, 20.0), (1, 2, 3), (None, 50)), 2)
)
def test_dp_accounting_agrees(size: int | None, scale: float, d_in: int) -> None:
    """Its discrete Gaussian, once for each count that moves, and our export of the profile."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism

    one = from_discrete_gaussian_mechanism(
        scale, sensitivity=d_in, value_discretization_interval=1e-4
    )
    theirs = one if size is None else one.self_compose(2)
    setting: dict[str, Any] = {"size": size, "prior": [1.0, 1.0], "d_in": d_in}
    profile = privacy_profile(GaussianParameters(scale), **setting)
    ours = privacy_loss_distribution(GaussianParameters(scale), **setting, interval=1e-3)
    wrong = privacy_profile(GaussianParameters(0.97 * scale), **setting)
    for epsilon in (0.0, 0.2, 0.7, 2.0):
        expected = theirs.get_delta_for_epsilon(epsilon)  # rounded up to its grid
        assert expected * (1 - 2e-2) - 1e-9 <= profile(epsilon) <= expected + 1e-9
        assert profile(epsilon) - 1e-12 <= ours.get_delta_for_epsilon(epsilon)
        assert ours.get_delta_for_epsilon(epsilon) <= profile(epsilon) * 1.01 + 1e-9
    assert any(wrong(e) > theirs.get_delta_for_epsilon(e) for e in (0.2, 0.7, 2.0))
    # Ten releases: what the export composes to.
    ten = ours.self_compose(10).get_epsilon_for_delta(1e-6)
    assert ten == pytest.approx(theirs.self_compose(10).get_epsilon_for_delta(1e-6), rel=0.02)


@pytest.mark.parametrize("d_in", [2, 5])
@pytest.mark.parametrize("size", [None, 4, 50])
def test_the_epsilon_of_several_records_has_the_delta_asked_for(size, d_in):
    """And a smaller one has not; where ε is infinite without δ."""
    profile = privacy_profile(GaussianParameters(3.0), size=size, prior=[1.0, 2.0, 3.0], d_in=d_in)
    for delta in (1e-9, 1e-3, 0.05):
        epsilon = profile.epsilon(delta)
        assert profile(epsilon) <= delta < profile(0.999 * epsilon)


@pytest.mark.parametrize(("records", "largest"), [(4, 2), (4, 4), (5, 2), (7, 3)])
def test_a_distance_that_no_counts_have_exactly_is_said_to_be_a_bound(
    records: int, largest: int
) -> None:
    """Of five records of which two are in one cell at most, one is left over."""
    pair = gaussian_module.GaussianPair.worst(2.0, Distance.limited(records, largest), 1)
    assert pair.method == ("proven" if records % largest else "exact")
