"""Posteriors under fixed priors of 1 and .5 and under a learned one: squared error, coverage, bias
of a private number of records, and time, on thirteen tables. Prints the table of
docs/research/priors.md.

Every replication draws records from the shares of a table, and noise for their counts. Three
replications take about half an hour on one core.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from reporting import table

from opendp_bayes import (
    GaussianParameters,
    KNormParameters,
    LaplaceParameters,
    PrivacyGuarantee,
    PrivacyLoss,
    Release,
    noise_aware_posterior,
)
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace

PRIORS: dict[str, Any] = {"1": 1.0, "0.5": 0.5, "learned": "learned"}
Shares = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Table:
    """Shares of a table's cells, the number of records drawn from them, and the mechanism."""

    shares: Callable[[], Shares]
    records: int
    mechanism: Any
    public: bool = False
    ordered: tuple[str, ...] = ()


def effects(shape: tuple[int, ...], margins: float, cells: float, seed: int) -> Shares:
    """Shares of a table with normal effects of single variables and of cells."""
    rng = np.random.default_rng(seed)
    log = rng.normal(0, cells, shape)
    for axis, levels in enumerate(shape):
        log += np.moveaxis(rng.normal(0, margins, (levels, *[1] * (len(shape) - 1))), 0, axis)
    return np.exp(log) / np.exp(log).sum()


def zipf(k: int, power: float) -> Shares:
    weights = np.arange(1, k + 1) ** -power
    return weights / weights.sum()


def partly_empty(k: int, share: float, seed: int) -> Shares:
    rng = np.random.default_rng(seed)
    weights = rng.gamma(1.0, size=k) * (rng.random(k) >= share)
    return weights / weights.sum()


@cache
def frame(name: str) -> pl.DataFrame:
    if name == "penguins":
        from palmerpenguins import load_penguins

        return pl.from_pandas(load_penguins()).drop_nulls()
    from statsmodels import datasets

    return pl.from_pandas(getattr(datasets, name).load_pandas().data)


def of(name: str, *columns: str, bins: int = 0) -> Callable[[], Shares]:
    """Shares of a table of a data set; the first column in `bins` of equal width, if any."""

    def shares() -> Shares:
        data = frame(name)
        axes = [data[column].to_numpy() for column in columns]
        if bins:
            edges = np.linspace(axes[0].min(), axes[0].max(), bins + 1)[1:-1]
            axes[0] = np.searchsorted(edges, axes[0])
        places = [np.unique(axis, return_inverse=True)[1] for axis in axes]
        counts = np.zeros([place.max() + 1 for place in places])
        np.add.at(counts, tuple(places), 1)
        return counts / counts.sum()

    return shares


def laplace(scale: float) -> LaplaceParameters:
    return LaplaceParameters(scale, total="private")


def gaussian(scale: float) -> GaussianParameters:
    return GaussianParameters(scale, total="private")


TABLES = {
    "5 x 4 x 6": Table(lambda: effects((5, 4, 6), 0.5, 0.4, 1), 6366, gaussian(4.5)),
    "50 x 10": Table(lambda: effects((50, 10), 1.2, 0.8, 2), 2000, laplace(1.0)),
    "50 x 20": Table(lambda: effects((50, 20), 1.0, 1.0, 3), 944, KNormParameters(1.0), True),
    "Zipf 1.5": Table(lambda: zipf(1000, 1.5), 10_000, laplace(2.0)),
    "Dirichlet(1)": Table(lambda: partly_empty(100, 0.0, 5), 500, KNormParameters(2.0), True),
    "60 % empty": Table(lambda: partly_empty(200, 0.6, 6), 1000, laplace(1.0)),
    "fair 5 x 6 x 6": Table(
        of("fair", "rate_marriage", "occupation", "occupation_husb"), 6366, gaussian(4.5)
    ),
    "anes age x income": Table(
        of("anes96", "age", "income", bins=15), 944, KNormParameters(1.0), True, ("age", "income")
    ),
    "anes PID x income": Table(
        of("anes96", "PID", "income"), 944, laplace(2.0), ordered=("PID", "income")
    ),
    "3 x 105 x 16": Table(lambda: effects((3, 105, 16), 1.5, 0.7, 10), 300_000, laplace(2.0)),
    "penguins": Table(of("penguins", "species", "island", "sex", "year"), 333, laplace(1.0)),
    "fair educ x children": Table(
        of("fair", "educ", "children"), 6366, laplace(5.0), ordered=("educ", "children")
    ),
    "anes educ x vote x TVnews": Table(
        of("anes96", "educ", "vote", "TVnews"), 944, KNormParameters(1.0), True
    ),
}


