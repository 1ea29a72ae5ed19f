"""Queries whose posterior learns its prior: the draw and its loss are those of a number."""

import re
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.answers import learned_posterior
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.ways import is_quick
from tests.helpers.contexts import plain_context

FRAME = pl.LazyFrame(
    {"v": ["a", "b", "c", "a"] * 30, "w": ["x", "y", "y"] * 40},
    schema={"v": pl.Enum(["a", "b", "c"]), "w": pl.Enum(["x", "y"])},
)
BOTH = ["v", "w"]


def query(parts=1, loss=None, **unit):
    context = plain_context(FRAME, unit or {"contributions": 3}, loss or {"epsilon": 1.0}, parts)
    return context.query()


def asked(of, columns=BOTH, *, size=None, **options):
    buckets = {"v": "a", "w": "x"} if isinstance(columns, list) else "a"
    return ob.posterior(of, columns, size=size, nulls=buckets, **options)


#: Of few effective draws.
pytestmark = pytest.mark.filterwarnings("ignore:.*was not found reliably:UserWarning")


@pytest.fixture(autouse=True, scope="module")
def _short_chains() -> Iterator[None]:
    """Chains of a tenth of the usual length, for what they find is not measured here."""
    with patch.multiple(learned_posterior, _STARTS=1, _MOVES=50, _DOUBLINGS=0):
        yield


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
    assert of.summarize()["prior"].item() == "learned from the release"
    assert "of 'v', 'w', prior='learned from the release', mechanism=LaplaceParameters" in repr(of)
    smooth = asked(query(), ordered=["w", "v"])
    assert smooth.summarize()["prior"].item() == "learned from the release, smooth along w and v"
    assert "prior='learned from the release, smooth along w and v', mech" in repr(smooth)
    plain = asked(query())
    assert plain.summarize()["prior"].item() == "1 per category"
    assert "prior='1 per category', mechanism" in repr(plain)
    numbers = asked(query(), prior=[1, 2, 3, 4, 5, 6])
    assert numbers.summarize()["prior"].item() == "(1, 2, 3, 4, 5, 6)"
    assert "prior='(1, 2, 3, 4, 5, 6)', mechanism" in repr(numbers)
    groups = ob.posterior(query().group_by("w"), "v", nulls="a", prior=0.5)
    assert groups.summarize()["prior"].item() == "0.5 per category"


def test_auto_takes_noise_where_another_mechanism_would_be_chosen():
    """With few records of a small budget the choice is an exponential mechanism or the like."""
    frame = FRAME.head(6)

    def few():
        return plain_context(frame, {"changes": 1}, {"epsilon": 0.5}).query()

    usual, of_noise = (
        ob.posterior(few(), "v", size=6, nulls="a", prior=prior).summarize()["mechanism"].item()
        for prior in (1.0, "learned")
    )
    noise = {"KNormParameters", "LaplaceParameters", "GaussianParameters"}
    assert usual not in noise
    assert of_noise in noise


def test_a_survey_has_it_for_each_question():
    questions = {"one": {"column": "v", "nulls": "a", "prior": "learned"}}
    questions["other"] = {"column": "w", "nulls": "x"}
    found = ob.survey(query(), questions).release()
    assert [found[name].learned_prior for name in questions] == [True, False]
    assert isinstance(found["one"].posterior, LearnedPosterior)


@pytest.mark.parametrize(
    "mechanism",
    ["hellinger_exponential", "permute_and_flip", ob.mechanisms.HellingerExponential(0.02)],
)
def test_mechanisms_that_draw_by_the_prior_are_refused(mechanism):
    with pytest.raises(ValueError, match=r"noise on the counts.*depends on"):
        asked(query(changes=1), "v", size=120, prior="learned", mechanism=mechanism)


def test_other_words_and_groups_are_refused():
    with pytest.raises(ValueError, match=r"prior='jeffreys': .*'auto', 'learned', a"):
        asked(query(), prior="jeffreys")
    grouped = query().group_by("w")
    with pytest.raises(ValueError, match=r"prior='learned': .*one table; .*joint"):
        ob.posterior(grouped, "v", nulls="a", prior="learned")
    with pytest.raises(ValueError, match=r"ordered=\('v',\): .*one table; .*joint"):
        ob.posterior(grouped, "v", nulls="a", ordered=["v"])


def test_wrong_ordered_columns_are_refused():
    assert asked(query(), ordered="v")._bound.question.ordered == ("v",)
    for wrong in (True, 1, [1]):
        message = rf"ordered={re.escape(repr(wrong))}: must be a name, a str, or a list of names"
        with pytest.raises(TypeError, match=message):
            asked(query(), ordered=wrong)
    with pytest.raises(ValueError, match=r"ordered=.*: .*among the columns asked"):
        asked(query(), ordered=["v", "age"])
    with pytest.raises(ValueError, match=r"ordered=\[.*\]: .*with a learned prior"):
        asked(query(), ordered=["v"], prior=0.5)
    with pytest.raises(ValueError, match="prior='learned': needs noise on"):
        asked(query(changes=1), "v", size=120, ordered=["v"], mechanism="hellinger_exponential")


def categories(k):
    return [*"abcdefghijkl"[:k]]


