"""One posterior from several releases of the same categories."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from opendp_bayes.inference.answers.learned_posterior import learned_posterior
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.compatible import check_releases, number_of_records
from opendp_bayes.inference.likelihood.drawn_counts import (
    DrawnCounts,
    check_envelope,
    check_same_records,
)
from opendp_bayes.inference.likelihood.of_counts import LARGEST_COMPARED, likelihood_of
from opendp_bayes.inference.ways import Way
from opendp_bayes.mathematics.telling import told
from opendp_bayes.release_format.data import ReleasedData


@np.errstate(under="ignore")
def combine(
    releases: Sequence[ReleasedData],
    *,
    draws_may_agree: bool = False,
    prior: Literal["learned"] | None = None,
) -> NoiseAwarePosterior:
    """The posterior given several noisy looks at the same records, of the same categories and with
    the same prior.

    Tables of different variables of the same records have one posterior by `combine_tables`.

    Nothing is drawn but for a learned prior, by Markov chains with a fixed seed. Exact for noise on
    the counts of any number of categories, for two categories with a public number of records, and
    for as many data sets as can be listed.

    Noise on the counts has the bounds of `docs/limits.md`.

    Parameters
    ----------
    releases : Sequence[Release]
        At least two `Release`s, whose true counts are equal and whose losses add up
        (`docs/budgets.md`). A public number of records of one of them holds for all; where rows of
        each identifier were limited, it was by the same fixed rule (`PrivacyGuarantee.kept`).
    draws_may_agree : bool, default False
        A release that is given twice would count twice, so that identical draws of one mechanism
        are refused. With True they are two draws that happen to agree, as those of small counts
        do now and then.
    prior : {"learned"}, optional
        `"learned"` learns it from releases that all have noise on the counts. By default it is the
        releases' own, which is learned where theirs is.

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
    >>> combine([first, second])
    NoiseAwarePosterior({'a': 0.5456 ± 0.22, 'b': 0.4544 ± 0.22}, exact)
    """
    if prior is not None and not (isinstance(prior, str) and prior == "learned"):
        raise ValueError(f"prior={told(prior)}: must be None or 'learned'.")
    check_releases(releases, draws_may_agree)
    first, size = releases[0], number_of_records(releases)
    if prior is not None or first.learned_prior:
        return learned_posterior(releases, size, first.ordered)
    concentration = np.array(first.prior)
    likelihoods = [likelihood_of(release.setting, release.noisy_counts) for release in releases]
    looks = [look for look in likelihoods if isinstance(look, DrawnCounts)]
    for look in looks:
        check_envelope(look, concentration, size)
    check_same_records(looks)
    engine = Way(likelihoods, concentration, size).exact()
    if engine is None:
        names = ", ".join(sorted({release.mechanism.name for release in releases}))
        raise ValueError(
            f"releases: of {first.k} categories, were made by {names}; must have noise on the"
            " counts, as LaplaceParameters and KNormParameters draw, or as few data sets as can be"
            f" listed: {LARGEST_COMPARED} of three or more categories given an exponential"
            " mechanism."
        )
    return NoiseAwarePosterior(releases, engine)
