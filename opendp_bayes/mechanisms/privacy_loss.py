"""The privacy loss of a mechanism at one distance between data sets: certified upper bounds in
every measure we support.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """Certified upper bounds on the privacy loss of one release.

    `(epsilon, delta)` hold together (`delta` is 0 for a pure guarantee); `range` bounds the spread
    over outcomes of the log-likelihood ratio and `rho` is the zero-concentrated loss. All are
    finite and non-negative, or infinite where no bound is proved.
    """

    epsilon: float
    rho: float
    range: float
    delta: float = 0.0
    method: str = "proven"


NO_LOSS = PrivacyLoss(epsilon=0.0, rho=0.0, range=0.0)
NO_BOUND = PrivacyLoss(epsilon=math.inf, rho=math.inf, range=math.inf)
