"""Cost of one release by permute-and-flip, drawn by OpenDP's noisy max, beside EHD of the same
scale, and of its probabilities.
"""

from functools import partial

import numpy as np
import opendp.prelude as dp
from reporting import milliseconds, table

import opendp_bayes as ob
from opendp_bayes.framework.spaces import PosteriorSpace
from opendp_bayes.mathematics.simplex import number_of_candidates

SPACES = ((100, 2), (1000, 2), (100, 3), (100_000, 2), (1400, 3))
EPSILONS = (1.0, 10.0, 100.0)


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    rows = []
    for size, k in SPACES:
        space = PosteriorSpace(tuple(range(k)), size, (1.0,) * k)
        counts = np.full(k, size // k) + (np.arange(k) < size % k)
        for epsilon in EPSILONS:
            scale = 2 * ob.global_sensitivity(size, [1.0] * k) / epsilon
            makers = (ob.make_permute_and_flip, ob.make_hellinger_exponential)
            releases = [
                partial(
                    make(space.domain, space.metric, dp.max_divergence(), scale),
                    space.concentration(counts),
                )
                for make in makers
            ]
            ours, ehd, law = milliseconds(
                *releases, partial(ob.PermuteAndFlip(scale).log_pmf, counts, 1.0)
            )
            rows.append(
                [k, size, number_of_candidates(size, k), f"{epsilon:g}", ours, ehd, ours / ehd, law]
            )
    table(
        "One release by permute-and-flip",
        ["k", "n", "candidates", "ε", "permute-and-flip, ms", "EHD, ms", "ratio", "log_pmf, ms"],
        rows,
        "`make_permute_and_flip` beside `make_hellinger_exponential` of the same scale, balanced"
        " counts, uniform prior. A large ε leaves few coins with a fair chance, so that many are"
        " flipped.",
    )


if __name__ == "__main__":
    main()
