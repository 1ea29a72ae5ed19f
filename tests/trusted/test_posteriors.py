"""Counts to posterior: values, the maps, and pieces that must not chain."""

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob

SYMMETRIC = dp.symmetric_distance()
CHANGE_ONE = dp.change_one_distance()


def counting(categories=("a", "b", "c"), size=4, nulls=None):
    labels = [label for label in categories if label != nulls]
    frame = pl.LazyFrame(schema={"x": pl.Enum(labels)})
    domain, metric = dp.domain_of(frame, infer=True), SYMMETRIC if size is None else CHANGE_ONE
    asked = {"column": "x", "size": size, "nulls": nulls or categories[0]}
    return ob.t.make_categorical_counts(domain, metric, **asked)


def data(values, categories=("a", "b", "c")):
    return pl.LazyFrame({"x": pl.Series(values, dtype=pl.Enum(categories))})


@pytest.mark.parametrize("prior", [1.0, 0.5, [0.5, 1.0, 2.5], np.array([1, 2, 3])])
def test_concentration_is_prior_plus_counts(prior):
    posterior = counting() >> ob.t.then_dirichlet_multinomial(prior=prior)
    concentration = posterior(data(["a", "c", "c", "a"]))
    assert concentration.dtype == np.float64
    assert concentration.tolist() == (np.array([2, 0, 2]) + prior).tolist()


def test_beta_is_the_dirichlet_of_two_categories():
    counts = counting(("yes", "no"))
    beta = counts >> ob.t.then_beta_binomial(prior=[2, 3])
    dirichlet = counts >> ob.t.then_dirichlet_multinomial(prior=[2, 3])
    sample = data(["yes", "yes", "yes", "no"], ("yes", "no"))
    assert beta.output_space == dirichlet.output_space
    assert beta(sample).tolist() == dirichlet(sample).tolist() == [5.0, 4.0]
    posterior = counting(("a", "b")) >> ob.t.then_beta_binomial(prior=1.0)
    with pytest.raises(ValueError, match="is a posterior already"):
        ob.t.make_beta_binomial(*posterior.output_space, prior=1.0)


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("k", [3, 4])
def test_beta_is_refused_for_other_numbers_of_categories(k, size):
    with pytest.raises(
        ValueError, match=rf"has {k} categories; must have 2\. Use make_dirichlet_multinomial"
    ):
        counting(("a", "b", "c", "d")[:k], size=size) >> ob.t.then_beta_binomial(prior=1.0)


@pytest.mark.parametrize("size", [None, 4])
def test_maps_keep_the_distance(size):
    posterior = counting(size=size) >> ob.t.then_dirichlet_multinomial(prior=1.0)
    assert [posterior.map(d_in) for d_in in (0, 1, 5)] == [0, 1, 5]


MODEL = {"categories": ("a", "b", "c"), "size": 4, "nulls": None, "prior": 1.0}
OTHERS = {
    "prior": {"prior": 2.0},
    "prior of one category": {"prior": [1.0, 1.0, float(np.nextafter(1.0, 2.0))]},
    "number of categories": {"categories": ("a", "b", "c", "d")},
    "labels": {"categories": ("a", "b", "x")},
    "order of categories": {"categories": ("b", "a", "c")},
    "a bucket in place of a category": {"categories": ("a", "b", "missing"), "nulls": "missing"},
    "size": {"size": 5},
    "neighbour relation": {"size": None},
}


def model(prior, **arguments):
    counts = counting(**arguments)
    return counts, counts >> ob.t.then_dirichlet_multinomial(prior=prior)


@pytest.mark.parametrize("name", OTHERS)
def test_pieces_for_another_model_do_not_chain(name):
    counts, posterior = model(**MODEL)
    other_counts, other_posterior = model(**{**MODEL, **OTHERS[name]})
    measurement = ob.m.make_laplace_parameters(
        *other_posterior.output_space, dp.max_divergence(), 1.0
    )
    with pytest.raises(OpenDPException, match=r"Intermediate (domains|metrics) don't match"):
        posterior >> measurement
    if "prior" not in OTHERS[name]:
        inference = ob.t.make_dirichlet_multinomial(*other_counts.output_space, prior=1.0)
        with pytest.raises(OpenDPException, match=r"Intermediate (domains|metrics) don't match"):
            counts >> inference


