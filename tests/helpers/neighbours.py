"""All neighbouring frames of a few records, for maps and losses that are found by listing."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

Rows = tuple[Any, ...]


def every_frame(records: Sequence[Any], most: int) -> list[Rows]:
    """All frames of up to so many records."""
    return [rows for number in range(most + 1) for rows in product(records, repeat=number)]


def neighbours(
    records: Sequence[Any], most: int, relation: str, d_in: int = 1
) -> list[tuple[Rows, Rows]]:
    """Pairs of frames at most `d_in` apart: records changed, removed, or one exchanged."""
    if relation == "change-one":
        every = list(product(records, repeat=most))
        return [(a, b) for a in every for b in every if sum(map(lambda x, y: x != y, a, b)) <= d_in]
    fewer = [
        (rows, tuple(rows[at] for at in kept))
        for rows in every_frame(records, most)
        for number in range(max(len(rows) - d_in, 0), len(rows))
        for kept in combinations(range(len(rows)), number)
    ]
    exchanged = neighbours(records, most, "change-one", d_in // 2) if d_in > 1 else []
    return fewer + exchanged
