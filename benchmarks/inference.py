"""Cost of a noise-aware posterior: built, with means and intervals of every category, and draws
from it.
"""

from time import perf_counter

import numpy as np
from reporting import milliseconds, table

import opendp_bayes as ob

TWO = {
    "discrete Laplace, scale 1": ob.LaplaceParameters(1.0),
    "discrete Laplace, scale 100": ob.LaplaceParameters(100.0),
    "EHD": ob.HellingerExponential(0.67),
    "EHDS, γ = 1": ob.SmoothHellingerExponential(4.0),
}
TEN = {
    "discrete Laplace, scale 2": ob.LaplaceParameters(2.0),
    "discrete Laplace, scale 20": ob.LaplaceParameters(20.0),
    "discrete Laplace, n private, scale 1": ob.LaplaceParameters(1.0, total="private"),
    "K-norm, scale 1": ob.KNormParameters(1.0),
    "K-norm, scale 1, two counts released as 0": ob.KNormParameters(1.0),
}


def released(mechanism: ob.Mechanism, counts: np.ndarray, size: int | None) -> ob.Release:
    k = len(counts)
    return ob.Release(
        tuple(counts.tolist()),
        tuple(range(k)),
        (1.0,) * k,
        mechanism,
        size,
        1,
        ob.PrivacyLoss(1, 1, 1),
        "MaxDivergence",
    )


def two() -> None:
    rows = []
    for name, mechanism in TWO.items():
        for size in (10**3, 10**6):
            release = released(mechanism, np.array([3 * size // 10, 7 * size // 10]), size)
            # The normalisers of an exponential mechanism are kept for its next release; the first
            # one is what is timed.
            (time,) = milliseconds(lambda release=release: first(release).interval(0.95), repeats=3)
            rows.append([name, f"{size:.0e}", time])
    table(
        "Noise-aware posterior, k=2",
        ["mechanism", "n", "95 % intervals, ms"],
        rows,
        "Wanted: below 200 ms at n = 1e6.",
    )


def first(release: ob.Release) -> ob.NoiseAwarePosterior:
    from opendp_bayes.inference import likelihood

    likelihood._curves.cache_clear()
    return ob.noise_aware_posterior(release)


def ten() -> None:
    rows, size = [], 10**5
    even = np.full(10, size // 10)
    for name, mechanism in TEN.items():
        counts = (
            even + np.array([-size // 10] * 2 + [0] * 7 + [2 * size // 10])
            if name.endswith("as 0")
            else even
        )
        release = released(mechanism, counts, None if "private" in name else size)
        posterior = ob.noise_aware_posterior(release)
        times = milliseconds(
            lambda release=release: ob.noise_aware_posterior(release).interval(0.95),
            lambda release=release: ob.noise_aware_posterior(release).sample(4000, seed=0),
            repeats=3,
        )
        ess = (
            "independent"
            if posterior.diagnostics is None
            else f"{posterior.diagnostics.ess.min():.0f}"
        )
        rows.append([name, *times, ess])
    table(
        "Noise-aware posterior, k=10, n=1e5",
        ["mechanism", "95 % intervals, ms", "4000 draws, ms", "effective draws"],
        rows,
        "Wanted: 4000 effective draws in less than 10 s.",
    )


def many() -> None:
    """Exponential mechanisms whose data sets cannot be listed: the first release of a setting, and
    the next, for which part of the work is kept.
    """
    from opendp_bayes.inference.normaliser import over_prior

    rows, mechanism = [], ob.SmoothHellingerExponential(2.4142)
    for k, size in ((3, 2000), (3, 10**6), (7, 2000), (10, 10**5)):
        counts = np.random.default_rng(0).multinomial(
            size, np.random.default_rng(1).dirichlet(np.ones(k))
        )
        release = released(mechanism, mechanism.sample(counts, np.ones(k))[0], size)
        over_prior.cache_clear()
        start = perf_counter()
        posterior = ob.noise_aware_posterior(release)
        first, start = perf_counter() - start, perf_counter()
        ob.noise_aware_posterior(release)
        diagnostics = posterior.diagnostics
        rows.append(
            [
                str(k),
                f"{size:.0e}",
                1e3 * first,
                1e3 * (perf_counter() - start),
                f"{diagnostics.ess[0]:.0f}",
                f"{diagnostics.log_error:.3f}",
            ]
        )
    table(
        "Noise-aware posterior of EHDS, γ = 1, ε = 1, more than 200 000 data sets",
        ["k", "n", "first release, ms", "the next, ms", "effective draws", "error of ln P"],
        rows,
        "Wanted: 4000 effective draws in less than 10 s. Effective draws of weighted ones.",
    )


def main() -> None:
    two()
    ten()
    many()


if __name__ == "__main__":
    main()
