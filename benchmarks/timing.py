"""Measure what the time of one release tells of the data, with the least time of a draw and without
it: the area under the curve of the best test that tells two data sets apart by that time. This
takes about an hour, most of it asleep.
"""

from collections.abc import Callable, Iterator
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy as np
import opendp.prelude as dp
from reporting import table
from scipy.stats import mannwhitneyu

import opendp_bayes as ob
from opendp_bayes.trusted import measurements as pacing
from opendp_bayes.trusted.spaces import PosteriorSpace

#: Records and categories.
SETTINGS = ((1000, 2), (100, 3), (1000, 5))
#: Releases of each data set: by chance the larger of an area and what it lacks to 1 is then up to
#: 0.56, in 19 of 20 cases, and the larger of two up to 0.57.
RELEASES = 200
#: Far from each other, and neighbours.
FAR, NEAR = ("balanced", "one category"), (("balanced", "moved"), ("one category", "all but one"))

Timed = dict[str, list[int]]


def mechanisms(size: int, k: int) -> Iterator[tuple[str, Any]]:
    """Mechanisms of a loss of about 1, without those that do not take this size."""
    scale = 2 * ob.mechanisms.global_sensitivity(size, [1.0] * k)
    for name, made in (
        ("EHD", ob.mechanisms.HellingerExponential(scale)),
        ("EHDL", ob.mechanisms.HellingerExponential(2.0, "local")),
        ("EHDS, γ = 1", ob.mechanisms.SmoothHellingerExponential(2.5)),
        ("EHDS, β = 0.1", ob.mechanisms.SmoothHellingerExponential(2.5, beta=0.1)),
        ("permute-and-flip", ob.mechanisms.PermuteAndFlip(scale)),
        ("K-norm noise", ob.KNormParameters(1.0)),
    ):
        try:
            made.check(size=size, prior=np.ones(k))
        except ValueError:  # for more candidates than it takes
            continue
        yield name, made


def data_sets(size: int, k: int) -> dict[str, Any]:
    """Balanced counts and all in one category, each with a neighbour."""
    balanced = np.full(k, size // k) + (np.arange(k) < size % k)
    one = np.append(size, np.zeros(k - 1, dtype=np.int64))
    moved = np.append([-1, 1], np.zeros(k - 2, dtype=np.int64))
    return {
        "balanced": balanced,
        "moved": balanced + moved,
        "one category": one,
        "all but one": one + moved,
    }


def timed(release: Callable[[Any], Any], data: dict[str, Any]) -> tuple[Timed, Timed]:
    """Nanoseconds of the processor and on the clock, for every data set, in random order."""
    order = np.random.default_rng(1).permutation([*data] * RELEASES).tolist()
    busy: Timed = {name: [] for name in data}
    clock: Timed = {name: [] for name in data}
    for name in data:
        release(data[name])  # what is computed once is computed now
    for name in order:
        start, begun = process_time_ns(), perf_counter_ns()
        release(data[name])
        clock[name].append(perf_counter_ns() - begun)
        busy[name].append(process_time_ns() - start)
    return busy, clock


def area(times: Timed, pair: tuple[str, str]) -> float:
    """Under the curve, by the better of the two directions."""
    found = mannwhitneyu(*(times[name] for name in pair)).statistic / RELEASES**2
    return float(max(found, 1 - found))


def row(name: str, mechanism: Any, size: int, k: int) -> list[Any]:
    """Measure one mechanism: medians, and areas without a least time and with it."""
    space = PosteriorSpace(tuple(range(k)), size, (1.0,) * k)
    data = {name: space.prior_array + counts for name, counts in data_sets(size, k).items()}
    release: Any = ob.m.make_mechanism(
        space.domain, space.metric, dp.max_divergence(), mechanism, accounting="proven"
    )
    sleep = pacing.sleep
    pacing.sleep = lambda seconds: None
    busy, clock = timed(release, data)
    pacing.sleep = sleep
    _, paced = timed(release, data)
    return [
        name,
        k,
        size,
        *(1e-6 * float(np.median(busy[of])) for of in FAR),
        *(f"{area(times, FAR):.2f}" for times in (busy, clock, paced)),
        *(f"{max(area(times, pair) for pair in NEAR):.2f}" for times in (busy, paced)),
    ]


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    table(
        "What the time of one release tells",
        [
            "mechanism",
            "k",
            "n",
            "balanced, ms",
            "one category, ms",
            "processor",
            "clock",
            "clock, at least 1/4 s",
            "neighbours, processor",
            "neighbours, at least 1/4 s",
        ],
        [
            row(name, mechanism, size, k)
            for size, k in SETTINGS
            for name, mechanism in mechanisms(size, k)
        ],
        f"{RELEASES} releases of each of four data sets, uniform prior, a loss of about 1. The"
        " columns after the medians are areas under the curve of the best test by time: 0.5 tells"
        " nothing, 1 everything, and up to 0.57 is chance. The first three tell balanced counts"
        " from all in one category, the last two each of these from a neighbour. The processor's"
        " time has no wait and none of the machine's other work; where the clock's is small beside"
        " that work, it tells less.",
    )


if __name__ == "__main__":
    main()
