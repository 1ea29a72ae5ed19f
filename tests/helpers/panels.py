"""Gauss quadrature of a sum over many counts, on panels that are graded around the places where a
weight is not smooth; near them counts are summed one by one. Shares no code with the package.
"""

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
SINGLE, RATIO = 40, 1.6


def panels(lowest, highest, places):
    """Points and log-widths of a sum over lowest..highest."""
    lowest, highest = int(lowest), int(highest)
    edges = {lowest, highest + 1}
    singles = []
    for place in {int(np.clip(p, lowest, highest)) for p in [*places, lowest, highest]}:
        singles.append(np.arange(max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1))
        steps = SINGLE * RATIO ** np.arange(np.log(max(highest - lowest, 2)) / np.log(RATIO))
        for sign in (1, -1):
            at = np.floor(place + sign * steps)
            edges |= set(at[(at > lowest) & (at <= highest)].astype(np.int64).tolist())
        edges |= {max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1}
    singles = np.unique(np.concatenate(singles))
    edges = np.array(sorted(edges), dtype=np.int64)
    first, last = edges[:-1], edges[1:] - 1
    single = np.isin(first, singles)
    short = ~single & (last - first < SINGLE)
    extra = [np.arange(a, b + 1) for a, b in zip(first[short], last[short], strict=True)]
    points = [singles, *extra]
    wide = ~single & ~short
    half = (last - first + 1)[wide] / 2
    middle = (first + last)[wide] / 2
    points.append((middle[:, None] + half[:, None] * NODES).ravel())
    widths = [np.zeros(sum(map(len, points[:-1]))), np.log(half[:, None] * WEIGHTS).ravel()]
    return np.concatenate(points).astype(float), np.concatenate(widths)
