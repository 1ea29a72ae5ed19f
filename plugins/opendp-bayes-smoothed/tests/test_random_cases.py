"""Every promise on random small settings: never below the truth, hardly above it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import definitions
import numpy as np
import pytest

import opendp_bayes_smoothed as obs
from opendp_bayes_smoothed import SmoothedDP, SmoothedLoss, draws

#: More than what is stated for these numbers of records.
WITHIN_OF_A_PROFILE, WITHIN_OF_AN_AVERAGE = Fraction(1, 10**9), Fraction(1, 10**8)


@dataclass(frozen=True)
class Found:
    """A number of the package, the truth, and how far above that it may be."""

    kind: str
    value: float
    truth: Fraction
    above: Fraction

    @property
    def sound(self) -> bool:
        return self.truth <= Fraction(self.value)

    @property
    def tight(self) -> bool:
        # What is never exactly 0 is at least 2^-900.
        return Fraction(self.value) <= self.truth * (1 + self.above) + Fraction(1, 2**800)


@dataclass(frozen=True)
class Setting:
    k: int
    size: int
    samples: int
    replacement: str
    epsilon: float
    corners: list[tuple[Fraction, ...]]

    @property
    def rate(self) -> Fraction:
        return Fraction(self.samples, self.size)

    @property
    def rows(self) -> list[list[float]]:
        return [[float(p) for p in row] for row in self.corners]

    def smoothed(self, law: Callable[[definitions.Counts], definitions.Law]) -> Fraction:
        return definitions.smoothed_delta(law, self.corners, self.size, self.epsilon)


def random_setting(rng: np.random.Generator) -> Setting:
    k = int(rng.choice([2, 2, 3]))
    size = int(rng.integers(1, 7 if k == 2 else 5))
    corners = []
    for _ in range(int(rng.integers(1, 4 if k == 2 else 3))):
        eighths = rng.multinomial(8, rng.dirichlet(np.full(k, 0.7)))
        corners.append(tuple(Fraction(int(x), 8) for x in eighths))
    epsilon = float(rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 4)]))
    replacement = str(rng.choice(["without", "with"]))
    return Setting(k, size, int(rng.integers(1, size + 1)), replacement, epsilon, corners)


def of_a_database(rng: np.random.Generator) -> Found:
    k, size = int(rng.integers(2, 5)), int(rng.integers(1, 13))
    size = min(size, 6) if k == 4 else size
    counts = tuple(rng.multinomial(size, rng.dirichlet(np.full(k, 0.7))).tolist())
    samples = int(rng.integers(1, size + 1))
    replacement = str(rng.choice(["without", "with"]))
    epsilon = float(rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 4)]))
    value = obs.database_profile(counts, Fraction(samples, size), epsilon, replacement=replacement)
    truth = definitions.profile(definitions.drawn(samples, replacement), counts, epsilon)
    return Found("profile", value, truth, WITHIN_OF_A_PROFILE)


def of_a_histogram(rng: np.random.Generator) -> Found:
    s = random_setting(rng)
    value = obs.smoothed_delta(s.rows, s.size, s.rate, s.epsilon, replacement=s.replacement)
    truth = s.smoothed(definitions.drawn(s.samples, s.replacement))
    return Found("smoothed", value, truth, WITHIN_OF_AN_AVERAGE)


def of_noise(rng: np.random.Generator) -> Found:
    s = random_setting(rng)
    while s.k > 2 or s.size > 4:
        s = random_setting(rng)
    q = Fraction(int(rng.integers(1, 6)), 16)
    scale = -1 / math.log(q)
    noised = definitions.noised(s.samples, q, s.samples + 8)
    mechanism = obs.NoisySamplingHistogram(scale, rate=float(s.rate))
    s = Setting(s.k, s.size, mechanism.samples(s.size), "without", s.epsilon, s.corners)
    guarantee = SmoothedDP(s.size, tuple(map(tuple, obs.vertices(s.rows).tolist())))
    loss = SmoothedLoss(guarantee, mechanism)
    # The oracle leaves out counts beyond 8 above the sample: it is below the truth, by little.
    return Found("noise", loss.delta(s.epsilon), s.smoothed(noised), Fraction(2))


def of_two_releases(rng: np.random.Generator) -> Found:
    s = random_setting(rng)
    while s.k > 2 or s.size > 5:
        s = random_setting(rng)
    other = int(rng.integers(1, s.size + 1))
    share = s.epsilon / 2
    pairs = [
        (share, obs.smoothed_delta(s.rows, s.size, Fraction(n, s.size), share))
        for n in (s.samples, other)
    ]
    epsilon, value = obs.composed(pairs)
    assert epsilon == s.epsilon
    truth = s.smoothed(
        lambda x: definitions.both(
            *(definitions.sampled(x, n, "without") for n in (s.samples, other))
        )
    )
    return Found("two", value, truth, Fraction(10**9))


KINDS = (of_a_database, of_a_histogram, of_noise, of_two_releases)


def cases(number: int, seed: int) -> list[Found]:
    rng = np.random.default_rng(seed)
    return [KINDS[i % len(KINDS)](rng) for i in range(number)]


@pytest.mark.parametrize("number", [28, pytest.param(2100, marks=pytest.mark.slow)])
def test_never_below_the_truth_and_as_near_as_stated(number: int) -> None:
    found = cases(number, number)
    assert [case for case in found if not case.sound] == []
    exact = [case for case in found if case.kind in ("profile", "smoothed")]
    assert [case for case in exact if not case.tight] == []
    assert sum(case.truth > 0 for case in found) > number / 2


def test_probabilities_that_are_too_low_by_a_millionth_are_seen(monkeypatch):
    """The control: the same comparison, with every probability of a draw off by 10^-6."""
    log_pmf = draws.WithoutReplacement.log_pmf
    monkeypatch.setattr(draws.WithoutReplacement, "log_pmf", lambda *cells: log_pmf(*cells) - 1e-6)
    found = cases(28, 56)
    for kind in ("profile", "smoothed"):
        assert any(not case.sound for case in found if case.kind == kind)
