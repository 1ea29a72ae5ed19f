"""Figure 5 of the tailoring paper: mean Hellinger error by the number of records, two categories,
prior Beta(1, 1), balanced data, ε = 1.
"""

import numpy as np
from drawing import Sheet
from settings import SETTINGS, balanced, mean_error

SIZES = [2, 4, 6, 10, 20, 30, 50, 70, 100, 150, 200, 250, 300, 400, 500, 700]
SIZES += [1000, 1500, 2000, 3000, 5000, 7000, 10_000, 15_000]


def main() -> None:
    sheet = Sheet("figure_5", [list(SETTINGS)], height=4.2)
    for panel, mechanisms in enumerate(SETTINGS.values()):
        errors: dict[str, list[float]] = {}
        for n in SIZES:
            for label, mechanism in mechanisms(n, 2, 1.0).items():
                errors.setdefault(label, []).append(mean_error(mechanism, balanced(n)))
        for label, values in errors.items():
            sheet.line(panel, label, SIZES, np.array(values))
        sheet.axes.flat[panel].axvline(300, color="k", lw=0.5)
    sheet.finish("n", "E[H]", legends=(0, 1), xscale="log", yscale="log")


if __name__ == "__main__":
    main()
