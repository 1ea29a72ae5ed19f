"""The likelihood of releases at every data set, where there are few enough to list them."""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from opendp_bayes.inference.likelihood.normalisers_of_listed_data import most_probable
from opendp_bayes.inference.likelihood.of_counts import Flipping, Likelihood, Weighing
from opendp_bayes.mathematics.validation import Floats, Integers


def log_likelihoods(
    likelihoods: Sequence[Likelihood], counts: Integers, log_prior: Floats
) -> Floats:
    """The log-likelihood of all releases together at every data set, in lexicographic order, shape
    `(data sets, k)`.

    Where it is interpolated in tables, it is computed at the data sets that are most probable given
    all releases and what they weigh without them, `log_prior`; what it is off by there, in the
    mean, is taken off the others.
    """
    found = [one.log_likelihood(counts) for one in likelihoods]
    log_weights = log_prior + np.sum(found, axis=0)
    probable = most_probable(log_weights)
    if probable.size and counts.shape[1] > 2:
        share = softmax(log_weights[probable])
        for one, values in zip(likelihoods, found, strict=True):
            if isinstance(one, (Weighing, Flipping)):
                computed = one.computed(counts[probable])
                values -= share @ (values[probable] - computed)
                values[probable] = computed
    return np.asarray(np.sum(found, axis=0))
