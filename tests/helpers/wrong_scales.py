"""Settings in which an audit looks for a scale that is too small."""

from typing import Any

import opendp_bayes as ob

#: The defaults of `audit`.
DRAWS, CONFIDENCE = 100_000, 0.999

ONES, ONES_3, ONES_7 = (1.0,) * 2, (1.0,) * 3, (1.0,) * 7

#: Those whose outcomes can be listed: the mechanism, the size and the prior of data sets, and how
#: many per cent too small a scale is noticed surely, of 5, 10, 15 and 20.
LISTED: dict[str, tuple[Any, int, tuple[float, ...], int]] = {
    "discrete Laplace": (ob.LaplaceParameters(1.0), 100, ONES, 5),
    "floored Laplace": (ob.LaplaceParameters(2.0, noise="floored"), 30, ONES_3, 5),
    "Laplace on every count": (ob.LaplaceParameters(2.0, total="bounded"), 20, ONES_3, 5),
    "K-norm": (ob.KNormParameters(1.0), 30, ONES_3, 5),
    "EHD": (ob.mechanisms.HellingerExponential(0.5), 100, ONES, 10),
    "EHD, three categories": (ob.mechanisms.HellingerExponential(0.5), 20, (0.5, 1.0, 3.0), 10),
    "EHDL": (ob.mechanisms.HellingerExponential(2.0, sensitivity="local"), 100, ONES, 10),
    "EHDS": (ob.mechanisms.SmoothHellingerExponential(4.0), 100, ONES, 15),
    "EHDS, γ = 0.2": (ob.mechanisms.SmoothHellingerExponential(4.0, gamma=0.2), 100, ONES, 20),
    "EHDS, three categories": (ob.mechanisms.SmoothHellingerExponential(1.0), 20, ONES_3, 10),
    "β": (ob.mechanisms.SmoothHellingerExponential(2.0, beta=0.1), 100, ONES, 5),
    "permute-and-flip": (ob.mechanisms.PermuteAndFlip(0.5), 100, ONES, 5),
}
#: The same where they cannot be listed, and draws alone are compared.
UNLISTED: dict[str, tuple[Any, int | None, tuple[float, ...], int]] = {
    "Laplace, private size": (ob.LaplaceParameters(1.0, total="private"), None, ONES, 5),
    "Laplace, seven categories": (ob.LaplaceParameters(2.0), 1000, ONES_7, 10),
    "K-norm, seven categories": (ob.KNormParameters(1.0), 1000, ONES_7, 20),
}
