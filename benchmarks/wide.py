"""Posteriors of wide releases with additive noise: time against the number of categories."""

from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from reporting import table

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise

#: Concentrations of the law of the probabilities: counts about alike, and very unequal ones.
_ALIKE, _UNEQUAL = 50.0, 0.5


class Setting(NamedTuple):
    """A release: whether the number of records is private, and how alike the counts are."""

    name: str
    law: IntegerNoise
    private: bool = False
    concentration: float = _ALIKE


SETTINGS = (
    Setting("Laplace or K-norm, noise scale 1", DiscreteLaplace(1.0)),
    Setting("Laplace or K-norm, noise scale 10", DiscreteLaplace(10.0)),
    Setting("the same, unequal counts", DiscreteLaplace(10.0), concentration=_UNEQUAL),
    Setting("Laplace, noise scale 10, n private", DiscreteLaplace(10.0), private=True),
    Setting("the same, unequal counts", DiscreteLaplace(10.0), True, _UNEQUAL),
    Setting("Gaussian, noise scale 10", DiscreteGaussian(10.0)),
)
#: Categories and records.
TABLES = ((10, 10**5), (100, 10**5), (1000, 2 * 10**6), (10_000, 2 * 10**7))
_DRAWS = 4000
#: The most categories for which counts are drawn here.
_MOST_DRAWN = 1000


def posterior(k: int, size: int, made: Setting) -> CountsGivenNoise:
    rng = np.random.default_rng(0)
    noise = rng.laplace if isinstance(made.law, DiscreteLaplace) else rng.normal
    counts = rng.multinomial(size, rng.dirichlet(np.full(k, made.concentration)))
    drawn = counts + np.rint(noise(0, made.law.scale, k)).astype(np.int64)
    noisy = DrawnCounts.of(drawn, made.law)
    return CountsGivenNoise.of([noisy], np.full(k, 0.5), size=None if made.private else size)


def seconds(function: Callable[[], Any]) -> str:
    """Seconds of processor time that a call takes, as text."""
    start = process_time()
    function()
    return f"{process_time() - start:.2f}"


def all_marginals(found: CountsGivenNoise) -> None:
    found.probabilities.mean()
    found.probabilities.interval(0.95)


def times(k: int, size: int, made: Setting) -> list[str]:
    found: list[CountsGivenNoise] = []

    def marginals() -> None:
        found.append(posterior(k, size, made))
        all_marginals(found[0])

    result = [seconds(marginals)]
    groups = [list(range(first, k, 5)) for first in range(5)]
    result.append(seconds(lambda: found[0].merged(groups).probabilities.interval(0.95)))
    result.append(seconds(lambda: all_marginals(found[0].given(groups[0]))))
    drawing = k <= _MOST_DRAWN
    rng = np.random.default_rng(0)
    result.append(seconds(lambda: found[0].sample(_DRAWS, rng)) if drawing else "not drawn")
    return result


def main() -> None:
    rows = [
        [made.name, k, f"{size:.0e}", *times(k, size, made)]
        for made in SETTINGS
        for k, size in TABLES
    ]
    columns = [
        "noise",
        "k",
        "n",
        "means and 95 % intervals",
        "5 groups of categories",
        "a fifth among itself",
        f"{_DRAWS:,} draws of the counts",
    ]
    note = (
        "Seconds of processor time. Marginals of all categories, of a variable of five values in"
        " their table, and of the others given one of its values: nothing is drawn. K-norm noise"
        " has twice the scale. Unequal counts: probabilities from a Dirichlet distribution with"
        f" concentration {_UNEQUAL} instead of {_ALIKE:g}. Wanted: 0.3 s at k = 100, 2 s at 1000,"
        " 20 s for the draws."
    )
    table("Posterior of wide releases", columns, rows, note)


if __name__ == "__main__":
    main()
