"""Constructors chained with >>, and one composition of a posterior with OpenDP's own Laplace
mechanism.
"""

import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")

size = 300
answer = pl.Enum(["yes", "no", "undecided"])
survey = pl.LazyFrame(
    {"answer": pl.Series(["yes"] * 160 + ["no"] * 110 + ["undecided"] * 30, dtype=answer)}
)

# The data sets we protect: any 300 answers; neighbours differ by one changed answer.
domain = dp.lazyframe_domain([dp.series_domain("answer", dp.enum_domain(answer.categories))])
space = domain, dp.change_one_distance()

counts = space >> ob.t.then_categorical_counts(column="answer", size=size)

posterior = counts >> ob.t.then_dirichlet_multinomial(prior=0.5)
private_posterior = posterior >> ob.m.then_laplace_parameters(dp.max_divergence(), scale=4.0)

# The same counts in OpenDP's own space can be followed by any OpenDP measurement.
private_counts = counts >> ob.t.then_count_vector() >> dp.m.then_laplace(scale=8.0)

both = dp.c.make_composition([private_posterior, private_counts])

print(f"epsilon: {private_posterior.map(1)} + {private_counts.map(1)} = {both.map(1)}")
release, noisy_counts = both(survey)
print(f"concentration of the posterior: {release.concentration.tolist()}")
print(f"OpenDP's noisy counts:          {list(noisy_counts)}")

# Measurements made for different models do not chain by accident: the spaces differ.
other = (domain, dp.change_one_distance()) >> ob.t.then_categorical_counts(
    column="answer", size=301
)
print(f"spaces for 300 and 301 answers are equal: {counts.output_domain == other.output_domain}")
