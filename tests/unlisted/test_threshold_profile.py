"""The exact δ of unlisted keys: listed outcomes, published values, a second accountant."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from opendp_bayes.unlisted.threshold_pairs import ONE, excess, hidden
from opendp_bayes.unlisted.threshold_profile import delta_of_discovery
from opendp_bayes.unlisted.thresholds import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)
from tests.helpers import listed_keys
from tests.helpers.sweeps import some_of

EPSILONS = (0.0, 0.4, 1.0, 2.5)
#: Keys of a person, and records in each.
SIZES = tuple(product((1, 2, 3), (1, 2, 3)))
OPTIMAL = [
    ("optimal", growth, delta, growth * part)
    for growth, delta, part in product((0.5, 1.0, 2.0, 3.0), (0.01, 0.05, 0.2), (1.0, 0.8, 0.4))
]
SYMMETRIC = [
    (name, scale, threshold)
    for name, scale, threshold in product(("laplace", "gaussian"), (0.4, 0.7, 1.1), (1, 3, 6))
]


def counts_of_others(noise: listed_keys.Noise, keys: int) -> Sequence[int]:
    """All that matter, or of several keys none, few, and so many that nothing is hidden."""
    if keys == 1:
        return range(noise.far + 1)
    return (0, 1, noise.threshold, noise.far) if keys == 2 else (0, noise.far)


def check_delta(
    law: Threshold, noise: listed_keys.Noise, pairs: Any, size: tuple[int, int], **of: bool
) -> None:
    """The δ of keys and records of one person is that of a list of all pairs."""
    truth = listed_keys.largest(noise, pairs, EPSILONS)
    keys, records = size
    found = [delta_of_discovery(law, e, keys=keys, records=records, **of) for e in EPSILONS]
    assert np.all(found >= truth * (1 - 1e-12) - 1e-14)
    assert found == pytest.approx(truth, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize(("law", "size"), some_of(product(OPTIMAL + SYMMETRIC, SIZES), 8))
def test_it_is_the_largest_of_all_people(law: tuple[Any, ...], size: tuple[int, int]) -> None:
    """All outcomes, of all counts of others, of a person who comes or goes."""
    ours, noise = listed_keys.both(law)
    pairs = listed_keys.of_a_person(counts_of_others(noise, size[0]), *size)
    check_delta(ours, noise, pairs, size)


STEEP = [("optimal", 2.0, 0.2, 2.0), ("optimal", 3.0, 0.05, 2.4)]
OF_SIZES = [*product(OPTIMAL + SYMMETRIC, SIZES[:3]), *product(STEEP, SIZES[3:5])]


@pytest.mark.parametrize(("law", "size"), some_of(OF_SIZES, 12))
def test_it_is_the_largest_of_all_changes(law: tuple[Any, ...], size: tuple[int, int]) -> None:
    """All outcomes, of one person's records replaced by others, in the same keys or in others."""
    ours, noise = listed_keys.both(law)
    counts = range(noise.far + 1) if size[0] == 1 and law[0] == "optimal" else (0, 1, noise.far)
    pairs = listed_keys.of_a_change(counts if size[0] == 1 else (0, noise.far), *size)
    check_delta(ours, noise, pairs, size, changed=True)


def test_a_range_of_new_keys_is_searched_as_if_each_number_were_tried() -> None:
    seen = set()
    for law, keys, changed in (
        (OptimalThreshold(0.3, 1e-3), 5, False),
        (GaussianThreshold(3.0, 9), 12, False),
        (LaplaceThreshold(1.5, 4), 4, False),
        (LaplaceThreshold(1.5, 5), 5, True),
    ):
        for epsilon in (0.2, 0.8, 1.5, 3.0):
            every = {}
            sides = [(keys, keys)] if changed else [(keys, 0), (0, keys)]
            for up, down in sides:
                for new, gone in product(range(up + 1), range(down + 1)):
                    keep, left = hidden(law, 1, new), hidden(law, 1, gone)
                    rest = excess(law, 1, up - new, down - gone, epsilon, keep, left)
                    every[up, down, new, gone] = 1 - Fraction(keep, ONE) + rest
            found = delta_of_discovery(law, epsilon, keys=keys, changed=changed)
            assert found == pytest.approx(float(max(every.values())), rel=1e-13)
            seen.add(max(every, key=every.__getitem__)[2:])
    assert len(seen) > 3  # the worst numbers of new keys are not the same everywhere


