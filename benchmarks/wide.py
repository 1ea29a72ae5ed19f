"""Posteriors of wide releases with additive noise: time against the number of categories."""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from reporting import table

from opendp_bayes.inference.counts_given_noise import CountsGivenNoise

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "inference"))

from noise_laws import DiscreteGaussian, DiscreteLaplace

#: Name, law of the noise, whether the number of records is private.
NOISE = (
    ("Laplace or K-norm, noise scale 1", DiscreteLaplace(1.0), False),
    ("Laplace or K-norm, noise scale 2", DiscreteLaplace(2.0), False),
    ("Laplace or K-norm, noise scale 10", DiscreteLaplace(10.0), False),
    ("Laplace, noise scale 10, n private", DiscreteLaplace(10.0), True),
    ("Gaussian, noise scale 10", DiscreteGaussian(10.0), False),
)
#: Categories and records.
TABLES = ((10, 10**5), (100, 10**5), (1000, 2 * 10**6), (10_000, 2 * 10**7))
_DRAWS = 4000
#: The most categories for which counts are drawn here.
_MOST_DRAWN = 1000


def drawn(k: int, size: int, law: DiscreteLaplace | DiscreteGaussian) -> np.ndarray:
    rng = np.random.default_rng(0)
    noise = rng.laplace if isinstance(law, DiscreteLaplace) else rng.normal
    counts = rng.multinomial(size, rng.dirichlet(np.full(k, 50.0)))
    return counts + np.rint(noise(0, law.scale, k)).astype(np.int64)


def posterior(
    k: int, size: int, law: DiscreteLaplace | DiscreteGaussian, private: bool
) -> CountsGivenNoise:
    return CountsGivenNoise(
        drawn(k, size, law), np.full(k, 0.5), law, size=None if private else size
    )


def marginals() -> None:
    rows = []
    for name, law, private in NOISE:
        for k, size in TABLES:
            start = perf_counter()
            found = posterior(k, size, law, private)
            found.probabilities.mean()
            found.probabilities.interval(0.95)
            time = 1e3 * (perf_counter() - start)
            draws = "not drawn"
            if k <= _MOST_DRAWN:
                start = perf_counter()
                found.sample(_DRAWS, np.random.default_rng(0))
                draws = f"{1e3 * (perf_counter() - start):,.0f}"
            rows.append([name, k, f"{size:.0e}", time, draws])
    columns = [
        "noise",
        "k",
        "n",
        "means and 95 % intervals, ms",
        f"{_DRAWS} draws of the counts, ms",
    ]
    note = "Marginals of all categories at once, nothing drawn; K-norm noise has twice the scale."
    table("Posterior of wide releases", columns, rows, note)


def main() -> None:
    marginals()


if __name__ == "__main__":
    main()
