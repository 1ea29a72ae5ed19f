"""Random settings from the whole envelope, and how far a posterior is from a reference."""

import math
import time
from contextlib import suppress

import numpy as np
from scipy import stats

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.likelihood.drawn_counts import (
    NARROW_NOISE,
    SMALLEST_UNDER_NOISE,
    DrawnCounts,
    check_envelope,
)
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.dense_counts import Dense
from tests.helpers.far_counts import Private, Public
from tests.helpers.given_noise import log_evidence
from tests.helpers.noised_counts import Look, NotServedError, Setting

NOISE = {"laplace": DiscreteLaplace, "floored": FlooredLaplace, "gaussian": DiscreteGaussian}
LAWS = tuple(NOISE)
#: The envelope.
PRIOR, MOST_RECORDS, SCALES, MOST_CATEGORIES = (1e-4, 1e6), 10**9, (0.05, 1e6), 10_000
#: Outliers are at most so many scales away from the counts: more are refused as impossible.
FARTHEST = {"laplace": 650, "floored": 650, "gaussian": 35}
#: Categories that are different, in most settings with more.
MOST_DIFFERENT = 200
LEVELS = np.array([0.001, 0.025, 0.1, 0.3, 0.5, 0.7, 0.9, 0.975, 0.999])
WHAT = ("mean", "std")
#: Probabilities, and their complements, at which cumulative probabilities are compared besides.
PLACES = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.5])
#: Deviations of a count below this, in records, are not distinguished.
SMALLEST_DEVIATION = 0.01


def log_uniform(rng, low, high, size=None):
    return np.exp(rng.uniform(math.log(low), math.log(high), size))


def random_setting(rng, most_categories=MOST_CATEGORIES, most_records=MOST_RECORDS):
    """A setting, corners included; its `about` says what kind it is."""
    while True:
        found = _any_setting(rng, most_categories, most_records)
        numbers = [found.size] if found.size is not None else [x.drawn.sum() for x in found.looks]
        if max(numbers) <= MOST_RECORDS and all(np.any(look.noised) for look in found.looks):
            return found


def _any_setting(rng, most_categories, most_records):
    k_end = [5, 30, 1000, most_categories][rng.choice(4, p=[0.45, 0.25, 0.2, 0.1])]
    k = int(log_uniform(rng, 2, min(k_end, most_categories) + 1))
    size = int(log_uniform(rng, 1, most_records + 1))
    scale = float(log_uniform(rng, *SCALES))
    if rng.random() < 0.1:
        size = int(rng.choice([0, 1, most_records]))
    if rng.random() < 0.1:
        scale = float(rng.choice(SCALES))
    prior_kind, prior = _prior(rng, k)
    if scale > NARROW_NOISE:
        prior = np.maximum(prior, SMALLEST_UNDER_NOISE)
    draw = str(rng.choice(["model", "model", "model", "corner", "outlier", "anywhere"]))
    counts, rows = _counts(rng, size, prior, draw), np.arange(k)
    if k > MOST_DIFFERENT and rng.random() < 0.8:
        # Many categories of a few kinds, which a reference can afford.
        rows = rng.integers(0, int(rng.integers(2, MOST_DIFFERENT)), k)
    size = int(counts[rows].sum())
    private = rng.random() < 0.4
    looks = [_look(rng, counts, scale, private, draw == "outlier")]
    if rng.random() < 0.15:
        number = int(rng.integers(1, 3))
        widest = SCALES[1] if prior.min() >= SMALLEST_UNDER_NOISE else NARROW_NOISE
        scales = np.clip(scale * log_uniform(rng, 0.1, 10, number), SCALES[0], widest)
        looks += [_look(rng, counts, float(s), private, False) for s in scales]
    about = {"k": k, "n": size, "scale": scale, "law": looks[0].law, "prior": prior_kind}
    about |= {"draw": draw, "looks": len(looks), "private": "no"}
    looks, prior = tuple(look.chosen(rows) for look in looks), prior[rows]
    about |= {"alpha": float(np.median(prior)), "noised": bool(np.all(looks[0].noised))}
    if not private:
        return Setting(looks, prior, size, None, about)
    kind, records_prior = ("flat", None) if len(looks) > 1 else _records_prior(rng, size)
    about["private"] = kind
    return Setting(looks, prior, None, records_prior, about)


