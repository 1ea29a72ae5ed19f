"""The union of different records of the same probabilities, each released with noise of its own.

The counts of all releases have weights that are a product over the categories, of
`Γ(prior + s) prod_r f_r(drawn_r - x_r) / x_r!`, s the sum of the counts x_r of the releases, and of
`prod_r n_r! / Γ(A + n)` for the numbers of records n_r, whose sum is n, and the sum A of the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.cells import Cells
from opendp_bayes.inference.components import keyed
from opendp_bayes.inference.convolved import Convolved, Given, check_entries
from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.inference.likelihood import IndependentNoise
from opendp_bayes.inference.merged import Groups
from opendp_bayes.inference.true_counts import Listed
from opendp_bayes.mathematics.validation import Floats, Integers

#: Noise less probable than `exp(-_DEPTH)` of the largest is left out.
_DEPTH = 25.0
#: The share of one release in a private number of records is taken at points so many of its
#: standard deviations apart, as far as `exp(-_FAR)` of the largest weight, at most so many.
_STEP, _FAR, _MOST_POINTS = 1.2, 16.0, 1000
_SMALLEST = 1e-6
#: Draws behind what is told of merged categories, and of some among themselves.
_DRAWS = 40_000


@dataclass(frozen=True, eq=False)
class Look:
    """Counts with noise, and their number where it is public."""

    noise: IndependentNoise
    size: int | None

    def window(self, category: int) -> Integers:
        """The counts of a category that matter."""
        look, k = self.noise, self.noise.drawn.size
        reach = look.noise.reach(_DEPTH)
        if not look.noised[category]:  # what the others leave
            reach = int(np.ceil(reach * np.sqrt(k - 1)))
        highest = np.iinfo(np.int64).max // 4 if self.size is None else self.size
        middle = min(max(int(look.drawn[category]), 0), highest)
        return np.arange(max(middle - reach, 0), min(middle + reach, highest) + 1)

    def log_weights(self, category: int, counts: Integers) -> Floats:
        """Logarithms of `f(drawn - x) / x!`."""
        return self.noise.log_factor(category, counts) - special.gammaln(counts + 1.0)


class Union:
    """The counts of the union, and the probabilities, given counts with noise of each release.

    The numbers of records of all releases are public, or those of two are private. Raises
    `ValueError` where the tables are too large, or the draws too far from any counts.
    """

    def __init__(self, looks: Sequence[Look], prior: Floats) -> None:
        self._prior = prior
        self._sizes = [look.size for look in looks if look.size is not None]
        if self._sizes:
            self._parts, self._shares = [_of_public(looks, self._sizes, prior)], np.ones(1)
        else:
            self._parts, self._shares = _of_private(looks[0], looks[1], prior)

    @cached_property
    def _found(self) -> list[list[Given]]:
        """For every category, of all parts; the weights sum to 1."""
        found: list[list[Given]] = [[] for _ in self._prior]
        for part, share in zip(self._parts, self._shares, strict=True):
            for category, given in enumerate(part.given()):
                total = sum(one.weights.sum() for one in given) / share
                found[category] += [
                    Given(one.counts, one.weights / total, one.inverse, one.inverse_square)
                    for one in given
                ]
        return found

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        mixtures = []
        for alpha, given in zip(self._prior.tolist(), self._found, strict=True):
            components = [(*self._betas(alpha, one), one.weights, one.counts) for one in given]
            a, b, weights, counts = map(np.concatenate, zip(*components, strict=True))
            alike = keyed(a, b, weights, counts.astype(np.float64), np.maximum(b, 0.0))
            mixtures.append(BetaMixture.grouped(alike.a, alike.b, alike.weights, alike.key))
        return BetaMixtures.joined(mixtures)

    def _betas(self, alpha: float, given: Given) -> tuple[Floats, Floats]:
        """The parameters of the probability given its count."""
        whole, a = float(self._prior.sum()), np.asarray(alpha + given.counts, dtype=np.float64)
        if self._sizes:
            return a, np.asarray(whole + sum(self._sizes) - a)
        # Mean and variance over the numbers of records; the mean no larger than where no record is
        # in another category, the variance no smaller than that of the mean number.
        mean = np.minimum(a * given.inverse, a / (a + whole - alpha))
        spread = mean * (1 - mean)
        least = spread / (1 / given.inverse + 1)
        variance = np.maximum(a * (a + 1) * given.inverse_square - mean**2, least)
        more = np.maximum(spread / variance - 1, _SMALLEST)
        return np.asarray(mean * more), np.asarray((1 - mean) * more)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the counts of all categories."""
        laws = []
        for given in self._found:
            every = np.concatenate([one.counts for one in given])
            values, place = np.unique(every, return_inverse=True)
            law = np.bincount(place, np.concatenate([one.weights for one in given]))
            masses = np.zeros((values.size, 4))
            masses[:, 1] = law / law.sum()  # the only node of a cell of one
            laws.append(CountLaws(Cells(np.zeros_like(values), values, values), masses))
        return CountLaws.joined(laws)

    @cached_property
    def size(self) -> CountLaws:
        """The law of the number of all records."""
        if self._sizes:
            return CountLaws.of_rows(np.array([[sum(self._sizes)]]), np.ones(1))
        laws = [part.number_law() for part in self._parts]
        rows = np.concatenate([numbers for numbers, _ in laws])[:, None]
        pairs = zip(laws, self._shares, strict=True)
        return CountLaws.of_rows(rows, np.concatenate([share * law for (_, law), share in pairs]))

    def merged(self, groups: Groups) -> Listed:
        """The counts of groups of categories, by draws."""
        return self._listed.merged(groups)

    def given(self, categories: Sequence[int]) -> Listed:
        """The counts of some categories, by draws."""
        return self._listed.given(categories)

    @cached_property
    def _listed(self) -> Listed:
        drawn = self.sample(_DRAWS, np.random.default_rng(0))
        return Listed(drawn, np.zeros(len(drawn)), self._prior)

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts, shape `(size, k)`."""
        sizes = rng.multinomial(size, self._shares)
        pairs = zip(self._parts, sizes.tolist(), strict=True)
        drawn = np.concatenate([part.sample(number, rng) for part, number in pairs if number])
        return drawn if len(self._parts) == 1 else rng.permutation(drawn)


def _of_public(looks: Sequence[Look], sizes: list[int], prior: Floats) -> Convolved:
    windows = [[look.window(i) for look in looks] for i in range(prior.size)]
    check_entries(sum(float(np.prod([float(w.size) for w in row])) for row in windows))
    logs = []
    for category, row in enumerate(windows):
        grid = np.meshgrid(*row, indexing="ij", sparse=True)
        log_table = special.gammaln(prior[category] + sum(grid))
        for look, counts in zip(looks, grid, strict=True):
            log_table = log_table + look.log_weights(category, counts)
        logs.append(log_table)
    return Convolved(windows, logs, float(prior.sum()), sizes)


def _of_private(first: Look, second: Look, prior: Floats) -> tuple[list[Convolved], Floats]:
    """Parts of given shares p of the first release in all records, which are independent of each
    other: `n_1! n_2! / (n + 1)!` is the integral of `p^n_1 (1 - p)^n_2` over p.
    """
    guesses = [float(np.maximum(look.noise.drawn, 0).sum()) + 1 for look in (first, second)]
    start = np.log(guesses[0] / guesses[1])
    reach = sum(float(look.noise.noise.reach(_FAR)) for look in (first, second))
    found: dict[int, tuple[Convolved, float]] = {}
    # The narrowest that the share can be, given the largest number of records.
    step = _STEP * 2 / np.sqrt(sum(guesses) + reach * np.sqrt(prior.size) + 4)

    def at(place: int) -> float:
        logit = start + step * place
        log_share, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        part = _with_share(first, second, prior, float(log_share), float(log_rest))
        found[place] = part, part.log_evidence + log_share + log_rest
        return float(found[place][1])

    best = at(0)
    for direction in (-1, 1):
        place, height = direction, np.inf
        while height > best - _FAR and abs(place) < _MOST_POINTS:
            height = at(place)
            best, place = max(best, height), place + direction
    heights = np.array([height for _, height in found.values()])
    kept = heights > heights.max() - _FAR
    parts = [part for (part, _), keep in zip(found.values(), kept, strict=True) if keep]
    return parts, special.softmax(heights[kept])


def _with_share(
    first: Look, second: Look, prior: Floats, log_share: float, log_rest: float
) -> Convolved:
    windows, logs = [], []
    for category, alpha in enumerate(prior.tolist()):
        one, two = first.window(category), second.window(category)
        check_entries(float(one.size) * two.size)
        # A common factor theta^s for the sums s keeps the larger weights where they matter.
        middle = max(float(one[-1] + one[0] + two[-1] + two[0]) / 2, 1.0)
        rate = np.log(middle)
        left = first.log_weights(category, one) + (log_share + rate) * one
        right = second.log_weights(category, two) + (log_rest + rate) * two
        top = left.max() + right.max()
        with np.errstate(divide="ignore"):
            weights = np.log(np.convolve(np.exp(left - left.max()), np.exp(right - right.max())))
        sums = one[0] + two[0] + np.arange(weights.size)
        windows.append([sums])
        logs.append(weights + top - rate * sums + special.gammaln(alpha + sums))
    concentration = float(prior.sum())
    return Convolved(
        windows,
        logs,
        concentration,
        None,
        lambda n: special.gammaln(n + 2) - special.gammaln(concentration + n),
    )
