"""Different records by their definition: counts in both releases, added up without the package."""

import numpy as np
from scipy import signal, special

from opendp_bayes import GaussianParameters, LaplaceParameters


def log_noise(mechanism, moves):
    """Up to a constant."""
    if isinstance(mechanism, GaussianParameters):
        return -((moves / mechanism.scale) ** 2) / 2
    assert isinstance(mechanism, LaplaceParameters)
    if mechanism.noise == "floored":
        moves = np.where(moves >= 0, moves, -1 - moves)
    return -np.abs(moves) / mechanism.scale


def table(releases, category, counts):
    """Logarithms of `Γ(α + x + y) f(r - x) / x! g(s - y) / y!`, for counts x and y."""
    alpha = releases[0].prior[category]
    logs = [
        log_noise(one.mechanism, one.noisy_counts[category] - own) - special.gammaln(own + 1.0)
        for one, own in zip(releases, counts, strict=True)
    ]
    sums = counts[0][:, None] + counts[1]
    return special.gammaln(alpha + sums) + logs[0][:, None] + logs[1]


def marginals(releases, most, least=0):
    """Of each category its counts in both, all numbers of records, and their probabilities."""
    k, concentration = len(releases[0].prior), sum(releases[0].prior)
    ends = np.broadcast_to(least, (k, 2)), np.broadcast_to(most, (k, 2))
    counts = [
        [np.arange(first, last + 1) for first, last in zip(*rows, strict=True)]
        for rows in zip(*ends, strict=True)
    ]
    logs = [table(releases, category, own) for category, own in enumerate(counts)]
    found = []
    for category, (own, log_table) in enumerate(zip(counts, logs, strict=True)):
        others, origin = np.ones((1, 1)), np.zeros(2)
        for other in set(range(k)) - {category}:
            others = signal.convolve2d(others, np.exp(logs[other] - logs[other].max()))
            origin = origin + [axis[0] for axis in counts[other]]
        rest = [first + np.arange(n) for first, n in zip(origin, others.shape, strict=True)]
        with np.errstate(divide="ignore"):
            log_others = np.log(others)
        law = np.full((own[0].size + own[1].size - 1, sum(others.shape) - 1), -np.inf)
        for x, row in zip(own[0], log_table, strict=True):
            for y, log_weight in zip(own[1], row, strict=True):
                n_1, n_2 = x + rest[0][:, None], y + rest[1]
                more = special.gammaln(n_1 + 1) + special.gammaln(n_2 + 1)
                more = more - special.gammaln(concentration + n_1 + n_2) + log_others + log_weight
                place = x - own[0][0] + y - own[1][0]
                for start in range(others.shape[0]):
                    part = law[place, start : start + others.shape[1]]
                    np.logaddexp(part, more[start], out=part)
        sums, left = np.indices(law.shape)
        sums = sums + own[0][0] + own[1][0]
        left = left + int(origin.sum())
        weights = special.softmax(law)
        seen = weights > 1e-15
        found.append((sums[seen], (sums + left)[seen], weights[seen]))
    return found


def worst(posterior, found, levels=(0.5, 0.9, 0.99, 0.999)):
    """The largest deviations, in standard deviations, and of cumulative probabilities."""
    values = [1e-6, 1e-3, 0.02, 0.5, 0.98, 0.999, 1 - 1e-5]
    ends = np.concatenate([posterior.interval(level) for level in levels])
    concentration, off = sum(posterior.prior), []
    for place, (sums, numbers, weights) in enumerate(found):
        weights = weights / weights.sum()
        a = posterior.prior[place] + sums
        total = concentration + numbers
        b = concentration - posterior.prior[place] + (numbers - sums)
        mean = weights @ (a / total)
        second = weights @ (a * b / total**2 / (total + 1) + (a / total - mean) ** 2)
        off += [(posterior.mean()[place] - mean) / second**0.5]
        off += [posterior.std()[place] / second**0.5 - 1]
        at = np.append(values, ends[:, place])
        right = [weights @ special.betainc(a, b, value) for value in at]
        off += list(posterior.cdf(at)[:, place] - right)
        mean = weights @ sums
        std = np.sqrt(weights @ (sums - mean) ** 2)
        off += [(posterior.counts.mean()[place] - mean) / max(std, 0.01)]
    mean = weights @ numbers
    std = np.sqrt(weights @ (numbers - mean) ** 2)
    records = posterior.records.mean() - mean, posterior.records.std() - std
    off += [number / max(std, 0.01) for number in records]
    return np.abs(off).max()
