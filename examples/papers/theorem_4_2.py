"""Theorem 4.2 of "Private mechanisms": ELap / (ε LS) with γ = e^-ε is said to be O(ε); its
proof has 1/ε. Balanced data, n = 4000.
"""

import numpy as np
from drawing import DOTTED, THIN, Sheet

import opendp_bayes as ob
import opendp_bayes_research as research

LOSSES = [0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]


def main() -> None:
    counts = [2000, 2000]
    sensitivity = ob.mechanisms.local_sensitivity(counts, 1.0)
    sheet = Sheet("theorem_4_2", [["n = 4000, γ = exp(-ε)"]])
    for label, scaled in {
        "LSHist": research.papers.ilap,
        "discrete Laplace = K-norm": None,
    }.items():
        ratios = []
        for epsilon in LOSSES:
            mechanism = scaled(epsilon, 2) if scaled else ob.KNormParameters(1 / epsilon)
            # A hair below the level, which the masses at 0 and -1 attain.
            level = -np.expm1(-epsilon) * (1 - 1e-6)
            error = research.error_law(mechanism, counts, 1.0).quantile(level)
            ratios.append(error / (epsilon * sensitivity))
        sheet.line(0, label, LOSSES, ratios, marker=".")
    sheet.line(0, "1/ε (the proof)", LOSSES, 1 / np.array(LOSSES), **THIN)
    sheet.line(0, "ε (the theorem's order)", LOSSES, LOSSES, **DOTTED)
    sheet.finish("ε", "ELap / (ε LS)", xscale="log", yscale="log")


if __name__ == "__main__":
    main()
