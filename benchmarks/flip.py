"""Cost of one release by permute-and-flip, drawn by OpenDP's noisy max, beside EHD of the same
scale, and of its probabilities.
"""

from functools import partial

import numpy as np
import opendp.prelude as dp
from reporting import milliseconds, table

import opendp_bayes as ob
from opendp_bayes.mathematics.simplex import number_of_candidates

SPACES = ((100, 2), (1000, 2), (100, 3), (100_000, 2), (1400, 3))
EPSILONS = (1.0, 10.0, 100.0)


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    rows = []
    for size, k in SPACES:
        prior = [1.0] * k
        counts = np.full(k, size // k) + (np.arange(k) < size % k)
        for epsilon in EPSILONS:
            scale = 2 * ob.mechanisms.global_sensitivity(size, prior) / epsilon
            # Without the least time that a measurement takes.
            releases = [
                partial(ob.m.measured_sampler(mechanism, size=size, prior=prior), counts, prior, 1)
                for mechanism in (
                    ob.mechanisms.PermuteAndFlip(scale),
                    ob.mechanisms.HellingerExponential(scale),
                )
            ]
            ours, ehd, law = milliseconds(
                *releases, partial(ob.mechanisms.PermuteAndFlip(scale).log_pmf, counts, 1.0)
            )
            rows.append(
                [k, size, number_of_candidates(size, k), f"{epsilon:g}", ours, ehd, ours / ehd, law]
            )
    table(
        "One release by permute-and-flip",
        ["k", "n", "candidates", "ε", "permute-and-flip, ms", "EHD, ms", "ratio", "log_pmf, ms"],
        rows,
        "The samplers of `make_permute_and_flip` and `make_hellinger_exponential` of the same"
        " scale, without the least time of a measurement; balanced counts, uniform prior. A large"
        " ε leaves few coins with a fair chance, so that many are flipped.",
    )


if __name__ == "__main__":
    main()
