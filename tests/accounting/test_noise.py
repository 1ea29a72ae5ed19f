"""The pair of additive noise against all neighbours, and Rényi divergences on a fine grid."""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from opendp_bayes import KNormParameters, LaplaceParameters, exact_loss, privacy_profile
from opendp_bayes.accounting import noise as noise_module
from opendp_bayes.accounting.divergences import (
    Block,
    concentrated,
    extremes,
    hockey_stick,
    orders_less_one,
)
from opendp_bayes.accounting.noise import knorm_step, knorm_steps, laplace_shift
from opendp_bayes.mathematics import zero_sum
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace, FlooredLaplace
from tests.helpers import oracles
from tests.helpers.sweeps import pairs_of

EPSILONS = (0.0, 0.2, 0.7, 1.3, 2.9)
FINE = np.concatenate([[1e-6, 1e-4], np.geomspace(1e-3, 300, 800)])


def one_pair(log_p: Any, log_q: Any) -> Block:
    none = np.zeros((1, 0), dtype=np.int64)
    return Block(none, none, *(np.asarray(of, dtype=float)[:, None] for of in (log_p, log_q)))


def independent(laws: Any) -> tuple[Any, Any]:
    """The pair of products of pairs of distributions."""
    log_p, log_q = np.zeros(1), np.zeros(1)
    for p, q in laws:
        log_p, log_q = np.add.outer(log_p, p).ravel(), np.add.outer(log_q, q).ravel()
    return log_p, log_q


def profile_of(log_p: Any, log_q: Any) -> list[float]:
    block = one_pair(log_p, log_q)
    return [float(hockey_stick(block, epsilon)[0]) for epsilon in EPSILONS]


NOISES: dict[str, Any] = {"discrete": DiscreteLaplace, "floored": FlooredLaplace}


@pytest.mark.parametrize(
    ("noise", "scale", "moved"), pairs_of(product(NOISES, [0.3, 1.0, 4.0], [1, 2, 3, 4]))
)
def test_laplace_shift(noise: str, scale: float, moved: int) -> None:
    """Noise and the same noise moved, over integers as far as floats reach."""
    log_p, log_q = laplace_shift(moved, NOISES[noise](scale))
    assert np.exp([logsumexp(log_p), logsumexp(log_q)]) == pytest.approx([1, 1], abs=1e-14)
    reach = math.ceil(40 * scale) + moved
    p, q = (
        np.array([oracles.CELLS[noise](z - m, scale) for z in range(-reach, reach + 1)])
        for m in (0, moved)
    )
    assert float(np.max(log_p - log_q)) == pytest.approx(moved / scale, rel=1e-12)
    for epsilon, value in zip(EPSILONS, profile_of(log_p, log_q), strict=True):
        assert value == pytest.approx(np.maximum(p - math.exp(epsilon) * q, 0).sum(), abs=1e-12)


@pytest.mark.parametrize("noise", ["discrete", "floored"])
@pytest.mark.parametrize("total", ["remainder", "bounded"])
@pytest.mark.parametrize("k", [2, 3])
def test_laplace_noise_on_counts(noise: Any, total: Any, k: int) -> None:
    """Over all pairs within the distance: never above, equal where no clamp is in the way."""
    for scale, size, d_in in product(
        (0.4, 2.0), (1, 2, 5) if k == 2 or total == "remainder" else (1, 3), (1, 2, 4)
    ):
        mechanism = LaplaceParameters(scale, noise=noise, total=total)
        _, log_p = oracles.log_laws(mechanism, size, (1.0,) * k)
        away = oracles.distances(size, k)
        profile = privacy_profile(mechanism, size=size, prior=(1.0,) * k, d_in=d_in)
        for epsilon in EPSILONS:
            found = oracles.over_pairs(log_p, away, d_in, oracles.hockey_stick(epsilon))
            assert found <= profile(epsilon) + 1e-13
            if k == 2 and d_in <= 2 and size == 5:
                assert found == pytest.approx(profile(epsilon), abs=1e-9)
        if d_in == size == 2:
            rho = exact_loss(mechanism, size=size, prior=(1.0,) * k, d_in=d_in).rho
            assert oracles.over_pairs(log_p, away, d_in, oracles.rho_between) <= rho + 1e-12