def _prior(rng, k):
    low, high = PRIOR
    kind = str(rng.choice(["equal", "unequal", "mild", "ones", "sparse", "dominating", "corner"]))
    if kind == "equal":
        return kind, np.full(k, log_uniform(rng, low, high))
    if kind == "unequal":
        return kind, log_uniform(rng, low, high, k)
    if kind == "mild":
        return kind, log_uniform(rng, 1e-2, 1e2, k)
    if kind == "sparse":
        return kind, np.full(k, log_uniform(rng, low, 0.1))
    if kind == "dominating":
        prior = np.full(k, log_uniform(rng, 1e-2, 2.0))
        prior[rng.integers(k)] = log_uniform(rng, 1e2, high)
        return kind, prior
    if kind == "corner":
        return kind, np.full(k, rng.choice([low, high]))
    return kind, np.ones(k)


def _counts(rng, size, prior, draw):
    """Counts from the prior, or such that it does not expect."""
    if draw == "corner":
        counts = np.zeros(prior.size, dtype=np.int64)
        counts[rng.integers(prior.size)] = size
        return counts
    alpha = np.ones(prior.size) if draw == "anywhere" else np.maximum(prior, 1e-2)
    theta = rng.dirichlet(alpha)
    return rng.multinomial(size, theta / theta.sum())


