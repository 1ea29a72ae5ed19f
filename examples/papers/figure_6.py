"""Figure 6 of the tailoring paper: mean Hellinger error for three and four categories, and for data
(50, 50) with the priors Beta(a, a); ε = 1.
"""

import numpy as np
from drawing import STYLES, Sheet
from settings import SETTINGS, balanced, mean_error

import opendp_bayes as ob

SIZES = {3: [10, 20, 30, 50, 75, 100, 150, 200, 300], 4: [10, 20, 30, 40, 50, 60]}
PRIORS = [1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 70.0, 100.0, 200.0, 500.0, 1000.0]
BOXES = [1.0, 10.0, 100.0, 1000.0]


def main() -> None:
    titles = [[f"k = {k}, {part}" for part in SETTINGS] for k in SIZES]
    titles.append([f"data (50, 50), prior Beta(a, a), {part}" for part in SETTINGS])
    sheet = Sheet("figure_6", titles)
    for row, (k, sizes) in enumerate(SIZES.items()):
        for column, mechanisms in enumerate(SETTINGS.values()):
            errors: dict[str, list[float]] = {}
            for n in sizes:
                for label, mechanism in mechanisms(n, k, 1.0).items():
                    errors.setdefault(label, []).append(mean_error(mechanism, balanced(n, k)))
            for label, values in errors.items():
                sheet.line(2 * row + column, label, sizes, np.array(values))
            axis = sheet.axes.flat[2 * row + column]
            axis.set(xlabel="n", ylabel="E[H]", xscale="log")
            axis.set_xticks(sizes, sizes)
            axis.minorticks_off()
    for column, mechanisms in enumerate(SETTINGS.values()):
        priors(sheet, 4 + column, mechanisms)
    for panel in range(6):
        sheet.axes.flat[panel].legend(fontsize=7)
    sheet.save()


def priors(sheet: Sheet, panel: int, mechanisms: object) -> None:
    """Means as lines; boxes from the lower to the upper quartile at some priors."""
    axis = sheet.axes.flat[panel]
    laws = {
        a: {
            label: ob.error_law(mechanism, [50, 50], a)
            for label, mechanism in mechanisms(100, 2, 1.0, a).items()
        }
        for a in PRIORS
    }
    for place, label in enumerate(laws[1.0]):
        sheet.line(panel, label, PRIORS, [laws[a][label].mean() for a in PRIORS])
        for a in BOXES:
            low, high = (laws[a][label].quantile(level) for level in (0.25, 0.75))
            at = a * 1.09 ** (place - 2.5)
            color = STYLES[label]["color"]
            axis.plot([at, at], [low, high], lw=4, alpha=0.45, color=color, solid_capstyle="butt")
            sheet.note(panel, f"{label}, quartiles", [a, a], [low, high])
    axis.set(xlabel="a", ylabel="E[H]; quartiles", xscale="log")


if __name__ == "__main__":
    main()