@pytest.mark.parametrize("noise", ["discrete", "floored"])
@pytest.mark.parametrize("size", [None, 12])
def test_laplace_noise_with_a_private_total(noise: Any, size: int | None) -> None:
    """Two counts, clamped at zero only, and every way to add, remove or change records."""
    cell, marginal = oracles.noise_law(noise, 0.8), {}
    for count in range(6):
        below = math.fsum(p for z, p in cell.items() if z <= -count)
        marginal[count] = np.log([below, *(cell[y - count] for y in range(1, 36))])
    laws = {
        counts: (marginal[counts[0]][:, None] + marginal[counts[1]]).ravel()
        for counts in product(range(6), repeat=2)
    }
    for d_in in (1, 2, 3):
        mechanism = LaplaceParameters(0.8, noise=noise, total="private")
        profile = privacy_profile(mechanism, size=size, prior=[1.0, 1.0], d_in=d_in)
        for epsilon in EPSILONS:
            found = 0.0
            for first, second in product(laws, repeat=2):
                step = np.subtract(second, first)
                near = (
                    np.abs(step).sum() <= d_in
                    if size is None
                    else step.sum() == 0 and np.abs(step).sum() <= 2 * d_in
                )
                if near and any(step):
                    found = max(
                        found, float(oracles.hockey_stick(epsilon)(laws[first], laws[second]))
                    )
            assert found == pytest.approx(profile(epsilon), abs=1e-9)
            assert found <= profile(epsilon)


PARTS = [(1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1), (2, 1, 1), (1, 1, 1, 1)]


@pytest.mark.parametrize(
    ("noise", "scale", "parts"), pairs_of(product(NOISES, [0.3, 1.0, 5.0], PARTS))
)
def test_moving_one_count_dominates_moving_several(noise, scale, parts):
    """A shared distance gives no larger δ at any ε, nor a larger Rényi divergence."""
    alone = one_pair(*laplace_shift(sum(parts), NOISES[noise](scale)))
    shared = one_pair(*independent([laplace_shift(part, NOISES[noise](scale)) for part in parts]))
    largest = sum(parts) / scale
    strictly = 0.0
    for epsilon in np.linspace(0, largest, 60):
        less, more = float(hockey_stick(shared, epsilon)[0]), float(hockey_stick(alone, epsilon)[0])
        assert less <= more + 1e-14
        strictly = max(strictly, more - less)
    assert strictly > 1e-4
    for order in (1.01, 2.0, 7.0):
        assert renyi(shared, order) <= renyi(alone, order) * (1 + 1e-12)


@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.4, 1.0, 6.0])
def test_k_norm_steps_of_two_categories_are_discrete_laplace_noise(scale, distance):
    """One change after the other is then one move."""
    steps = one_pair(*knorm_steps(2, scale, distance))
    shift = one_pair(*laplace_shift(distance, DiscreteLaplace(scale)))
    for epsilon in (*EPSILONS, 0.9 * distance / scale):
        expected = float(hockey_stick(shift, epsilon)[0])
        assert float(hockey_stick(steps, epsilon)[0]) == pytest.approx(expected, abs=1e-9)
    assert renyi(steps, 2.5) == pytest.approx(renyi(shift, 2.5), rel=1e-9)


