"""Draw a figure and keep its numbers: `NAME.png` and `NAME.csv` in `docs/images/papers`, or in the
folder given on the command line.
"""

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[2] / "docs"
IMAGES = DOCS / "images" / "papers"
#: How a claim on a figure, table or theorem begins, and the letter of its document.
CLAIMS = {"figure": ("F", "Fig. {}"), "table": ("T", "Table {}"), "theorem": ("P", "Theorem {}")}
DPI = 110
#: Curves that others may hide are wide and pale; those drawn over them are dashed.
BENEATH = {"lw": 4.5, "alpha": 0.4}
DASHED = {"linestyle": (0, (5, 2))}
#: A mechanism looks the same in every figure.
STYLES: dict[str, dict[str, Any]] = {
    "EHD": {"color": "#7f7f7f", "linestyle": "-."},
    "EHDL (not private)": {"color": "#8c564b", **BENEATH},
    "EHDS": {"color": "#1f77b4"},
    "EHDS, tuned": {"color": "#1f77b4"},
    "(ε, δ) mechanism": {"color": "#17becf", "linestyle": "--"},
    "lap": {"color": "#2ca02c"},
    "lap, truncated": {"color": "#d4b106", "linestyle": (0, (5, 2))},
    "LSZhang": {"color": "#2ca02c"},
    "ilap": {"color": "#d62728"},
    "LSHist": {"color": "#d62728", **BENEATH},
    "discrete Laplace": {"color": "#9467bd", **DASHED},
    "discrete Laplace = K-norm": {"color": "#9467bd", **DASHED},
    "K-norm": {"color": "#e377c2", **DASHED},
}
THIN = {"color": "k", "lw": 0.8}
DOTTED = {**THIN, "linestyle": ":"}


def folder() -> Path:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    path.mkdir(parents=True, exist_ok=True)
    return path


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, numbers with six digits, and print its path and the verdicts."""
    path = folder() / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([_shown(value) for value in row.values()])
    print(f"Wrote {path}")
    for verdict in verdicts(name):
        print(verdict)


def verdicts(name: str) -> list[str]:
    """The verdicts on the claims about `figure_5`, `table_1` or `theorem_4_2`, a line each: T is
    true, C with a correction, F false, N cannot be checked.
    """
    kind, _, number = name.partition("_")
    letter, begins = CLAIMS[kind]
    about = begins.format(number.replace("_", "."))
    with (DOCS / "research" / "papers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        f"{row['id']} {row['verdict']}: {row['note']}"
        for row in rows
        if row["id"].startswith(letter) and re.match(rf"{re.escape(about)}\b", row["note"])
    ]


def _shown(value: Any) -> Any:
    return f"{float(value):.6g}" if isinstance(value, (float, np.floating)) else value


class Sheet:
    """Panels of a figure; what is drawn is kept."""

    def __init__(self, name: str, titles: Sequence[Sequence[str]], height: float = 3.7) -> None:
        self.name = name
        self.rows: list[dict[str, Any]] = []
        self.figure, self.axes = plt.subplots(
            len(titles),
            len(titles[0]),
            figsize=(5.4 * len(titles[0]), height * len(titles)),
            squeeze=False,
            layout="constrained",
        )
        self.titles = [title for row in titles for title in row]
        for axis, title in zip(self.axes.flat, self.titles, strict=True):
            axis.set_title(title, fontsize=10)
            axis.grid(alpha=0.25)

    def line(self, panel: int, label: str, x: Any, y: Any, **style: Any) -> None:
        self.axes.flat[panel].plot(x, y, label=label, **{**STYLES.get(label, {}), **style})
        self.note(panel, label, x, y)

    def note(self, panel: int, label: str, x: Any, y: Any) -> None:
        """Keep numbers that are drawn in another way."""
        for at, value in zip(x, y, strict=True):
            self.rows.append({"panel": self.titles[panel], "curve": label, "x": at, "y": value})

    def finish(
        self,
        x: str,
        y: str,
        *,
        legends: Sequence[int] = (0,),
        legend: Mapping[str, Any] = MappingProxyType({}),
        **scales: str,
    ) -> None:
        for axis in self.axes.flat:
            axis.set(xlabel=x, ylabel=y, **scales)
        for panel in legends:
            self.axes.flat[panel].legend(fontsize=7.5, **legend)
        self.save()

    def save(self) -> None:
        path = folder() / f"{self.name}.png"
        self.figure.savefig(path, dpi=DPI)
        print(f"Wrote {path}")
        keep(self.name, self.rows)
