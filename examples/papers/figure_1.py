"""Figure 1 of the tailoring paper: sensitivities of the Hellinger score over all data sets, and the
widths that the mechanisms make of them.
"""

import numpy as np
from drawing import BENEATH, Sheet
from settings import at_exact_scales

import opendp_bayes as ob
import opendp_bayes_research as research


def main() -> None:
    n, prior = 100, [1.0, 1.0]
    gamma = ob.mechanisms.sensitivity_curves(n, prior, gamma=1.0)
    beta = ob.mechanisms.sensitivity_curves(n, prior, beta=research.papers.beta(1.0, 1e-8, n).beta)
    x = gamma.counts[:, 0]
    sheet = Sheet("figure_1", [["Sensitivities, n = 100", "Widths at ε = 1, n = 100"]])
    sheet.line(0, "global", x, np.full(n + 1, gamma.largest), color="#7f7f7f", linestyle="-.")
    sheet.line(
        0, "the papers' constant", x, np.full(n + 1, np.sqrt(1 - np.pi / 4)), color="k", lw=0.8
    )
    sheet.line(0, "local", x, gamma.local, color="#8c564b", **BENEATH)
    sheet.line(0, "γ-smooth, γ = 1", x, gamma.smooth, color="#1f77b4")
    sheet.line(0, "β-smooth of the notes", x, beta.smooth, color="#17becf", linestyle="--")
    exact = at_exact_scales(n, 2, 1.0)
    tuned = exact["EHDS, tuned"]
    curves = ob.mechanisms.sensitivity_curves(n, prior, gamma=tuned.gamma)
    sheet.line(1, "EHD, (a)", x, np.full(n + 1, 2 * gamma.largest), color="#7f7f7f", linestyle="-.")
    sheet.line(1, "EHDS, (a)", x, 4 * gamma.smooth, color="#1f77b4")
    sheet.line(1, "(ε, δ) mechanism, (a)", x, 2 * beta.smooth, color="#17becf", linestyle="--")
    sheet.line(1, "EHD, (b)", x, np.full(n + 1, exact["EHD"].scale), color="#7f7f7f", lw=0.8)
    sheet.line(1, "EHDS tuned, (b)", x, tuned.scale * curves.smooth, color="#1f77b4", lw=0.8)
    sheet.axes.flat[0].set_ylim(bottom=0.02)
    sheet.axes.flat[1].set_ylim(bottom=0.02)
    sheet.finish("x (records of the first category)", "", legends=(0, 1), yscale="log")


if __name__ == "__main__":
    main()
