"""Settings in which an audit looks for a scale that is too small."""

from typing import Any

from opendp_bayes import KNormParameters, LaplaceParameters
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential

#: The defaults of `audit`.
DRAWS, CONFIDENCE = 100_000, 0.999

ONES, ONES_3, ONES_7 = (1.0,) * 2, (1.0,) * 3, (1.0,) * 7

#: Those whose outcomes can be listed: the mechanism, the size and the prior of data sets, and how
#: many per cent too small a scale is noticed surely, of 5, 10, 15 and 20.
LISTED: dict[str, tuple[Any, int, tuple[float, ...], int]] = {
    "discrete Laplace": (LaplaceParameters(1.0), 100, ONES, 5),
    "floored Laplace": (LaplaceParameters(2.0, noise="floored"), 30, ONES_3, 5),
    "Laplace on every count": (LaplaceParameters(2.0, total="bounded"), 20, ONES_3, 5),
    "K-norm": (KNormParameters(1.0), 30, ONES_3, 5),
    "EHD": (HellingerExponential(0.5), 100, ONES, 10),
    "EHD, three categories": (HellingerExponential(0.5), 20, (0.5, 1.0, 3.0), 10),
    "EHDL": (HellingerExponential(2.0, sensitivity="local"), 100, ONES, 10),
    "EHDS": (SmoothHellingerExponential(4.0), 100, ONES, 15),
    "EHDS, γ = 0.2": (SmoothHellingerExponential(4.0, gamma=0.2), 100, ONES, 20),
    "EHDS, three categories": (SmoothHellingerExponential(1.0), 20, ONES_3, 10),
    "β": (SmoothHellingerExponential(2.0, beta=0.1), 100, ONES, 5),
    "permute-and-flip": (PermuteAndFlip(0.5), 100, ONES, 5),
}
#: The same where they cannot be listed, and draws alone are compared.
UNLISTED: dict[str, tuple[Any, int | None, tuple[float, ...], int]] = {
    "Laplace, private size": (LaplaceParameters(1.0, total="private"), None, ONES, 5),
    "Laplace, seven categories": (LaplaceParameters(2.0), 1000, ONES_7, 10),
    "K-norm, seven categories": (KNormParameters(1.0), 1000, ONES_7, 20),
}
