"""Find the most accurate mechanism. Its expected error is exact arithmetic on public settings: no
data, no OpenDP, no simulation.

Every mechanism is a value that knows its law. At equal ε, the expected Hellinger distance between
the posterior and its release is the mean of `hellinger_distance` under that law, for data sets that
we imagine.
"""

from dataclasses import replace

import numpy as np

from opendp_bayes import LaplaceParameters, Mechanism
from opendp_bayes.mechanisms import (
    HellingerExponential,
    SmoothHellingerExponential,
    hellinger_distance,
)

SIZE = 200
PRIOR = np.array([1.0, 1.0])
EPSILON = 0.5
IMAGINED = ([100, 100], [150, 50], [190, 10], [200, 0])


def at_epsilon(mechanism: Mechanism) -> Mechanism:
    """The mechanism with its scale set so that its proven loss is EPSILON (up to the sampler's own
    error): the loss goes as 1 / scale.
    """
    loss = mechanism.proven_loss(1, size=SIZE, prior=PRIOR)
    return replace(mechanism, scale=mechanism.scale * loss.epsilon / EPSILON)


def expected_error(mechanism: Mechanism, counts: list[int]) -> float:
    """`E H(posterior, release)` for this data set."""
    candidates, log_p = mechanism.log_pmf(counts, PRIOR)
    return float(np.exp(log_p) @ hellinger_distance(PRIOR + counts, PRIOR + candidates))


mechanisms = {
    "Laplace, discrete": LaplaceParameters(scale=1.0),
    "Laplace, floored (LSHist)": LaplaceParameters(scale=1.0, noise="floored"),
    "Hellinger, global (EHD)": HellingerExponential(scale=1.0),
    "Hellinger, smooth (EHDS), γ = 1": SmoothHellingerExponential(scale=1.0, gamma=1.0),
    "Hellinger, smooth (EHDS), γ = 0.2": SmoothHellingerExponential(scale=1.0, gamma=0.2),
}

print(
    f"Expected Hellinger error at ε = {EPSILON} for {SIZE} public records, by the counts of a data"
    " set\n"
)
print(f"{'Mechanism':<34}{'Scale':>7}" + "".join(f"{counts!s:>12}" for counts in IMAGINED))
for name, unit in mechanisms.items():
    mechanism = at_epsilon(unit)
    print(
        f"{name:<34}{mechanism.scale:>7.4g}"
        + "".join(f"{expected_error(mechanism, counts):>12.4f}" for counts in IMAGINED)
    )
