"""Theorem 4.5 of "Private mechanisms": probability of an error within that of k records,
exactly and as the theorem gives it. Balanced data, ε = 1; EHD has the papers' constant for GS.
"""

import numpy as np
from drawing import DOTTED, THIN, Sheet
from settings import NOISE

import opendp_bayes as ob
import opendp_bayes_research as research

K = np.arange(0, 9)
SIZES = [4, 10, 20, 50, 100, 300, 1000, 3000, 10_000, 100_000]
GS = float(np.sqrt(1 - np.pi / 4))


def distances(n: int, k: np.ndarray) -> np.ndarray:
    half = n // 2
    moved = np.stack([half + k + 1.0, n - half - k + 1.0], axis=1)
    return ob.mechanisms.hellinger_distance([half + 1.0, n - half + 1.0], moved) * (1 + 1e-9)


def main() -> None:
    titles = [
        ["(a) LSZhang, n = 100", "(b) LSHist, n = 100"],
        ["(c) EHD, k = 1", "(d) EHDL, k = 1"],
    ]
    sheet = Sheet("theorem_4_5", titles)
    zhang = ob.LaplaceParameters(2.0, noise="floored", total="bounded")
    for panel, mechanisms in enumerate(({"LSZhang": zhang}, NOISE)):
        for label, mechanism in mechanisms.items():
            law = research.error_law(mechanism, [50, 50], 1.0)
            sheet.line(panel, label, K, law.cdf(distances(100, K)), marker=".")
        rate, power = ((0.5, 2), (1.0, 1))[panel]
        formula = 1 - (np.exp(-rate * K) + np.exp(-rate * (K + 1))) / 2
        sheet.line(panel, "the theorem", K, formula**power, **THIN)
        sheet.line(panel, "its bound", K, (1 - np.exp(-rate * K)) ** power, **DOTTED)
    for panel, label in ((2, "EHD"), (3, "EHDL (not private)")):
        by_size(sheet, panel, label)
    for panel, axis in enumerate(sheet.axes.flat):
        axis.legend(fontsize=7.5)
        axis.set(xlabel="k" if panel < 2 else "n", ylabel="P(H ≤ that of k records)")
        if panel >= 2:
            axis.set(xscale="log", yscale="log")
    sheet.save()


def by_size(sheet: Sheet, panel: int, label: str) -> None:
    """The exact probability within one record, and the theorem's bounds, which are cut at 10^4."""
    mechanism = (
        ob.mechanisms.HellingerExponential(2 * GS) if panel == 2 else research.papers.ehdl(1.0)
    )
    exact, upper, lower = [], [], []
    for n in SIZES:
        counts = [n // 2, n // 2]
        law = research.error_law(mechanism, counts, 1.0)
        exact.append(float(law.cdf(distances(n, np.array([1])))[0]))
        exponent = 1.0 if panel == 2 else 1 / (2 * ob.mechanisms.local_sensitivity(counts, 1.0))
        upper.append(min(3 * np.exp(min(exponent, 700.0)) / n, 1e4))
        lower.append((2 * np.exp(-exponent) + 1) / n)
    sheet.line(panel, label, SIZES, exact, marker=".")
    sheet.line(panel, "upper bound", SIZES, upper, **THIN)
    sheet.line(panel, "lower bound", SIZES, lower, **DOTTED)


if __name__ == "__main__":
    main()
