"""K-norm noise by enumeration of its definition; the sampler's steps, the loss, the messages."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import LaplaceParameters
from opendp_bayes.mathematics import zero_sum
from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import Mechanism, hellinger_distance, knorm_parameters
from opendp_bayes.mechanisms.knorm_parameters import KNormParameters
from opendp_bayes.samplers import inversion, knorm
from tests.helpers import oracles
from tests.helpers.sweeps import slow, some_of

DRAWS = 8000


def vectors(largest: int, k: int) -> Iterator[tuple[oracles.Counts, int]]:
    """Every z with sum 0 and `||z||_1 / 2 <= largest`, and that norm."""
    for head in product(range(-largest, largest + 1), repeat=k - 1):
        z = (*head, -sum(head))
        norm = sum(map(abs, z)) // 2
        if norm <= largest:
            yield z, norm


@lru_cache(maxsize=64)
def noise_law(k: int, scale: float, largest: int) -> dict[oracles.Counts, float]:
    """The noise, normalised over norms up to `largest`."""
    weights = {z: math.exp(-norm / scale) for z, norm in vectors(largest, k)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def nearest(noised: oracles.Counts, size: int) -> oracles.Counts:
    """Among equally near ones, that which gives most to the largest, then to the first."""
    order = sorted(range(len(noised)), key=lambda i: (-noised[i], i))

    def far(y):
        return sum((a - b) ** 2 for a, b in zip(y, noised, strict=True)), [-y[i] for i in order]

    return min(oracles.data_sets(size, len(noised)), key=far)


def released_law(counts: oracles.Counts, scale: float, largest: int) -> oracles.Law:
    terms: dict[oracles.Counts, list[float]] = {}
    for z, p in noise_law(len(counts), scale, largest).items():
        released = nearest(tuple(a + b for a, b in zip(counts, z, strict=True)), sum(counts))
        terms.setdefault(released, []).append(p)
    return {released: math.fsum(term) for released, term in terms.items()}


def common(law: Mapping[Any, float], number: int = DRAWS) -> dict[Any, float]:
    """The outcomes of a law that are common among so many draws; the others are taken as one."""
    return {outcome: p for outcome, p in law.items() if number * p >= 20}


def law_of(scale: float, counts: oracles.Counts, number: int = DRAWS) -> dict[Any, float]:
    """What K-norm noise says its law is, of its common outcomes."""
    return common(oracles.law_of(KNormParameters(scale), counts, (1.0,) * len(counts)), number)


# The numbers of vectors.
@pytest.mark.parametrize(("k", "largest"), [(2, 30), (3, 15), (4, 9), (5, 6), (6, 4)])
def test_shell_sizes(k: int, largest: int) -> None:
    counted = Counter(norm for _, norm in vectors(largest, k))
    assert [zero_sum.shell_size(norm, k) for norm in range(largest + 1)] == [
        counted[norm] for norm in range(largest + 1)
    ]


@pytest.mark.parametrize(("k", "largest"), [(2, 0), (2, 7), (3, 0), (3, 6), (4, 5), (5, 3)])
def test_noise_vectors(k: int, largest: int) -> None:
    rows = list(map(tuple, zero_sum.noise_vectors(largest, k).tolist()))
    assert len(rows) == len(set(rows))
    assert set(rows) == {z for z, _ in vectors(largest, k)}


@pytest.mark.parametrize("k", range(2, 9))
def test_sums_of_compositions_and_shells_agree(k: int) -> None:
    """`sum_m C(m + k - 1, m)^2 t^m = sum_d shell_size(d) t^d / (1 - t)^k`, term by term."""
    for m in range(30):
        convolution = sum(
            zero_sum.shell_size(d, k) * math.comb(m - d + k - 1, k - 1) for d in range(m + 1)
        )
        assert math.comb(m + k - 1, m) ** 2 == convolution


# The sampler.
@pytest.mark.parametrize(
    "x", [*map(Fraction, ("1/3", 1, "14.1", 127, 129, 2**40)), Fraction(1, 2**60)]
)
@pytest.mark.parametrize("bits", [4, 64, 128, 1000])
def test_exp_enclosure(x: Fraction, bits: int) -> None:
    low, high = inversion.exp_enclosure(x, bits)
    with oracles.ctx.workprec(2000):
        value = (-oracles.real(x)).exp() * 2**bits
        assert low <= value <= high
    assert high - low <= 2


def squared_binomial_law(n: int, scale: float) -> dict[int, float]:
    log_weights = [2 * math.log(math.comb(n, i)) - i / scale for i in range(n + 1)]
    weights = [math.exp(w - max(log_weights)) for w in log_weights]
    return {i: weight / math.fsum(weights) for i, weight in enumerate(weights)}


LAWS = [(1, 0.7), (2, 100.0), (9, 0.2), (40, 1.0), (999, 0.5)]


@pytest.mark.parametrize(
    ("n", "scale", "bits"), some_of(((*law, bits) for law in LAWS for bits in (3, 128)), 5)
)
def test_squared_binomial(n: int, scale: float, bits: int) -> None:
    """Also from so few bits that it begins again, on which the law does not depend."""
    number = DRAWS if bits == 128 else 5000
    cumulative = partial(knorm._cumulative, n, Fraction(scale))
    drawn = [inversion.by_inversion(cumulative, bits) for _ in range(number)]

    def law(factor: float) -> dict[int, float]:
        return common(squared_binomial_law(n, factor * scale), number)

    if bits == 128 and scale < 10:  # at 100 the scale hardly matters
        oracles.check_draws(np.array(drawn), law)
    else:
        assert not oracles.rejects(drawn, law(1.0))


@pytest.mark.parametrize("bits", [2, 5, 16, 128])
@pytest.mark.parametrize(("n", "scale"), [(1, 0.7), (9, 0.05), (40, 1e6), (999, 3.0), (999, 0.008)])
def test_cumulative_probabilities_are_enclosed(n: int, scale: float, bits: int) -> None:
    """Against exact weights in balls: what the sampler concludes from the lists is true."""
    first, below, above = knorm._cumulative(n, Fraction(scale), bits)
    q = (-1 / oracles.real(scale)).exp()
    sums = [oracles.real(0)]
    for i in range(n + 1):
        sums.append(sums[-1] + math.comb(n, i) ** 2 * q**i)
    for low, high, cumulative in zip(below, above, sums[first:], strict=False):
        assert not low > cumulative / sums[-1] * above[-1]
        assert not high < cumulative / sums[-1] * below[-1]
    if bits == 128:
        apart = sum(high - low for low, high in zip(below, above, strict=True))
        assert apart * 2**96 < above[-1]


@pytest.mark.parametrize(("total", "k"), [(0, 4), (1, 5), (5, 2), (6, 3), (3, 5)])
def test_composition(total: int, k: int) -> None:
    sets = oracles.data_sets(total, k)
    observed = Counter(map(tuple, (knorm.composition(total, k) for _ in range(DRAWS))))
    assert set(observed) <= set(sets)
    if len(sets) > 1:
        assert not oracles.rejects(observed, common(dict.fromkeys(sets, 1 / len(sets))))


@pytest.mark.parametrize(
    ("k", "scale", "largest"),
    [(2, 0.4, 40), (2, 3.0, 150), (3, 0.7, 40), (3, 2.0, 70), (4, 1.0, 16)],
)
def test_noise(k: int, scale: float, largest: int) -> None:
    drawn = knorm.knorm_noise(k, Fraction(scale), DRAWS).astype(np.int64)
    oracles.check_draws(drawn, lambda factor: common(noise_law(k, factor * scale, largest)))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_noise_is_made_of_parts_of_its_scale(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One squared binomial and 2 k - 1 geometrics, whose sum is the number that is shared out."""
    scale, parts, totals = Fraction(0.3), [], []
    monkeypatch.setattr(knorm, "by_inversion", lambda law: parts.append(law.args) or 5)

    def geometrics(*asked: Any) -> Any:
        parts.append(asked)
        return np.full(asked[1], 2)

    def share_out(total: int, k: int) -> list[int]:
        totals.append((total, k))
        return [total, *[0] * (k - 1)]

    monkeypatch.setattr(knorm, "geometrics", geometrics)
    monkeypatch.setattr(knorm, "composition", share_out)
    assert knorm.knorm_noise(k, scale, 2).tolist() == [[0] * k] * 2
    assert parts == [(1 / scale, 2 * (2 * k - 1)), *([(k - 1, scale)] * 2)]
    assert totals == [(5 + 2 * (2 * k - 1), k)] * 4


