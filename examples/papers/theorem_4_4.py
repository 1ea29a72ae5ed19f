"""Theorem 4.4 of "Private mechanisms": all but e^(-kε) of the errors of LSHist are within that of k
records. n = 100, ε = 1.
"""

import numpy as np
from drawing import DOTTED, Sheet
from settings import NOISE

import opendp_bayes as ob
import opendp_bayes_research as research


def main() -> None:
    k = np.arange(1, 9)
    sheet = Sheet("theorem_4_4", [["x = 50", "x = 20"]])
    for panel, x in enumerate((50, 20)):
        moved = np.stack([x + k + 1.0, 101.0 - x - k], axis=1)
        distance = ob.mechanisms.hellinger_distance([x + 1.0, 101.0 - x], moved) * (1 + 1e-9)
        for label, mechanism in NOISE.items():
            beyond = 1 - research.error_law(mechanism, [x, 100 - x], 1.0).cdf(distance)
            sheet.line(panel, label, k, beyond, marker=".")
        sheet.line(panel, "exp(-k ε)", k, np.exp(-k), **DOTTED)
    sheet.finish("k (towards the middle)", "P(H > that of k records)", yscale="log")


if __name__ == "__main__":
    main()
