"""Theorem 4.3 of "Private mechanisms": the largest H over |k| <= ln(1/γ)/ε, divided by LS, is
bounded in n; with the second parameter as printed and as it should be. ε = 1, γ = 0.05.
"""

import numpy as np
from drawing import Sheet

import opendp_bayes as ob

SIZES = [6, 10, 20, 50, 100, 200, 500, 1000, 3000, 10_000]
REACH = 2  # whole records below ln(20) = 2.996


def ratio(n: int, x: int, printed: bool) -> float:
    truth = np.array([x + 1.0, n - x + 1.0])
    k = np.arange(-REACH, REACH + 1)
    first = truth[0] + k
    second = n - np.floor(truth[0] + k) if printed else truth[1] - k
    valid = (first >= 1) & (second >= (0.5 if printed else 1))
    moved = np.stack([first, second], axis=1)[valid]
    return float(
        ob.mechanisms.hellinger_distance(truth, moved).max()
    ) / ob.mechanisms.local_sensitivity([x, n - x], 1.0)


def main() -> None:
    sheet = Sheet("theorem_4_3", [["balanced data", "x = 2"]])
    for panel, data in enumerate((lambda n: n // 2, lambda n: 2)):
        for label, printed, style in (
            ("Beta(a + k, b - k)", False, "-"),
            ("as printed", True, ":"),
        ):
            values = [ratio(n, data(n), printed) for n in SIZES]
            sheet.line(panel, label, SIZES, values, linestyle=style, color="#d62728")
        sheet.axes.flat[panel].set_ylim(bottom=0)
    sheet.finish("n", "max H / LS(x)", xscale="log")


if __name__ == "__main__":
    main()