def test_samples_have_noise_of_their_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Fraction, int]] = []

    def noise(*arguments: Any) -> Any:
        asked.append(arguments)
        return np.array([[1, 0, -1]] * arguments[2])

    monkeypatch.setattr(knorm_parameters, "knorm_noise", noise)
    assert KNormParameters(0.3).sample([4, 5, 6], 1.0, draws=2).tolist() == [[5, 5, 5]] * 2
    assert asked == [(3, Fraction(0.3), 2)]


def norm_law(k: int, scale: float, largest: int) -> dict[int, float]:
    logs = [math.log(zero_sum.shell_size(norm, k)) - norm / scale for norm in range(largest)]
    weights = [math.exp(value - max(logs)) for value in logs]
    return {norm: weight / math.fsum(weights) for norm, weight in enumerate(weights)}


@pytest.mark.parametrize(
    ("k", "scale", "largest"), [(7, 5.0, 600), (30, 0.5, 400), (30, 4.0, 1500)]
)
def test_norm_of_the_noise(k: int, scale: float, largest: int) -> None:
    draws = knorm.knorm_noise(k, Fraction(scale), 2000).astype(np.int64)
    assert np.all(draws.sum(axis=1) == 0)
    norms = np.abs(draws).sum(axis=1) // 2
    oracles.check_draws(norms, lambda factor: common(norm_law(k, factor * scale, largest), 2000))


