"""Figure 1 of the tailoring paper: sensitivities of the Hellinger score over all data sets, and the
widths that the mechanisms make of them.
"""

from typing import Any

import numpy as np
from drawing import BENEATH, Sheet
from settings import at_exact_scales

import opendp_bayes as ob
import opendp_bayes_research as research


def main() -> None:
    n, prior = 100, [1.0, 1.0]
    x = np.arange(n + 1)
    sets = np.column_stack([x, n - x])
    largest = ob.mechanisms.global_sensitivity(n, prior)
    local = [ob.mechanisms.local_sensitivity(counts, prior) for counts in sets]
    gamma = smooth(sets, prior, gamma=1.0)
    beta = smooth(sets, prior, beta=research.papers.beta(1.0, 1e-8, n).beta)
    sheet = Sheet("figure_1", [["Sensitivities, n = 100", "Widths at ε = 1, n = 100"]])
    sheet.line(0, "global", x, np.full(n + 1, largest), color="#7f7f7f", linestyle="-.")
    sheet.line(
        0, "the papers' constant", x, np.full(n + 1, np.sqrt(1 - np.pi / 4)), color="k", lw=0.8
    )
    sheet.line(0, "local", x, local, color="#8c564b", **BENEATH)
    sheet.line(0, "γ-smooth, γ = 1", x, gamma, color="#1f77b4")
    sheet.line(0, "β-smooth of the notes", x, beta, color="#17becf", linestyle="--")
    exact = at_exact_scales(n, 2, 1.0)
    tuned = exact["EHDS, tuned"]
    sheet.line(1, "EHD, (a)", x, np.full(n + 1, 2 * largest), color="#7f7f7f", linestyle="-.")
    sheet.line(1, "EHDS, (a)", x, 4 * gamma, color="#1f77b4")
    sheet.line(1, "(ε, δ) mechanism, (a)", x, 2 * beta, color="#17becf", linestyle="--")
    sheet.line(1, "EHD, (b)", x, np.full(n + 1, exact["EHD"].scale), color="#7f7f7f", lw=0.8)
    of_tuned = tuned.scale * smooth(sets, prior, gamma=tuned.gamma)
    sheet.line(1, "EHDS tuned, (b)", x, of_tuned, color="#1f77b4", lw=0.8)
    sheet.axes.flat[0].set_ylim(bottom=0.02)
    sheet.axes.flat[1].set_ylim(bottom=0.02)
    sheet.finish("x (records of the first category)", "", legends=(0, 1), yscale="log")


def smooth(sets: Any, prior: list[float], **smoothness: Any) -> Any:
    """Smooth sensitivity of each data set."""
    return np.array(
        [ob.mechanisms.smooth_sensitivity(counts, prior, **smoothness) for counts in sets]
    )


if __name__ == "__main__":
    main()
