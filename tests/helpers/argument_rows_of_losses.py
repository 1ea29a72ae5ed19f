"""Arguments of losses, calibrations and plans, and the parameters of the mechanisms."""

from functools import partial
from typing import Any

import numpy as np

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.accounting.losses import PrivacyProfile
from opendp_bayes.planning.compare import Plan
from tests.helpers.argument_rows import DIFFERENT, LARGER, SMALLER, rows, vary

TWO, THREE = (1.0, 1.0), (1.0, 1.0, 1.0)
LAPLACE, EHD = ob.LaplaceParameters(1.0), ob.mechanisms.HellingerExponential(0.5)
BETA = ob.mechanisms.SmoothHellingerExponential(2.0, beta=0.01)
IS_PURE = "the same: its guarantee is pure"
NOISE_ONLY = "the same: the noise does not depend on it"


def epsilon(value: Any) -> float:
    return value.epsilon


def scale(value: Any) -> float:
    return value.scale


def exact(mechanism: Any, of: str = "epsilon", size: int | None = 10) -> float:
    return getattr(ob.exact_loss(mechanism, size=size, prior=TWO), of)


def score(found: Plan) -> float:
    return found.rows[0].score


PAIR = {"size": 10, "prior": TWO}
PLAN = {**PAIR, "epsilon": 1.0, "mechanisms": [LAPLACE]}
GUESS = {"size": None, "guess_size": 40, "mechanisms": [ob.LaplaceParameters(1.0, total="private")]}
SMOOTH = ob.mechanisms.SmoothHellingerExponential(1.0)

