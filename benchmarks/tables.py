"""Cost of a joint table through a Context, beside counting its cells in plain polars, and of its
posterior, marginals and conditionals.
"""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import milliseconds, table

import opendp_bayes as ob

ROWS = 1_000_000
SHAPES = ((2, 2), (7, 3), (50, 20), (100, 100))
COLUMNS = ("table", "release, ms", "polars without privacy, ms", "posterior, ms", "marginal, ms")


def make_frame() -> pl.DataFrame:
    """Two columns for each shape, of Enum categories."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            f"{name} of {shape}": pl.Series(rng.integers(k, size=ROWS).astype(np.uint32)).cast(
                pl.Enum([f"{name} {i}" for i in range(k)])
            )
            for shape in SHAPES
            for name, k in zip(("row", "column"), shape, strict=True)
        }
    )


def measure(context: Any, scan: pl.LazyFrame, shape: tuple[int, int]) -> list[float]:
    names = [f"row of {shape}", f"column of {shape}"]
    nulls = {name: f"{name.split()[0]} 0" for name in names}

    def release() -> ob.Release:
        released: ob.Release = ob.posterior(
            context.query(), names, size=ROWS, nulls=nulls
        ).release()
        return released

    released = release()
    assert released.k == shape[0] * shape[1]

    def posterior() -> Any:
        return ob.noise_aware_posterior(released).interval()

    def marginal() -> Any:
        return released.posterior.marginal(names[1]).interval()

    return [
        *milliseconds(
            release, lambda: scan.group_by(names).len().collect(engine="streaming"), repeats=5
        ),
        *milliseconds(posterior, marginal, repeats=1),
    ]


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    with ob.on_disk(make_frame()) as scan:
        context = dp.Context.compositor(
            data=scan,
            privacy_unit=dp.unit_of(changes=1),
            privacy_loss=dp.loss_of(epsilon=40.0),
            split_evenly_over=40,
        )
        rows = [[f"{r} × {c}", *measure(context, scan, (r, c))] for r, c in SHAPES]
    table(
        "Joint tables",
        COLUMNS,
        rows,
        f"{ROWS:,} rows, change-one neighbours, ε = 1 for each release; posterior and marginal"
        " with their 95 % intervals.",
    )


if __name__ == "__main__":
    main()
