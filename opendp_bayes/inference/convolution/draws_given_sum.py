"""Independent draws of counts given their sum, by rejection: half of them freely, kept where the
rest suits what is left, and then the rest in the same way.
"""

import numpy as np

from opendp_bayes.inference.convolution.numbers_and_tilts import Numbers
from opendp_bayes.inference.convolution.sums import Sums
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts of a draw that are tried together at least, rounds after which the best of so many are
#: taken by their weights.
_TRIALS, _ROUNDS, _BEST = 400, 200, 4000
#: The largest density that is found may be below the true one by so much.
_SLACK = 1.02
#: Counts that are drawn at once.
_BLOCK = 1 << 21


class DrawsGivenSum:
    """Draws of counts under the tilt of one part of the numbers of records; `leaf` is the row of
    each count.
    """

    def __init__(self, numbers: Numbers, leaf: Integers) -> None:
        known, self._leaf = numbers.moments, leaf
        # The widest come last, so that what is left of a sum hardly ever is impossible.
        self._order = np.argsort(known.variance[0][leaf], kind="stable")
        self._numbers, counts = numbers, numbers.counts
        log_masses = counts.log_masses + known.tilts[0] * counts.away
        self._laws = CountLaws.of_masses(counts.cells, log_masses)

    def of(self, sizes: Integers, rng: np.random.Generator) -> Integers:
        """Draws given sums of shape `(draws,)`; shape `(draws, k)`."""
        draws = np.empty((sizes.size, self._leaf.size), dtype=np.int64)
        left, later = sizes.copy(), self._order
        while later.size > 1:
            half, later = later[: later.size // 2], later[later.size // 2 :]
            for block in np.array_split(
                np.arange(sizes.size), sizes.size * half.size // _BLOCK + 1
            ):
                draws[block[:, None], half] = self._fitting(half, later, left[block], rng)
            left -= draws[:, half].sum(axis=1)
        draws[:, later[0]] = left
        return draws

    def _fitting(
        self, half: Integers, later: Integers, left: Integers, rng: np.random.Generator
    ) -> Integers:
        """Draws of some counts beside which the later ones are what is left of sums."""
        rows, number = np.unique(self._leaf[later], return_counts=True)
        law = Sums(self._numbers.some(rows), number).laws(number[:, None])
        peak = float(law.masses.max()) * _SLACK
        draws, waiting = np.empty((left.size, half.size), dtype=np.int64), np.arange(left.size)

        def tried(number: int) -> tuple[Integers, Floats]:
            counts = self._laws.draw(self._leaf[half], number, rng)
            return counts.T, counts.sum(axis=0)

        def density(beside: Floats) -> Floats:
            return law.read(np.zeros(beside.size, dtype=np.int64), beside.astype(float))

        for _ in range(_ROUNDS):
            times = max(_TRIALS // waiting.size, 1)
            counts, total = tried(waiting.size * times)
            beside = np.repeat(left[waiting], times) - total
            fits = (rng.random(beside.size) * peak < density(beside)).reshape(-1, times)
            first = fits.argmax(axis=1) + times * np.arange(waiting.size)
            done = fits.any(axis=1)
            draws[waiting[done]] = counts[first[done]]
            waiting = waiting[~done]
            if not waiting.size:
                break
        for row in waiting.tolist():
            counts, total = tried(_BEST)
            weight = density(left[row] - total)
            draws[row] = counts[np.argmax(weight / rng.standard_exponential(_BEST))]
        return draws
