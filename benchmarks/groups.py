"""Cost of a posterior per group, beside one release for each group by a filter, and beside counting
without privacy.
"""

import time
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import milliseconds, table

import opendp_bayes as ob

ROWS = 1_000_000
GROUPS = (10, 100, 1000)
MANY = 32_653
CATEGORIES = 10


def make_frame() -> pl.DataFrame:
    """A column of categories, and one of groups for each number of them."""
    rng = np.random.default_rng(0)
    values = pl.Series(rng.integers(CATEGORIES, size=ROWS).astype(np.uint32)).cast(
        pl.Enum([f"category {i}" for i in range(CATEGORIES)])
    )
    return pl.DataFrame(
        {"value": values}
        | {f"group of {groups}": rng.integers(groups, size=ROWS) for groups in GROUPS}
    )


def measure(context: Any, scan: pl.LazyFrame, groups: int) -> list[float]:
    by = f"group of {groups}"

    def together() -> Any:
        return ob.posterior(
            context.query(), "value", by=by, categories={by: range(groups)}, nulls="missing"
        ).release()

    def one_by_one() -> list[Any]:
        return [
            ob.posterior(
                context.query().filter(pl.col(by) == group), "value", nulls="missing"
            ).release()
            for group in range(groups)
        ]

    assert list(together()) == list(range(groups))
    (each,) = milliseconds(one_by_one, repeats=1)
    return [
        *milliseconds(
            together,
            lambda: scan.group_by(by, "value").len().collect(engine="streaming"),
            repeats=7,
        ),
        each,
    ]


def measure_many() -> list[Any]:
    """Release, estimates, frame and picture of 32 653 groups of two categories."""
    rng, keys = np.random.default_rng(0), [f"group {at}" for at in range(MANY)]
    sizes = rng.lognormal(4, 1, MANY).astype(int) + 1
    group = np.repeat(np.arange(MANY), sizes)
    yes = rng.random(group.size) < rng.beta(4, 6, MANY)[group]
    frame = pl.DataFrame({"group": pl.Series(keys)[group], "value": yes})
    with ob.on_disk(frame) as scan:
        context = ob.context(
            scan,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=0.1),
            split_evenly_over=1,
        )
        query = ob.posterior(
            context.query(),
            "value",
            by="group",
            categories={"group": keys},
            nulls={"value": ob.DROP},
        )
        start = time.process_time()
        release = query.release()
    seconds = [time.process_time() - start]
    for answer in (release.to_frame, release.to_json, lambda: release.plot(category=True)):
        start = time.process_time()
        answer()
        seconds.append(time.process_time() - start)
    return [MANY, *seconds]


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    rows = []
    with ob.on_disk(make_frame()) as scan:
        for groups in GROUPS:
            context = dp.Context.compositor(
                data=scan,
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(epsilon=1.0),
                split_evenly_over=groups + 8,
            )
            together, plain, each = measure(context, scan, groups)
            rows.append([groups, together, plain, together / plain, each, each / together])
    table(
        f"A posterior per group, {ROWS:,} rows, k={CATEGORIES}",
        [
            "groups",
            "per group, ms",
            "polars without privacy, ms",
            "per group / polars",
            "one by one, ms",
            "one by one / per group",
        ],
        rows,
        "`ob.posterior(context.query().group_by(...), ...).release()`, beside `group_by(...).len()`"
        " of the same cells in polars, and beside as many releases of"
        " `context.query().filter(...)`, which also cost as many times the budget.",
    )
    table(
        "Many groups of two categories, a private number of records, processor seconds",
        ["groups", "release", "to_frame", "to_json", "plot"],
        [measure_many()],
        "`release()` of a query that was made before, and answers of it, each asked once.",
    )


if __name__ == "__main__":
    main()
