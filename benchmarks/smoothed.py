"""Cost of smoothed differential privacy: one profile, the smoothed δ, and exact draws, with their
growth.
"""

import math
from functools import partial

from reporting import milliseconds, table

from opendp_bayes_smoothed import SamplingHistogram, database_profile, smoothed_delta

CORNERS = [[0.9446, 0.0554], [0.2286, 0.7714]]
TRIANGLE = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]


def profiles() -> None:
    rows = []
    for rate in (0.998, 0.5):
        for size in (10**4, 10**6, 155_507_476, 10**9):
            counts = [round(0.5227 * size), size - round(0.5227 * size)]
            (time,) = milliseconds(
                partial(database_profile, counts, rate, math.log(0.51 / 0.49)), repeats=3
            )
            rows.append([2, rate, f"{size:.1e}", time])
    for rate, size in ((0.998, 10**4), (0.998, 10**5), (0.5, 10**4), (0.5, 10**5)):
        counts = [
            round(0.5 * size),
            round(0.45 * size),
            size - round(0.5 * size) - round(0.45 * size),
        ]
        (time,) = milliseconds(partial(database_profile, counts, rate, 0.04), repeats=1)
        rows.append([3, rate, f"{size:.1e}", time])
    table(
        "One database: δ(x)",
        ["categories", "rate", "n", "ms"],
        rows,
        "`database_profile`, certified. Wanted: below 1000 ms for two categories and 150 million "
        "records. Two categories take four tails, each of a few standard "
        "deviations; three take one for each number of records drawn from the pair.",
    )


def smoothed() -> None:
    rows = []
    for rate, epsilon in ((0.998, 7.0), (0.5, 0.04)):
        rows += growth(CORNERS, rate, epsilon, (1_000, 10_000), "m + l - 2 = 2")
    rows += growth(TRIANGLE, 0.8, 3.0, (15, 30, 60, 120), "m + l - 2 = 4")
    table(
        "Smoothed δ",
        ["categories", "vertices", "rate", "ε", "n", "ms", "growth", "of steps", "the paper's"],
        rows,
        "`smoothed_delta`. Wanted: below 60 s at m = l = 2, n = 10,000, the size of the paper's"
        " figures, and at m = 3, n = 60. Growth is the exponent of n between two rows, beside that"
        " of the number of steps and of the paper's count, 2m + l - 3.",
    )


def growth(
    corners: list[list[float]], rate: float, epsilon: float, sizes: tuple[int, ...], steps: str
) -> list[list[object]]:
    """A row for each number of records."""
    rows: list[list[object]] = []
    before: tuple[float, int] | None = None
    m, vertices = len(corners[0]), len(corners)
    for size in sizes:
        call = partial(smoothed_delta, corners, size, rate, epsilon)
        (time,) = milliseconds(call, repeats=2 if size <= 10**5 else 1)
        exponent = math.log(time / before[0]) / math.log(size / before[1]) if before else ""
        rows.append([m, vertices, rate, epsilon, size, time, exponent, steps, 2 * m + vertices - 3])
        before = time, size
    return rows


def draws() -> None:
    rows = []
    for size in (10**4, 10**6, 155_507_476):
        counts = [size // 2, size - size // 2]
        times = milliseconds(
            *(partial(SamplingHistogram(rate=rate).sample, counts, 1.0) for rate in (0.998, 0.5)),
            repeats=3,
        )
        times += milliseconds(
            partial(SamplingHistogram(rate=0.5, replacement="with").sample, counts, 1.0), repeats=3
        )
        rows.append([f"{size:.1e}", *times])
    table(
        "One release of the sampling-histogram mechanism",
        ["n", "0.2 % left out, ms", "half, ms", "half with replacement, ms"],
        rows,
        "`SamplingHistogram.sample`, exact, from a CSPRNG. The cost is that of a few standard"
        " deviations, not of the number of records.",
    )


def main() -> None:
    profiles()
    smoothed()
    draws()


if __name__ == "__main__":
    main()
