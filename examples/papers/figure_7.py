"""Figure 7 of the tailoring paper: the exact loss of the mechanisms at the papers' scales for ε = 1
(left), and what is gained at the scale where it is 1 (right); prior Beta(1, 1), balanced data.

The loss of balanced data is over its neighbours; that of the mechanism, over all data sets, is
drawn thin.
"""

import numpy as np
from drawing import STYLES, Sheet
from settings import at_exact_scales, at_papers_scales, balanced, mean_error

import opendp_bayes as ob

SIZES = [2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 3000]


def balanced_loss(mechanism: ob.Mechanism, n: int) -> float:
    """The largest log-ratio of probabilities of balanced data and a neighbour."""
    middle, *others = (
        mechanism.log_pmf([x, n - x], 1.0)[1] for x in (n // 2, n // 2 - 1, n // 2 + 1)
    )
    return max(float(np.abs(middle - other).max()) for other in others)


def main() -> None:
    sheet = Sheet(
        "figure_7",
        [["(a) exact loss at nominal ε = 1", "(b) error at exact loss 1 over error in (a)"]],
    )
    losses: dict[str, list[float]] = {}
    for n in SIZES:
        for label, mechanism in at_papers_scales(n, 2, 1.0).items():
            losses.setdefault(label, []).append(balanced_loss(mechanism, n))
            loss = ob.exact_loss(mechanism, size=n, prior=[1.0, 1.0]).epsilon
            losses.setdefault(f"{label}, all data", []).append(loss)
    for label, values in losses.items():
        if label in STYLES:
            sheet.line(0, label, SIZES, values)
        else:
            own = {**STYLES[label.removesuffix(", all data")], "lw": 0.7, "alpha": 1.0}
            sheet.axes.flat[0].plot(SIZES, values, **own)
            sheet.note(0, label, SIZES, values)
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
