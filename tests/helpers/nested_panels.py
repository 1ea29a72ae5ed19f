"""Two and three noised counts by sums over panels, without the package's code."""

import numpy as np

from tests.helpers.panels import panels
from tests.helpers.weighed_pairs import MarginalOfPanels, log_rising

#: How often panels are placed about the mode that was found.
_ROUNDS = 4


def log_noise(law, scale, z):
    """Up to a constant."""
    z, scale = np.asarray(z, dtype=np.longdouble), np.longdouble(scale)
    if law == "laplace":
        return -np.abs(z) / scale
    if law == "floored":
        return -np.where(z >= 0, z, -1 - z) / scale
    return -(z**2) / 2 / scale**2


def about_the_mode(log_weight, last, places):
    """Points and logarithms of masses of a sum over 0 to `last`."""
    places = set(places)
    for _ in range(_ROUNDS):
        points, log_widths = panels(0, last, places)
        logs = log_weight(points)
        mode = int(points[np.argmax(logs)])
        if min(abs(mode - place) for place in places) <= 1:
            break
        places.add(mode)
    return points, logs + log_widths


class Two(MarginalOfPanels):
    """Marginal of the first of two categories, with a public size."""

    def __init__(self, law, scale, drawn, prior, size):
        first, second = (int(d) for d in drawn)

        def log_weight(x):
            noise = log_noise(law, 1, first - x) + log_noise(law, 1, second - (size - x))
            # Draws that are as far off together are as probable, exactly, at any scale.
            noise = (noise - noise.max()) / scale ** (2 if law == "gaussian" else 1)
            return noise + log_rising(x, prior[0]) + log_rising(size - x, prior[1])

        near = [0, size, first, first + 1, size - second, size - second - 1]
        super().__init__(prior, size, *about_the_mode(log_weight, size, near))


class Three(MarginalOfPanels):
    """Marginal of the first of three categories, with a public size."""

    def __init__(self, law, scale, drawn, prior, size):
        drawn = [int(d) for d in drawn]

        def own(i, x):
            return log_noise(law, scale, drawn[i] - x) + log_rising(x, prior[i])

        def others(left):
            """The logarithm of the sum over what the second may be, given what both sum to."""
            near = (0, left, drawn[1], drawn[1] + 1, left - drawn[2], left - drawn[2] - 1)
            share = int(left * prior[1] / (prior[1] + prior[2]))
            middle = (drawn[1] + left - drawn[2]) // 2

            def log_weight(x):
                return own(1, x) + own(2, left - x)

            _, logs = about_the_mode(log_weight, left, [*near, share, middle])
            return logs.max() + np.log(np.exp(logs - logs.max()).sum())

        known = {}

        def log_weight(points):
            for left in (size - points).tolist():
                for count in {int(np.floor(left)), int(np.ceil(left))} - known.keys():
                    known[count] = others(count)
            left = size - points
            below = np.floor(left)
            low, high = (
                np.array([known[int(x)] for x in each.tolist()]) for each in (below, np.ceil(left))
            )
            return own(0, points) + low + (left - below) * (high - low)

        rest = size - drawn[1] - drawn[2]
        near = [0, size, drawn[0], drawn[0] + 1, rest, rest + 1, size - drawn[1], size - drawn[2]]
        near += [int(size * prior[0] / sum(prior)), (drawn[0] + rest) // 2]
        points, logs = about_the_mode(log_weight, size, near)
        super().__init__(prior, size, points, logs)
