"""Cost of exact accounting, from the probabilities of every pair of neighbours, of the calibration
that solves for a scale, and of an audit.
"""

import argparse
import math
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
from reporting import table

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.accounting import pairs
from opendp_bayes.accounting.exponential import enumeration, two_categories
from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.mechanisms.setting import Setting

SIZES = {2: (10**3, 10**4, 10**5), 3: (50, 100, 150)}
MECHANISM = ob.mechanisms.SmoothHellingerExponential(4.0)


def alone(function: Callable[[], Any]) -> Any:
    """The result of a function in a fresh process, where nothing is cached and the peak memory is
    its own.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return pool.submit(function).result()


def seconds(function: Callable[[], Any]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


def measure(size: int, prior: tuple[float, ...]) -> tuple[float, float, float, float, str, float]:
    """Seconds for the first loss, for the same again and for another scale; peak memory in MB, the
    method and ε.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = seconds(lambda: ob.exact_loss(MECHANISM, size=size, prior=prior))
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    again = seconds(lambda: ob.exact_loss(MECHANISM, size=size, prior=prior))
    other = (
        seconds(
            lambda: ob.exact_loss(
                ob.mechanisms.SmoothHellingerExponential(3.0), size=size, prior=prior
            )
        )
        if first < 100
        else math.nan
    )
    loss = ob.exact_loss(MECHANISM, size=size, prior=prior)
    return first, other, again, peak, loss.method, loss.epsilon


def work(size: int, prior: tuple[float, ...]) -> int:
    return two_categories.work(size, prior) if len(prior) == 2 else enumeration.work(size, prior, 1)


def losses(largest: bool) -> None:
    rows: list[list[object]] = []
    for prior in ((1.0, 1.0), (0.5, 2.0), (1.0, 1.0, 1.0), (0.5, 1.0, 2.0)):
        before = None
        for size in SIZES[len(prior)] + ((10**6,) if largest and len(prior) == 2 else ()):
            first, other, again, peak, method, epsilon = alone(partial(measure, size, prior))
            growth = (
                f"{math.log(first / before[1]) / math.log(size / before[0]):.2f}" if before else ""
            )
            rows.append(
                [
                    str(prior),
                    size,
                    first,
                    growth,
                    other,
                    1e6 * again,
                    peak,
                    work(size, prior) / 1e6,
                    method,
                    f"{epsilon:.4f}",
                ]
            )
            before = (size, first)
    table(
        "Exact loss of one mechanism",
        [
            "prior",
            "n",
            "first, s",
            "growth",
            "another scale, s",
            "the same again, µs",
            "peak memory, MB",
            "work, 1e6",
            "method",
            "epsilon",
        ],
        rows,
        f"`exact_loss({MECHANISM}, ...)`, each in a process of its own. Growth is the exponent of n"
        " between two rows. Peak memory is what the first call adds to the process.",
    )


def naive(size: int, prior: tuple[float, ...]) -> float:
    """ε from the law of every data set, each by itself."""
    laws = [
        ob.mechanisms.HellingerExponential(0.3).log_pmf((t, size - t), prior)[1]
        for t in range(size + 1)
    ]
    return float(max(np.abs(p - q).max() for p, q in pairwise(laws)))


def beside_enumeration(size: int = 1000) -> None:
    prior = (1.0, 1.0)
    ours, with_rho = (
        alone(partial(_seconds_of_loss, size, prior, renyi)) for renyi in (False, True)
    )
    plain = alone(partial(_seconds_of_naive, size, prior))
    table(
        "Exact loss beside a plain enumeration",
        ["n", "ours, s", "with ρ, s", "plain, s", "plain / ours"],
        [[size, ours, with_rho, plain, plain / ours]],
        "ε and the range of `HellingerExponential(0.3)`, k=2, certified; beside ε alone from"
        " `log_pmf` of every data set.",
    )


def _seconds_of_loss(size: int, prior: tuple[float, ...], renyi: bool) -> float:
    return seconds(
        lambda: loss_of(
            Setting.of(ob.mechanisms.HellingerExponential(0.3), size, prior), 1, renyi=renyi
        )
    )


def _seconds_of_naive(size: int, prior: tuple[float, ...]) -> float:
    return seconds(lambda: naive(size, prior))


def calibrations() -> None:
    rows = []
    for size, k in ((10**3, 2), (10**4, 2), (10**5, 2), (5 * 10**6, 2), (50, 3), (80, 3)):
        row: list[object] = [size, k]
        for target in ({"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}):
            for tune in (False, True) if "rho" not in target else (False,):
                row.append(alone(partial(_seconds_of_calibration, size, k, target, tune)))
        row.append("exact" if work(size, (1.0,) * k) <= pairs.FEASIBLE_WORK else "proven")
        rows.append(row)
    table(
        "Calibration",
        ["n", "k", "ε, s", "ε with γ, s", "ρ, s", "ε and δ, s", "ε and δ with γ, s", "accounting"],
        rows,
        "`calibrate(SmoothHellingerExponential(1.0), ...)` at a prior of ones, each in a process of"
        " its own; with γ means that the smoothness is chosen too. Beyond what is computed in a few"
        " seconds the proven bound is used. Wanted: 2 s for ε with γ at 5,000,000 records.",
    )


#: Mechanisms that are audited, with a number of categories.
AUDITED: tuple[tuple[Any, int], ...] = (
    (ob.LaplaceParameters(1.0), 2),
    (ob.KNormParameters(1.0), 3),
    (ob.GaussianParameters(1.0), 3),
    (ob.mechanisms.SmoothHellingerExponential(1.0), 2),
    (ob.mechanisms.HellingerExponential(0.5), 3),
    (ob.mechanisms.PermuteAndFlip(0.5), 2),
)


def audits() -> None:
    rows = [
        [f"{mechanism}, k={k}", alone(partial(_seconds_of_audit, mechanism, k))]
        for mechanism, k in AUDITED
    ]
    table(
        "An audit at its defaults",
        ["mechanism", "audit, s"],
        rows,
        "`research.audit(mechanism, size=100, prior=[1.0] * k)`, each in a process of its own."
        " Wanted: at"
        " most 15 s.",
    )


def _seconds_of_audit(mechanism: Any, k: int) -> float:
    return seconds(lambda: research.audit(mechanism, size=100, prior=(1.0,) * k))


def _seconds_of_calibration(size: int, k: int, target: dict[str, float], tune: bool) -> float:
    return seconds(
        lambda: ob.calibrate(
            ob.mechanisms.SmoothHellingerExponential(1.0),
            size=size,
            prior=(1.0,) * k,
            tune=tune,
            **target,
        )
    )  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--largest", action="store_true", help="a million records too, which takes minutes"
    )
    arguments, _ = parser.parse_known_args()
    losses(arguments.largest)
    beside_enumeration()
    calibrations()
    audits()


if __name__ == "__main__":
    main()
