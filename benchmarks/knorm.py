"""Cost of one release with K-norm noise, beside discrete Laplace noise on the counts."""

from functools import partial

import numpy as np
from reporting import milliseconds, per_call, table

import opendp_bayes as ob
from opendp_bayes.mechanisms.knorm_parameters import KNormParameters

CATEGORIES = (3, 10, 30, 100, 300, 1000)
SIZES = (10**3, 10**6, 10**9)
SCALES = (0.1, 1.0, 10.0, 1e6)


def sampler(
    mechanism: KNormParameters | ob.LaplaceParameters, k: int, size: int
) -> partial[np.ndarray]:
    counts = np.full(k, size // k) + (np.arange(k) < size % k)
    return partial(mechanism.sample, counts, 1.0)


def releases() -> None:
    rows = []
    for k in CATEGORIES:
        calls = max(1, 100 // k)
        for size in SIZES:
            samplers = [
                sampler(mechanism, k, size)
                for mechanism in (KNormParameters(1.0), ob.LaplaceParameters(2.0))
            ]
            ours, laplace = (
                time / calls
                for time in milliseconds(*(per_call(sample, calls) for sample in samplers))
            )
            rows.append([k, f"{size:.0e}", ours, laplace, ours / laplace, 1e3 * ours / k])
    table(
        "One release with K-norm noise",
        [
            "k",
            "n",
            "K-norm, ms",
            "discrete Laplace, ms",
            "K-norm / Laplace",
            "K-norm, µs a category",
        ],
        rows,
        "`mechanism.sample(counts, prior)` at ε = 1: `KNormParameters(1.0)` beside"
        " `LaplaceParameters(2.0)`, both with exact integer sampling from a CSPRNG. Nothing is"
        " enumerated, so the number of records does not matter.",
    )


def scales() -> None:
    rows = []
    for k in (10, 1000):
        samplers = [sampler(KNormParameters(scale), k, 10**6) for scale in SCALES]
        calls = max(1, 100 // k)
        rows.append(
            [
                k,
                *(
                    time / calls
                    for time in milliseconds(*(per_call(sample, calls) for sample in samplers))
                ),
            ]
        )
    table(
        "K-norm noise of different scales",
        ["k", *(f"scale {scale:g}, ms" for scale in SCALES)],
        rows,
        "One release of 1,000,000 records. The sampler does a fixed amount of work for each"
        " category, whatever the scale.",
    )


def main() -> None:
    releases()
    scales()


if __name__ == "__main__":
    main()