@pytest.mark.parametrize(
    ("k", "options", "learned"),
    [
        (9, {}, False),
        (10, {}, True),
        (9, {"ordered": ["v"]}, True),
        (10, {"prior": 1.0}, False),
        (10, {"mechanism": "laplace_parameters"}, True),
        (10, {"mechanism": ob.GaussianParameters(20.0)}, True),
        (10, {"size": 120, "mechanism": "knorm_parameters"}, True),
        (10, {"size": 120, "mechanism": ob.mechanisms.HellingerExponential(0.005)}, False),
        (10, {"size": 120, "mechanism": "hellinger_exponential"}, False),
        (10, {"size": 120, "mechanism": "smooth_hellinger_exponential", "beta": 0.1}, False),
    ],
)
def test_auto_is_learned_of_ten_categories_with_noise_on_the_counts(k, options, learned):
    """Whoever writes the expected column reads docs/choosing.md; no data take part."""
    unit = {"changes": 1} if "size" in options else {"contributions": 1}
    frame = pl.LazyFrame({"v": ["a", "b"] * 60})
    context = plain_context(frame, unit, {"rho": 0.5})
    rest = {"nulls": "a", "unknown": "b"}
    of = ob.posterior(context.query(), "v", categories=categories(k), **rest, **options)
    assert of._bound.question.learned is learned
    assert of._bound.question.prior == ("learned" if learned else 1.0)


def test_auto_counts_cells_and_gives_groups_a_number():
    other = {"categories": {"w": categories(5)}, "unknown": {"w": "a"}}
    columns, frame = ["v", "w"], FRAME.with_columns(pl.col("w").cast(pl.String))
    context = plain_context(frame)
    table = ob.posterior(context.query(), columns, nulls={"v": "a", "w": "a"}, **other)
    assert table._bound.question.learned
    rest = {"categories": categories(12), "nulls": "a", "unknown": "a"}
    groups = ob.posterior(context.query().group_by("v"), "w", **rest)
    assert groups._bound.question.prior == 1.0


def test_ordered_columns_reach_the_posterior_and_the_document(learned):
    smooth = asked(query(), ordered=["v"]).release()
    assert (smooth.learned_prior, smooth.ordered) == (True, ("v",))
    assert "prior='learned', ordered=['v']" in repr(smooth)
    assert "Prior: learned from the release, smooth along v." in smooth.sheet(wait=False).notes
    fresh = ob.Release.from_json(smooth.to_json())
    assert fresh == smooth
    assert fresh != replace(smooth, ordered=("w",))
    assert "ordered" not in learned.to_json()
    same = ob.noise_aware_posterior(learned, prior="learned", ordered=["v"])
    np.testing.assert_array_equal(replace(learned, ordered=("v",)).posterior.mean(), same.mean())
    assert np.all(same.mean() != learned.posterior.mean())


@pytest.mark.parametrize(
    ("ordered", "learned_prior"), [(["u"], True), (["v"], False), (["v", "v2"], True)]
)
def test_a_document_of_other_ordered_variables_is_refused(learned, ordered, learned_prior):
    text = replace(learned, ordered=tuple(ordered), learned_prior=learned_prior).to_json()
    with pytest.raises(ValueError, match=r"ordered=.*: .*variables of the table"):
        ob.Release.from_json(text)


def test_looks_at_the_same_records_have_one_learned_posterior(learned):
    """Two looks say more than one, and as the model of both draws says."""
    other = replace(learned, noisy_counts=tuple(number + 1 for number in learned.noisy_counts))
    both = ob.combine([learned, other], records="same")
    assert isinstance(both, LearnedPosterior)
    assert both.counts.std().mean() < 0.9 * learned.posterior.counts.std().mean()
    assert both.records.mean() == pytest.approx(np.sum(learned.noisy_counts) + 3, abs=3)
    fixed = [replace(each, learned_prior=False) for each in (learned, other)]
    plain = ob.combine(fixed, records="same")
    assert not isinstance(plain, LearnedPosterior)
    same = ob.combine(fixed, records="same", prior="learned")
    np.testing.assert_array_equal(same.mean(), both.mean())
    in_order = [replace(each, ordered=("v",)) for each in (learned, other)]
    assert np.all(ob.combine(in_order, records="same").mean() != both.mean())
    different = ob.combine([learned, other], records="different")
    assert not isinstance(different, LearnedPosterior)


def test_what_cannot_be_combined_under_a_learned_prior(learned):
    other = replace(learned, noisy_counts=tuple(number + 1 for number in learned.noisy_counts))
    with pytest.raises(ValueError, match=r"prior='learned': .*None, or 'learned'"):
        ob.combine([learned, other], records="different", prior="learned")
    with pytest.raises(TypeError, match=r"releases: must be a list .* combine_tables"):
        ob.combine({"one": learned, "other": other}, records="same")
    with pytest.raises(ValueError, match=r"releases\[1\]: has learned_prior=False"):
        ob.combine([learned, replace(other, learned_prior=False)], records="same")


def test_a_conflict_is_warned_of_at_the_line_that_asks():
    cells = tuple(range(200))
    drawn, sparse = (40, 30, 20, *[0] * 197), ob.LaplaceParameters(1.0, total="private")
    guarantee = ob.PrivacyGuarantee(None, 1, ob.PrivacyLoss(1.0, 0.5, 2.0), "MaxDivergence")
    posterior = ob.Release(drawn, cells, (1.0,) * 200, sparse, guarantee).posterior
    with pytest.warns(UserWarning, match="prior='learned'") as found:
        posterior.mean()
    assert found[0].filename == __file__
