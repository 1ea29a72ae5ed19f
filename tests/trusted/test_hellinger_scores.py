"""Posterior to scores: the space, the map, and OpenDP's own selection measurements after it, by
hand, composed and in a Context.

Every statistical check is `oracles.rejects` at `oracles.FALSE_ALARM`; the two laws that OpenDP's
noisy max has, under two measures, are each rejected for the other.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mechanisms.exponential.scores import score_change
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace
from tests.helpers import oracles

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SPACE = PosteriorSpace(("a", "b", "c"), 5, (0.5, 1.0, 2.0))
COUNTS = (1, 3, 1)
SCALE = 0.14
DRAWS = 10_000
FEWER_DRAWS = 2500  # through our callbacks, where a draw takes more than a millisecond
CATEGORIES = pl.Enum(["a", "b", "c"])
DATA = pl.LazyFrame({"x": pl.Series(["a", "b", "b", "b", "c"], dtype=CATEGORIES)})


def scores(space=SPACE):
    return ob.t.make_hellinger_scores(space.domain, space.metric)


def concentration(space=SPACE, counts=COUNTS):
    return space.concentration(np.array(counts))


def select(measure, scale=SCALE):
    return scores() >> dp.m.then_noisy_max(measure, scale) >> ob.t.selected_counts(SPACE.domain)


def observed(measure):
    """Draws of OpenDP's noisy max on the scores, which are the same at each draw, and so computed
    once.
    """
    choose = dp.m.make_noisy_max(*scores().output_space, measure, SCALE)
    computed = scores()(concentration())
    return Counter(oracles.data_sets(5, 3)[choose(computed)] for _ in range(DRAWS))


# The transformation.


def test_output_space_is_what_noisy_max_takes():
    assert scores().output_domain == dp.vector_domain(dp.atom_domain(T=float, nan=False), size=21)
    assert scores().output_metric == dp.linf_distance(T=float)
    assert scores().output_metric != dp.linf_distance(T=float, monotonic=True)


@pytest.mark.parametrize("counts", [(1, 3, 1), (5, 0, 0), (0, 2, 3)])
def test_scores_are_the_distances_in_the_order_of_the_candidates(counts):
    computed = scores()(concentration(counts=counts))
    centre = oracles.posterior(counts, SPACE.prior)
    expected = [
        -float(oracles.hellinger(centre, oracles.posterior(y, SPACE.prior)))
        for y in oracles.data_sets(5, 3)
    ]
    np.testing.assert_allclose(computed, expected, rtol=1e-13, atol=0)
    assert max(computed) == computed[oracles.data_sets(5, 3).index(counts)] == 0
    assert scores().output_domain.member(computed)


def test_stability_map():
    assert scores().map(0) == 0.0
    for d_in in (1, 2, 50):
        bound = scores().map(d_in)
        assert bound == score_change(d_in, size=5, prior=SPACE.prior_array)
        assert 0 < bound - d_in * ob.mechanisms.global_sensitivity(5, SPACE.prior) < 1e-12 * d_in


def test_indices_become_the_counts_of_their_candidates():
    to_counts = ob.t.selected_counts(SPACE.domain)
    assert [tuple(to_counts(index)) for index in range(21)] == list(oracles.data_sets(5, 3))


# OpenDP's measurements on the scores.


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.9, 7.0])
def test_maps_of_noisy_max(scale):
    """Twice the change, since scores of one data set move up and down (no monotonicity), and an
    eighth of the square; rounded up, nothing added.
    """
    for d_in in (0, 1, 2, 9):
        epsilon = 2 * Fraction(scores().map(d_in)) / Fraction(scale)
        assert select(PURE, scale).map(d_in) == round_up(epsilon)
        assert (
            epsilon**2 / 8
            <= Fraction(select(ZCDP, scale).map(d_in))
            <= epsilon**2 / 8 * (1 + Fraction(1, 2**50))
        )


def test_scores_are_not_monotonic():
    """So the factor 2 is needed: between two neighbours some scores rise and others fall."""
    change = np.array(scores()(concentration(counts=(2, 2, 1)))) - np.array(
        scores()(concentration(counts=(1, 3, 1)))
    )
    assert change.min() < -0.1
    assert change.max() > 0.1


@pytest.mark.slow
def test_noisy_max_is_permute_and_flip_or_the_exponential_mechanism():
    flip, ehd = (
        oracles.law_of(value, COUNTS, SPACE.prior)
        for value in (
            ob.mechanisms.PermuteAndFlip(SCALE),
            ob.mechanisms.HellingerExponential(SCALE),
        )
    )
    pure, zcdp = (observed(measure) for measure in (PURE, ZCDP))
    assert not oracles.rejects(pure, flip)
    assert not oracles.rejects(zcdp, ehd)
    assert oracles.rejects(pure, ehd)
    assert oracles.rejects(zcdp, flip)
    for factor in (0.7, 1.3):
        assert oracles.rejects(
            pure, oracles.law_of(ob.mechanisms.PermuteAndFlip(factor * SCALE), COUNTS, SPACE.prior)
        )


def test_noisy_max_keeps_its_promise():
    """From the laws alone: the loss over all neighbours is at most the map, ε under pure and ρ
    under zero-concentrated differential privacy.
    """
    away, scale = oracles.distances(5, 3), 1.0

    def exceeded(noise, d_in):
        _, flip = oracles.log_laws(ob.mechanisms.PermuteAndFlip(noise), 5, SPACE.prior)
        _, ehd = oracles.log_laws(ob.mechanisms.HellingerExponential(noise), 5, SPACE.prior)
        epsilon = oracles.over_pairs(flip, away, d_in, oracles.epsilon_between)
        rho = oracles.over_pairs(ehd, away, d_in, oracles.rho_between)
        return epsilon > select(PURE, scale).map(d_in), rho > select(ZCDP, scale).map(d_in)

    for d_in in (1, 2):
        assert exceeded(scale, d_in) == (False, False)
        assert exceeded(scale / 4, d_in) == (True, True)  # negative control


def test_top_k_follows_too():
    top = scores() >> dp.m.then_noisy_top_k(PURE, k=2, scale=SCALE)
    first, second = (
        tuple(ob.t.selected_counts(SPACE.domain)(index)) for index in top(concentration())
    )
    assert first != second
    assert {first, second} <= set(oracles.data_sets(5, 3))
    assert top.map(1) == pytest.approx(2 * select(PURE).map(1), rel=1e-12)


def test_selections_compose():
    both = dp.c.make_composition([select(PURE), scores() >> dp.m.then_noisy_max(PURE, 1.0)])
    assert both.map(1) == pytest.approx(select(PURE).map(1) + 2 * scores().map(1), rel=1e-15)
    counts, index = both(concentration())
    assert sum(counts) == 5
    assert 0 <= index < 21


def test_scores_of_a_frame_in_a_composition_with_a_count():
    counts = ob.t.make_categorical_counts(
        dp.domain_of(DATA, infer=True), dp.change_one_distance(), column="x", size=5, nulls="a"
    )
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=[0.5, 1.0, 2.0])
    chosen = (
        posterior
        >> ob.t.then_hellinger_scores()
        >> dp.m.then_noisy_max(PURE, SCALE)
        >> ob.t.selected_counts(posterior.output_domain)
    )
    assert chosen.map(1) == select(PURE).map(1)
    noisy = counts >> ob.t.then_count_vector() >> dp.m.then_laplace(1.0)
    compositor = dp.c.make_adaptive_composition(
        input_domain=counts.input_domain,
        input_metric=counts.input_metric,
        output_measure=PURE,
        d_in=1,
        d_mids=[chosen.map(1), noisy.map(1)],
    )
    ask = compositor(DATA)
    assert sum(ask(chosen)) == 5
    assert len(ask(noisy)) == 3


# The measurement.


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.9, 7.0])
def test_permute_and_flip_has_the_map_of_opendps_chain(scale):
    measurement = ob.m.make_permute_and_flip(
        SPACE.domain, SPACE.metric, PURE, scale, accounting="proven"
    )
    assert all(
        measurement.map(d_in) == select(PURE, scale).map(d_in) for d_in in (0, 1, 2, 3, 17, 1000)
    )
    concentrated = ob.m.make_permute_and_flip(
        SPACE.domain, SPACE.metric, ZCDP, scale, accounting="proven"
    )
    exact = ob.m.make_permute_and_flip(SPACE.domain, SPACE.metric, PURE, scale)
    assert exact.accounting == "exact"
    assert 0 < exact.map(1) <= measurement.map(1)
    assert concentrated.map(1) == pytest.approx(select(PURE, scale).map(1) ** 2 / 2, rel=1e-15)


@pytest.mark.slow
def test_permute_and_flip_samples():
    """Under zero-concentrated differential privacy too, where OpenDP's noisy max by itself would be
    the exponential mechanism.
    """
    measurement = ob.m.make_permute_and_flip(SPACE.domain, SPACE.metric, ZCDP, SCALE)
    seen = Counter(measurement(concentration()).counts for _ in range(FEWER_DRAWS))
    assert not oracles.rejects(
        seen, oracles.law_of(ob.mechanisms.PermuteAndFlip(SCALE), COUNTS, SPACE.prior)
    )
    assert oracles.rejects(
        seen, oracles.law_of(ob.mechanisms.HellingerExponential(SCALE), COUNTS, SPACE.prior)
    )
    for factor in (0.7, 1.3):
        assert oracles.rejects(
            seen, oracles.law_of(ob.mechanisms.PermuteAndFlip(factor * SCALE), COUNTS, SPACE.prior)
        )


@pytest.mark.parametrize(
    ("budget", "expressed"),
    [({"epsilon": 1.0}, lambda loss: loss.epsilon), ({"rho": 0.3}, lambda loss: loss.rho)],
)
def test_permute_and_flip_in_a_context(budget, expressed):
    context = dp.Context.compositor(
        data=DATA,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(**budget),
        split_evenly_over=2,
    )
    share = next(iter(budget.values())) / 2
    released = ob.posterior(
        context.query(), "x", nulls="a", size=5, mechanism="permute_and_flip"
    ).release()
    assert isinstance(released.mechanism, ob.mechanisms.PermuteAndFlip)
    assert sum(released.counts) == 5
    assert 0.999999 * share < expressed(released.loss) <= share
    assert ob.Release.from_json(released.to_json()) == released
    again = ob.posterior(
        context.query(), "x", nulls="a", size=5, mechanism=released.mechanism
    ).release()
    assert again.loss == released.loss


def test_a_private_size_is_refused_by_name():
    context = dp.Context.compositor(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    with pytest.raises(
        ValueError,
        match=r"PermuteAndFlip: .* records must be public",
    ):
        ob.posterior(context.query(), "x", nulls="a", mechanism="permute_and_flip")


# Refusals.


@pytest.mark.parametrize(
    ("user", "make"),
    [
        ("make_hellinger_scores", scores),
        ("selected_counts", lambda space: ob.t.selected_counts(space.domain)),
    ],
)
def test_refuses_spaces(user, make):
    with pytest.raises(
        ValueError,
        match=rf"{user}: its candidates are .* so the number of records must be public\.",
    ):
        make(PosteriorSpace(("a", "b"), None, (1.0, 1.0)))
    with pytest.raises(ValueError, match=r"size=200000: enumerating .*2 categories"):
        make(PosteriorSpace(("a", "b"), 200_000, (1.0, 1.0)))
    with pytest.raises(
        ValueError,
        match=r"input_domain=.*: .*make_dirichlet_multinomial or make_beta_binomial",
    ):
        make(CountsSpace(("a", "b"), 5))


def test_needs_the_features():
    domain, metric = SPACE.domain, SPACE.metric
    dp.disable_features("honest-but-curious")
    with pytest.raises(ValueError, match="make_hellinger_scores builds on components"):
        ob.t.make_hellinger_scores(domain, metric)
    with pytest.raises(ValueError, match="selected_counts builds on components"):
        ob.t.selected_counts(domain)


def test_refuses_another_metric():
    with pytest.raises(ValueError, match=r"input_metric=.*: .*belongs to the input domain"):
        ob.t.make_hellinger_scores(
            SPACE.domain, PosteriorSpace(("a", "b", "c"), None, SPACE.prior).metric
        )


@pytest.mark.parametrize(
    ("d_in", "error"),
    [
        (-1, r"d_in=-1: must be 0 or greater\."),
        (0.5, r"d_in=0\.5: .*a whole number"),
    ],
)
def test_the_map_refuses_distances(d_in, error):
    with pytest.raises(OpenDPException, match=error):
        scores().map(d_in)


def test_failures_do_not_tell_about_data():
    with pytest.raises(
        OpenDPException,
        match=r"records is not size=5, .*declared",
    ):
        scores()(concentration(counts=(1, 3, 2)))
    with pytest.raises(OpenDPException, match="float64 array of 3 concentrations"):
        scores()([1.0, 2.0])
    with pytest.raises(OpenDPException, match=r"selected_counts failed\. .*cause is withheld"):
        ob.t.selected_counts(SPACE.domain)(21)


def test_scores_of_another_model_do_not_chain():
    other = PosteriorSpace(SPACE.categories, SPACE.size, (1.0, 1.0, 1.0))
    counts = ob.t.make_categorical_counts(
        dp.domain_of(DATA, infer=True), dp.change_one_distance(), column="x", size=5, nulls="a"
    )
    with pytest.raises(OpenDPException, match="DomainMismatch"):
        counts >> ob.t.then_dirichlet_multinomial(prior=[0.5, 1.0, 2.0]) >> scores(other)
