"""Posteriors given noise on counts are refused outside of their bounds, and are there within."""

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms import HellingerExponential
from opendp_bayes.results.estimates import estimate_or_reason
from tests.helpers.releases import guarantee

TWO, THREE = (1.0, 2.0), (1.0, 2.0, 1.0)
#: The prior, the scale of the noise, a public number of records, what was drawn, and the message.
OUTSIDE = [
    ((1.0, 9.9e-5), 4.0, 10, (4, 6), r"prior: has entries from 9.9e-05.*from 0.0001"),
    (
        *((1.0, 0.29), 10.1, 10, (4, 6)),
        r'prior: has entries from 0.29.*scale 10.1 .*from 0.3 to 1e\+06.*prior="learned"',
    ),
    ((1.1e6, 1.0), 4.0, 10, (4, 6), r"prior: has entries from 1 to 1.1e\+06.*to 1e\+06"),
    ((1.0, 1.0), 1.1e6, 10, (4, 6), r"scale: is 1.1e\+06 records.*up to 1e\+06"),
    (TWO, 4.0, 10**9 + 1, (4, 10**9), r"size: is 1000000001.*most 1e\+09"),
    (TWO, 4.0, None, (4, 10**9), r"noisy_counts: sums to 1000000004.*1e\+09"),
]
#: Below all counts, above them, or below beside one far above; and sums too small or too large.
IMPOSSIBLE = [
    (
        *(TWO, 4.0, None, (4, -2801)),
        r"noisy_counts: are from -2801 to 4 .*scale 4 makes of any number of rec.*check the scale",
    ),
    (TWO, 4.0, 20, (2821, 0), r"noisy_counts: are from 0 to 2821.*size=20 rec"),
    (TWO, 4.0, 5000, (4000, -2801), r"noisy_counts: are from -2801.*size=5000 records"),
    (THREE, 2.0**-40, 10**9, (10,) * 3, r"noisy_counts: .* sum to 30, .*size=1000000000 records"),
    (THREE, 0.1, 1000, (400, 200, 189), r"noisy_counts: .* sum to 789, .*size=1000 records"),
    (THREE, 0.1, 1000, (400, 400, 411), r"noisy_counts: .* sum to 1211, .*size=1000 records"),
]
#: Farther than 700 times its scale from 0, noise has less than `exp(-700)` of its largest mass.
INSIDE = {
    "priors": ((1e-4, 1e6), 10.0, 10, (4, 6)),
    "a small entry under noise": ((0.3, 1.0), 10.1, 10, (4, 6)),
    "a scale": ((1.0, 1.0), 1e6, 10, (4, 6)),
    "a public number": (TWO, 4.0, 10**9, (4, 10**9)),
    "a private number": (TWO, 4.0, None, (4, 10**9 - 4)),
    "a draw far below all counts": (TWO, 4.0, None, (4, -2800)),
    "draws whose sum is as small as may be": (THREE, 0.1, 1000, (400, 200, 190)),
    "draws whose sum is as large as may be": (THREE, 0.1, 1000, (400, 400, 410)),
    "draws whose sum is far too large": (THREE, 4.0, 1000, (1000, 1000, 1000)),
}


def laplace(prior, scale, size, drawn):
    total = "bounded" if size else "private"
    labels = tuple(str(place) for place in range(len(prior)))
    return ob.Release(
        drawn, labels, prior, ob.LaplaceParameters(scale, total=total), guarantee(size)
    )


@pytest.mark.parametrize("case", OUTSIDE)
def test_outside_the_argument_its_value_the_bound_and_what_to_do_are_named(case):
    *settings, message = case
    release = laplace(*settings)
    with pytest.raises(ValueError, match=message) as caught:
        ob.noise_aware_posterior(release)
    assert "plug_in" in str(caught.value)
    with pytest.raises(ValueError, match=message):
        ob.combine([release, laplace(*settings)], draws_may_agree=True)
    assert "plug_in" in str(estimate_or_reason(release, 0.95, wait=True))
    assert np.all(np.isfinite(release.plug_in.mean()))  # what remains


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_draws_that_no_counts_give_are_refused(case):
    *settings, message = case
    with pytest.raises(ValueError, match=message):
        ob.noise_aware_posterior(laplace(*settings))


@pytest.mark.parametrize("case", [*OUTSIDE[3:], *IMPOSSIBLE])
def test_a_learned_prior_and_tables_of_the_same_records_have_such_bounds_too(case):
    *settings, message = case
    release = laplace(*settings)
    with pytest.raises(ValueError, match=message):
        ob.noise_aware_posterior(release, prior="learned")
    if message.startswith("scale"):  # which tables do not bound
        return
    with pytest.raises(ValueError, match=rf"tables\['first'\]: {message}"):
        ob.combine_tables({"first": release, "other": release}, draws_may_agree=True)


@pytest.mark.filterwarnings("ignore:prior. with this prior")  # it outweighs what was drawn
@pytest.mark.parametrize("name", INSIDE)
def test_at_the_bounds_there_is_a_posterior(name):
    release = laplace(*INSIDE[name])
    assert np.sum(ob.noise_aware_posterior(release).mean()) == pytest.approx(1, abs=1e-4)


def test_many_categories_are_refused_and_other_mechanisms_are_not():
    release = laplace((1.0,) * 10_001, 4.0, 10_001, (1,) * 10_001)
    with pytest.raises(ValueError, match=r"categories: would be 10001.*Merge some"):
        ob.noise_aware_posterior(release)
    release = ob.Release((4, 6), ("a", "b"), (1e-5, 2e6), HellingerExponential(0.3), guarantee(10))
    assert np.sum(ob.noise_aware_posterior(release).mean()) == pytest.approx(1)


@pytest.mark.parametrize("mechanism", [ob.KNormParameters(6e5), ob.GaussianParameters(1.1e6)])
def test_the_scale_is_that_of_the_noise_on_a_count(mechanism):
    release = ob.Release((4, 6, 0), ("a", "b", "c"), (1.0,) * 3, mechanism, guarantee(10))
    with pytest.raises(ValueError, match=r"scale: is 1\.[12]e\+06 records"):
        ob.noise_aware_posterior(release)
