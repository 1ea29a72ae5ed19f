"""Figure 7 of the tailoring paper: the exact loss of the mechanisms at the papers' scales for ε = 1
(left), and what is gained at the scale where it is 1 (right); prior Beta(1, 1).

The exact loss is over all data; for balanced data alone it is drawn thin for EHDS.
"""

import numpy as np
from drawing import Sheet
from settings import at_exact_scales, at_papers_scales, balanced, mean_error

import opendp_bayes as ob

SIZES = [2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 3000]


def balanced_loss(n: int) -> float:
    """Of EHDS, over the neighbours of balanced data."""
    laws = [ob.papers.ehds(1.0).log_pmf([x, n - x], 1.0)[1] for x in (n // 2, n // 2 + 1)]
    return float(np.abs(laws[0] - laws[1]).max())


def main() -> None:
    sheet = Sheet(
        "figure_7",
        [["(a) exact loss at nominal ε = 1", "(b) error at exact loss 1 over error in (a)"]],
    )
    losses: dict[str, list[float]] = {}
    for n in SIZES:
        for label, mechanism in at_papers_scales(n, 2, 1.0).items():
            loss = ob.exact_loss(mechanism, size=n, prior=[1.0, 1.0]).epsilon
            losses.setdefault(label, []).append(loss)
    for label, values in losses.items():
        sheet.line(0, label, SIZES, values)
    sheet.line(
        0, "EHDS, balanced", SIZES, [balanced_loss(n) for n in SIZES], color="#1f77b4", lw=0.7
    )
    pairs = {"EHD": "EHD", "EHDS": "EHDS, tuned", "lap": "ilap"}
    for label, exact in pairs.items():
        ratio = [
            mean_error(at_exact_scales(n, 2, 1.0)[exact], balanced(n))
            / mean_error(at_papers_scales(n, 2, 1.0)[label], balanced(n))
            for n in SIZES
        ]
        sheet.line(1, label, SIZES, ratio)
    sheet.axes.flat[0].axhline(1, color="k", lw=0.5)
    for axis, top in zip(sheet.axes.flat, (1.5, 1.2), strict=True):
        axis.set_ylim(0, top)
    columns = {"loc": "upper right", "ncols": 2}
    sheet.finish("n", "exact ε; ratio", legends=(0, 1), legend=columns, xscale="log")


if __name__ == "__main__":
    main()
