"""OpenDP's own searches over the constructors, and what is refused only at a release."""

import math

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from tests.helpers.contexts import plain_context

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROX = dp.approximate(PURE)
MANY = [str(i) for i in range(5)]


def chain(categories, size, prior=1.0):
    frame = pl.LazyFrame(schema={"x": pl.Enum(categories)})
    domain = dp.domain_of(frame, infer=True)
    metric = dp.symmetric_distance() if size is None else dp.change_one_distance()
    asked = {"column": "x", "size": size, "nulls": categories[0]}
    counts = ob.t.make_categorical_counts(domain, metric, **asked)
    return counts >> ob.t.then_dirichlet_multinomial(prior=prior)


FEW, LARGE, PRIVATE = chain(["a", "b"], 10), chain(MANY, 1000), chain(MANY, None)
THREE = chain(["a", "b", "c"], 10)
PROVEN = {"accounting": "proven"}
#: Posterior, constructor, measure, arguments, and a loss in that measure.
SEARCHES = {
    "Laplace, size private": (PRIVATE, "laplace_parameters", PURE, {}, 1.0),
    "Laplace, size public": (LARGE, "laplace_parameters", PURE, {}, 1.0),
    "Laplace, floored": (LARGE, "laplace_parameters", PURE, {"noise": "floored"}, 0.3),
    "Laplace, ρ": (PRIVATE, "laplace_parameters", ZCDP, {}, 0.1),
    "Laplace, δ of 0": (PRIVATE, "laplace_parameters", APPROX, {}, (1.0, 0.0)),
    "K-norm": (THREE, "knorm_parameters", PURE, {}, 1.0),
    "Gaussian, size private": (PRIVATE, "gaussian_parameters", ZCDP, {}, 0.1),
    "Gaussian, size public": (LARGE, "gaussian_parameters", ZCDP, {}, 0.1),
    "Gaussian, δ": (PRIVATE, "gaussian_parameters", APPROX, {"delta": 1e-6}, (1.0, 1e-6)),
    "EHD": (LARGE, "hellinger_exponential", PURE, PROVEN, 1.0),
    "EHD, ρ": (LARGE, "hellinger_exponential", ZCDP, PROVEN, 0.1),
    "EHD, exact": (FEW, "hellinger_exponential", PURE, {}, 1.0),
    "EHDL": (FEW, "hellinger_exponential", PURE, {"sensitivity": "local"}, 1.0),
    "EHDS": (LARGE, "smooth_hellinger_exponential", PURE, PROVEN, 1.0),
    "EHDS, exact": (FEW, "smooth_hellinger_exponential", PURE, {"gamma": 0.3}, 1.0),
    "permute-and-flip": (FEW, "permute_and_flip", PURE, PROVEN, 1.0),
}
#: Searches that are given no bounds, and look for some first.
UNBOUNDED = {"EHDS"}
#: The scale in closed form, at distance 3.
KNOWN = dict.fromkeys(("Laplace, size private", "Laplace, δ of 0", "K-norm"), 3.0)
KNOWN |= {"Laplace, size public": 6.0, "Gaussian, size public": 3 / math.sqrt(0.1)}
KNOWN["Gaussian, size private"] = 3 / math.sqrt(2 * 0.1)


def first(loss):
    return loss[0] if isinstance(loss, tuple) else loss


SLOW = {"EHDL", "EHDS, exact", "Laplace, floored", "Gaussian, size public"}
SLOW |= {"Laplace, size public", "Laplace, ρ", "Gaussian, size private", "EHD", "permute-and-flip"}
SLOW |= {"K-norm", "EHD, exact"}
EVERY = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SEARCHES]


@pytest.mark.parametrize("name", EVERY)
def test_binary_search_finds_the_scale_of_every_constructor(name):
    posterior, constructor, measure, arguments, loss = SEARCHES[name]
    then = getattr(ob.m, f"then_{constructor}")
    d_in = 3 if name in KNOWN else 1

    def make(scale):
        return posterior >> then(measure, scale, **arguments)

    # Without bounds OpenDP first looks for some, which takes three times as long.
    bounds = None if name in UNBOUNDED else (0.01, 100.0)
    scale = dp.binary_search_param(make, d_in, loss, bounds=bounds)
    assert first(make(scale).map(d_in)) <= first(loss)
    assert first(make(scale * (1 - 1e-6)).map(d_in)) > first(loss), "not the smallest scale"
    if name in KNOWN:
        assert scale == pytest.approx(KNOWN[name], rel=1e-12)


def test_binary_search_chain_gives_the_measurement():
    found = dp.binary_search_chain(lambda s: THREE >> ob.m.then_knorm_parameters(PURE, s), 2, 0.5)
    assert found.map(2) == 0.5
    data = pl.LazyFrame({"x": pl.Series(["c"] * 10, dtype=pl.Enum(["a", "b", "c"]))})
    assert found(data).mechanism == ob.KNormParameters(4.0)


@pytest.mark.parametrize("then", [ob.m.then_hellinger_exponential, ob.m.then_mechanism])
def test_a_release_that_would_ignore_the_data_fails_with_the_remedy(then):
    value = (
        1.0 if then is ob.m.then_hellinger_exponential else ob.mechanisms.HellingerExponential(1.0)
    )
    measurement = LARGE >> then(PURE, value)
    assert measurement.map(1) > 0
    data = pl.LazyFrame({"x": pl.Series(["1"] * 1000, dtype=pl.Enum(MANY))})
    with pytest.raises(OpenDPException, match=r"uniform draws .* Use KNormParameters"):
        measurement(data)


def test_in_a_context_it_is_refused_before_anything_is_read_or_spent():
    context = plain_context(
        pl.LazyFrame({"x": ["1"] * 1000}).map_batches(_read, schema={"x": pl.String}),
        {"changes": 1},
    )
    arguments = {"categories": MANY, "nulls": "0", "unknown": "0", "size": 1000}
    for mechanism in ("hellinger_exponential", ob.mechanisms.HellingerExponential(2.0)):
        with pytest.raises(ValueError, match="uniform draws from them"):
            ob.posterior(context.query(), "x", mechanism=mechanism, **arguments).release()
    assert context.remaining_privacy_loss() == [1.0]


def _read(frame):
    raise AssertionError
