"""Queries whose posterior learns its prior: the draw and its loss are those of a number."""

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.answers import learned_posterior
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


@pytest.mark.parametrize(
    "mechanism",
    ["hellinger_exponential", "permute_and_flip", ob.mechanisms.HellingerExponential(0.02)],
)
def test_mechanisms_that_draw_by_the_prior_are_refused(mechanism):
    with pytest.raises(ValueError, match=r"noise on the counts.*depends on"):
        asked(query(changes=1), "v", size=120, prior="learned", mechanism=mechanism)


def test_other_words_groups_and_combinations_are_refused(learned):
    with pytest.raises(ValueError, match=r"prior='jeffreys': .*'auto', 'learned', a"):
        asked(query(), prior="jeffreys")
    with pytest.raises(ValueError, match=r"prior='learned': .*one table; .*joint"):
        ob.posterior(query(), "v", by="w", nulls="a", prior="learned")
    with pytest.raises(ValueError, match=r"ordered=\('v',\): .*one table; .*joint"):
        ob.posterior(query(), "v", by="w", nulls="a", ordered=["v"])
    other = replace(learned, noisy_counts=tuple(number + 1 for number in learned.noisy_counts))
    with pytest.raises(ValueError, match=r"prior=1.0: .*None or 'learned'"):
        ob.combine([learned, other], prior=1.0)
    with pytest.raises(TypeError, match=r"releases: must be a list .* combine_tables"):
        ob.combine({"one": learned, "other": other})
    with pytest.raises(ValueError, match=r"releases\[1\]: has learned_prior=False"):
        ob.combine([learned, replace(other, learned_prior=False)])


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
