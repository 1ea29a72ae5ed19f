"""Cost of one release: mechanisms beside a floating-point implementation, and a query through a
Context beside OpenDP's own.
"""

from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import milliseconds, table
from scipy.special import gammaln

import opendp_bayes as ob

ROWS = 1_000_000
SIZES = {2: (100, 1000, 10_000, 100_000), 3: (10, 100, 1000)}
MECHANISMS: dict[str, Any] = {
    "EHD": ob.mechanisms.HellingerExponential(scale=0.5),
    "EHDS": ob.mechanisms.SmoothHellingerExponential(scale=4.0),
    "Laplace": ob.LaplaceParameters(scale=1.0),
}


def log_beta(concentration: np.ndarray) -> np.ndarray:
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def floating_point(counts: np.ndarray, scale: float) -> np.ndarray:
    """EHD as a user would write it: enumerate, a softmax in floats, `np.random.choice`."""
    size = counts.sum()
    grid = np.indices((size + 1,) * (counts.size - 1)).reshape(counts.size - 1, -1).T
    grid = grid[grid.sum(axis=1) <= size]
    candidates = 1.0 + np.column_stack([grid, size - grid.sum(axis=1)])
    posterior = 1.0 + counts
    similarity = np.exp(
        log_beta((candidates + posterior) / 2) - (log_beta(candidates) + log_beta(posterior)) / 2
    )
    weight = np.exp(-np.sqrt(np.maximum(1 - similarity, 0)) / scale)
    return candidates[np.random.choice(len(candidates), p=weight / weight.sum())] - 1


def mechanisms() -> None:
    rows = []
    for k, sizes in SIZES.items():
        for size in sizes:
            counts = np.full(k, size // k) + (np.arange(k) < size % k)
            samples = [partial(mechanism.sample, counts, 1.0) for mechanism in MECHANISMS.values()]
            *ours, naive = milliseconds(*samples, lambda counts=counts: floating_point(counts, 0.5))
            rows.append([k, f"{size:.0e}", *ours, naive, ours[0] / naive])
    table(
        "One release by a mechanism",
        ["k", "n", *(f"{name}, ms" for name in MECHANISMS), "EHD in floats, ms", "EHD / in floats"],
        rows,
        "`mechanism.sample(counts, prior)`, sensitivity included, with exact sampling from a"
        " CSPRNG. In floats: candidates enumerated, weights from `gammaln`, `np.random.choice`,"
        " which is neither exact nor cryptographically random.",
    )


def queries() -> None:
    codes = np.random.default_rng(0).integers(10, size=ROWS)
    labels = [f"category {i}" for i in range(10)]
    frame = pl.DataFrame({"category": pl.Series(codes.astype(np.uint32)).cast(pl.Enum(labels))})
    dp.enable_features("contrib", "honest-but-curious")
    with ob.on_disk(frame) as scan:
        rows = []
        for unit, size in (({"contributions": 1}, None), ({"changes": 1}, ROWS)):
            context = dp.Context.compositor(
                data=scan,
                privacy_unit=dp.unit_of(**unit),
                privacy_loss=dp.loss_of(epsilon=1.0),
                split_evenly_over=1000,
                margins=[dp.polars.Margin(by=["category"], invariant="keys", max_length=ROWS)],
            )
            ours, grouped, total = milliseconds(
                lambda context=context, size=size: ob.posterior(
                    context.query(), "category", size=size, nulls="missing"
                ).release(),
                lambda context=context: (
                    context.query()
                    .group_by("category")
                    .agg(dp.len(signed=True))
                    .release()
                    .collect()
                ),
                lambda context=context: (
                    context.query().select(dp.len(signed=True)).release().collect()
                ),
                repeats=15,
            )
            (plain,) = milliseconds(
                lambda: scan.group_by("category").len().collect(engine="streaming"), repeats=15
            )
            rows.append(
                [
                    ", ".join(f"{key}={value}" for key, value in unit.items()),
                    ours,
                    grouped,
                    total,
                    plain,
                    ours / grouped,
                ]
            )
    table(
        f"One release through a Context, {ROWS:,} rows, k=10",
        [
            "privacy unit",
            "posterior, ms",
            "OpenDP group_by and len, ms",
            "OpenDP len, ms",
            "polars without privacy, ms",
            "posterior / group_by",
        ],
        rows,
        "From query to result, building the query included: `ob.posterior(context.query(),"
        " ...).release()` beside"
        " `context.query().group_by(...).agg(dp.len(signed=True)).release().collect()`, whose keys"
        " a margin makes public, and `dp.len` alone.",
    )


def main() -> None:
    mechanisms()
    queries()


if __name__ == "__main__":
    main()