# The way back to counts.
@pytest.mark.parametrize(("k", "size"), [(2, 5), (3, 4), (4, 3)])
def test_nearest_counts(k: int, size: int) -> None:
    start = (size, *([0] * (k - 1)))
    noised = [tuple(a + b for a, b in zip(start, z, strict=True)) for z, _ in vectors(size + 3, k)]
    expected = [list(nearest(v, size)) for v in noised]
    assert zero_sum.nearest_counts(np.array(noised), size).tolist() == expected
    assert zero_sum.nearest_counts(np.array(noised, dtype=object), size).tolist() == expected


def test_many_categories_and_counts_beyond_machine_integers() -> None:
    """One step between two of 159 is 159 * 158 + 1 vectors of 159 integers, 3 994 557 together."""
    huge = 2**200
    noised = np.array([[3 + huge, 4 - huge, 0], [huge, huge, 7 - 2 * huge]], dtype=object)
    assert zero_sum.nearest_counts(noised, 7).tolist() == [[7, 0, 0], [4, 3, 0]]
    samples = KNormParameters(2.0).sample([1000] * 1000, 1.0)
    assert samples.sum() == 10**6
    assert 0.5 < np.abs(samples - 1000).mean() < 20  # 4 is expected
    counts = np.zeros(160, dtype=np.int64)
    counts[0] = 1
    support, log_p = KNormParameters(0.003).log_pmf(counts[:159], 1.0)
    assert support[np.argmax(log_p)].tolist() == counts[:159].tolist()
    with pytest.raises(ValueError, match="takes more than 4000000 integers"):
        KNormParameters(0.003).log_pmf(counts, 1.0)


