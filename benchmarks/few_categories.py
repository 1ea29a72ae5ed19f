"""Priors of 1, .5 and a learned one for few categories: squared error, coverage and the bias of a
private number of records. Prints the table of docs/research/priors.md from which the default was
chosen.

Every replication draws 300 records from the shares of one of four truths, and Laplace or K-norm
noise for their counts. Ten replications take about twenty minutes on one core.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from learned_prior import PRIORS, Shares, Table, measured, released, zipf
from reporting import table

from opendp_bayes import KNormParameters, LaplaceParameters, noise_aware_posterior

RECORDS, SCALE = 300, 3.0
NUMBERS = (2, 3, 5, 7, 10, 15, 20)


def one_large(k: int) -> Shares:
    """One category with most of the records, the others in falling order."""
    return 0.5 ** np.arange(k) / (0.5 ** np.arange(k)).sum()


def half_empty(k: int) -> Shares:
    weights = np.arange(k) < (k + 1) // 2
    return weights / weights.sum()


TRUTHS: dict[str, Callable[[int], Shares]] = {
    "equal": lambda k: np.full(k, 1 / k),
    "Zipf 1": partial(zipf, power=1.0),
    "halves": one_large,
    "half empty": half_empty,
}


def found(k: int, truth: str, public: bool, replication: int) -> dict[str, dict[str, Any]]:
    """What is measured under each prior, of one draw."""
    rng = np.random.default_rng([replication, k, public, list(TRUTHS).index(truth)])
    # K-norm noise of scale b is Laplace noise of scale 2b given its sum.
    mechanism: Any = (
        KNormParameters(SCALE / 2) if public else LaplaceParameters(SCALE, total="private")
    )
    shares = TRUTHS[truth](k)
    counts = rng.multinomial(RECORDS, shares)
    release = released(Table(lambda: shares, RECORDS, mechanism, public), counts, rng)
    posteriors: dict[str, Any] = {
        name: noise_aware_posterior(release(prior))
        for name, prior in PRIORS.items()
        if name != "learned"
    }
    posteriors["learned"] = noise_aware_posterior(
        release(1.0), prior="learned", random_state=replication
    )
    return {name: measured(one, shares, counts) for name, one in posteriors.items()}


def rows(numbers: list[int], replications: int) -> Iterator[tuple[Any, ...]]:
    for k, public in product(numbers, (True, False)):
        each = [
            found(k, truth, public, replication)
            for truth, replication in product(TRUTHS, range(replications))
        ]
        of = {
            (name, key): np.array([one[name][key] for one in each])
            for name in PRIORS
            for key in ("error", "counts", "bias")
        }
        ratios = [of[name, "error"].reshape(len(TRUTHS), -1).mean(axis=1) for name in PRIORS]
        row = (
            f"{k}{'' if public else ' private'}",
            *(float((ratio / ratios[0]).mean()) for ratio in ratios[1:]),
            *(f"{of[name, 'counts'].mean():.3f}" for name in PRIORS),
            *("" if public else f"{of[name, 'bias'].mean():+.2f}" for name in PRIORS),
            " ".join(f"{ratio:.2f}" for ratio in (ratios[2] / ratios[1])),
        )
        print(*row, flush=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--only", nargs="*", type=int, default=list(NUMBERS))
    given, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")  # of conflicts and of chains: what they give is measured
    of_priors = [f"{what} {name}" for what in ("counts", "bias") for name in PRIORS]
    columns = ("categories", "error 0.5", "error learned", *of_priors, "learned to 0.5")
    table(
        "Fixed and learned priors of few categories",
        columns,
        list(rows(given.only, given.replications)),
        "Errors are squared errors of all shares relative to those of a prior of 1, mean of four"
        " truths; coverage is that of 95 % intervals of counts; the bias of a private number of"
        " records is in its standard deviations; the last column has the error of the learned prior"
        " relative to that of 0.5 for each truth: equal, Zipf 1, halves, half empty.",
    )


if __name__ == "__main__":
    main()
