"""Posterior to scores: the Hellinger score of every candidate in OpenDP's own space, so that
OpenDP's selection measurements can follow.
"""

from typing import Any

from opendp.core import new_function
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import linf_distance
from opendp.mod import Domain, Function, Metric, Transformation
from opendp.transformations import make_user_transformation

from opendp_bayes.mathematics.simplex import candidate, number_of_candidates
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.scores import candidate_distances, check_candidates, score_change
from opendp_bayes.trusted.boundary import (
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.chaining import to_then
from opendp_bayes.trusted.spaces import PosteriorSpace


def make_hellinger_scores(input_domain: Domain, input_metric: Metric) -> Transformation:
    """Score every candidate posterior `r` of the same size by `-H(posterior, r)`: a float64 array
    of shape `(c,)`, the best score being 0.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_dirichlet_multinomial` or
        `make_beta_binomial`, with a public number of records.

    The output space is `vector_domain(atom_domain(T=float, nan=False), size=c)` under
    `linf_distance(T=float)`, so that OpenDP's `then_noisy_max` and `then_noisy_top_k` follow:
    permute-and-flip under `max_divergence()`, the exponential mechanism under
    `zero_concentrated_divergence()`. `selected_counts` turns the index they release into counts.
    The stability map is `d_in GS`, and the error of the computed scores, rounded up.

    Raises `ValueError` for another input, and where there are too many candidates to enumerate.
    Source: `docs/proofs.md`, "Scores".
    """
    require_features("make_hellinger_scores")
    space, size = _scored_space(input_domain, "make_hellinger_scores")
    space.check_metric(input_metric)
    prior = space.prior_array

    def function(concentration: Any) -> Floats:
        return -candidate_distances(space.counts(concentration), prior)

    return make_user_transformation(
        input_domain,
        input_metric,
        vector_domain(atom_domain(T=float, nan=False), size=number_of_candidates(size, space.k)),
        linf_distance(T=float),
        guarded(function, "make_hellinger_scores"),
        guarded_map(
            lambda d_in: score_change(d_in, size=size, prior=prior), "make_hellinger_scores"
        ),
    )


def selected_counts(input_domain: Domain) -> Function:
    """Turn the index of a score into the counts of its candidate, a list of k integers, as
    post-processing.

    Parameters
    ----------
    input_domain : the posterior space that was scored, as in `posterior >> then_hellinger_scores()
        >> dp.m.then_noisy_max(...) >> selected_counts(posterior.output_domain)`.

    Raises `ValueError` for another domain.
    """
    require_features("selected_counts")
    space, size = _scored_space(input_domain, "selected_counts")
    return new_function(
        guarded(lambda index: candidate(index, size, space.k), "selected_counts"), TO="Vec<i64>"
    )


then_hellinger_scores = to_then(make_hellinger_scores)


def _scored_space(input_domain: Domain, user: str) -> tuple[PosteriorSpace, int]:
    space = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    return space, check_candidates(user, size=space.size, k=space.k)