# The release.
@pytest.mark.parametrize(
    ("counts", "scale", "largest"),
    [
        *(((2, 2, 2), 0.7, 36), ((0, 0, 4), 0.7, 36), ((4, 1, 0), 1.1, 50)),
        *(((0, 3, 0), 0.2, 20), ((1, 0, 2, 0), 0.3, 17)),
        *slow([((1, 0, 0, 1, 0), 0.12, 8)]),
    ],
)
def test_law(counts: oracles.Counts, scale: float, largest: int) -> None:
    stated = oracles.law_of(KNormParameters(scale), counts, [1.0] * len(counts))
    assert list(stated) == list(oracles.data_sets(sum(counts), len(counts)))
    true = released_law(counts, scale, largest)
    assert oracles.largest_relative_difference(stated, true) < 1e-12
    assert sum(stated.values()) == pytest.approx(1, rel=1e-13)
    for factor in (0.7, 1.3):
        wrong = oracles.law_of(KNormParameters(factor * scale), counts, [1.0] * len(counts))
        assert oracles.largest_relative_difference(wrong, true) > 1e-3


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("counts", [(5, 7), (0, 6), (1, 0)])
def test_with_two_categories_it_is_discrete_laplace(counts: oracles.Counts, scale: float) -> None:
    stated = oracles.law_of(KNormParameters(scale), counts, [1.0, 1.0])
    law = oracles.laplace_law(counts, scale, "discrete", "remainder")
    assert oracles.largest_relative_difference(stated, law) < 1e-12


@pytest.mark.parametrize("counts", [(3, 9), (0, 5), (1, 2, 3), (0, 0, 4)])
def test_samples(counts: oracles.Counts) -> None:
    samples = KNormParameters(scale=1.7).sample(counts, 1.0, draws=DRAWS)
    assert samples.shape == (DRAWS, len(counts))
    oracles.check_draws(samples, lambda factor: law_of(factor * 1.7, counts))


@pytest.mark.parametrize("scale", [*SCALES, 1e-3, 0.5, 20.0, 1e9, 1e18])
@pytest.mark.parametrize(
    "counts", [(3, 4), (10**12, 0, 0), (10**12,) * 3, (0, 0, 0, 1), tuple(range(40)), (0,) * 5]
)
def test_released_counts_are_counts_of_the_same_size(counts: oracles.Counts, scale: float) -> None:
    samples = KNormParameters(scale).sample(counts, 1.0, draws=20)
    assert np.all(samples >= 0)
    assert np.all(samples.sum(axis=1) == sum(counts))
    if scale <= 1e-3:
        assert np.all(samples == counts)


# The loss.
OF_STEPS = [(2, 0.7, 40), (3, 2.0, 20), (4, 5.0, 7), (5, 1.0, 4)]


@pytest.mark.parametrize(
    ("k", "scale", "largest", "d_in"),
    some_of(((*setting, d_in) for setting in OF_STEPS for d_in in (1, 2, 3)), 4),
)
def test_loss_of_the_noise_is_the_map(k: int, scale: float, largest: int, d_in: int) -> None:
    """Over every output in reach and change: the largest log-ratio, and the spread."""
    law = noise_law(k, scale, largest)
    epsilon = spread = 0.0
    for change, norm in vectors(d_in, k):
        if 0 < norm <= d_in:
            ratios = [
                math.log(p / law[shifted])
                for z, p in law.items()
                if (shifted := tuple(a - b for a, b in zip(z, change, strict=True))) in law
            ]
            epsilon = max(epsilon, max(map(abs, ratios)))
            spread = max(spread, max(ratios) - min(ratios))
    bound = KNormParameters(scale).proven_loss(d_in, size=100, prior=np.ones(k))
    assert epsilon == pytest.approx(bound.epsilon, abs=1e-12)
    assert epsilon == pytest.approx(d_in / scale, abs=1e-12)
    assert spread == pytest.approx(bound.range, abs=1e-12)
    assert bound.rho == pytest.approx(epsilon**2 / 2, rel=1e-12)


OF_SIZES = [(12, 2, 1.0), (6, 3, 0.5), (6, 3, 2.0), (3, 4, 0.6)]


@pytest.mark.parametrize(
    ("size", "k", "scale", "d_in"),
    some_of(((*setting, d_in) for setting in OF_SIZES for d_in in (1, 2, 3)), 4),
)
def test_loss_of_the_release(size: int, k: int, scale: float, d_in: int) -> None:
    """At most the map, which it attains; a mechanism with 10 % less noise exceeds it."""
    bound = KNormParameters(scale).proven_loss(d_in, size=size, prior=np.ones(k))
    for factor, exceeds in ((1.0, False), (0.9, True)):
        loss = oracles.exact_losses(KNormParameters(factor * scale), size, (1.0,) * k, d_in)
        assert (loss["epsilon"] > bound.epsilon + 1e-12) == exceeds
        assert loss["epsilon"] == pytest.approx(d_in / (factor * scale), abs=1e-12)
        assert loss["range"] <= bound.range / factor + 1e-12
        assert loss["rho"] <= bound.rho / factor**2 + 1e-12


