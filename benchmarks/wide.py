"""Posteriors of wide releases with additive noise: time against the number of categories."""

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from reporting import table

from opendp_bayes.inference.counts_given_noise import CountsGivenNoise
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise

#: Name, law of the noise, whether the number of records is private.
NOISE: tuple[tuple[str, IntegerNoise, bool], ...] = (
    ("Laplace or K-norm, noise scale 1", DiscreteLaplace(1.0), False),
    ("Laplace or K-norm, noise scale 10", DiscreteLaplace(10.0), False),
    ("Laplace, noise scale 10, n private", DiscreteLaplace(10.0), True),
    ("Gaussian, noise scale 10", DiscreteGaussian(10.0), False),
)
#: Categories and records.
TABLES = ((10, 10**5), (100, 10**5), (1000, 2 * 10**6), (10_000, 2 * 10**7))
_DRAWS = 4000
#: The most categories for which counts are drawn here.
_MOST_DRAWN = 1000


def drawn(k: int, size: int, law: IntegerNoise) -> np.ndarray:
    rng = np.random.default_rng(0)
    noise = rng.laplace if isinstance(law, DiscreteLaplace) else rng.normal
    counts = rng.multinomial(size, rng.dirichlet(np.full(k, 50.0)))
    return counts + np.rint(noise(0, law.scale, k)).astype(np.int64)


def posterior(k: int, size: int, law: IntegerNoise, private: bool) -> CountsGivenNoise:
    return CountsGivenNoise(
        drawn(k, size, law), np.full(k, 0.5), law, size=None if private else size
    )


def seconds(function: Callable[[], Any]) -> str:
    """Of processor time."""
    start = process_time()
    function()
    return f"{process_time() - start:.2f}"


def all_marginals(found: CountsGivenNoise) -> None:
    found.probabilities.mean()
    found.probabilities.interval(0.95)


def times(k: int, size: int, law: IntegerNoise, private: bool) -> list[str]:
    found: list[CountsGivenNoise] = []

    def marginals() -> None:
        found.append(posterior(k, size, law, private))
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
        [name, k, f"{size:.0e}", *times(k, size, law, private)]
        for name, law, private in NOISE
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
        " has twice the scale. Wanted: 0.3 s at k = 100, 2 s at 1000, 20 s for the draws."
    )
    table("Posterior of wide releases", columns, rows, note)


if __name__ == "__main__":
    main()
