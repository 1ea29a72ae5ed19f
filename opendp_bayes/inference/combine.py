"""One posterior from several releases of the same categories."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from opendp_bayes.inference.answers.learned_posterior import learned_posterior
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.compatible import Records, check_releases, number_of_records
from opendp_bayes.inference.convolution.different_records import DifferentRecords
from opendp_bayes.inference.convolution.noisy_data_sets import NoisyDataSet
from opendp_bayes.inference.likelihood.drawn_counts import (
    DrawnCounts,
    check_envelope,
    check_same_records,
)
from opendp_bayes.inference.likelihood.of_counts import LARGEST_COMPARED, likelihood_of
from opendp_bayes.inference.ways import Way
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.data import ReleasedData


@np.errstate(under="ignore")
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
    noise on the counts as far as tables of the counts of all releases go.

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
        engine = Way(likelihoods, concentration, size).exact()
    else:
        engine = _of_noise(noisy, concentration) if len(noisy) == len(likelihoods) else None
    if engine is None:
        names = ", ".join(sorted({release.mechanism.name for release in releases}))
        raise ValueError(
            f"releases: of {first.k} categories, were made by {names}; must have noise on the"
            " counts, as LaplaceParameters and KNormParameters draw, or if they are of the same"
            f" records, as few data sets as can be listed: {LARGEST_COMPARED} of three or more"
            " categories given an exponential mechanism."
        )
    return NoiseAwarePosterior(releases, engine)


def _of_noise(data_sets: list[NoisyDataSet], prior: Floats) -> DifferentRecords:
    """The engine of different records with noise on their counts."""
    sizes = [data_set.size for data_set in data_sets]
    if None in sizes and (len(set(map(type, sizes))) > 1 or len(data_sets) > 2):
        raise ValueError(
            f"releases: have the numbers of records {sizes}; of different records, two releases"
            " with private numbers can be combined, or any with public ones."
        )
    return DifferentRecords(data_sets, prior)
