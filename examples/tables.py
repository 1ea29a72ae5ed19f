"""A joint table of two answers of the American National Election Study of 1996: what it will cost,
the cells, the share of each party, and the vote within a party.

Needs `pip install 'opendp-bayes-office[demo]'`, for the data.
"""

import opendp.prelude as dp
import polars as pl
from statsmodels.datasets import anes96

import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")

answers = anes96.load_pandas().data
votes = ["Clinton", "Dole"]
parties = ["Democrat", "Independent", "Republican"]
code = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 2, 6: 2}  # leaners are counted with their party
survey = pl.DataFrame(
    {
        "vote": pl.Series([votes[int(vote)] for vote in answers["vote"]], dtype=pl.Enum(votes)),
        "party": pl.Series([parties[code[int(p)]] for p in answers["PID"]], dtype=pl.Enum(parties)),
    }
)

context = ob.context(
    survey,
    privacy_unit=dp.unit_of(changes=1),  # the number of people is public, their answers are not
    privacy_loss=dp.loss_of(epsilon=0.5),
    split_evenly_over=1,
)
# The columns hold no nulls, which OpenDP does not know: the query says where one would count.
query = ob.posterior(
    context.query(),
    ["party", "vote"],
    size=survey.height,
    nulls={"party": "Independent", "vote": "Dole"},
)
# Nothing is read or spent by this.
with pl.Config(tbl_cols=-1, tbl_width_chars=200):
    print(query.summarize().select("aggregate", "mechanism", "scale", "debits"))
table = query.release()

print(table.to_frame().select("party", "vote", "count", "mean", "lower", "upper"))

shares = table.posterior.marginal("party")
for party, mean in zip(shares.categories, shares.mean(), strict=True):
    print(f"{party}: {mean:.3f} of all")

within = table.posterior.conditional("vote", party="Independent")
lower, upper = within["Dole"].interval(0.95)
print(f"P(Dole | Independent) = {within['Dole'].mean():.2f}, 95 % from {lower:.2f} to {upper:.2f}")
