"""Cost of a plan, by mechanism, and of the number of records or the ε that an error takes."""

from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any

from accounting import alone, seconds
from reporting import table

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.planning.plan import default_mechanisms

SETTINGS = ((2, 100), (2, 1000), (2, 10_000), (2, 100_000), (3, 100), (3, 1000), (10, 1000))
BUDGETS: tuple[dict[str, float], ...] = ({"epsilon": 1.0}, {"rho": 0.1})
KINDS = (
    "LaplaceParameters",
    "KNormParameters",
    "GaussianParameters",
    "HellingerExponential",
    "SmoothHellingerExponential",
    "PermuteAndFlip",
)
ERRORS = ((2, 1000, 0.05), (3, 1000, 0.1))


def plan_by_mechanism(k: int, size: int, budget: dict[str, float]) -> dict[str, float]:
    """Seconds spent on each kind of mechanism."""
    spent = dict.fromkeys(KINDS, 0.0)
    for mechanism in default_mechanisms(size, k, pure="epsilon" in budget):
        start = perf_counter()
        with suppress(ValueError):  # of one that cannot be used
            ob.plan(size=size, prior=[1.0] * k, mechanisms=[mechanism], **budget)
        spent[type(mechanism).__name__] += perf_counter() - start
    return spent


def inverse(k: int, size: int, error: float, question: str) -> float:
    """Seconds for the smallest number of records at ε = 1, or the smallest ε with `size`
    records.
    """
    given: dict[str, Any] = {"epsilon": 1.0} if question == "smallest_size" else {"size": size}
    return seconds(lambda: getattr(research, question)(error, prior=[1.0] * k, **given))


def plans() -> None:
    rows = []
    for k, size in SETTINGS:
        for budget in BUDGETS:
            spent = alone(partial(plan_by_mechanism, k, size, budget))
            total = sum(spent.values())
            shares = (f"{100 * spent[kind] / total:.0f} %" if spent[kind] else "" for kind in KINDS)
            rows.append(
                [
                    k,
                    size,
                    *(f"{name} = {value:g}" for name, value in budget.items()),
                    total,
                    *shares,
                ]
            )
    table(
        "A plan",
        [
            *("k", "n", "budget", "plan, s"),
            *("Laplace", "K-norm", "Gaussian", "EHD", "EHDS", "permute-and-flip"),
        ],
        rows,
        "`ob.plan(size=n, prior=[1.0] * k, ...)` of one mechanism after another, each once, in a"
        " process of its own, and the share of each kind. Wanted: at most 10 s for two categories"
        " and 10,000 records, 5 s for 1,000 under ρ. Beyond what is computed in a few seconds the"
        " proven bound is used, so that larger can be quicker.",
    )


def inverses() -> None:
    rows = []
    for k, size, error in ERRORS:
        times = [
            alone(partial(inverse, k, size, error, question))
            for question in ("smallest_size", "smallest_epsilon")
        ]
        rows.append([k, error, times[0], size, times[1]])
    table(
        "The number of records, or the ε, that an error takes",
        ["k", "error", "smallest_size, s", "n", "smallest_epsilon, s"],
        rows,
        "`research.smallest_size(error, epsilon=1.0, ...)` and"
        " `research.smallest_epsilon(error, size=n, ...)`,"
        " each once, in a process of its own.",
    )


def main() -> None:
    plans()
    inverses()


if __name__ == "__main__":
    main()
