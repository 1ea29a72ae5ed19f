"""Says where a fixed prior, not what was drawn, decides how many records there are, or are in a
category, and how far it may pull counts.
"""

import math
from collections.abc import Iterator

import numpy as np

from opendp_bayes.inference.engines.engine import Engine
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_mean, typical_std
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import distinct, numbered

#: Standard deviations of the noise between a posterior and what was drawn, for sums of many cells,
#: and what is added for one: the tails of Laplace noise are longer than those of a sum.
_FAR, _FARTHER = 4.0, 3.0
#: Noise without a standard deviation pulls nothing.
_TINY = 1e-300


def warn_of_conflict(release: ReleasedData, engine: Engine) -> None:
    """Warn if the expected number of records, where that is private, or of those in a margin of a
    joint table or in one category, is far from what was drawn.

    With m cells, far is `4 + 3 / sqrt(m)` standard deviations of the noise; for one of k categories
    it is `7 + ln(k) / sqrt(2)`, because noise of Laplace on one of many goes further. Counts are
    not below 0, and no sum is above a public number of records: what was drawn beyond is taken to
    be there.
    """
    noisy, expected = noise_of("release", release), engine.counts.mean()
    worst, message = 1.0, ""
    for name, cells in _sums(release):
        if not noisy.noised[cells].all():
            continue
        total = float(noisy.drawn[cells].sum()) - cells.size * typical_mean(noisy.noise)
        mean, width = float(expected[cells].sum()), typical_std(noisy.noise) * math.sqrt(cells.size)
        away = abs(mean - float(np.clip(total, 0, release.size))) / width
        if (excess := away / (_FAR + _FARTHER / math.sqrt(cells.size))) > worst:
            worst = excess
            message = (
                f"the posterior's number of records{name} is {mean:.0f}, {away:.0f} standard"
                f" deviations of the noise from {total:.0f}, the sum of what was drawn"
            )
    if not message:
        message = _of_one(release, noisy, expected)
    if message:
        warn(
            f"prior: with {_shown(release.prior)}, {message}. The prior claims records that were"
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
    lacking = np.maximum(std**2 - engine.counts.std() ** 2, 0.0) / max(std, _TINY)
    return np.asarray(engine.prior * (1 + np.where(noisy.noised, lacking, 0.0)))


def _of_one(release: ReleasedData, noisy: DrawnCounts, expected: Floats) -> str:
    """Conflict of the category that is furthest from what was drawn; empty where none is far."""
    drawn = np.clip(noisy.drawn - typical_mean(noisy.noise), 0, release.size)
    away = np.where(noisy.noised, np.abs(expected - drawn), 0.0) / typical_std(noisy.noise)
    one = int(np.argmax(away))
    if away[one] <= _FAR + _FARTHER + math.log(release.k) / math.sqrt(2):
        return ""
    return (
        f"the posterior's number of records in {release.categories[one]!r} is {expected[one]:.0f},"
        f" {away[one]:.0f} standard deviations of the noise from {drawn[one]:.0f}, which was drawn"
    )


def _sums(release: ReleasedData) -> Iterator[tuple[str, Integers]]:
    """Cells whose sums are compared, each with what it is called."""
    if release.size is None:
        yield "", np.arange(release.k)
    for axis, values in release.values_of_axes.items():
        of_cells = np.array(numbered(values))
        for number, value in enumerate(distinct(values)):
            yield f" with {axis}={value!r}", np.flatnonzero(of_cells == number)


def _shown(prior: tuple[float, ...]) -> str:
    """The prior in words."""
    return f"a prior of {prior[0]:g} per category" if len(set(prior)) == 1 else "this prior"
