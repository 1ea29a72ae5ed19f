"""Random settings of counts with noise, and how far a posterior is from the exact one."""

import numpy as np
from scipy import stats

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts, check_envelope
from tests.helpers.given_noise import given_noise
from tests.helpers.nested_panels import Two
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.reference import Exact
from tests.helpers.weighed_pairs import LEVELS, SMALLEST_DEVIATION

LAWS = {"laplace": DiscreteLaplace, "floored": FlooredLaplace, "gaussian": DiscreteGaussian}


def setting(rng, most, k=None, least=0):
    """A mechanism, a prior, a number of records up to `most` and a draw, from the model or not."""
    k = int(rng.integers(2, 6)) if k is None else k
    size = int(np.exp(rng.uniform(np.log(least + 1), np.log(most + 1)))) - 1
    law = str(rng.choice(list(LAWS)))
    scale = float(np.exp(rng.uniform(np.log(0.1), np.log(min(100 * (size + 3), 10**6)))))
    if rng.random() < 0.2:
        scale = float(2.0 ** rng.uniform(-40, 0))
    prior = [
        np.full(k, 10.0 ** rng.uniform(-4, 6)),
        10.0 ** rng.uniform(-4, 6, k),
        10.0 ** rng.uniform(-3, 2, k),
        np.ones(k),
    ][rng.integers(4)]
    theta = rng.dirichlet(np.maximum(prior, 1e-2))
    counts = rng.multinomial(size, theta / theta.sum())
    noise = rng.normal(0, scale, k) if law == "gaussian" else rng.laplace(0, scale, k)
    noisy = counts + np.rint(np.clip(noise, -1e15, 1e15)).astype(np.int64)
    corner = np.zeros(k, dtype=np.int64)
    corner[rng.integers(k)] = size
    outlier = noisy.copy()
    outlier[rng.integers(k)] = rng.choice([-(10**6), 10**6, -(10**9), 2 * size, -size])
    anywhere = rng.integers(-3 * size - 5, 3 * size + 5, k)
    inside = rng.integers(0, size + 2, k)
    drawn = [noisy, noisy, corner, outlier, anywhere, inside][rng.integers(6)]
    noised = np.ones(k, dtype=bool)
    if rng.random() < 0.25:
        noised[rng.integers(k)] = False
    made = {"law": law, "scale": scale, "drawn": drawn, "prior": served(prior, scale)}
    return made | {"size": size, "noised": noised}


def served(prior, scale):
    """The prior, with larger entries where small ones are refused under so wide a noise."""
    return np.maximum(prior, 0.3) if scale > 10 else prior


def private_setting(rng, most):
    """The same with a private number, and the largest that matters; None if too large."""
    made = setting(rng, most)
    k = made["prior"].size
    made["noised"] = np.ones(k, dtype=bool)
    made["scale"] = float(np.exp(rng.uniform(np.log(0.05), np.log(12))))
    if rng.random() < 0.1:
        made["scale"] = float(2.0 ** rng.uniform(-40, -4))
    made["prior"] = served(made["prior"], made["scale"])
    made["drawn"] = np.clip(made["drawn"], -(10**6), most)
    mean = float(np.exp(rng.uniform(0, np.log(most))))
    first = int(mean)
    made["records_prior"] = [
        None,
        stats.poisson(mean),
        stats.randint(first, int(1.2 * mean) + 2),
        stats.geom(1 / (mean + 1)),
        stats.randint(first, first + 1),
        stats.nbinom(3, 3 / (3 + mean)),
        stats.rv_discrete(values=([first, first + 1, first + 2], [0.5, 0.2, 0.3])),
    ][rng.integers(7)]
    largest = int(np.maximum(made["drawn"], 0).sum() + 60 * made["scale"] + 20)
    if made["records_prior"] is not None:
        end = min(made["records_prior"].isf(1e-15), made["records_prior"].support()[1])
        largest = int(max(largest, end)) + 1
    del made["size"]
    return made | {"largest": largest} if largest <= 400 else None


def is_within_bounds(made):
    """Whether users are served: beyond the bounds sums may take more memory than there is."""
    noisy = DrawnCounts.of(made["drawn"], LAWS[made["law"]](made["scale"]), made["noised"])
    try:
        check_envelope(noisy, made["prior"], made.get("size"))
    except ValueError:
        return False
    return True


def posterior(made):
    """The posterior of a setting."""
    of = {name: made.get(name) for name in ("noised", "size", "records_prior")}
    return given_noise(made["drawn"], made["prior"], LAWS[made["law"]](made["scale"]), **of)


def exact(made):
    """The exact posterior."""
    known = made["law"], made["scale"], made["drawn"].tolist(), made["prior"].tolist()
    if "size" in made:
        return Exact(*known, size=made["size"], noised=made["noised"].tolist())
    sizes = np.zeros(made["largest"] + 1)
    if made["records_prior"] is not None:
        with np.errstate(divide="ignore"):
            sizes = made["records_prior"].logpmf(np.arange(made["largest"] + 1))
    return Exact(*known, sizes=sizes)


def deviations(found, right):
    """The largest deviations of mean, std and cumulative probabilities, of theta and counts."""
    theta, counts = found.probabilities, found.counts
    k, std = theta.m, right.std()
    worst = {
        "mean": np.max(np.abs(theta.mean() - right.mean()) / std),
        "std": np.max(np.abs(np.sqrt(theta.variance()) / std - 1)),
        **dict.fromkeys(("cdf", "count mean", "count std", "count cdf"), 0.0),
    }
    values, complements = theta.two_sided_quantile(LEVELS[:, None])
    count_mean, count_std = counts.mean(), counts.std()
    last = right.pairs[0][0].max()
    at = np.unique(np.append(np.rint(np.linspace(0, last, 60)), np.arange(min(10, last + 1))))
    count_cdf = counts.cdf(np.repeat(at[:, None], k, axis=1))
    for i in range(k):
        # A quantile that is rounded to 0 or 1 tells nothing.
        inside = (values[:, i] > 1e-300) & (complements[:, i] > 1e-300)
        cdf = right.cdf(i, values[inside, i], complements[inside, i])
        mean, deviation = right.count_mean_std(i)
        unit = max(deviation, SMALLEST_DEVIATION)
        each = {
            "cdf": np.max(np.abs(cdf - LEVELS[inside]), initial=0.0),
            "count mean": abs(count_mean[i] - mean) / unit,
            "count std": abs(count_std[i] - deviation) / unit,
            "count cdf": np.max(np.abs(count_cdf[:, i] - right.count_cdf(i, at))),
        }
        worst |= {name: max(worst[name], value) for name, value in each.items()}
    return worst


def wide_deviations(made):
    """The same for the first of two categories, with any public number of records."""
    lists = made["drawn"].tolist(), made["prior"].tolist()
    return Two(made["law"], made["scale"], *lists, made["size"]).deviations(posterior(made))
