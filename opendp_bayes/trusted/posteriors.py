"""Counts to posterior: the conjugate updates as transformations."""

from typing import Any

from opendp.mod import Domain, Metric, Transformation
from opendp.transformations import make_user_transformation

from opendp_bayes.mathematics.validation import Floats, as_distance
from opendp_bayes.trusted.boundary import (
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.chaining import to_then
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace, Prior


def make_dirichlet_multinomial(
    input_domain: Domain, input_metric: Metric, *, prior: Prior
) -> Transformation:
    """Update a Dirichlet prior with counts: the concentration of the posterior, `prior + counts`, a
    float64 array of shape `(k,)`.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_categorical_counts` or
        `make_grouped_counts`.
    prior : a positive number for every category, an array of shape `(k,)`, or a mapping from the
        labels to numbers, in records. After `make_grouped_counts` it is the prior of each group.

    The output space names categories, size, prior and neighbour relation, so that pieces made for
    another model do not chain. Distances are kept (`docs/proofs.md`, "Inference").

    Raises `ValueError`/`TypeError` for a prior that does not fit, or an input that is not from
    these constructors. Source: tailoring paper, section 2.
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
    )

    def function(value: Any) -> Floats:
        return space.concentration(counts_space.counts(value))

    return make_user_transformation(
        input_domain,
        input_metric,
        space.domain,
        space.metric,
        guarded(function, "make_dirichlet_multinomial"),
        guarded_map(as_distance, "make_dirichlet_multinomial"),
    )


def make_beta_binomial(
    input_domain: Domain, input_metric: Metric, *, prior: Prior
) -> Transformation:
    """Update a Beta prior with the counts of two categories, of which the first is the success: the
    concentration of the posterior, a float64 array of shape `(2,)`.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_categorical_counts` with two categories.
    prior : a positive number for both categories, an array of shape `(2,)` with the success first,
        or a mapping from the labels to numbers, in records.

    Distances are kept (`docs/proofs.md`, "Inference").

    Raises `ValueError` if there are not exactly two categories, and `ValueError`/`TypeError` for a
    prior that does not fit or an input that is not from `make_categorical_counts`.
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