def test_pieces_chain_when_built_apart_with_priors_by_labels():
    _, posterior = model(**MODEL)
    _, twin = model(**{**MODEL, "prior": [1.0, 1.0, 1.0]})
    assert (
        posterior >> ob.m.make_laplace_parameters(*twin.output_space, dp.max_divergence(), 2.0)
    ).map(1) == 1.0
    by_labels = counting() >> ob.t.then_dirichlet_multinomial(prior={"c": 3.0, "a": 1.0, "b": 2.0})
    in_order = counting() >> ob.t.then_dirichlet_multinomial(prior=[1.0, 2.0, 3.0])
    assert by_labels.output_domain == in_order.output_domain
    for wrong in ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0, "z": 3.0}):
        with pytest.raises(ValueError, match="entry for each of 'a', 'b'"):
            counting() >> ob.t.then_dirichlet_multinomial(prior=wrong)
    with pytest.raises(ValueError, match="greater than 0"):
        counting() >> ob.t.then_dirichlet_multinomial(prior={"a": 1.0, "b": 0.0, "c": 1.0})


def test_spaces_that_are_not_counts_are_refused():
    counts, posterior = model(**MODEL)
    vectors = dp.vector_domain(dp.atom_domain(T="i64"), size=3), dp.l1_distance(T="i64")
    with pytest.raises(
        ValueError, match=r"input_domain=VectorDomain.*output of make_categorical_counts"
    ):
        ob.t.make_dirichlet_multinomial(*vectors, prior=1.0)
    with pytest.raises(ValueError, match="is a posterior already"):
        ob.t.make_dirichlet_multinomial(*posterior.output_space, prior=1.0)
    with pytest.raises(
        ValueError, match=r"input_metric=SymmetricDistance\(\): .*belongs to the input domain"
    ):
        ob.t.make_dirichlet_multinomial(counts.output_domain, SYMMETRIC, prior=1.0)
    with pytest.raises(ValueError, match=r"input_domain=AtomDomain.*make_dirichlet_multinomial"):
        ob.m.make_laplace_parameters(dp.atom_domain(T="i64"), SYMMETRIC, dp.max_divergence(), 1.0)
    with pytest.raises(
        ValueError, match=r"input_domain=CategoricalCounts.*make_dirichlet_multinomial"
    ):
        ob.m.make_laplace_parameters(*counts.output_space, dp.max_divergence(), 1.0)


PRIORS = {
    "too short": ([1.0, 1.0], ValueError, r"prior=\[1.0, 1.0\]: has shape \(2,\); must have 3"),
    "too long": ([1.0] * 4, ValueError, r"has shape \(4,\); must have 3 entries"),
    "matrix": ([[1.0, 1.0, 1.0]], ValueError, r"has shape \(1, 3\); must have 3 entries"),
    "zero": (0, ValueError, "prior=0: every entry must be greater than 0"),
    "one zero": ([1.0, 0.0, 1.0], ValueError, "every entry must be greater than 0"),
    "negative": (-1.0, ValueError, "prior=-1.0: every entry must be greater than 0"),
    "NaN": ([1.0, float("nan"), 1.0], ValueError, "every entry must be greater than 0"),
    "infinite": (float("inf"), ValueError, "prior=inf: every entry must be greater than 0"),
    "too large": (1e13, ValueError, "every entry must be greater than 0"),
    "too small": (1e-300, ValueError, "every entry must be greater than 0"),
    "text": ("flat", TypeError, "prior='flat': must be a number or a sequence of numbers"),
}


@pytest.mark.parametrize("name", PRIORS)
def test_bad_priors(name):
    prior, kind, message = PRIORS[name]
    with pytest.raises(kind, match=message):
        counting() >> ob.t.then_dirichlet_multinomial(prior=prior)
