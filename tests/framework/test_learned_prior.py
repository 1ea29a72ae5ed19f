"""Queries whose posterior learns its prior: the draw and its loss are those of a number."""

from dataclasses import replace

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.noise_aware import is_quick

FRAME = pl.LazyFrame(
    {"v": ["a", "b", "c", "a"] * 30, "w": ["x", "y", "y"] * 40},
    schema={"v": pl.Enum(["a", "b", "c"]), "w": pl.Enum(["x", "y"])},
)
BOTH = ["v", "w"]


def query(parts=1, loss=None, **unit):
    context = dp.Context.compositor(
        data=FRAME,
        privacy_unit=dp.unit_of(**(unit or {"contributions": 3})),
        privacy_loss=dp.loss_of(**(loss or {"epsilon": 1.0})),
        split_evenly_over=parts,
    )
    return context.query()


def asked(of, columns=BOTH, *, size=None, **options):
    buckets = {"v": "a", "w": "x"} if isinstance(columns, list) else "a"
    return ob.posterior(of, columns, size=size, nulls=buckets, **options)


@pytest.fixture(scope="module")
def learned():
    dp.enable_features("contrib", "honest-but-curious")
    return asked(query(), prior="learned").release()


def test_the_posterior_of_the_release_is_learned(learned):
    assert learned.learned_prior
    assert learned.prior == (1.0,) * 6
    assert learned.d_in == 3
    assert isinstance(learned.posterior, LearnedPosterior)
    assert {"effects of v", "effects of w"} < set(learned.posterior.learned)
    same = ob.noise_aware_posterior(replace(learned, learned_prior=False), prior="learned")
    np.testing.assert_array_equal(same.mean(), learned.posterior.mean())


def test_the_release_says_so_everywhere(learned):
    learned.posterior.mean()
    assert "prior='learned'" in repr(learned)
    notes = " ".join(note for note in learned.sheet().notes if isinstance(note, str))
    assert "Prior: learned from the release (empty cells 0." in notes
    assert "effects of w" in notes
    fresh = ob.Release.from_json(learned.to_json())
    assert fresh == learned
    assert fresh != replace(learned, learned_prior=False)
    assert not is_quick(fresh)
    assert "Prior: learned from the release." in fresh.sheet(wait=False).notes


def test_a_release_of_before_reads_as_one_of_a_number(learned):
    plain = replace(learned, learned_prior=False)
    assert "learned_prior" not in plain.to_json()
    assert ob.Release.from_json(plain.to_json()) == plain


@pytest.mark.parametrize(
    ("of", "size", "loss"),
    [
        ({"contributions": 3}, None, {"epsilon": 1.0}),
        ({"contributions": 2}, None, {"rho": 0.5}),
        ({"changes": 2}, 120, {"epsilon": 1.0}),
    ],
)
def test_the_measurement_loses_what_that_of_a_number_does(of, size, loss):
    one, other = (
        asked(query(loss=loss, **of), size=size, prior=prior).resolve()
        for prior in (1.0, "learned")
    )
    assert one.param == other.param
    for distance in (0, 1, 2, 5):
        assert one.map(distance) == other.map(distance)


def test_what_is_shown_before_the_release_says_so():
    of = asked(query(), prior="learned")
    assert of.summarize()["aggregate"].item() == "Posterior of 6 cells, prior learned"
    assert "of 'v', 'w', prior='learned', mechanism=LaplaceParameters" in repr(of)
    plain = asked(query())
    assert plain.summarize()["aggregate"].item() == "Posterior of 6 cells"
    assert "learned" not in repr(plain)


def test_auto_takes_noise_where_another_mechanism_would_be_chosen():
    """With few records of a small budget the choice is an exponential mechanism or the like."""
    frame = FRAME.head(6)

    def few():
        unit, loss = dp.unit_of(changes=1), dp.loss_of(epsilon=0.5)
        return dp.Context.compositor(
            data=frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1
        ).query()

    usual, of_noise = (
        ob.posterior(few(), "v", size=6, nulls="a", prior=prior).summarize()["mechanism"].item()
        for prior in (1.0, "learned")
    )
    noise = {"KNormParameters", "LaplaceParameters", "GaussianParameters"}
    assert usual not in noise
    assert of_noise in noise


def test_a_survey_has_it_for_each_question():
    questions = {
        "one": {"column": "v", "nulls": "a", "prior": "learned"},
        "other": {"column": "w", "nulls": "x"},
    }
    found = ob.survey(query(), questions).release()
    assert [found[name].learned_prior for name in questions] == [True, False]
    assert isinstance(found["one"].posterior, LearnedPosterior)


@pytest.mark.parametrize(
    "mechanism",
    ["hellinger_exponential", "permute_and_flip", ob.HellingerExponential(0.02)],
)
def test_mechanisms_that_draw_by_the_prior_are_refused(mechanism):
    with pytest.raises(ValueError, match=r"needs noise on the counts.*depends on"):
        asked(query(changes=1), "v", size=120, prior="learned", mechanism=mechanism)


def test_other_words_and_groups_are_refused():
    with pytest.raises(ValueError, match="prior='auto': must be 'learned', a positive number"):
        asked(query(), prior="auto")
    with pytest.raises(ValueError, match="prior='learned': is of one table; ask for the joint"):
        ob.posterior(query().group_by("w"), "v", nulls="a", prior="learned")


def test_a_document_cannot_say_it_of_another_mechanism():
    size = ob.posterior(
        query(changes=1), "v", size=120, nulls="a", mechanism="hellinger_exponential"
    ).release()
    text = size.to_json()[:-1] + ',"learned_prior":true}'
    with pytest.raises(ValueError, match="prior='learned': needs noise on the counts"):
        ob.Release.from_json(text)


def test_several_releases_of_learned_priors_are_not_combined(learned):
    other = replace(learned, drawn=tuple(number + 1 for number in learned.drawn))
    with pytest.raises(ValueError, match=r"releases\[0\]: has a learned prior"):
        ob.combine([learned, other], records="same")
    fixed = [replace(each, learned_prior=False) for each in (learned, other)]
    assert ob.combine(fixed, records="same").mean().shape == (6,)