@pytest.mark.parametrize("k", [3, 6])
def test_k_norm_steps_have_room_for_their_errors(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of one, and its probability."""
    applied = noise_module._applied
    seen: list[noise_module.Polygon] = []

    def spy(outer: noise_module.Polygon, inner: noise_module.Polygon) -> noise_module.Polygon:
        seen.append(outer)
        return applied(outer, inner)

    monkeypatch.setattr(noise_module, "_applied", spy)
    monkeypatch.setattr(noise_module, "knorm_error", lambda k, scale: 0.05)
    for scale in np.linspace(0.3, 7.7, 60).tolist():
        knorm_steps(k, scale, 2)
        least, most = seen[-1][1]
        rate = (-1 / oracles.real(scale)).exp()
        near = math.exp(float(knorm_step(k, scale)[0][0]))
        assert oracles.real(float(most)) >= oracles.real(near) * oracles.real(1.0499) or (
            most == 1 / (1 + least / most)
        )
        ratio = oracles.arb(least.numerator * most.denominator) / (
            least.denominator * most.numerator
        )
        assert ratio < rate


@pytest.mark.parametrize(("k", "scale", "reach"), [(3, 0.5, 14), (3, 1.2, 30), (4, 0.5, 12)])
@pytest.mark.parametrize("distance", [1, 2, 3])
def test_k_norm_noise_moved_by_several_records(k, scale, reach, distance):
    """Over every move, by enumeration: never above the bound, and near it."""
    noise = zero_sum.noise_vectors(reach, k)
    moves = zero_sum.noise_vectors(distance, k)
    moves = moves[np.abs(moves).sum(axis=1) == 2 * distance]
    moves = np.unique(np.sort(moves, axis=1), axis=0)
    profile = privacy_profile(KNormParameters(scale), size=50, prior=(1.0,) * k, d_in=distance)
    loss = exact_loss(KNormParameters(scale), size=50, prior=(1.0,) * k, d_in=distance)
    assert loss.rho < (0.95 if k > 2 else 1.0) * loss.epsilon**2 / 2
    for share in (0.0, 0.3, 0.6, 0.9):
        epsilon, found = share * loss.epsilon, {}
        for own in (scale, 0.8 * scale):
            norm = np.abs(noise).sum(axis=1) / 2
            total = np.exp(-norm / own).sum()

            p = np.exp(-norm / own)
            near = (np.exp(-np.abs(noise - v).sum(axis=1) / 2 / own) for v in moves)
            above = (np.maximum(p - math.exp(epsilon) * q, 0).sum() for q in near)
            found[own] = max(float(one / total) for one in above)
        assert found[scale] <= profile(epsilon) + 1e-9
        assert found[scale] >= (0.999 if distance == 1 else 0.6) * profile(epsilon) - 1e-9
        if share < 0.9:
            assert found[0.8 * scale] > found[scale]
    if distance == 1:
        assert found[0.8 * scale] > profile(epsilon)
    orders = np.array([1.001, 1.5, 2.0, 4.0])
    norm = np.abs(noise).sum(axis=1) / 2 / scale
    log_total = logsumexp(-norm)

    def rho(v, a):
        other = np.abs(noise - v).sum(axis=1) / 2 / scale
        return float(logsumexp(-a * norm + (a - 1) * other) - log_total) / (a - 1) / a

    largest = max(rho(v, a) for v in moves for a in orders)
    assert largest <= loss.rho * (1 + 1e-9)


# Rényi divergences.
def renyi(block: Block, order: Any) -> Any:
    """The larger of both directions, for one pair, at each order."""
    p, q = block.log_p[:, 0], block.log_q[:, 0]
    one, other = (
        logsumexp(np.multiply.outer(order, a) - np.multiply.outer(order - 1, b), axis=-1)
        for a, b in ((p, q), (q, p))
    )
    return np.maximum(one, other) / (order - 1)


def largest_renyi(block: Block, orders_less_one: Floats) -> float:
    """The largest divergence over its order."""
    orders = 1 + orders_less_one
    return float(np.max(renyi(block, orders) / orders))


PAIRS = {
    "Laplace": one_pair(*laplace_shift(1, DiscreteLaplace(0.7))),
    "Laplace, far": one_pair(*laplace_shift(4, FlooredLaplace(0.5))),
    "two counts": one_pair(*independent([laplace_shift(2, DiscreteLaplace(3.0))] * 2)),
    "K-norm": one_pair(*knorm_step(4, 1.5)),
    "lopsided": one_pair(np.log([0.999, 0.001]), np.log([0.9999, 0.0001])),
    "reversed": one_pair(np.log([0.9999, 0.0001]), np.log([0.999, 0.001])),
    "nearly equal": one_pair(np.log([0.5, 0.5]), np.log([0.5 + 1e-2, 0.5 - 1e-2])),
    "rare": one_pair([math.log1p(-1e-9), math.log(1e-9)], [math.log1p(-1e-30), math.log(1e-30)]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_concentrated(name: str) -> None:
    """Never below the divergence over its order on a fine grid, and at most some per cent above."""
    block = PAIRS[name]
    truth = largest_renyi(block, FINE)
    low, high = extremes(block)
    largest = np.maximum(high, -low)
    bound = float(concentrated(block, 0.0, largest)[0])
    assert truth * (1 - 1e-6) <= bound
    # Beyond the last order a small ε alone is a poor bound; there the range gives a good one, which
    # callers take with it.
    assert min(bound, float((high - low)[0]) ** 2 / 8) <= 1.15 * truth
    assert bound <= float(concentrated(block, 1e-6, largest)[0])


def test_concentrated_takes_the_larger_order_and_bounds_those_between() -> None:
    """Negative control: the orders alone are below the truth, the chords are not."""
    assert concentrated(PAIRS["lopsided"], 0.0, np.array([3.0])) == pytest.approx(
        concentrated(PAIRS["reversed"], 0.0, np.array([3.0])), rel=1e-12
    )
    block = PAIRS["Laplace, far"]
    at_orders = largest_renyi(block, orders_less_one(8.0))
    truth = largest_renyi(block, FINE)
    assert at_orders < truth <= float(concentrated(block, 0.0, np.array([8.0]))[0])


BY_LAWS = [HellingerExponential(0.4), HellingerExponential(2.0, sensitivity="local")]
BY_LAWS += [SmoothHellingerExponential(1.0), KNormParameters(0.6), LaplaceParameters(0.6)]


@pytest.mark.parametrize("mechanism", BY_LAWS, ids=str)
def test_the_concentrated_loss(mechanism: Any) -> None:
    """Over all pairs, a few per cent above the supremum and below what the range alone gives."""
    size, prior = 30, (1.0, 1.0)
    _, log_p = oracles.log_laws(mechanism, size, prior)
    truth = 0.0
    for p, q in pairwise(log_p):
        truth = max(truth, largest_renyi(one_pair(p, q), FINE[::8]))
    loss = exact_loss(mechanism, size=size, prior=prior)
    assert truth * (1 - 1e-6) <= loss.rho <= 1.05 * truth
    assert loss.rho <= loss.range**2 / 8 * (1 + 1e-12)


# The errors of the laws.
@pytest.mark.parametrize("noise", ["discrete", "floored"])
@pytest.mark.parametrize("scale", [2.0**-40, 1.1e-6, 0.3, 7.7, 1e6, 2.0**60])
@pytest.mark.parametrize("moved", [1, 2, 200])
def test_laplace_error_bounds_the_largest_term(moved, scale, noise, monkeypatch):
    """That of the cell at a large scale, and that of a far value at a small one."""
    log_p, log_q = laplace_shift(moved, NOISES[noise](scale))
    monkeypatch.setattr(noise_module, "_RELATIVE_ERROR", 0.1)
    assert noise_module.laplace_error(moved, scale) >= 0.1 * max(
        16.0, float(np.max(np.abs([log_p, log_q])))
    )


@pytest.mark.parametrize("noise", ["discrete", "floored"])
@pytest.mark.parametrize("scale", [1.1e-6, 3.3e-4, 0.3, 7.7, 1e9])
@pytest.mark.parametrize("moved", [1, 3])
def test_laplace_shift_is_within_its_error(moved: int, scale: float, noise: str) -> None:
    """Of the classes at both ends, in ball arithmetic."""
    log_p, log_q = laplace_shift(moved, NOISES[noise](scale))
    rate = 1 / oracles.real(scale)
    half = -(1 + (-rate).exp()).log() if noise == "discrete" else -oracles.real(2).log()
    less = half - rate * moved
    values = zip((log_p[0], log_p[-1], log_q[0], log_q[-1]), (half, less, less, half), strict=True)
    for value, truth in values:
        error = noise_module.laplace_error(moved, scale)
        assert abs(oracles.real(float(value)) - truth) <= oracles.real(error)


@pytest.mark.parametrize("scale", [2.0**-40, 1.1e-6, 0.3, 7.7, 2.0**60])
@pytest.mark.parametrize("k", [2, 3, 10, 400])
def test_knorm_error_bounds_the_largest_term_and_their_number(k, scale, monkeypatch):
    terms = [
        abs(2 * binomial - i / scale) for i, binomial in enumerate(zero_sum.log_binomials(k - 1))
    ]
    log_p, _ = knorm_step(k, scale)
    monkeypatch.setattr(noise_module, "_RELATIVE_ERROR", 0.1)
    largest = max(max(terms), float(np.max(np.abs(log_p[np.isfinite(log_p)]))))
    assert noise_module.knorm_error(k, scale) >= 0.1 * max(16.0 + k, largest)
    assert noise_module.knorm_error(k, scale) >= 0.1 * (16 + 4 * k + k / scale) * (1 - 2.0**-50)


@pytest.mark.parametrize("scale", [1.1e-6, 3.3e-4, 0.3, 7.7])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_knorm_step_is_within_its_error(k: int, scale: float) -> None:
    """The two ends, from sums of squared binomials in ball arithmetic."""
    q = (-1 / oracles.real(scale)).exp()
    below, here = (
        sum((math.comb(j, i) ** 2 * q**i for i in range(j + 1)), start=oracles.arb(0))
        for j in (k - 2, k - 1)
    )
    log_p, _ = knorm_step(k, scale)
    for value, truth in (
        (log_p[0], (below / here).log()),
        (log_p[2], (below / here).log() - 1 / oracles.real(scale)),
    ):
        error = noise_module.knorm_error(k, scale)
        assert abs(oracles.real(float(value)) - truth) <= oracles.real(error)


@pytest.mark.parametrize(("d_in", "size"), [(300, None), (3000, None), (300, 10**6), (361, 10**6)])
def test_many_records_that_move_one_count_are_accounted_for(d_in: int, size: int | None) -> None:
    """By Laplace noise moved by many scales; where two counts move, up to 360 records."""
    mechanism = LaplaceParameters(float(d_in), total="private" if size is None else "remainder")
    found = exact_loss(mechanism, size=size, prior=[1.0] * 3, d_in=d_in)
    profile = privacy_profile(mechanism, size=size, prior=[1.0] * 3, d_in=d_in)
    copies = 1 if size is None else 2
    assert found.epsilon == pytest.approx(copies)
    if d_in == 361:
        assert (found.method, profile.method) == ("proven", "proven")
        assert found.rho == pytest.approx(copies / 2)
        return
    assert (found.method, profile.method) == ("exact", "exact")
    points = np.arange(-60 * d_in, 61 * d_in)
    log_p, log_q = (-np.abs(points - moved) / d_in for moved in (0, d_in))
    log_p, log_q = (of - logsumexp(of) for of in (log_p, log_q))
    orders = 1 + np.geomspace(1e-2, 1e3, 80)
    renyi = [logsumexp(a * log_p + (1 - a) * log_q) / (a - 1) / a for a in orders]
    assert found.rho == pytest.approx(copies * max(renyi), rel=2e-3)
    if copies == 1:
        delta = np.sum(np.maximum(np.exp(log_p) - np.exp(0.5 + log_q), 0))
        assert profile(0.5) == pytest.approx(delta, rel=1e-6)
