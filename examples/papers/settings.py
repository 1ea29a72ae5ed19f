"""The mechanisms that the figures compare, twice: (a) at the papers' scales, (b) at the scale where
the exact loss is ε.
"""

from functools import lru_cache

import numpy as np

import opendp_bayes as ob
import opendp_bayes_research as research

DELTA = 1e-8


def balanced(n: int, k: int = 2) -> list[int]:
    return [n // k] * (k - 1) + [n - n // k * (k - 1)]


def at_papers_scales(n: int, k: int, epsilon: float, prior: float = 1.0) -> dict[str, ob.Mechanism]:
    """By their names; EHDL is what the papers call not private."""
    return {
        "EHD": research.papers.ehd(epsilon, n, [prior] * k),
        "EHDL (not private)": research.papers.ehdl(epsilon),
        "EHDS": research.papers.ehds(epsilon),
        "(ε, δ) mechanism": research.papers.beta(epsilon, DELTA, n),
        "lap": research.papers.lap(epsilon, k),
        "ilap": research.papers.ilap(epsilon, k),
    }


#: Up to so many records γ is chosen for the size itself, beyond for this one, which saves minutes.
CHOSEN_AT = {3: 150, 4: 40}


@lru_cache(maxsize=256)
def at_exact_scales(n: int, k: int, epsilon: float, prior: float = 1.0) -> dict[str, ob.Mechanism]:
    """EHD and EHDS solved for the exact loss, EHDS with the best γ for balanced data; floored
    Laplace noise, lap and ilap being the same then; K-norm and discrete Laplace noise.
    """
    floored = research.papers.ilap(epsilon, k)
    found = {
        "EHD": solved(ob.mechanisms.HellingerExponential(1.0), n, k, epsilon, prior),
        "EHDS, tuned": tuned(n, k, epsilon, prior),
        "ilap": floored,
    }
    if k == 2:  # the same noise
        return {**found, "discrete Laplace = K-norm": ob.LaplaceParameters(floored.scale)}
    return {
        **found,
        "discrete Laplace": ob.LaplaceParameters(floored.scale),
        "K-norm": ob.KNormParameters(1 / epsilon),
    }


def solved(
    mechanism: ob.Mechanism, n: int, k: int, epsilon: float, prior: float, tune: bool = True
) -> ob.Mechanism:
    calibrate = ob.calibrate if k == 2 else research.calibrate_thoroughly
    return calibrate(mechanism, size=n, prior=[prior] * k, epsilon=epsilon, tune=tune)


@lru_cache(maxsize=256)
def tuned(n: int, k: int, epsilon: float, prior: float) -> ob.Mechanism:
    """EHDS with its γ chosen, at the exact scale."""
    largest = CHOSEN_AT.get(k, n)
    if n <= largest:
        return solved(ob.mechanisms.SmoothHellingerExponential(1.0), n, k, epsilon, prior)
    return solved(tuned(largest, k, epsilon, prior), n, k, epsilon, prior, tune=False)


#: Of two categories, at ε = 1, where the exact loss of both is what the papers say.
NOISE = {
    "LSHist": research.papers.ilap(1.0, 2),
    "discrete Laplace = K-norm": ob.KNormParameters(1.0),
}
SETTINGS = {"(a) the papers' scales": at_papers_scales, "(b) exact scales": at_exact_scales}


def mean_error(mechanism: ob.Mechanism, counts: list[int], prior: float = 1.0) -> float:
    return research.error_law(mechanism, counts, prior).mean()


def by_distance(law: research.ErrorLaw) -> tuple[np.ndarray, np.ndarray]:
    """Distances, and the probability of each, those that agree to nine digits together."""
    rounded = np.round(law.values, 9)
    distance, place = np.unique(rounded, return_inverse=True)
    return distance, np.bincount(place.ravel(), weights=law.probabilities)
