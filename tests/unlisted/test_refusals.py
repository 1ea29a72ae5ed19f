"""What is refused of laws of keys that nobody listed, of their losses and of their posteriors."""

import math
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace, FlooredLaplace
from opendp_bayes.unlisted.laws_for_budgets import fitted_discovery, loss_of_discovery
from opendp_bayes.unlisted.posterior.counts_of_keys import counts_of_keys
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys
from opendp_bayes.unlisted.threshold_profile import MOST_KEYS, delta_of_discovery
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)

NAMES = ("optimal_threshold", "laplace_threshold", "gaussian_threshold")
SMALL, LAW = OptimalThreshold(1.0, 0.02, 0.8), LaplaceThreshold(1.5, 6)
NONE = np.zeros(0, dtype=np.int64)


def fitted(name: str = "auto", **changed: Any) -> Discovery:
    valid: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "d_in": 1}
    return fitted_discovery(name, **valid | changed)


def fitted_to_rho(name: str = "auto", rho: float = 0.1) -> Discovery:
    return fitted(name, epsilon=None, rho=rho)


def loss(d_in: int = 1, **delta: float) -> Any:
    return loss_of_discovery(Discovery(LAW), d_in, concentrated=False, **delta)


def profile(epsilon: float = 1.0, **size: int) -> float:
    return delta_of_discovery(LAW, epsilon, **size)


def posterior() -> Any:
    return counts_of_keys(NoisyKeys(SMALL, NONE, np.array([3])))


RNG = np.random.default_rng(0)
AT_MOST = r"(epsilon|rho)=.*: must be finite"
REFUSED: list[tuple[Any, str]] = [
    # --- laws
    (lambda: OptimalThreshold(0, 1e-8), r"epsilon=0: .*greater than 0"),
    (lambda: OptimalThreshold(51.0, 1e-8), r"epsilon=51\.0: .*at most 50"),
    *(
        (lambda delta=delta: OptimalThreshold(1.0, delta), r"delta=.*: .*between 0 and 1")
        for delta in (0, 1, -0.1, math.nan)
    ),
    (lambda: OptimalThreshold(1.0, 1e-21), r"delta=1e-21: .*at least 1e-20.*LaplaceThreshold"),
    (lambda: OptimalThreshold(1.0, 1e-8, 1.1), r"decay=1\.1: .*at most epsilon=1\.0"),
    (lambda: OptimalThreshold(1e-5, 1e-8), r"epsilon=1e-05.*more than 1000000 values"),
    (lambda: OptimalThreshold(1.0, 1e-8, 1e-6), r"decay=1e-06.*more than 1000000 values"),
    *(
        (lambda law=law, of=of: law(*of), message)
        for law in (LaplaceThreshold, GaussianThreshold)
        for of, message in (
            ((20_000.0, 5), r"scale=20000\.0: .*at most 10000"),
            ((0, 5), r"scale=0: .*greater than 0"),
            ((1.0, 0), r"threshold=0: .*between 1 and"),
        )
    ),
    (lambda: LAW.least_shown(1.0), r"share=1\.0: .*between 0 and 1"),
    (lambda: Discovery(3), r"law=3: .*a threshold law"),
    (lambda: Discovery(LAW, FlooredLaplace(5.0)), r"rest=Fl.*\(.*\): must be DiscreteLaplace"),
    # --- laws for budgets
    (lambda: fitted("noise"), "name='noise': must be one of"),
    (lambda: fitted(rho=0.1), r"epsilon=1\.0, rho=0\.1: one of"),
    (lambda: fitted(epsilon=None), "epsilon=None, rho=None: one of"),
    *((lambda of=of: fitted(delta=of), r"delta=\d: .*between 0 and 1") for of in (0, 1)),
    *(
        (lambda name=name, of=of: fitted(name, delta=of), r"delta=1e-\d+: .*at least 1e-60")
        for name in ("auto", *NAMES)
        for of in (1e-80, 1e-300)
    ),
    (lambda: fitted(NAMES[0], delta=1e-30), r"delta=1e-30: .*at least 1e-20"),
    (
        lambda: fitted(NAMES[0], epsilon=40.0, d_in=6),
        r"epsilon=40\.0, delta=1e-08: .*each of 6 records",
    ),
    (lambda: fitted(d_in=0), "d_in=0: must be at least 1"),
    *((lambda of=of: fitted(rest=of), r"rest=.*: must be") for of in (-0.1, 1.0, math.nan)),
    *(
        (lambda name=name: fitted_to_rho(name), rf"name='{name}': has no rho of its own; ask for")
        for name in NAMES[:2]
    ),
    (lambda: fitted(epsilon=0.0), AT_MOST),
    (lambda: fitted_to_rho(rho=math.inf), AT_MOST),
    (lambda: fitted(NAMES[2], epsilon=1e-6), r"epsilon=1e-06: .*noise of more than"),
    (lambda: fitted(epsilon=1e-7), r"must be at most|more than"),
    # --- losses
    (lambda: loss(-1), "d_in=-1: must be 0 or"),
    *(
        (lambda of=of: loss(delta=of), r"delta=.*: .*(between 0 and 1|not nan)")
        for of in (-0.1, 1.5, math.nan)
    ),
    *(
        (lambda of=of: profile(of), r"epsilon=.*: .*at least 0, and finite")
        for of in (-0.1, math.nan, math.inf)
    ),
    (lambda: profile(keys=MOST_KEYS + 1), "keys=65: must be at most 64"),
    (lambda: profile(keys=0), r"keys=0: must be between 1"),
    (lambda: profile(records=0), r"records=0: must be between 1"),
    (
        lambda: delta_of_discovery(OptimalThreshold(1.0, 1e-6), 1.0, keys=40, records=3),
        r"keys=40, records=3: .*20000 losses",
    ),
    # --- posteriors
    (lambda: posterior().interval(1.5), r"level=1\.5: .*between 0 and 1"),
    (lambda: posterior().shares.interval(1.5), r"level=1\.5: .*between 0 and 1"),
    (lambda: posterior().keys.hidden_bound(1.5), r"level=1\.5: .*between 0 and 1"),
    (lambda: posterior().draws(0, RNG), r"number=0: must be between 1"),
    (lambda: posterior().shares.draws(0, RNG), r"number=0: must be between 1"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_what_is_next_to_a_limit_is_taken() -> None:
    assert fitted(delta=1e-30).law.name == "laplace_threshold"
    assert fitted(NAMES[0], epsilon=28.0, d_in=6).law.delta >= 1e-20
    assert Discovery(LAW) == Discovery(LAW, None)
    assert Discovery(LAW, DiscreteLaplace(5.0)).rest == DiscreteLaplace(5.0)
