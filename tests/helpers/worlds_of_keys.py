"""Worlds of keys that nobody listed, releases of them, and how often intervals hold the truth."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted.posterior.counts_of_keys import CountsOfKeys, counts_of_keys
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys, NoisyRest
from opendp_bayes.unlisted.thresholds import OptimalThreshold, Threshold

#: The part of epsilon that buys the number of hidden records; draws by which intervals are found.
REST, DRAWS = 0.2, 300
#: Markov chains of the law of keys.
CHAINS = 32
NONE = np.zeros(0, dtype=np.int64)


def _zipf(keys: int, power: float, records: int) -> Callable[[np.random.Generator], Floats]:
    p = np.arange(1, keys + 1.0) ** -power
    return lambda rng: records * p / p.sum()


def _lognormal(keys: int, mean: float, std: float) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: np.exp(mean + std * rng.standard_normal(keys))


def _groups(*groups: tuple[int, float]) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: np.repeat([mean for _, mean in groups], [number for number, _ in groups])


@dataclass(frozen=True)
class World:
    """Keys whose counts are Poisson draws of intensities, and the promise of their release."""

    name: str
    epsilon: float
    delta: float
    intensities: Callable[[np.random.Generator], Floats]


WORLDS = {
    world.name: world
    for world in (
        World("Zipf 1.1, 1e5 records", 1, 1e-8, _zipf(50_000, 1.1, 100_000)),
        World("20 000 lognormal(1, 1.5)", 1, 1e-8, _lognormal(20_000, 1, 1.5)),
        World("3000 equal, mean 20", 1, 1e-8, _groups((3000, 20))),
        World("300 of mean 40, 20 000 of 1.5", 1, 1e-8, _groups((300, 40), (20_000, 1.5))),
        World("60 lognormal(3, 1)", 1, 1e-8, _lognormal(60, 3, 1)),
        World("crowd A: 200 of 40, 50 000 of 6", 1, 1e-8, _groups((200, 40), (50_000, 6))),
        World("Zipf 1, 1e6 records", 0.1, 1e-6, _zipf(100_000, 1.0, 1_000_000)),
        World("20 000 lognormal(3, 1.5)", 0.1, 1e-6, _lognormal(20_000, 3, 1.5)),
        World("2000 equal, mean 150", 0.1, 1e-6, _groups((2000, 150))),
        World("crowd B: 200 of 200, 20 000 of 60", 0.1, 1e-6, _groups((200, 200), (20_000, 60))),
    )
}


@cache
def law_of(epsilon: float, delta: float) -> Threshold:
    return OptimalThreshold(epsilon, delta, epsilon * (1 - REST))


def simulated(law: Threshold, number: int, rng: np.random.Generator) -> Integers:
    """Draws of the noise with a seed."""
    first, masses = law.masses
    return first + rng.choice(masses.size, size=number, p=masses / masses.sum())


@dataclass(frozen=True)
class Released:
    """What was released, and the truth of the shown keys and of all hidden ones; the share that
    keys which are not shown have of all intensities.
    """

    keys: NoisyKeys
    counts: Integers
    intensities: Floats
    hidden: Integers
    everything_else: float

    @property
    def near(self) -> Floats:
        law = self.keys.law
        return self.keys.noisy_counts <= law.threshold + max(4, law.std)

    @property
    def without_rest(self) -> NoisyKeys:
        return NoisyKeys(self.keys.law, self.keys.noisy_counts, NONE)


def released(world: World, rng: np.random.Generator) -> Released:
    law, intensities = law_of(world.epsilon, world.delta), world.intensities(rng)
    counts, every = rng.poisson(intensities), intensities.sum()
    intensities, counts = intensities[counts > 0], counts[counts > 0]
    noisy = counts + simulated(law, counts.size, rng)
    shown, noise = noisy >= law.threshold, DiscreteLaplace(1 / (REST * world.epsilon))
    rest = int(counts[~shown].sum() + noise.simulate((), rng))
    keys = NoisyKeys(law, noisy[shown], NONE, NoisyRest(rest, noise))
    others = 1 - float(intensities[shown].sum() / every)
    return Released(keys, counts[shown], intensities[shown], counts[~shown], others)


def _held(draws: Floats | Integers, truth: Floats | Integers, rng: np.random.Generator) -> Floats:
    """Whether the randomised rank of the truth among draws is in the middle 95 %."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    rank = (below + rng.random(truth.shape) * (equal + 1)) / (len(draws) + 1)
    return (rank > 0.025) & (rank < 0.975)


@dataclass(frozen=True)
class Held:
    """Of one release and one posterior: how many intervals of 95 % hold the truth, of how many."""

    counts: int
    keys: int
    near: int
    keys_near: int
    shares: int
    probabilities: int
    sum_bias: float  # of the counts of shown keys, in standard deviations
    shift: float
    ess: float


def effective(found: CountsOfKeys) -> float:
    """Effective number of draws of the law of all keys, for that key whose expected count is known
    worst: by the variance of the means of Markov chains. Near the number of chains they have not
    met. Infinite where no key needs the law.
    """
    law = found.law
    if law is None:
        return math.inf
    given = (found._given(number) for number in range(len(law.weights)))
    means = np.array([(p * found._counts).sum(axis=1) / p.sum(axis=1) for p in given])
    of = _of_chains(means.reshape(-1, CHAINS, means.shape[1]).swapaxes(0, 1))
    # Differences of so small a part of a standard deviation are none.
    std = np.zeros(means.shape[1])
    std[found._row] = found.std / found._lattice.unit
    return float(np.where(means.std(axis=0) > 0.02 * std, of, len(means)).min())


def _of_chains(values: Floats) -> Floats:
    """Effective number of draws of values of shape `(chains, draws, rows)`, shape `(rows,)`."""
    chains, draws, _ = values.shape
    between = values.mean(axis=1).var(axis=0, ddof=1)
    found = chains * values.var(axis=(0, 1)) / np.maximum(between, 1e-300)
    return np.clip(found, 1.0, chains * draws)


def held(
    one: Released, draws: Integers, rng: np.random.Generator, known: CountsOfKeys | None
) -> Held:
    good = _held(draws, one.counts, rng)
    sums = draws.sum(axis=1)
    shares = _held(draws / sums[:, None], one.counts / one.counts.sum(), rng)
    theta = one.intensities / one.intensities.sum()
    probable = 0 if known is None else _held(known.shares.draws(DRAWS, rng), theta, rng).sum()
    kept = (int((good & one.near).sum()), int(one.near.sum()), int(shares.sum()), int(probable))
    away = float((sums.mean() - one.counts.sum()) / sums.std())
    drawn = (0.0, 0.0) if known is None else (known.shift, effective(known))
    return Held(int(good.sum()), good.size, *kept, away, *drawn)


def run(world: World, number: int) -> tuple[Held, Held, Held]:
    """A release, and what holds under a flat prior, learned without rest, and learned with it."""
    rng = np.random.default_rng([number, *world.name.encode()])
    one = released(world, rng)
    law, drawn = one.keys.law, one.keys.noisy_counts
    flat = drawn - simulated(law, DRAWS * drawn.size, rng).reshape(DRAWS, -1)
    found = [held(one, flat, rng, None)]
    for keys in (one.without_rest, one.keys):
        known = counts_of_keys(keys, random_state=number)
        found.append(held(one, known.draws(DRAWS, rng), rng, known))
    return found[0], found[1], found[2]
