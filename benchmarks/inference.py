"""Cost of a noise-aware posterior: built, with means and intervals of every category, and draws
from it.
"""

from time import perf_counter

import numpy as np
from reporting import milliseconds, table

import opendp_bayes as ob
from opendp_bayes.inference.likelihood import normalisers_of_two_categories as curves

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
}


def released(mechanism: ob.Mechanism, counts: np.ndarray, size: int | None) -> ob.Release:
    k = len(counts)
    return ob.Release(
        tuple(counts.tolist()),
        tuple(range(k)),
        (1.0,) * k,
        mechanism,
        ob.Promise(size, 1, ob.PrivacyLoss(1, 1, 1), "MaxDivergence"),
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
    curves.curves.cache_clear()
    return ob.noise_aware_posterior(release)


def ten() -> None:
    rows, size = [], 10**5
    even = np.full(10, size // 10)
    for name, mechanism in TEN.items():
        release = released(mechanism, even, None if "private" in name else size)
        rows.append([name, *_times(release)])
    table(
        "Noise-aware posterior, k=10, n=1e5",
        ["mechanism", "95 % intervals, ms", "4000 draws, ms"],
        rows,
        "Wanted: 4000 draws in less than 10 s. They are independent.",
    )


def _times(release: ob.Release) -> list[float]:
    """Milliseconds that intervals and draws take, each with the posterior made anew."""
    return milliseconds(
        lambda: ob.noise_aware_posterior(release).interval(0.95),
        lambda: ob.noise_aware_posterior(release).sample(4000, seed=0),
        repeats=3,
    )


def negative() -> None:
    """K-norm noise of scale 5 where two categories have no records and were drawn below 0."""
    rows = []
    for k in (10, 20, 100):
        share = np.random.default_rng(k).dirichlet(np.full(k - 2, 3.0))
        counts = np.random.default_rng(k).multinomial(1000 * k + 4, share)
        release = released(ob.KNormParameters(5.0), np.append([-3, -1], counts), 1000 * k)
        rows.append([str(k), *_times(release)])
    table(
        "Noise-aware posterior of K-norm noise, two counts drawn below 0",
        ["k", "95 % intervals, ms", "4000 draws, ms"],
        rows,
        "Computed, without random draws. Markov chains, which were used before, took 1.9 and 8.2 s"
        " of the processor for 4000 effective draws from like releases with k = 10 and 20"
        " and a prior of 0.5.",
    )


def many() -> None:
    """Exponential mechanisms whose data sets cannot be listed: the first release of a setting, and
    the next, for which part of the work is kept.
    """
    from opendp_bayes.inference.sampling.interpolated_normaliser import over_prior

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


def answers() -> None:
    """Answers of a posterior beside the same by draws of all categories, in one process."""
    rows = []
    for k in (100, 300, 1000):
        rng = np.random.default_rng(k)
        counts = rng.multinomial(100 * k, rng.dirichlet(np.ones(k)))
        drawn = counts + np.rint(rng.laplace(0, 3, k)).astype(int)
        release = released(ob.LaplaceParameters(3.0, total="private"), drawn, None)
        one, two = (ob.noise_aware_posterior(release) for _ in range(2))
        all_drawn, few, sums, all_at_once = milliseconds(
            lambda one=one: one.sample(4000, seed=0),
            lambda one=one: one.difference(3, 5).interval(),
            lambda one=one, two=two: one.compare(two).interval(),
            lambda one=one: one.interval(0.95, "simultaneous"),
            repeats=1,
        )
        whole = 10 * all_drawn  # 40 000 draws, of which a difference was
        ratios = whole / few, 2 * whole / sums, whole / all_at_once
        rows.append([str(k), all_drawn, few, sums, all_at_once, *(f"{x:.0f}" for x in ratios)])
    table(
        "Answers of a noise-aware posterior, n private, scale 3, 100 records a category",
        [
            "k",
            "4000 draws, ms",
            "difference, ms",
            "compare, ms",
            "simultaneous, ms",
            "draws / difference",
            "draws / compare",
            "draws / simultaneous",
        ],
        rows,
        "Ratios are to 40 000 draws of all categories, ten times the 4000: of both posteriors where"
        " two are compared.",
    )


def main() -> None:
    answers()
    two()
    ten()
    negative()
    many()


if __name__ == "__main__":
    main()
