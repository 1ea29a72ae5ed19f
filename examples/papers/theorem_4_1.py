"""Theorem 4.1 of "Private mechanisms": ELap / LS, where ELap is the 95 % quantile of H, is bounded.

LSHist's exact loss is its nominal one, so both calibrations are the same; ε = 1.
"""

from drawing import Sheet
from settings import NOISE

import opendp_bayes as ob
import opendp_bayes_research as research

SIZES = [2, 4, 6, 10, 20, 50, 100, 200, 500, 1000, 3000]


def ratio(mechanism: ob.Mechanism, n: int, x: int) -> float:
    law = research.error_law(mechanism, [x, n - x], 1.0)
    return law.quantile(0.95) / ob.mechanisms.local_sensitivity([x, n - x], 1.0)


def main() -> None:
    titles = ["balanced data", "the worst of 0, 1, 2, 3, 5, 8, n/10, n/4, n/2"]
    sheet = Sheet("theorem_4_1", [titles])
    for label, mechanism in NOISE.items():
        sheet.line(0, label, SIZES, [ratio(mechanism, n, n // 2) for n in SIZES])
        worst = []
        for n in SIZES:
            data = {0, 1, 2, 3, 5, 8, n // 10, n // 4, n // 2} & set(range(n + 1))
            worst.append(max(ratio(mechanism, n, x) for x in data))
        sheet.line(1, label, SIZES, worst)
    for axis in sheet.axes.flat:
        axis.set_ylim(0, 4)
    sheet.finish("n", "95 % quantile of H / LS(x)", xscale="log")


if __name__ == "__main__":
    main()
