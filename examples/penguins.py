"""A posterior and OpenDP's own queries, answered by one Context from one budget.

Needs `pip install 'opendp-bayes-office[demo]'`, for the data.
"""

import opendp.prelude as dp
import polars as pl
from palmerpenguins import load_penguins

import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")

frame = load_penguins()
penguins = pl.DataFrame(
    {
        "species": pl.Series(
            list(frame["species"]), dtype=pl.Enum(["Adelie", "Chinstrap", "Gentoo"])
        ),
        "flipper": pl.Series(list(frame["flipper_length_mm"]), dtype=pl.Float64).fill_nan(None),
    }
)

context = ob.context(
    penguins,
    privacy_unit=dp.unit_of(contributions=1),  # one row a penguin; their number is private
    privacy_loss=dp.loss_of(epsilon=1.5),
    split_by_weights=[2, 1],
)

# The species of a row may be null as far as OpenDP knows, so the query has to say how to count
# that.
release = ob.posterior(context.query(), "species", nulls="unrecorded").release()

# Any plan may come before a posterior: here, the species of the penguins with long flippers, by
# OpenDP's own noisy count.
long_flippers = (
    context.query()
    .filter(pl.col("flipper") > 200)
    .select(dp.len(signed=True))
    .release()
    .collect()
    .item()
)

print(release)
for label, mean in zip(release.categories, release.posterior.mean(), strict=True):
    print(f"{label:<12} {mean:.3f}")
print(f"Penguins with flippers longer than 200 mm: {long_flippers}")
