"""One posterior from several releases of the same categories."""

from collections.abc import Sequence
from functools import partial, reduce
from itertools import accumulate
from typing import Literal

import numpy as np
from scipy import special

from opendp_bayes.inference.answers.learned_posterior import learned_posterior
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.compatible import Records, check_releases, number_of_records
from opendp_bayes.inference.convolution.different_records import DifferentRecords
from opendp_bayes.inference.convolution.noisy_data_sets import NoisyDataSet
from opendp_bayes.inference.engines import Engine, Listed
from opendp_bayes.inference.likelihood.drawn_counts import (
    DrawnCounts,
    check_envelope,
    check_same_records,
)
from opendp_bayes.inference.likelihood.of_counts import Likelihood, likelihood_of, log_likelihoods
from opendp_bayes.inference.ways import way_of
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates, ranks
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.underflow import underflow_is_zero
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.data import ReleasedData

#: Pairs of data sets that are added up.
_LARGEST_PAIRS = 1 << 24


@underflow_is_zero
def combine(
    releases: Sequence[ReleasedData],
    *,
    records: Records,
    draws_may_agree: bool = False,
    prior: Literal["learned"] | None = None,
) -> NoiseAwarePosterior:
    """The posterior given several releases of the same categories with the same prior.

    Tables of different variables of the same records have one posterior by `combine_tables`.

    Nothing is drawn but for a learned prior, by Markov chains with a fixed seed. Of the same
    records, exact for noise on the counts of any number of categories, for two categories with a
    public number of records, and for as many data sets as can be listed. Of different records, for
    noise on the counts as far as tables of the counts of all releases go, and for as many pairs of
    data sets as can be listed.

    Noise on the counts has the bounds of `docs/limits.md`.

    Parameters
    ----------
    releases : Sequence[Release]
        At least two `Release`s. Their losses add up where they are of the same records
        (`docs/budgets.md`).
    records : {"same", "different"}
        `"same"`: noisy looks at the same records, whose true counts are equal; a public number of
        records of one of them holds for all; where rows of each identifier were limited, it was by
        the same fixed rule (`PrivacyGuarantee.kept`). `"different"`: of records that have nothing
        in common but the probabilities; the posterior's `counts` are those of all together.
    draws_may_agree : bool, default False
        A release that is given twice would count twice, so that identical draws of one mechanism
        are refused. With True they are two draws that happen to agree, as those of small counts
        do now and then.
    prior : {"learned"}, optional
        `"learned"` learns it from releases of the same records, all with noise on the counts. By
        default it is the releases' own, which of the same records is learned where theirs is; of
        different records it is the number that their `plug_in` has.

    Raises
    ------
    ValueError, TypeError
        For releases that do not fit each other, for one that is given twice, and where the
        posterior is out of reach.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release, combine
    >>> promise = PrivacyGuarantee(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> first, second = (
    ...     Release(drawn, ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    ...     for drawn in [(3, 5), (6, 2)]
    ... )
    >>> combine([first, second], records="same")
    NoiseAwarePosterior({'a': 0.5456 ± 0.22, 'b': 0.4544 ± 0.22}, exact)
    """
    learned = isinstance(prior, str) and prior == "learned"
    if prior is not None and not (learned and records == "same"):
        raise ValueError(
            f"prior={told(prior)}: must be None, or 'learned' for releases of the same records."
        )
    check_releases(releases, records, draws_may_agree)
    first, size = releases[0], number_of_records(releases, records)
    if prior is not None or (first.learned_prior and records == "same"):
        return learned_posterior(releases, size, first.ordered)
    concentration = np.array(first.prior)
    likelihoods = [likelihood_of(release.setting, release.noisy_counts) for release in releases]
    noisy = [
        NoisyDataSet(likelihood, release.size)
        for release, likelihood in zip(releases, likelihoods, strict=True)
        if isinstance(likelihood, DrawnCounts)
    ]
    for data_set in noisy:
        check_envelope(data_set.noisy, concentration, data_set.size)
    if records == "same":
        check_same_records([data_set.noisy for data_set in noisy])
        engine = way_of(likelihoods, concentration, size).exact()
        if engine is None:
            raise ValueError(_refused(releases, size, "the data sets cannot be listed"))
    elif len(noisy) == len(likelihoods):
        engine = _of_noise(noisy, concentration)
    else:
        engine = _of_pairs(releases, likelihoods, concentration)
    return NoiseAwarePosterior(releases, engine)


def _of_noise(data_sets: list[NoisyDataSet], prior: Floats) -> Engine:
    """The engine of different records with noise on their counts."""
    sizes = [data_set.size for data_set in data_sets]
    if None in sizes and (len(set(map(type, sizes))) > 1 or len(data_sets) > 2):
        raise ValueError(
            f"releases: have the numbers of records {sizes}; of different records, two releases"
            " with private numbers can be combined, or any with public ones."
        )
    return DifferentRecords(data_sets, prior)


def _of_pairs(
    releases: Sequence[ReleasedData], likelihoods: list[Likelihood], prior: Floats
) -> Engine:
    """The list of all pairs of data sets of different records."""
    sizes = [release.size for release in releases]
    public, k = [size for size in sizes if size is not None], prior.size
    unions = zip(accumulate(public), public[1:], strict=False)
    numbers = [
        number_of_candidates(one_size, k) * number_of_candidates(other_size, k)
        for one_size, other_size in unions
    ]
    if len(public) < len(sizes) or max(numbers) > _LARGEST_PAIRS:
        size = sum(public) if len(public) == len(sizes) else None
        raise ValueError(_refused(releases, size, "the pairs of data sets cannot be listed"))
    guess = prior + np.sum([release.counts for release in releases], axis=0)
    log_share = np.log(guess / guess.sum())
    pairs_of = zip(likelihoods, public, strict=True)
    listed = [_listed(likelihood, size, log_share) for likelihood, size in pairs_of]
    weights, size = reduce(partial(_added, k=prior.size), listed)
    counts = candidates(size, prior.size)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights) - counts @ log_share
    return Listed(counts, log_weights + special.gammaln(counts + prior).sum(axis=1), prior)


def _listed(likelihood: Likelihood, size: int, log_share: Floats) -> tuple[Floats, int]:
    """For every data set its probability given the shares, up to a factor, times the likelihood."""
    counts = candidates(size, log_share.size)
    log_weights = counts @ log_share - special.gammaln(counts + 1.0).sum(axis=1)
    log_weights = log_weights + log_likelihoods([likelihood], counts, log_weights)
    return np.exp(log_weights - log_weights.max()), size


def _added(first: tuple[Floats, int], second: tuple[Floats, int], k: int) -> tuple[Floats, int]:
    """The weights of the union of two lists."""
    (weights, size), (others, more) = first, second
    if len(weights) > len(others):
        (weights, size), (others, more) = second, first
    counts = candidates(more, k)
    result = np.zeros(number_of_candidates(size + more, k))
    for weight, added_counts in zip(weights, candidates(size, k), strict=True):
        result[ranks(counts + added_counts, size + more)] += weight * others
    return result, size + more


def _refused(releases: Sequence[ReleasedData], size: int | None, why: str) -> str:
    names = ", ".join(sorted({release.mechanism.name for release in releases}))
    number = "private" if size is None else str(size)
    return (
        f"releases: were made by {names}, and {why} ({number} records, {releases[0].k} categories)."
        " Releases with noise on the counts (LaplaceParameters, KNormParameters) combine without a"
        " list."
    )
