"""Figures 3 and 4 of the tailoring paper: probabilities of the candidates by their distance from
the true posterior, balanced data; Figure 3 has ε = 1, Figure 4 ε = 5.

The paper states no n; 300 is where its Figure 5 says that EHDS passes lap. For three categories the
probabilities are cumulated, since every distance has its own number of candidates.
"""

from drawing import Sheet
from settings import SETTINGS, balanced, by_distance

import opendp_bayes as ob

SIZE = 300
SHOWN = 60  # of the cumulated points of a curve, for the numbers beside the picture


def main(name: str = "figure_3", epsilon: float = 1.0) -> None:
    titles = [
        [f"k = {k}, n = {SIZE}, ε = {epsilon:g}, {part}" for part in SETTINGS] for k in (2, 3)
    ]
    sheet = Sheet(name, titles)
    for row, k in enumerate((2, 3)):
        for column, mechanisms in enumerate(SETTINGS.values()):
            panel = 2 * row + column
            for label, mechanism in mechanisms(SIZE, k, epsilon).items():
                law = ob.error_law(mechanism, balanced(SIZE, k), 1.0)
                if k == 2:
                    distance, mass = by_distance(law)
                    kept = distance < 0.3
                    sheet.line(panel, label, distance[kept], mass[kept], marker=".", ms=4)
                else:
                    levels = [0.6 * i / SHOWN for i in range(SHOWN + 1)]
                    sheet.line(panel, label, levels, law.cdf(levels))
            axis = sheet.axes.flat[panel]
            axis.legend(fontsize=7.5)
            axis.set(xlabel="H to the true posterior", ylabel="P(H = c)" if k == 2 else "P(H ≤ c)")
    sheet.save()


if __name__ == "__main__":
    main()