def _look(rng, counts, scale, private, outlier):
    k, law = counts.size, str(rng.choice(LAWS))
    noise = rng.normal(0, scale, k) if law == "gaussian" else rng.laplace(0, scale, k)
    if outlier:
        noise[rng.integers(k)] = rng.choice([-1, 1]) * FARTHEST[law] * scale * rng.random()
    drawn = counts + np.rint(noise).astype(np.int64)
    noised = np.ones(k, dtype=bool)
    if not private and rng.random() < 0.2:
        noised[rng.choice(k, int(rng.integers(1, max(2, k // 3) + 1)), replace=False)] = False
    return Look(law, scale, drawn, noised)


def _records_prior(rng, size):
    mean = max(size, 1) * float(log_uniform(rng, 0.5, 2))
    first = int(mean)
    kind = ["flat", "flat", "flat", "geometric", "poisson", "uniform", "nbinom"][
        rng.integers(7 if size <= 1000 else 4)
    ]
    return kind, {
        "flat": None,
        "geometric": stats.geom(1 / (mean + 1), loc=-1),
        "poisson": stats.poisson(mean),
        "uniform": stats.randint(first, int(1.2 * mean) + 2),
        "nbinom": stats.nbinom(3, 3 / (3 + mean)),
    }[kind]


def posterior(setting):
    """The posterior of a setting; raises `ValueError` outside of the envelope."""
    looks = [DrawnCounts.of(of.drawn, NOISE[of.law](of.scale), of.noised) for of in setting.looks]
    for look in looks:
        check_envelope(look, setting.prior, setting.size)
    return CountsGivenNoise.of(
        looks, setting.prior, size=setting.size, records_prior=setting.records_prior
    )


def watched(setting, number=4):
    """A few categories to look at: with the largest and the smallest draw and prior, and others."""
    drawn = setting.looks[0].drawn
    ends = [np.argmax(drawn), np.argmin(drawn), np.argmax(setting.prior), np.argmin(setting.prior)]
    others = np.random.default_rng(setting.k).permutation(setting.k)
    found = list(dict.fromkeys(int(i) for i in [ends[0], ends[1], *others[:1], ends[2], ends[3]]))
    return found[:number]


def errors(found, right, rows=None):
    """The largest deviations of noised counts, and that of the evidence, to which thousands of
    categories add.
    """
    off = abs(log_evidence(found) - right.log_evidence)
    # Of outliers that cost billions there are fewer digits.
    off = max(off - 1e-12 * abs(right.log_evidence), 0.0) / max(1.0, right.setting.k / 1000)
    return deviations(found, right, rows, np.append(PLACES, 1 - PLACES[:-1])) | {"evidence": off}


def deviations(found, right, rows=None, places=()):
    """The largest deviations from a reference over some categories, means in deviations of it, and
    cumulative probabilities at quantiles and at places.
    """
    rows = np.array(watched(right.setting) if rows is None else rows)
    theta, counts = found.probabilities.chosen(rows), found.counts.chosen(rows)
    known = theta.mean(), np.sqrt(theta.variance()), counts.mean(), counts.std()
    rest = theta.two_sided_quantile(LEVELS[:, None])
    fixed = np.array(places).reshape(-1, 1)
    worst = {}
    for at, (i, *own) in enumerate(zip(rows.tolist(), *known, strict=True)):
        worst = _larger(worst, _moments("", own[:2], right.theta(i), 0.0))
        worst = _larger(worst, _moments("count ", own[2:], right.count(i), SMALLEST_DEVIATION))
        with suppress(NotServedError):
            inside = (rest[0][:, at] > 1e-290) & (rest[1][:, at] > 1e-290)
            off = right.theta_cdf(i, rest[0][inside, at], rest[1][inside, at]) - LEVELS[inside]
            also = right.theta_cdf(i, fixed[:, 0], 1 - fixed[:, 0]) - theta.cdf(fixed)[:, at]
            worst = _larger(worst, {"cdf": np.max(np.abs(np.append(off, also)), initial=0.0)})
        with suppress(NotServedError):
            law = counts.chosen(np.array([at]))
            worst = _larger(worst, {"count cdf": _off_steps(law, *right.steps(i))})
    if right.setting.size is None:
        total = float(found.records.mean()[0]), float(found.records.std()[0])
        worst |= _moments("total ", total, right.total(), SMALLEST_DEVIATION)
        with suppress(NotServedError):
            worst["total cdf"] = _off_steps(found.records, *right.total_steps())
    return worst


def _moments(name, found, right, smallest):
    unit = max(right[1], smallest)
    return {
        f"{name}{what}": abs(a - b) / unit for what, a, b in zip(WHAT, found, right, strict=True)
    }


def _off_steps(law, places, steps):
    """The largest difference of cumulative probabilities of counts, near quantiles and at 0."""
    asked = law.quantile(LEVELS[:, None])[:, 0]
    asked = np.concatenate([asked, asked - 1, [0]])
    near = np.clip(np.searchsorted(places, asked), 0, places.size - 1)
    return np.max(np.abs(law.cdf(places[near, None])[:, 0] - steps[near]))


def _larger(first, second):
    found = {name: max(first.get(name, 0.0), float(value)) for name, value in second.items()}
    if not np.all(np.isfinite(list(second.values()))):
        found = dict.fromkeys(second, math.inf)
    return first | found


def reference(setting):
    """The reference that serves a setting, with a name; raises `NotServedError`."""
    largest = setting.size if setting.size is not None else _largest(setting)
    longest = 8192 if setting.size is not None else 2500
    if largest <= longest and largest * setting.k <= 3e5:
        right = Dense(setting, largest)
        if right.end < -30:
            return "dense", right
    return "tilts", (Public if setting.size is not None else Private)(setting)


def _largest(setting):
    """More records than matter, of a private number."""
    look = min(setting.looks, key=lambda each: each.scale)
    reach = float(np.maximum(look.drawn, 0).sum())
    width = 9 if look.law == "gaussian" else 40
    found = reach + look.scale * (width + 6 * math.sqrt(setting.k)) + 30
    if setting.records_prior is not None:
        found = max(found, setting.records_prior.isf(1e-14))
    return int(min(found, 1e15))


def compared(block, seed, most_categories=MOST_CATEGORIES):
    """A setting and its posterior's errors, or None without a reference; `about` is told which."""
    setting = random_setting(np.random.default_rng([block, seed]), most_categories)
    try:
        name, right = reference(setting)
    except NotServedError as reason:
        setting.about["reference"] = f"none: {reason}"
        return setting, None
    start = time.process_time()
    found = posterior(setting)
    for answer in (found.probabilities, found.counts, found.records):
        answer.mean()
    setting.about.update(reference=name, seconds=time.process_time() - start)
    if _lacks(right, found):
        setting.about["reference"] = "none: it lacks a data set that weighs more than all it has"
        return setting, None
    return setting, errors(found, right)


def _lacks(right, found):
    """Whether the counts that a posterior expects weigh more than a reference says all do."""
    setting, counts = right.setting, np.rint(found.counts.mean())
    if setting.size is not None:
        counts[np.argmax(counts)] += setting.size - counts.sum()
    if counts.min() < 0:
        return False
    weight = sum(float(setting.log_weight(i, x)) for i, x in enumerate(counts))
    weight += float(setting.log_size(counts.sum()))
    return weight > right.log_evidence + 1e-9 * abs(right.log_evidence)


def regions(about):
    """Names of the parts of the envelope that a setting is in."""
    k, n, alpha = about["k"], about["n"], about["alpha"]
    number = "public" if about["private"] == "no" else "private"
    prior = "sparse" if alpha < 0.1 else "ordinary" if alpha <= 100 else "large"
    ratio = about["scale"] * k / max(n, 1)
    noise = "below" if ratio < 0.1 else "around" if ratio <= 10 else "above"
    widths = (30, "3 to 30"), (1000, "31 to 1000"), (np.inf, "above 1000")
    of_k = "2" if k == 2 else next(words for most, words in widths if k <= most)
    return [
        f"n {number}, {prior} prior, noise {noise}",
        f"k {of_k}",
        "n to 1000" if n <= 1000 else "n to 1e6" if n <= 10**6 else "n to 1e9",
        f"draw {about['draw']}",
        *([] if number == "public" else [f"prior of n {about['private']}"]),
        *(["several looks"] if about["looks"] > 1 else []),
        *([] if about["noised"] else ["some not noised"]),
    ]
