"""A posterior for each island, from one query, and a comparison of two of them.

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
        "island": list(frame["island"]),
        "species": pl.Series(
            list(frame["species"]), dtype=pl.Enum(["Adelie", "Chinstrap", "Gentoo"])
        ),
    }
)

context = ob.context(
    penguins,
    # One row a penguin; their number is private, on each island too.
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)

# The islands are named here, not read off the data. A penguin is on one island, so all of them
# cost what one costs.
query = ob.posterior(
    context.query(),
    "species",
    by="island",
    categories={"island": ["Biscoe", "Dream", "Torgersen"]},
    nulls="Adelie",
)
released = query.release()

print(f"One entry in the budget: {context.current_privacy_loss()}")
with pl.Config(tbl_rows=-1):
    print(released.to_frame())

difference = released["Dream"].posterior.compare(released["Biscoe"].posterior)
larger = difference["Adelie"].probability().value
print(f"P(Adelie is more frequent on Dream than on Biscoe) = {larger:.3f}")
