"""Cost of a noise-aware posterior: built, with means and intervals of every category, and draws
from it.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from reporting import milliseconds, table
from scipy import fft, stats

import opendp_bayes as ob
from opendp_bayes.inference.likelihood import normalisers as curves

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.helpers.far_counts import Private, Public
from tests.helpers.noised_counts import Look, Setting

TWO = {
    "discrete Laplace, scale 1": ob.LaplaceParameters(1.0),
    "discrete Laplace, scale 100": ob.LaplaceParameters(100.0),
    "EHD": ob.mechanisms.HellingerExponential(0.67),
    "EHDS, γ = 1": ob.mechanisms.SmoothHellingerExponential(4.0),
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
        ob.PrivacyGuarantee(size, 1, ob.PrivacyLoss(1, 1, 1), "MaxDivergence"),
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
    curves.normalisers.cache_clear()
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
        lambda: ob.noise_aware_posterior(release).sample(4000, random_state=0),
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

    rows, mechanism = [], ob.mechanisms.SmoothHellingerExponential(2.4142)
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


#: Categories, scale of the Laplace noise, records, whether their number is public, and the seconds
#: that are wanted.
NOISED = (
    (100, 10.0, 2000, False, 0.4),
    (100, 50.0, 2000, False, 1.5),
    (10, 50.0, 250, False, 0.4),
    (4, 12.0, 50, False, 0.1),
    (100, 1.0, 2000, True, 0.1),
    (100, 10.0, 2000, True, 0.1),
    (1000, 10.0, 20_000, True, 1.3),
    (1000, 10.0, 20_000, False, 1.3),
    (1000, 50.0, 20_000, False, 1.5),
)
#: What is asked of 1000 categories with a public number of records, and the seconds wanted.
ASKED: dict[str, tuple[Callable[[ob.NoiseAwarePosterior], Any], float]] = {
    "difference(0, 1).interval()": (lambda found: found.difference(0, 1).interval(), 0.5),
    "compare(itself).to_frame()": (lambda found: found.compare(found).to_frame(), 2.0),
    "sample(4000)": (lambda found: found.sample(4000, random_state=0), 3.0),
    "simultaneous intervals": (lambda found: found.interval(0.95, kind="simultaneous"), 3.0),
    "counts.interval()": (lambda found: found.counts.interval(0.95), 0.5),
}
#: Categories, records and the scale of the noise of simultaneous intervals.
TOGETHER = (
    (2, 400, 10.0),
    (3, 600, 10.0),
    (3, 100, 50.0),
    (3, 3000, 300.0),
    (5, 1000, 10.0),
    (10, 2000, 10.0),
    (10, 250, 50.0),
    (50, 10_000, 10.0),
    (1000, 20_000, 10.0),
)


def noised() -> None:
    """Noise on the counts: means and intervals, beside another way to the means and deviations."""
    rows = []
    for k, scale, size, public, wanted in NOISED:
        drawn = _drawn(k, scale, size, public)
        private = ob.LaplaceParameters(scale, total="private")
        mechanism = ob.KNormParameters(scale / 2) if public else private
        release = released(mechanism, drawn, size if public else None)
        look = Look("laplace", scale, drawn)
        setting = Setting((look,), np.ones(k), size if public else None)
        ours = least(lambda release=release: _summed_up(ob.noise_aware_posterior(release)))
        made = Public if public else Private
        other = least(lambda setting=setting, made=made: made(setting).theta(0))
        name = "public" if public else "private"
        rows.append([str(k), f"{scale:g}", str(size), name, ours, other, ours / other, wanted])
    table(
        "Noise-aware posterior of counts with Laplace noise, prior 1",
        ["k", "scale", "n", "which is", "ours, s", "reference, s", "ratio", "wanted, s"],
        rows,
        "Processor time, the least of 3: of means, deviations and 95 % intervals of all categories;"
        " and of the tests' reference, which has means and deviations only.",
    )


def likelihoods() -> None:
    """A log-likelihood for a sampler, beside the product of polynomials with all coefficients."""
    rows = []
    for k, size, scale in [(3, 100, 3.0), (10, 1000, 10.0), (10, 10**4, 10.0), (100, 10**4, 10.0)]:
        rows.append(_likelihood(k, size, scale, polynomial=True))
    for k, size, scale in [(10, 10**6, 100.0), (100, 10**6, 100.0), (3, 10**9, 1e4)]:
        rows.append(_likelihood(k, size, scale, polynomial=False))
    table(
        "Log-likelihood of a release with Laplace noise, given probabilities",
        ["k", "n", "scale", "n public, ms", "n private, ms", "all coefficients, ms", "ratio"],
        rows,
        "Processor time of one call, the least of 3, and of the coefficient of a product of"
        " polynomials by a transform of all of it, for a public n.",
    )


def _likelihood(k: int, size: int, scale: float, polynomial: bool) -> list[Any]:
    drawn = _drawn(k, scale, size, True)
    theta = (np.maximum(drawn, 0) + 1) / (np.maximum(drawn, 0) + 1).sum()
    public = ob.log_likelihood(released(ob.KNormParameters(scale / 2), drawn, size))
    mechanism = ob.LaplaceParameters(scale, total="private")
    private = ob.log_likelihood(released(mechanism, drawn, None))
    times = [1e3 * least(partial(of, theta)) for of in (public, private)]
    row = [str(k), f"{size:.0e}", f"{scale:g}", *times]
    if not polynomial:
        return [*row, "", ""]
    other = 1e3 * least(lambda: _coefficient(drawn, theta, size, scale))
    return [*row, other, times[0] / other]


def _coefficient(drawn: np.ndarray, theta: np.ndarray, size: int, scale: float) -> float:
    counts, length = np.arange(size + 1), fft.next_fast_len(drawn.size * size + 1, real=True)
    product: Any = 1.0
    for own, share in zip(drawn, theta, strict=True):
        factor = stats.poisson.logpmf(counts, size * share) - np.abs(own - counts) / scale
        product = product * fft.rfft(np.exp(factor), length)
    return float(np.log(fft.irfft(product, length)[size]))


def asked() -> None:
    """Questions about 1000 categories, and the posterior they are asked of."""
    release = released(ob.KNormParameters(5.0), _drawn(1000, 10.0, 20_000, True), 20_000)
    made, rows = least(lambda: _summed_up(ob.noise_aware_posterior(release)), 1), []
    for name, (ask, wanted) in ASKED.items():
        found = ob.noise_aware_posterior(release)
        _summed_up(found)
        time = least(lambda found=found, ask=ask: ask(found), 1)
        rows.append([name, time, time / made, wanted])
    table(
        "Questions to the posterior of 1000 categories, K-norm noise of scale 5, n = 20 000",
        ["question", "s", "ratio", "wanted, s"],
        rows,
        f"Processor time, asked once; the ratio is to the {made:.2g} s of the posterior with means"
        " and 95 % intervals.",
    )


def simultaneous() -> None:
    """Intervals that hold all at once, beside those of each category alone."""
    rows = []
    for k, size, scale in TOGETHER:
        for public in (True, False):
            drawn = _drawn(k, scale, size, public)
            private = ob.LaplaceParameters(scale, total="private")
            mechanism = ob.KNormParameters(scale / 2) if public else private
            release = released(mechanism, drawn, size if public else None)
            times = []
            for kind in ("eti", "simultaneous"):
                found = ob.noise_aware_posterior(release)
                found.mean()
                times += [1e3 * least(partial(found.interval, 0.95, kind), 1) for _ in range(2)]
            name = "public" if public else "private"
            rows.append([str(k), f"{scale:g}", str(size), name, times[0], times[2], times[3]])
    table(
        "Simultaneous 95 % intervals, Laplace noise, prior 1",
        ["k", "scale", "n", "which is", "equal-tailed, ms", "simultaneous, ms", "again, ms"],
        rows,
        "Processor time of a posterior that has its means: of intervals of each category alone, of"
        " those that hold all at once, draws included, and of the same asked again.",
    )


def _drawn(k: int, scale: float, size: int, public: bool) -> np.ndarray:
    rng = np.random.default_rng(k)
    counts = rng.multinomial(size, rng.dirichlet(np.ones(k)))
    drawn = counts + np.rint(rng.laplace(0, scale, k)).astype(np.int64)
    if public:  # K-norm noise keeps the sum
        drawn[np.argmax(drawn)] += size - drawn.sum()
    return drawn


def _summed_up(found: ob.NoiseAwarePosterior) -> None:
    found.mean()
    found.std()
    found.interval(0.95)


def least(function: Callable[[], Any], repeats: int = 3) -> float:
    """The least processor time, in seconds."""
    found = []
    for _ in range(repeats):
        start = process_time()
        function()
        found.append(process_time() - start)
    return min(found)


def main() -> None:
    noised()
    likelihoods()
    asked()
    simultaneous()
    two()
    ten()
    negative()
    many()


if __name__ == "__main__":
    main()
