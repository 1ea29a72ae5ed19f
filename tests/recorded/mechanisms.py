"""Losses, scales, plans, draws and likelihoods of every mechanism in random settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

import opendp_bayes as ob
from tests.helpers.recorded import Answers, Rng, one
from tests.helpers.releases import guarantee


def asked(seed: int, _folder: Path) -> Answers:
    """What the functions of losses and plans answer of a mechanism in a random setting."""
    rng = np.random.default_rng(seed)
    k, public = int(rng.integers(2, 5)), seed % 8 > 1
    size = int(one(rng, [1, 5, 12, 20])) if public else None
    prior = one(rng, [[1.0] * k, (np.arange(k) + 0.3).tolist(), [0.2] * k])
    scale = float(np.exp(rng.uniform(-1, 1.5)))
    kind = ob.mechanisms
    makers: list[Callable[[], Any]] = [
        lambda: ob.LaplaceParameters(scale, one(rng, ["discrete", "floored"]), "private"),
        lambda: ob.GaussianParameters(scale, "private"),
        lambda: ob.LaplaceParameters(
            *(scale, one(rng, ["discrete", "floored"])),
            one(rng, ["remainder", "truncated", "bounded"]),
        ),
        lambda: ob.GaussianParameters(scale),
        lambda: ob.KNormParameters(scale),
        lambda: kind.HellingerExponential(scale, one(rng, ["global", "local"])),
        lambda: kind.SmoothHellingerExponential(
            2 * scale, **one(rng, [{"gamma": 0.5}, {"beta": 0.05}, {}])
        ),
        lambda: kind.PermuteAndFlip(scale),
    ]
    mechanism = makers[seed % 8]()
    d_in: Any = one(rng, [1, 2, 3, ob.Distance(4, 8, 2), ob.Distance(2, 2, 1)])
    of = {"size": size, "prior": prior, "d_in": d_in}
    counts = rng.multinomial(size or 30, rng.dirichlet(np.ones(k)))
    other = rng.multinomial(size or 30, rng.dirichlet(np.ones(k)))
    budget: dict[str, float] = one(
        rng, [{"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-3}, {"rho": 0.2}, {"delta": 0.05}]
    )
    accounting = one(rng, ["exact", "proven"])
    yield "mechanism", lambda: repr(mechanism)
    yield "exact loss", lambda: repr(ob.exact_loss(mechanism, **of))
    yield "profile", lambda: [ob.privacy_profile(mechanism, **of)(x) for x in (0.0, 0.3, 1.0, 4.0)]
    yield "inverse", lambda: [ob.privacy_profile(mechanism, **of).epsilon(x) for x in (1e-9, 0.01)]
    yield "calibrated", lambda: repr(ob.calibrate(mechanism, **of, **budget, accounting=accounting))
    yield "log pmf", lambda: mechanism.log_pmf(counts, np.array(prior))
    yield "draws", lambda: mechanism.sample(counts, np.array(prior), 3)
    yield "other draws", lambda: mechanism.sample(other, np.array(prior), 3)
    yield "likelihood", lambda: likelihoods(mechanism, size, prior, counts, rng)
    if seed % 5 == 0 and k == 2:
        sizes = {"size": size} if public else {"size": None, "guess_size": 40}
        yield "plan", lambda: str(ob.plan(**sizes, prior=prior, d_in=d_in, **budget))
    measure = one(rng, [dp.max_divergence(), dp.zero_concentrated_divergence()])
    approximate = dp.approximate(dp.max_divergence())
    yield "map", lambda: made(mechanism, measure, size, prior, accounting)
    yield (
        "map with a delta",
        lambda: made(*(mechanism, approximate, size, prior, accounting), delta=1e-3),
    )


def likelihoods(mechanism: Any, size: Any, prior: Any, counts: Any, rng: Rng) -> Any:
    drawn = tuple(mechanism.sample(counts, np.array(prior))[0].tolist())
    labels = tuple("abcdefgh"[: len(counts)])
    release = ob.Release(drawn, labels, tuple(prior), mechanism, guarantee(size))
    values = rng.dirichlet(np.ones(len(counts)), 3)
    return ob.log_likelihood(release)(values)


def made(
    mechanism: Any, measure: Any, size: Any, prior: Any, accounting: Any, **delta: float
) -> Any:
    """The loss that a measurement of counts states, by the number of records that move."""
    domain = dp.vector_domain(dp.atom_domain(T="i32"), size=size)
    metric = dp.symmetric_distance() if size is None else dp.change_one_distance()
    categories = list(range(len(prior)))
    counted = (domain, metric) >> ob.t.then_categorical_counts(categories=categories, unknown=0)
    posterior = counted >> ob.t.then_dirichlet_multinomial(prior=prior)
    chain = posterior >> ob.m.then_mechanism(measure, mechanism, accounting=accounting, **delta)
    return [chain.map(n) for n in (2, 4, 6)]
