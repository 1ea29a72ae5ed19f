"""Computes the noise-aware posterior of a release, by the first way that is within reach."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.prior_conflict import warn_of_conflict
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.tilts import check_concentration
from opendp_bayes.inference.engines.engine import Engine, Listed
from opendp_bayes.inference.engines.weighed_pairs import TwoCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.learned.learned_counts import LearnedCounts, learned_counts
from opendp_bayes.inference.learned.noised_table import NoisedTable, table_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.envelope import check_envelope
from opendp_bayes.inference.likelihood.of_counts import (
    LARGEST_LIST,
    Likelihood,
    Tabulated,
    Weighing,
    likelihood_of,
    log_likelihoods,
    noise_of,
)
from opendp_bayes.inference.sampling.interpolated_normaliser import by_interpolation
from opendp_bayes.inference.sampling.kept_draws import kept
from opendp_bayes.inference.sampling.markov_chain import FEWEST_EFFECTIVE, LARGEST_R_HAT
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates
from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.validation import Floats, Integers, as_prior, as_size
from opendp_bayes.release_format.combination import Combination
from opendp_bayes.release_format.data import ReleasedData, as_release

#: Larger ones are warned about, as is a larger R-hat and fewer effective draws: error of the
#: log-likelihood, and standard errors between two ways of drawing.
_LARGEST_LOG_ERROR, _LARGEST_DISAGREEMENT = 0.1, 5.0
#: Categories whose posteriors take about a second or two.
_QUICK_WORK = 500


def noise_aware_posterior(
    release: ReleasedData,
    *,
    prior: ArrayLike | Literal["learned"] | None = None,
    ordered: Sequence[str] | None = None,
    records_prior: Any = None,
    ess: int = 4000,
    seed: int | None = 0,
) -> NoiseAwarePosterior:
    """The posterior given a release, its noise taken into account.

    Parameters
    ----------
    release : a `Release`.
    prior : its concentration, a positive number or one for each category; or `"learned"`, which
        learns the law of the cells' intensities, and effects of the margins of a joint table, from
        the release: a `LearnedPosterior`. For noise on the counts only, whose draw does not depend
        on the prior. By default the prior is the release's own, which is learned too where
        `release.learned_prior` says so.
    ordered : with a learned prior, the variables whose values are in order, such as `["age"]`:
        their effects are smooth. Of a release of one column, one name of any kind. By default
        `release.ordered`.
    records_prior : where the number of records is private, its prior: a frozen discrete
        distribution of scipy without gaps, such as `scipy.stats.poisson(1000)`. By default every
        number is equally probable.
    ess : the effective sample size of Markov chains or weighted draws, where they are
        needed; the chains of a learned prior have a length of their own.
    seed : of those draws. Exponential mechanisms for three or more categories draw from the
        operating system's source as well, which has no seed.

    Two categories, few data sets, and noise on the counts need no draws (`docs/posterior.md`).
    Raises `ValueError` for a mechanism whose probabilities are out of reach, and given noise on the
    counts for what is beyond the bounds of `docs/limits.md`. Warns where draws do not agree or are
    worth few independent ones. When it is first used, warns where its number of records, or that
    of a margin, is far from the sum of what was drawn: the prior decides it, not the records.

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
    >>> from opendp_bayes import noise_aware_posterior
    >>> promise = Promise(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    >>> noise_aware_posterior(release)
    NoiseAwarePosterior({'a': 0.4263 ± 0.23, 'b': 0.5737 ± 0.23}, exact)
    """
    release = as_release(release)
    if release.source is not None:  # a group, whose posterior is part of that of its table
        whole = noise_aware_posterior(
            release.source,
            prior=prior,
            ordered=ordered,
            records_prior=records_prior,
            ess=ess,
            seed=seed,
        )
        return whole._part(release)
    if records_prior is not None and (
        release.size is not None or not callable(getattr(records_prior, "logpmf", None))
    ):
        wanted = (
            "a frozen discrete distribution with a method logpmf"
            if release.size is None
            else f"None, because the number of records, {release.size}, is public"
        )
        raise ValueError(f"records_prior={records_prior!r}: must be {wanted}.")
    effective = as_size(ess, "ess", "draws")
    if prior is not None and not isinstance(prior, str):
        release, prior = _with_prior(release, prior, ordered), None
    elif prior is None and release.learned_prior:
        prior = "learned"
    if prior is not None or ordered is not None:
        return _learned(release, prior, ordered, records_prior, seed)
    counts = _engine_of(release, records_prior, effective, np.random.default_rng(seed))
    first = None
    if isinstance(counts, CountsGivenNoise) and release.whole is None and records_prior is None:
        first = partial(warn_of_conflict, release, counts)
    posterior = NoiseAwarePosterior(release, counts, on_first_use=first)
    _warn_of(posterior, effective)
    return posterior


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


def _learned(
    release: ReleasedData, prior: Any, ordered: Any, records_prior: Any, seed: int | None
) -> LearnedPosterior:
    """The posterior under a learned prior, of arguments that are checked here."""
    if prior != "learned":
        numbers = "a number, one for each category, or 'learned'"
        wanted = "'learned' where ordered is given" if prior is None else numbers
        raise ValueError(f"prior={prior!r}: must be {wanted}.")
    if records_prior is not None:
        raise ValueError(
            f"records_prior={records_prior!r}: must be None with prior='learned', which learns the"
            " scale of the number of records with the rest."
        )
    if release.group_size is not None:
        raise ValueError(
            f"prior='learned': is for a whole table, not for one group of public size"
            f" {release.group_size}; use the release of all groups, or pooled()."
        )
    names = release.ordered if ordered is None else ordered
    return learned_posterior(release, [release], names, seed)


def learned_posterior(
    of: ReleasedData | Combination,
    releases: Sequence[ReleasedData],
    ordered: Any = (),
    seed: int | None = 0,
) -> LearnedPosterior:
    """The posterior of a table, drawn once or several times, under a learned prior."""
    table = table_of(releases, of.size)
    names = _ordered(table, of.axes, ordered)
    draws = kept(
        ["learned prior", of.size, names, seed],
        releases,
        lambda: learned_counts(table, names, np.random.default_rng(seed)),
        LearnedCounts.of_arrays,
    )
    found = LearnedPosterior(of, draws)
    _warn_of(found, FEWEST_EFFECTIVE)
    return found


def _ordered(table: NoisedTable, axes: tuple[str, ...], names: Any) -> list[str]:
    """The names of ordered variables, as the table has them."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"ordered={names!r}: must be a sequence of names, such as ['age'].")
    if not axes:
        if len(names) > 1:
            raise ValueError(f"ordered={names!r}: must be one name, for there is one column.")
        return list(table.variables) if names else []
    if set(names) - set(axes):
        raise ValueError(
            f"ordered={names!r}: must be variables of the table: {', '.join(map(repr, axes))}."
        )
    return list(names)


def _warn_of(posterior: NoiseAwarePosterior, effective: int) -> None:
    """Warn where draws are few or do not agree."""
    found = posterior.diagnostics
    if found is None:
        return
    ess, r_hat = found.ess.min(), getattr(found, "r_hat", np.ones(1)).max()
    log_error, differs = getattr(found, "log_error", 0.0), found.disagreement or 0.0
    if (
        ess < min(effective, FEWEST_EFFECTIVE)
        or r_hat > LARGEST_R_HAT
        or log_error > _LARGEST_LOG_ERROR
        or differs > _LARGEST_DISAGREEMENT
    ):
        warn(
            "the posterior of this release was not found reliably: effective sample size"
            f" {ess:.0f}, R-hat {r_hat:.3f}, error of the log-likelihood {log_error:.2f}, other"
            f" draws {differs:.1f} standard errors away (docs: Noise-aware posterior, Diagnostics)."
        )


def check_posterior(release: ReleasedData) -> None:
    """Raise `ValueError`/`TypeError` where `noise_aware_posterior` refuses a release before it
    computes anything, as it does whatever was drawn where the mechanism, its scale, the prior, the
    number of records or that of the categories are beyond it.
    """
    if release.source is not None:
        check_posterior(release.source)
    elif release.learned_prior:
        table = table_of([release], release.size)
        _ordered(table, release.axes, release.ordered)
    else:
        likelihood, size = _likelihood_within(release)
        if isinstance(likelihood, DrawnCounts) and size is None:
            check_concentration(sum(release.prior), likelihood.noise.scale, release.k)


def is_quick(*releases: ReleasedData) -> bool:
    """True if the posteriors of the releases together take at most a second or two with the default
    settings.

    They must not need random draws, a list of all data sets, or probabilities from a plugin. Raises
    `ValueError` where a posterior is refused.
    """
    # Stops where it is too much.
    return all(work <= _QUICK_WORK for work in accumulate(map(_work, releases)))


def _work(release: ReleasedData) -> float:
    """A measure of the time that a posterior takes: the categories where counts are convolved, each
    a few milliseconds at the most; 0 for two weighed ones, and infinite for everything else.
    """
    if release.source is not None:
        return _work(release.source)
    if release.learned_prior:
        return math.inf
    if release.whole is not None:
        return release.k
    likelihood = likelihood_of(release.setting, release.drawn)
    if isinstance(likelihood, DrawnCounts):
        check_envelope(likelihood, np.array(release.prior), release.size)
        return release.k
    listed = release.size is not None and release.k == 2 and not isinstance(likelihood, Tabulated)
    return 0.0 if listed else math.inf


def _engine_of(
    release: ReleasedData, records_prior: Any, effective: int, rng: np.random.Generator
) -> Engine:
    """The posterior of the counts, by the first way that is within reach."""
    prior, (likelihood, size) = np.array(release.prior), _likelihood_within(release)
    exact = exact_engine([likelihood], prior, size, records_prior)
    if exact is not None:
        return exact
    assert isinstance(likelihood, Weighing)  # noqa: S101  # others are few enough to be listed
    return by_interpolation(likelihood, prior, effective, rng)


def _likelihood_within(release: ReleasedData) -> tuple[Likelihood, int | None]:
    """The likelihood of a release that has a posterior, and the number of its records where that is
    public.
    """
    size, group = release.size, release.group_size
    if group is None:
        likelihood = likelihood_of(release.setting, release.drawn)
    else:
        likelihood, size = _likelihood_of_group(release, group), group
    if isinstance(likelihood, DrawnCounts):
        if size != 0:
            check_envelope(likelihood, np.array(release.prior), size)
    elif size is None:
        raise ValueError(
            f"mechanism={release.mechanism.name!r}: with a private number of records, the posterior"
            " of a release is known only for noise on the counts."
        )
    elif isinstance(likelihood, Tabulated) and not _is_listed(size, release.k):
        raise ValueError(
            f"mechanism={release.mechanism.name!r}: states no law, so that a posterior of {size}"
            f" records and {release.k} categories would need a list of all data sets, and at most"
            f" {LARGEST_LIST} are listed. Let it state its law, or ask for fewer categories"
            " (docs: Plugins, The law)."
        )
    return likelihood, size


def _is_listed(size: int, k: int) -> bool:
    """True for as few data sets as are listed, or two categories, whose curve is."""
    return k == 2 or number_of_candidates(size, k) <= LARGEST_LIST


def exact_engine(
    likelihoods: Sequence[Likelihood], prior: Floats, size: int | None, records_prior: Any = None
) -> Engine | None:
    """The posterior of the counts of the same records, drawn once or several times, without random
    draws; None where it is out of reach.
    """
    k = prior.size
    if size == 0:
        return Listed(np.zeros((1, k), dtype=np.int64), np.zeros(1), prior)
    noisy = [one for one in likelihoods if isinstance(one, DrawnCounts)]
    if len(noisy) == len(likelihoods):
        return CountsGivenNoise(noisy, prior, size=size, records_prior=records_prior)
    if size is None:
        return None
    if k == 2:

        def log_likelihood(counts: Integers) -> Floats:
            return np.asarray(sum(one.log_likelihood(counts) for one in likelihoods))

        pairs = [one.drawn.tolist() for one in likelihoods]
        around = {end for first, second in pairs for end in (first, size - second)}
        return TwoCategories(log_likelihood, around, prior, size)
    if not _is_listed(size, k):
        return None
    counts = candidates(size, k)
    log_prior = log_rising(counts, prior).sum(axis=1)
    return Listed(counts, log_prior + log_likelihoods(likelihoods, counts, log_prior), prior)


def _likelihood_of_group(release: ReleasedData, size: int) -> DrawnCounts:
    """The likelihood of a group with a public number of records. The noise of its counts is that of
    the table, whose other counts say nothing more of them.
    """
    whole = release.whole
    assert whole is not None  # noqa: S101  # of which it is a group
    noisy = noise_of(f"group_size={size}", whole)
    return noisy.chosen(list(release.inside))
