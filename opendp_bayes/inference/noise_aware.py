"""Computes the noise-aware posterior of a release; and says where a fixed prior, not what was
drawn, decides how many records there are, or are in a category, and how far it may pull counts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.learned_posterior import learned_from
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.compatible import as_release
from opendp_bayes.inference.engines import Engine
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.inference.sampling.markov_chain import warn_of_draws
from opendp_bayes.inference.ways import way_to
from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.validation import Floats, Integers, as_generator, as_prior, as_size
from opendp_bayes.mechanisms.integer_noise import typical_mean, typical_std
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import distinct, numbered


@np.errstate(under="ignore")
def noise_aware_posterior(
    release: ReleasedData,
    *,
    prior: ArrayLike | Literal["learned"] | None = None,
    ordered: str | Sequence[str] | None = None,
    records_prior: Any = None,
    ess: int = 4000,
    random_state: int | None = 0,
) -> NoiseAwarePosterior:
    """The posterior given a release, its noise taken into account.

    Two categories, few data sets, and noise on the counts need no draws
    (`docs/research/computation.md`). Warns where draws do not agree or are worth few independent
    ones. When it is first used, warns where its number of records, or that of a margin, is far from
    the sum of what was drawn: the prior decides it, not the records.

    Parameters
    ----------
    release : Release
        A `Release`.
    prior : array_like or {"learned"}, optional
        Its concentration, a positive number or one for each category; or `"learned"`, which learns
        the law of the cells' intensities, and effects of the margins of a joint table, from the
        release (`learned`). For noise on the counts only, whose draw does not depend on
        the prior. By default the prior is the release's own, which is learned too where
        `release.learned_prior` says so.
    ordered : str or Sequence[str], optional
        With a learned prior, the variables whose values are in order, such as `["age"]`: their
        effects are smooth. Of a release of one column, one name of any kind. By default
        `release.ordered`.
    records_prior : Any, optional
        Where the number of records is private, its prior: a frozen discrete distribution of scipy
        without gaps, such as `scipy.stats.poisson(1000)`. By default every number is equally
        probable.
    ess : int, default 4000
        The effective sample size of Markov chains or weighted draws, where they are needed; the
        chains of a learned prior have a length of their own.
    random_state : int or None, default 0
        Of those draws. Exponential mechanisms for three or more categories draw from the operating
        system's source as well, which has no seed.

    Raises
    ------
    ValueError
        For a mechanism whose probabilities are out of reach, and given noise on the counts for what
        is beyond the bounds of `docs/limits.md`.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release
    >>> from opendp_bayes import noise_aware_posterior
    >>> promise = PrivacyGuarantee(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    >>> noise_aware_posterior(release)
    NoiseAwarePosterior({'a': 0.4263 ± 0.23, 'b': 0.5737 ± 0.23}, exact)
    """
    release = as_release(release)
    if release.source is not None:  # a group, whose posterior is part of that of its table
        options: Any = {"prior": prior, "ordered": ordered, "records_prior": records_prior}
        whole = noise_aware_posterior(release.source, **options, ess=ess, random_state=random_state)
        return whole._part(release)
    if records_prior is not None and (
        release.size is not None or not callable(getattr(records_prior, "logpmf", None))
    ):
        raise ValueError(
            f"records_prior={records_prior!r}: must be a frozen discrete distribution with a method"
            f" logpmf, or None where the number of records is public; it is size={release.size}."
        )
    effective = as_size(ess, "ess", "draws")
    if prior is not None and not isinstance(prior, str):
        release, prior = _with_prior(release, prior, ordered), None
    elif prior is None and release.learned_prior:
        prior = "learned"
    if prior is not None or ordered is not None:
        return learned_from(release, prior, ordered, records_prior, random_state)
    counts = way_to(release).engine(records_prior, effective, as_generator(random_state))
    warn_of_draws(counts.diagnostics, effective)
    fixed = release.setting.adds_noise and release.whole is None and records_prior is None
    first = partial(warn_of_conflict, release, counts) if fixed else None
    pulls = partial(pulls_of, release, counts) if release.setting.adds_noise else None
    return NoiseAwarePosterior([release], counts, on_first_use=first, pulls=pulls)


def _with_prior(release: ReleasedData, prior: ArrayLike, ordered: Any) -> ReleasedData:
    """The release with another prior, which what was drawn does not depend on."""
    if ordered is not None:
        raise ValueError(f"ordered={ordered!r}: goes with a learned prior; leave out prior.")
    if not release.setting.adds_noise:
        raise ValueError(
            f"prior={told(prior)}: must be left out, because what {release.mechanism.name!r} drew"
            " depends on the prior that it was given."
        )
    own = tuple(as_prior(prior, release.k).tolist())
    return replace(release, prior=own, learned_prior=False, ordered=())


#: Standard deviations of the noise between a posterior and what was drawn, for sums of many cells,
#: and what is added for one: the tails of Laplace noise are longer than those of a sum.
_FAR, _FARTHER = 4.0, 3.0


def warn_of_conflict(release: ReleasedData, engine: Engine) -> None:
    """Warn if the expected number of records, where that is private, or of those in a margin of a
    joint table or in one category, is far from what was drawn.

    With m cells, far is `4 + 3 / sqrt(m)` standard deviations of the noise; for one of k categories
    it is `7 + ln(k) / sqrt(2)`, because noise of Laplace on one of many goes further. Counts are
    not below 0, and no sum is above a public number of records: what was drawn beyond is taken to
    be there.
    """
    noisy, expected = noise_of("release", release), engine.counts.mean()
    drawn, std = noisy.drawn - typical_mean(noisy.noise), typical_std(noisy.noise)
    worst, message = 1.0, ""
    for names, part, tail in _sums(release):
        number, totals, means, silent = (
            np.bincount(part, weights) for weights in (None, drawn, expected, ~noisy.noised)
        )
        off = np.where(silent > 0, 0.0, np.abs(means - np.clip(totals, 0, release.size)))
        away = off / (std * np.sqrt(number))
        excess = away / (_FAR + _FARTHER / np.sqrt(number) + tail)
        one = int(np.argmax(excess))
        if excess[one] > worst:
            worst = excess[one]
            message = (
                f"the posterior's number of records{names[one]} is {means[one]:.0f},"
                f" {away[one]:.0f} standard deviations of the noise from {totals[one]:.0f}, which"
                " was drawn"
            )
    if message:
        shown = (
            f"a prior of {release.prior[0]:g} per category"
            if len(set(release.prior)) == 1
            else "this prior"
        )
        warn(
            f"prior: with {shown}, {message}. The prior claims records that were"
            " not seen, or hides those that were: use a weaker one, or"
            " noise_aware_posterior(release, prior='learned') (docs: Which prior should I use)."
        )


def pulls_of(release: ReleasedData, engine: Engine) -> Floats:
    """Records that the prior may add to each category, shape `(k,)`: its concentration, and
    that times the standard deviation of the noise and the part of the noise's variance that the
    posterior of the count lacks. So much is a count of 0 pulled up.
    """
    noisy = noise_of("release", release)
    std = typical_std(noisy.noise)
    lacking = np.maximum(std**2 - engine.counts.std() ** 2, 0.0) / std
    return np.asarray(engine.prior * (1 + np.where(noisy.noised, lacking, 0.0)))


def _sums(release: ReleasedData) -> Iterator[tuple[list[str], Integers, float]]:
    """Ways to part the categories: what the parts are called, that of each category, and by how
    many deviations more the noise of one of them may be off.
    """
    if release.size is None:
        yield [""], np.zeros(release.k, dtype=np.int64), 0.0
    for axis, values in release.values_of_axes.items():
        names = [f" with {axis}={value!r}" for value in distinct(values)]
        yield names, np.array(numbered(values)), 0.0
    names = [f" in {label!r}" for label in release.categories]
    yield names, np.arange(release.k), math.log(release.k) / math.sqrt(2)
