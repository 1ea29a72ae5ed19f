"""Laws of sums and of what completes counts, against `np.convolve` of every count."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import sums as module
from opendp_bayes.inference.convolution.number_of_records import private, public
from opendp_bayes.inference.convolution.numbers_and_tilts import numbers_of
from opendp_bayes.inference.convolution.sums import Sums
from tests.helpers.given_noise import categories_of
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

#: Noise, what was drawn, the prior, and the number of records or its prior.
CASES = [
    (DiscreteLaplace(3.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5], 50),
    (DiscreteGaussian(2.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5], stats.poisson(50)),
    (DiscreteLaplace(60.0), [500, 900, 300, 0], [1.0, 2.0, 5.0, 0.5], 1600),
    (DiscreteLaplace(60.0), [500, 900, 300, 0], [1.0, 2.0, 5.0, 0.5], None),
]
#: How often each count is there.
TIMES = [np.array([1, 1, 1, 1]), np.array([2, 1, 3, 1])]


def numbers(law, drawn, prior, number, times=TIMES[0]):
    """Numbers of records, and the laws of all counts up to a last one, for every tilt."""
    categories = categories_of(drawn, prior, law)
    size = number * int(times.sum()) // 4 if isinstance(number, int) else number
    total = public(size, 4.0) if isinstance(number, int) else private(categories, number)
    known = numbers_of(categories, times, total)
    last = int(known.sizes[-1]) + 1
    counts, moments = np.arange(last + 1.0), known.moments
    laws = []
    for tilt in range(moments.tilts.size):
        rows = [np.full(last + 1, i) for i in range(4)]
        logs = np.stack([known.counts.log_weight(row, counts) for row in rows])
        logs += moments.tilts[tilt] * (counts - known.counts.anchor[:, None])
        laws.append(np.exp(logs - moments.log_norm[tilt][:, None]))
    return known, laws, last


def convolved(laws, last):
    found = np.ones(1)
    for law in laws:
        found = np.convolve(found, law)[: last + 1]
    return found


def distance(found, right):
    """The largest difference of cumulative probabilities."""
    return np.max(np.abs(np.cumsum(found) - np.cumsum(right)))


def several(laws, times):
    return [law for law, number in zip(laws, times, strict=True) for _ in range(number)]


@pytest.mark.parametrize("times", TIMES, ids=["once", "several times"])
@pytest.mark.parametrize("case", CASES, ids=range(4))
def test_sums_in_which_counts_are_so_many_times(case, times):
    known, laws, last = numbers(*case, times)
    parts = [times, np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1])]
    found, counts = Sums(known, times).laws(np.stack(parts, axis=1)), np.arange(last + 1.0)
    for tilt, of_tilt in enumerate(laws):
        for at, each in enumerate(parts):
            own = found.read(np.full(last + 1, 3 * tilt + at), counts)
            right = convolved(several(of_tilt, each), last)
            other = convolved(several(of_tilt, parts[at - 1]), last)
            assert distance(own, right) < 5e-4
            assert distance(own, other) > 1e-2


@pytest.mark.parametrize("times", TIMES, ids=["once", "several times"])
@pytest.mark.parametrize("case", CASES, ids=range(4))
def test_what_completes_counts_to_numbers_of_records(case, times):
    """Its weight, and the first two moments of the number about the centre of its part; and the
    weight of all parts of a tilt.
    """
    known, laws, last = numbers(*case, times)
    low, high = known.counts.ends
    whole, parts = Sums(known, times).beside(low, np.minimum(high, last))
    counts = np.arange(last + 1.0)
    masses = [np.interp(counts, known.sizes, each, left=0.0, right=0.0) for each in known.masses]
    if known.sizes.size == 1:
        masses = [(counts == known.sizes[0]).astype(float)]
    of_tilts = [
        np.sum([mass for mass, of in zip(masses, known.tilt, strict=True) if of == tilt], axis=0)
        for tilt in range(len(laws))
    ]
    for i in range(4):
        inside = (counts >= low[i]) & (counts <= min(high[i], last))
        rest = [convolved(several(law, times - (np.arange(4) == i)), last) for law in laws]

        def close(own, of_number, beside, inside=inside):
            right = np.correlate(of_number, beside, mode="full")[last : 2 * last + 1]
            allowed = 5e-3 * np.abs(right).max()  # beside the kinks of few counts
            assert own[inside] == pytest.approx(right[inside], abs=allowed)

        for tilt, of_number in enumerate(of_tilts):
            close(whole.read(np.full(last + 1, 4 * tilt + i), counts), of_number, rest[tilt])
        for part in {0, len(masses) // 2, len(masses) - 1}:
            found = parts.read(np.full(last + 1, 4 * part + i), counts)
            for power, own in enumerate(found):
                of_number = masses[part] * (counts - known.centres[part]) ** power
                close(own, of_number, rest[known.tilt[part]])


def test_far_tails_keep_their_digits_relative_to_the_largest():
    known, laws, last = numbers(*CASES[0])
    counts = np.arange(last + 1.0)
    law = Sums(known, TIMES[0]).laws(TIMES[0][:, None])
    whole = law.read(np.zeros(last + 1, dtype=int), counts)
    right = convolved(laws[0], last)
    seen = right > 1e-9 * right.max()
    assert whole[seen] == pytest.approx(right[seen], rel=1e-4)


def test_the_fourth_cumulants_of_many_counts_do_not_add_up(monkeypatch):
    """A thousand on a lattice that is longer than each of them is wide: the density of their sum
    is that of finer ones to 1e-4, and with longer steps it would not be.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(400, 900, 20)
    categories, times = categories_of(drawn, np.ones(20), DiscreteLaplace(60.0)), np.full(20, 50)
    known, off = numbers_of(categories, times, public(int(times @ drawn), 1000.0)), {}
    row = np.zeros(9, dtype=int)
    at = known.moments.mean[0] @ times + 1000.0 * np.arange(-4, 5)

    def densities(**values):
        with monkeypatch.context() as patched:
            for name, value in values.items():
                patched.setattr(module, name, value)
            return Sums(known, times).laws(times[:, None]).read(row, at)

    right = densities(_STEP=0.01)
    for name, cumulant in (("finer", module._CUMULANT), ("as long", 1e9)):
        off[name] = np.max(np.abs(densities(_CUMULANT=cumulant, _STEP=0.14) / right - 1))
    assert off["finer"] < 3e-4
    assert off["as long"] > 3e-3
