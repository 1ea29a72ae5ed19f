"""`then_x`: what it may follow."""

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob

PURE = dp.max_divergence()
DATA = pl.LazyFrame({"x": [True, False, True]})
SPACE = (dp.domain_of(DATA, infer=True), dp.symmetric_distance())
COUNTS = ob.t.then_categorical_counts(column="x", nulls=False)


def measurement():
    posterior = SPACE >> COUNTS >> ob.t.then_dirichlet_multinomial(prior=1.0)
    return posterior >> ob.m.then_laplace_parameters(PURE, 1.0)


def test_what_follows_a_measurement_and_partial_constructors():
    assert (measurement() >> (lambda release: release.categories))(DATA) == (True, False)
    with pytest.raises(TypeError, match="Cannot chain"):
        3 >> COUNTS
    both = COUNTS >> ob.t.then_dirichlet_multinomial(prior=1.0)
    one = SPACE >> both >> ob.m.then_laplace_parameters(PURE, 1.0)
    other = SPACE >> (both >> ob.m.then_laplace_parameters(PURE, 1.0))
    assert one.map(3) == other.map(3) == measurement().map(3) == 3.0
    opendps = SPACE >> COUNTS >> ob.t.then_count_vector() >> dp.m.then_laplace(2.0)
    assert opendps.map(3) == 1.5