def knorm(scale: float, k: int, rng: np.random.Generator) -> Any:
    """K-norm noise with a seed: draws that are kept as the last one, minus their sum, allows."""
    law = DiscreteLaplace(2 * scale)
    while True:
        drawn = law.simulate((1000, k - 1), rng)
        last = -drawn.sum(axis=1)
        kept = np.flatnonzero(rng.standard_exponential(1000) > np.abs(last) / (2 * scale))
        if kept.size:
            return np.append(drawn[kept[0]], last[kept[0]])


def released(of: Table, counts: Any, rng: np.random.Generator) -> Callable[[float], Release]:
    """Release what is drawn of a table, with any prior."""
    shape, flat = counts.shape, counts.ravel()
    size = int(flat.sum()) if of.public else None
    law = of.mechanism.law(size, np.ones(flat.size))
    noise = knorm(law.scale, flat.size, rng) if of.public else law.noise.simulate(flat.shape, rng)
    drawn = flat + noise
    axes = tuple(f"v{axis}" for axis in range(len(shape))) if len(shape) > 1 else ()
    cells = np.stack(np.unravel_index(np.arange(flat.size), shape), axis=1).tolist()
    labels = tuple(tuple(cell) if axes else cell[0] for cell in cells)
    guarantee = PrivacyGuarantee(size, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")

    def release(prior: float) -> Release:
        entries = (prior,) * flat.size
        return Release(tuple(drawn.tolist()), labels, entries, of.mechanism, guarantee, axes)

    return release


def measured(posterior: NoiseAwarePosterior, shares: Shares, counts: Any) -> dict[str, Any]:
    """Squared error, shares of intervals that hold the truth, and bias of the number of records."""
    theta, cells = shares.ravel(), counts.ravel()
    low, high = posterior.interval()
    of_cells = ((low <= theta) & (theta <= high))[theta > 0]  # every interval lies above 0
    low, high = posterior.counts.interval()
    of_counts = (low <= cells) & (cells <= high)
    of_margins = []
    for place, axis in enumerate(posterior.axes):
        others = tuple(other for other in range(counts.ndim) if other != place)
        low, high = posterior.marginal(axis).counts.interval()
        truth = counts.sum(axis=others)
        of_margins.append((low <= truth) & (truth <= high))
    bias = 0.0
    if posterior.records.std() > 0:
        bias = (posterior.records.mean() - counts.sum()) / posterior.records.std()
    return {
        "error": 1e4 * float(((posterior.mean() - theta) ** 2).sum()),
        "cells": of_cells.mean(),
        "counts": of_counts.mean(),
        "margins": np.concatenate(of_margins).mean() if of_margins else np.nan,
        "bias": bias,
    }


def rows(names: list[str], priors: list[str], replications: int) -> Iterator[tuple[Any, ...]]:
    for name in names:
        of, shares = TABLES[name], TABLES[name].shares()
        for prior in priors:
            found, seconds = [], []
            for replication in range(replications):
                rng = np.random.default_rng([replication, 7])
                counts = rng.multinomial(of.records, shares.ravel()).reshape(shares.shape)
                release = released(of, counts, rng)
                start = time.process_time()
                if prior == "learned":
                    axes = [f"v{axis}" for axis in range(shares.ndim)]
                    ordered = axes if of.ordered else None
                    posterior = noise_aware_posterior(
                        release(1.0), prior="learned", ordered=ordered, random_state=replication
                    )
                else:
                    posterior = noise_aware_posterior(release(PRIORS[prior]))
                posterior.mean()
                seconds.append(time.process_time() - start)
                found.append(measured(posterior, shares, counts))
            mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
            row = (
                f"{name}, n {of.records}{'' if of.public else ' private'}",
                prior,
                mean["error"],
                *(f"{mean[key]:.2f}" for key in ("cells", "counts", "margins")),
                "" if of.public else f"{mean['bias']:+.1f}",
                float(np.mean(seconds)),
            )
            print(*row, flush=True)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--priors", nargs="*", default=list(PRIORS), choices=list(PRIORS))
    given, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")  # of chains that have not met: what they give is measured
    columns = ("table", "prior", "error", "cells", "counts", "margins", "bias of n", "seconds")
    table(
        "Fixed and learned priors",
        columns,
        list(rows(given.only, given.priors, given.replications)),
        "Error is 10^4 times the squared error of all shares; coverage is that of 95 % intervals of"
        " positive shares, of counts and marginal counts; the bias of a private number of records"
        " is in its standard deviations; seconds of one core.",
    )


if __name__ == "__main__":
    main()