def test_map_is_rounded_up() -> None:
    for scale in (3.0, 0.1, 1e-3, 7e9):
        for d_in in (1, 3, 10**6):
            bound = KNormParameters(scale).proven_loss(d_in, size=10, prior=np.ones(3))
            exact = d_in / Fraction(scale)
            assert exact <= Fraction(bound.epsilon) <= exact * (1 + Fraction(2) ** -52)
            assert 2 * exact <= Fraction(bound.range)
            assert exact**2 / 2 <= Fraction(bound.rho)
    assert KNormParameters(1.0).proven_loss(0, size=10, prior=np.ones(3)).epsilon == 0


# Accuracy.
def mean_error(mechanism: Mechanism, counts: oracles.Counts, draws: int) -> float:
    released = mechanism.sample(counts, 1.0, draws=draws)
    return float(np.mean(hellinger_distance(released + 1.0, np.array(counts) + 1.0)))


def test_error_with_three_categories() -> None:
    """The published comparison: 80 records, ε = 1, about 0.55 of LSHist's error."""
    counts = (26, 27, 27)

    def expected(mechanism: Mechanism) -> float:
        candidates, log_p = mechanism.log_pmf(counts, 1.0)
        return float(np.exp(log_p) @ hellinger_distance(candidates + 1.0, np.array(counts) + 1.0))

    ours = expected(KNormParameters(1.0))
    assert ours == pytest.approx(0.161, abs=1e-3)
    assert ours / expected(LaplaceParameters(2.0, noise="floored")) == pytest.approx(0.55, abs=0.01)


@pytest.mark.slow
def test_error_is_below_that_of_lshist() -> None:
    """At ε = 1, 27 records a category; many standard errors apart."""
    for k in range(3, 51):
        counts = (27,) * k
        ratio = mean_error(KNormParameters(1.0), counts, 300) / mean_error(
            LaplaceParameters(2.0, noise="floored"), counts, 300
        )
        print(f"k = {k}: {ratio:.3f}")  # noqa: T201 - shown by `pytest -s`
        assert ratio < 0.97


# Enclosures where they are tightest: the directions of their roundings.
@pytest.mark.parametrize("bits", [4, 16, 40])
def test_exp_enclosure_next_to_an_integer(bits: int) -> None:
    """`2^bits exp(-x)` a little below or above a whole number, by less than the decimals hold."""
    rng = np.random.default_rng(0)
    with oracles.ctx.workprec(2000):
        for _ in range(300):
            whole = int(rng.integers(1, 8))
            off = Fraction(float(10.0 ** -(bits // 3 + rng.uniform(8, 12)) * rng.choice([-1, 1])))
            wide = Context(prec=60)
            exact = Fraction(wide.ln(Decimal(1 << bits))) - Fraction(
                wide.ln(to_decimal(whole + off))
            )
            low, high = knorm.exp_enclosure(exact, bits)
            assert low <= (-oracles.real(exact)).exp() * 2**bits <= high


def to_decimal(value: Fraction) -> Decimal:
    return Context(prec=60).divide(Decimal(value.numerator), Decimal(value.denominator))


@pytest.mark.parametrize("bits", [2, 5, 8, 16])
@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_cumulative_bounds_are_rounded_outwards(n, bits, monkeypatch):
    """For `q = 1/2`, which is given exactly, so that all weights are rational."""
    monkeypatch.setattr(knorm, "exp_enclosure", lambda x, bits: (1 << (bits - 1),) * 2)
    first, below, above = knorm._cumulative.__wrapped__(n, Fraction(1 / math.log(2)), bits)
    weights = [Fraction(math.comb(n, i) ** 2, 2**i) for i in range(n + 1)]
    assert first == 0
    assert len(below) == len(above) == n + 2
    for j, (low, high) in enumerate(zip(below, above, strict=True)):
        assert low <= sum(weights[:j]) * 2**bits <= high
