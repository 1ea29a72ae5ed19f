"""Figure 6 of the tailoring paper: mean Hellinger error for three and four categories by the number
of records, and boxes of the error for data (50, 50) with the priors Beta(a, a); ε = 1.

The paper's boxes show EHDS and the variation of lapMech whose counts are truncated so that they sum
to n, which for two categories is lapMech. They are of 1000 runs; here they are of the law itself:
quartiles, median and its notch for 1000 runs, and whiskers from the first to the last of 1000.
"""

import math

from drawing import STYLES, Sheet
from settings import SETTINGS, balanced, mean_error

import opendp_bayes as ob
import opendp_bayes_research as research

SIZES = {3: [10, 20, 30, 50, 75, 100, 150, 200, 300], 4: [10, 20, 30, 40, 50, 60]}
#: At the papers' scales alone; calibration to the exact loss would take minutes.
LARGER = {3: [350, 400, 600, 900], 4: []}
PRIORS = [1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 70.0, 100.0, 200.0, 500.0, 1000.0]
RUNS = 1000
#: What the boxes show in each part, to the left and to the right of a prior.
BOXES = {
    "(a) the papers' scales": {"EHDS": "#1f77b4", "lap": "#d4b106"},
    "(b) exact scales": {"EHDS, tuned": "#1f77b4", "ilap": "#d4b106"},
}


def main() -> None:
    titles = [[f"k = {k}, {part}" for part in SETTINGS] for k in SIZES]
    titles.append([f"data (50, 50), prior Beta(a, a), {part}" for part in SETTINGS])
    sheet = Sheet("figure_6", titles)
    for row, k in enumerate(SIZES):
        for column, part in enumerate(SETTINGS):
            means(sheet, 2 * row + column, k, part)
    for column, part in enumerate(SETTINGS):
        priors(sheet, 4 + column, part)
    for panel in range(4):
        sheet.axes.flat[panel].legend(fontsize=7)
    sheet.save()


def compared(n: int, k: int, part: str) -> dict[str, ob.Mechanism]:
    """The mechanisms of a part; at the papers' scales lapMech's variation, too."""
    found = SETTINGS[part](n, k, 1.0)
    if part == next(iter(SETTINGS)):
        return {**found, "lap, truncated": research.papers.lap_truncated(1.0, k)}
    return found


def means(sheet: Sheet, panel: int, k: int, part: str) -> None:
    """Mean errors by the number of records."""
    first = part == next(iter(SETTINGS))
    sizes = SIZES[k] + (LARGER[k] if first else [])
    errors: dict[str, list[float]] = {}
    for n in sizes:
        for label, mechanism in compared(n, k, part).items():
            errors.setdefault(label, []).append(mean_error(mechanism, balanced(n, k)))
    for label, values in errors.items():
        sheet.line(panel, label, sizes, values)
    axis = sheet.axes.flat[panel]
    axis.set(xlabel="n", ylabel="E[H]", xscale="log")
    shown = [n for n in sizes if n not in {75, 350}]
    axis.set_xticks(shown, shown, fontsize=8)
    axis.minorticks_off()


def priors(sheet: Sheet, panel: int, part: str) -> None:
    """Boxes of two mechanisms at some priors, means of all as thin lines."""
    axis = sheet.axes.flat[panel]
    laws = {
        a: {
            label: research.error_law(mechanism, [50, 50], a)
            for label, mechanism in SETTINGS[part](100, 2, 1.0, a).items()
        }
        for a in PRIORS
    }
    for label in laws[1.0]:
        thin = {**STYLES[label], "lw": 0.9, "alpha": 0.7}
        sheet.line(panel, label, PRIORS, [laws[a][label].mean() for a in PRIORS], **thin)
    for place, (label, color) in enumerate(BOXES[part].items()):
        boxes = [box(laws[a][label]) for a in PRIORS]
        at = [a * (0.89, 1.12)[place] for a in PRIORS]
        drawn = axis.bxp(
            boxes,
            positions=at,
            widths=[0.17 * a for a in at],
            shownotches=True,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": color, "alpha": 0.45},
            medianprops={"color": "k"},
            whiskerprops={"color": color},
            capprops={"color": color},
        )
        drawn["boxes"][0].set_label(f"{label}, boxes")
        for name in ("q1", "med", "q3", "whislo", "whishi"):
            sheet.note(panel, f"{label}, {name}", PRIORS, [each[name] for each in boxes])
    top = 1.35 if part == next(iter(SETTINGS)) else 0.85
    axis.set(xlabel="a", ylabel="H; lines: E[H]", xscale="log", ylim=(-0.02, top))
    axis.legend(fontsize=6.5, ncols=3, loc="upper right")


def box(law: research.ErrorLaw) -> dict[str, float]:
    """Compute from the law itself what matplotlib would draw of 1000 runs."""
    low, middle, high = (law.quantile(level) for level in (0.25, 0.5, 0.75))
    notch = 1.57 * (high - low) / math.sqrt(RUNS)
    return {
        "q1": low,
        "med": middle,
        "q3": high,
        "cilo": middle - notch,
        "cihi": middle + notch,
        "whislo": law.quantile(1 / RUNS),
        "whishi": law.quantile(1 - 1 / RUNS),
    }


if __name__ == "__main__":
    main()
