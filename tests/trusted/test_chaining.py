"""`then_x`: what it may follow, and what it must not."""

import gc
import inspect

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.doors import PUBLIC

PURE = dp.max_divergence()
DATA = pl.LazyFrame({"x": [True, False, True]})
SPACE = (dp.domain_of(DATA, infer=True), dp.symmetric_distance())
COUNTS = ob.t.then_categorical_counts(column="x", nulls=False)
THEN = [name for name in PUBLIC if name.startswith("then_")]


def measurement():
    posterior = SPACE >> COUNTS >> ob.t.then_dirichlet_multinomial(prior=1.0)
    return posterior >> ob.m.then_laplace_parameters(PURE, 1.0)


@pytest.mark.parametrize("name", THEN)
def test_none_follows_a_measurement(name):
    then = PUBLIC[name]
    arguments = dict.fromkeys(inspect.signature(then).parameters, 1.0)
    match = rf"^{name}: cannot follow a measurement\. .*Let it follow a transformation\."
    with pytest.raises(ValueError, match=match):
        measurement() >> then(**arguments)


def test_what_follows_a_measurement_is_post_processing():
    """Negative control: what is meant for a release still follows."""
    assert (measurement() >> (lambda release: release.categories))(DATA) == (True, False)


def test_partial_constructors_follow_spaces_transformations_and_one_another():
    both = COUNTS >> ob.t.then_dirichlet_multinomial(prior=1.0)
    one = SPACE >> both >> ob.m.then_laplace_parameters(PURE, 1.0)
    other = SPACE >> (both >> ob.m.then_laplace_parameters(PURE, 1.0))
    assert one.map(3) == other.map(3) == measurement().map(3) == 3.0
    opendps = SPACE >> COUNTS >> ob.t.then_count_vector() >> dp.m.then_laplace(2.0)
    assert opendps.map(3) == 1.5
    with pytest.raises(ValueError, match="then_categorical_counts: cannot follow a measurement"):
        measurement() >> both


def test_anything_else_before_it_is_an_error():
    with pytest.raises(TypeError, match="Cannot chain"):
        3 >> COUNTS


def test_it_says_what_it_is_and_frees_nothing():
    then = ob.t.then_count_vector()
    assert repr(then) == "then_count_vector(...)"
    assert list(inspect.signature(ob.m.then_knorm_parameters).parameters) == [
        "output_measure",
        "scale",
    ]
    del then
    gc.collect()
    assert measurement().map(1) == 1.0