def test_several_keys_and_several_records() -> None:
    """The largest is not always at none or at all of the keys being new. A negative control:
    with another law one record may be worse than two.
    """
    between = 0
    for scale, threshold in product((0.6, 0.7, 0.8), (1, 2, 3)):
        noise = listed_keys.laplace(scale, threshold)
        for epsilon in (0.1, 0.2, 0.3):
            far = (noise.far, noise.far + 1)
            changes = ([[(0, 1)] * new + [far] * (2 - new)] for new in range(3))
            by_number = [float(listed_keys.largest(noise, of, [epsilon])[0]) for of in changes]
            between += by_number[1] > max(by_number[0], by_number[2]) * (1 + 1e-9)
            found = delta_of_discovery(LaplaceThreshold(scale, threshold), epsilon, keys=2)
            assert found >= max(by_number) * (1 - 1e-12)
    assert between > 1
    noise = listed_keys.Noise(-3, (0.06, 0.3, 0.02, 0.3, 0.02, 0.3), 3, 9)
    of_two = listed_keys.largest(noise, [[(0, 2)], [(9, 11)]], [0.5])[0]
    of_any = listed_keys.largest(noise, listed_keys.of_a_person(range(10), 1, 2), [0.5])[0]
    assert (of_two, of_any) == pytest.approx((0.36, 0.8341), abs=1e-4)


def test_a_second_accountant_and_deltas_about_the_threshold() -> None:
    """Of keys that others hold, none of them new: products of noise, with its rounding. A
    negative control: `P(1 + Z > threshold)`, where counts at the threshold are shown too.
    """
    far = 10**6
    gaussian = privacy_loss_distribution.from_discrete_gaussian_mechanism
    laplace = privacy_loss_distribution.from_discrete_laplace_mechanism
    for law, theirs, keys, epsilon in (
        (GaussianThreshold(5.2, far), gaussian(5.2, value_discretization_interval=1e-5), 1, 1.0),
        (GaussianThreshold(8.0, far), gaussian(8.0, value_discretization_interval=1e-5), 3, 0.5),
        (LaplaceThreshold(4.0, far), laplace(1 / 4, value_discretization_interval=1e-5), 6, 1.1),
    ):
        delta = theirs.self_compose(keys).get_delta_for_epsilon(epsilon)
        assert delta_of_discovery(law, epsilon, keys=keys) == pytest.approx(delta, rel=1e-3)
    noise = listed_keys.laplace(1.0, 5)
    truth = listed_keys.largest(noise, [[(0, 1)]], [1.0])[0]
    found = delta_of_discovery(LaplaceThreshold(1.0, 5), 1.0)
    stated = delta_of_discovery(LaplaceThreshold(1.0, 6), 1.0)
    assert (found, stated) == pytest.approx((0.0133898, 0.00492583), rel=1e-5)
    assert found == pytest.approx(truth, rel=1e-12)
    assert truth > stated * 2.7


def test_what_rounded_weights_and_many_records_cost() -> None:
    law = OptimalThreshold(1.0, 1e-8)
    weights = law.weights
    ratios = zip(weights, weights[1:], weights[2:], strict=False)
    assert any(b * b < a * c for a, b, c in ratios)
    # The group bound, which needs no such law, is attained; below its ε no bound is as near.
    group = 1e-8 * (1 + math.e + math.e**2)
    found = delta_of_discovery(law, 3.0, records=3)
    assert group * (1 - 1e-12) <= found <= group * (1 + 1e-9)
    law = OptimalThreshold(3.0, 0.05)
    n = len(law.weights)
    assert delta_of_discovery(law, 2.0, records=n) == 1.0
    assert delta_of_discovery(law, 2.0, records=n - 1) < 1.0
    assert delta_of_discovery(law, 2.0, records=n + 5, keys=3) == 1.0


@pytest.mark.parametrize(
    "law",
    some_of(
        [OptimalThreshold(0.5, 1e-6), LaplaceThreshold(2.0, 20), GaussianThreshold(4.0, 25)], 1
    ),
)
def test_it_falls_with_epsilon_and_rises_with_keys_and_records(law: Threshold) -> None:
    sizes = [(1, 1), (2, 1), (5, 1), (5, 2)]
    table = [
        [delta_of_discovery(law, e, keys=m, records=c) for e in (0.0, 0.3, 4.0, 1e4)]
        for m, c in sizes
    ]
    assert np.all(np.diff(table, axis=1) <= 1e-18)
    assert np.all(np.diff(table, axis=0) > 0)
    for (m, c), row in zip(sizes, table, strict=True):
        changed = delta_of_discovery(law, 0.3, keys=m, records=c, changed=True)
        assert changed >= row[1]
