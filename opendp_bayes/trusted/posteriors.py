"""Counts to posterior and to OpenDP's own vectors, as transformations."""

from fractions import Fraction
from typing import Any

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Domain, Metric, Transformation
from opendp.transformations import make_user_transformation
from opendp.typing import RuntimeType

from opendp_bayes.mathematics.rounding import sqrt_up
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.trusted.boundary import descriptor_of, guarded, guarded_map, require_features
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace, Prior


def make_dirichlet_multinomial(
    input_domain: Domain, input_metric: Metric, *, prior: Prior
) -> Transformation:
    """Update a Dirichlet prior with counts: the concentration of the posterior, `prior + counts`, a
    float64 array of shape `(k,)`.

    The output space names categories, size, prior and neighbour relation, so that pieces made for
    another model do not chain. Distances are kept (`docs/research/proofs.md`, "Inference").

    Source: tailoring paper, section 2.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_categorical_counts`.
    prior : Prior
        A positive number for every category, an array of shape `(k,)`, or a mapping from the labels
        to numbers, in records. Of groups it is the prior of each.

    Raises
    ------
    ValueError, TypeError
        For a prior that does not fit, or an input that is not from these constructors.
    """
    require_features("make_dirichlet_multinomial")
    counts_space = descriptor_of(input_domain, CountsSpace, "make_categorical_counts")
    if isinstance(counts_space, PosteriorSpace):
        raise ValueError(
            f"input_domain={input_domain}: is a posterior already; must be the output of"
            " make_categorical_counts."
        )
    counts_space.check_metric(input_metric)
    space = PosteriorSpace(
        counts_space.categories,
        counts_space.size,
        counts_space.as_prior(prior),
        axes=counts_space.axes,
        by=counts_space.by,
        nulls=counts_space.nulls,
        unknown=counts_space.unknown,
    )

    def function(value: Any) -> Floats:
        return np.asarray(space.prior_array + counts_space.counts(value))

    return make_user_transformation(
        input_domain,
        input_metric,
        space.domain,
        space.metric,
        guarded(function, "make_dirichlet_multinomial"),
        guarded_map(lambda d_in: Distance.of(d_in).stated, "make_dirichlet_multinomial"),
    )


def make_beta_binomial(
    input_domain: Domain, input_metric: Metric, *, prior: Prior
) -> Transformation:
    """Update a Beta prior with the counts of two categories, of which the first is the success: the
    concentration of the posterior, a float64 array of shape `(2,)`.

    Distances are kept (`docs/research/proofs.md`, "Inference").

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_categorical_counts` with two categories.
    prior : Prior
        A positive number for both categories, an array of shape `(2,)` with the success first, or a
        mapping from the labels to numbers, in records.

    Raises
    ------
    ValueError
        If there are not exactly two categories.
    ValueError, TypeError
        For a prior that does not fit or an input that is not from `make_categorical_counts`.
    """
    require_features("make_beta_binomial")
    space = descriptor_of(input_domain, CountsSpace, "make_categorical_counts")
    if space.k != 2:
        raise ValueError(
            f"input_domain={input_domain}: has {space.k} categories; must have 2. Use"
            " make_dirichlet_multinomial."
        )
    return make_dirichlet_multinomial(input_domain, input_metric, prior=prior)


then_beta_binomial = to_then(make_beta_binomial)
then_dirichlet_multinomial = to_then(make_dirichlet_multinomial)


# --- Counts in OpenDP's own spaces

_METRICS = {
    "L1Distance<i64>": l1_distance(T="i64"),
    "L2Distance<f64>": l2_distance(T="f64"),
    "LInfDistance<i64>": linf_distance(T="i64"),
}


def make_count_vector(
    input_domain: Domain, input_metric: Metric, *, MO: Any = "L1Distance<i64>"
) -> Transformation:
    """Cast counts to OpenDP's own space, `vector_domain(atom_domain(T="i64"), size=k)`, so that
    OpenDP's measurements follow `make_categorical_counts`.

    The stability map is the largest distance there is (`docs/research/proofs.md`, "Vectors of
    counts"). For `d` records added or removed it is `d` in each metric. For `d` records changed,
    `d` being at most the number of records, it is `2 d`, `sqrt(2) d` rounded up, and `d`.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_categorical_counts`.
    MO : Any, default "L1Distance<i64>"
        The output metric, spelled as OpenDP does: `"L1Distance<i64>"`, which `then_laplace` needs;
        `"L2Distance<f64>"`, for `then_gaussian`; or `"LInfDistance<i64>"`, for `then_noisy_max` and
        `then_noisy_top_k`.

    Raises
    ------
    ValueError
        For another metric or input.
    """
    require_features("make_count_vector")
    space = descriptor_of(input_domain, CountsSpace, "make_categorical_counts")
    space.check_metric(input_metric)
    name = str(RuntimeType.parse(MO)) if isinstance(MO, (str, RuntimeType)) else repr(MO)
    if name not in _METRICS:
        raise ValueError(f"MO={name}: must be one of {', '.join(_METRICS)}.")

    # Of records changed as many leave counts as arrive.
    sides = 1 if space.size is None else 2

    def stability_map(d_in: Any) -> float:
        distance = Distance.of(d_in).within(space.size)
        l2 = sqrt_up(Fraction(sides * distance.squared))
        distances = sides * distance.records, l2, distance.largest
        return dict(zip(_METRICS, distances, strict=True))[name]

    return make_user_transformation(
        input_domain,
        input_metric,
        vector_domain(atom_domain(T="i64"), size=space.k),
        _METRICS[name],
        guarded(space.counts, "make_count_vector"),
        guarded_map(stability_map, "make_count_vector"),
    )


then_count_vector = to_then(make_count_vector)