WEAKER, STRONGER = {"mechanism": ob.mechanisms.HellingerExponential(1.0)}, {"epsilon": 2.0}
RARER: dict[str, Any] = {"size": 2, "prior": (0.1, 0.1)}
SURE = {"prior": (9.0, 9.0)}
OF_EHD = {"mechanism": EHD, **PAIR}
LOCAL = {"mechanism": ob.mechanisms.HellingerExponential(1.0, "local")}
OF_SCALE = {"scale": 1.0}
OF_SMOOTH = (
    vary("proportions", (0.0, 1.0), DIFFERENT, lambda m: m.gamma, mechanism=SMOOTH),
    vary("tune", False, DIFFERENT, lambda m: m.gamma, mechanism=SMOOTH),
)
PROFILE = ob.privacy_profile(EHD, **PAIR)
OF_COUNTS = {"counts": (5, 5), "prior": TWO}
OTHER_COUNTS = {"counts": (1, 9), "prior": (0.1, 0.1)}
PURE = vary("delta", 0.1, IS_PURE)
OF_RARER = (vary("size", 2, LARGER), vary("prior", (0.1, 0.1), LARGER), PURE)
OF_NOISE = (vary("size", 20, NOISE_ONLY), vary("prior", THREE, NOISE_ONLY), PURE)
PRIVATE = ob.LaplaceParameters(1.0, total="private")
TWICE: Any = {"smaller": {"scale": 2.0}}
MECHANISMS = ob.mechanisms
LOSSES = [
    *rows(ob.exact_loss, OF_EHD, epsilon, larger={**RARER, "d_in": 2}, smaller=WEAKER),
    *rows(
        *(ob.privacy_profile, OF_EHD, lambda profile: profile(0.1)),
        larger={**RARER, "d_in": 2},
        smaller=WEAKER,
    ),
    *rows(
        PrivacyProfile.__call__, {"self": PROFILE, "epsilon": 0.1}, float, smaller={"epsilon": 0.2}
    ),
    *rows(PrivacyProfile.epsilon, {"self": PROFILE, "delta": 0.1}, float, smaller={"delta": 0.2}),
    *rows(
        *(ob.calibrate, {**OF_EHD, "epsilon": 1.0}, scale),
        vary("delta", 0.1, SMALLER, mechanism=LAPLACE),
        *(vary("rho", 0.2, SMALLER, epsilon=None, rho=0.1), *OF_SMOOTH),
        larger={**LOCAL, **RARER, "accounting": "proven", "d_in": 2},
        smaller=STRONGER,
    ),
    *rows(
        *(research.calibrate_thoroughly, {**OF_EHD, "epsilon": 1.0}, scale, *OF_SMOOTH),
        larger={**LOCAL, **RARER},
        smaller=STRONGER,
    ),
    *rows(
        *(ob.plan, PLAN, score),
        vary("rho", 1.0, SMALLER, epsilon=None, rho=0.1),
        vary("guess_size", 400, SMALLER, **GUESS),
        different={"proportions": (1.0, 2.0)},
        larger={"d_in": 2, "mechanisms": [ob.LaplaceParameters(1.0, total="bounded")]},
        smaller={"size": 40, **SURE, **STRONGER, "delta": 0.1},
    ),
    *rows(
        research.least_error,
        {"size": 6, "prior": (0.2, 0.2), "epsilon": 1.0},
        lambda least: least.value,
        smaller={"size": 12, **SURE, **STRONGER, "average": "prior"},
    ),
    *rows(
        *(research.smallest_epsilon, {"error": 0.2, "size": 40, "prior": TWO}, float),
        vary("guess_size", 40, SMALLER, error=0.5, size=None, guess_size=20),
        larger={"d_in": 2},
        smaller={"error": 0.3, "size": 80, **SURE, "proportions": (0.0, 1.0)},
    ),
    *rows(
        *(research.smallest_size, {"error": 0.1, "epsilon": 1.0, "prior": TWO}, int),
        larger={"error": 0.07, "d_in": 2},
        smaller={**STRONGER, **SURE, "proportions": (0.0, 1.0), "private": True},
    ),
    *rows(
        research.privacy_loss_distribution,
        {**OF_EHD, "interval": 0.01},
        lambda distribution: distribution.get_delta_for_epsilon(0.123),
        larger={**RARER, "d_in": 2, "interval": 0.1},
        smaller=WEAKER,
    ),
    # The closed forms, and the parameters of the mechanisms.
    *(
        row
        for mechanism, varied in {
            LAPLACE: (
                vary("size", None, SMALLER, self=PRIVATE),
                *(vary("prior", THREE, LARGER), PURE),
            ),
            ob.KNormParameters(1.0): OF_NOISE,
            ob.GaussianParameters(1.0): (
                vary("size", None, SMALLER, lambda loss: loss.rho),
                vary("prior", THREE, NOISE_ONLY, lambda loss: loss.rho),
                vary("delta", 0.1, SMALLER),
            ),
            EHD: OF_RARER,
            MECHANISMS.PermuteAndFlip(0.5): OF_RARER,
            BETA: (*(vary("size", 10**6, LARGER), vary("prior", (1e6, 1e6), LARGER)), PURE),
        }.items()
        for row in rows(
            *(type(mechanism).proven_loss, {"self": mechanism, "d_in": 1, **PAIR}, epsilon),
            *(vary("d_in", 2, LARGER, lambda loss: loss.rho), *varied),
        )
    ),
    *rows(
        *(ob.LaplaceParameters, OF_SCALE, exact),
        vary("noise", "floored", DIFFERENT, partial(exact, of="rho")),
        **{"larger": {"total": "bounded"}, **TWICE},
    ),
    *rows(
        *(ob.GaussianParameters, OF_SCALE, partial(exact, of="rho")),
        vary("total", "private", DIFFERENT, lambda m: m.project(np.array([9, 9]), 10)),
        **TWICE,
    ),
    *rows(ob.KNormParameters, OF_SCALE, exact, **TWICE),
    *rows(MECHANISMS.PermuteAndFlip, OF_SCALE, exact, **TWICE),
    *rows(
        *(MECHANISMS.HellingerExponential, OF_SCALE, exact),
        **{"larger": {"sensitivity": "local"}, **TWICE},
    ),
    *rows(
        *(MECHANISMS.SmoothHellingerExponential, {"scale": 4.0}, partial(exact, size=100)),
        vary("beta", 0.1, SMALLER, beta=1.0),
        smaller={"scale": 5.0, "gamma": 0.1},
    ),
    *rows(MECHANISMS.local_sensitivity, OF_COUNTS, float, larger=OTHER_COUNTS),
    *rows(MECHANISMS.global_sensitivity, PAIR, float, larger={**RARER}),
    *rows(
        *(MECHANISMS.smooth_sensitivity, {**OF_COUNTS, "gamma": 0.1}, float),
        vary("beta", 0.2, SMALLER, gamma=None, beta=0.1),
        larger=OTHER_COUNTS,
        smaller={"gamma": 0.2},
    ),
]
