"""Figures 3 and 4 of the tailoring paper: probabilities of the candidates by their distance from
the true posterior, balanced data of two, three and four categories; Figure 3 has ε = 1, Figure 4
ε = 5.

The paper states no n; 300 is where its Figure 5 says that EHDS passes lap, and 60 of four
categories can be listed and solved for exact losses. From three categories on thousands of
distances occur, with few candidates each: they are added up by the nearest multiple of the distance
that one changed record makes.
"""

import numpy as np
from drawing import Sheet
from settings import SETTINGS, balanced, by_distance

import opendp_bayes as ob
import opendp_bayes_research as research

SIZES = {2: 300, 3: 300, 4: 60}
#: Multiples of a record's distance that are shown; the rest is beyond them.
SHOWN = {2: 7, 3: 12, 4: 7}


def by_record(law: research.ErrorLaw, counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Multiples of the distance of one changed record, and the probability nearest to each."""
    record = ob.mechanisms.local_sensitivity(counts, 1.0)
    multiple = np.rint(law.values / record).astype(int)
    mass = np.bincount(multiple, law.probabilities)
    return np.arange(mass.size) * record, mass


def main(name: str = "figure_3", epsilon: float = 1.0) -> None:
    titles = [
        [f"k = {k}, n = {n}, ε = {epsilon:g}, {part}" for part in SETTINGS]
        for k, n in SIZES.items()
    ]
    sheet = Sheet(name, titles, height=7.4 / len(SIZES))
    for row, (k, n) in enumerate(SIZES.items()):
        for column, mechanisms in enumerate(SETTINGS.values()):
            panel = 2 * row + column
            for label, mechanism in mechanisms(n, k, epsilon).items():
                law = research.error_law(mechanism, balanced(n, k), 1.0)
                distance, mass = by_distance(law) if k == 2 else by_record(law, balanced(n, k))
                shown = slice(SHOWN[k] + 1)
                sheet.line(panel, label, distance[shown], mass[shown], marker=".", ms=4)
            axis = sheet.axes.flat[panel]
            axis.legend(fontsize=6)
            axis.set(xlabel="H to the true posterior", ylabel="P(H = c)" if k == 2 else "P(H ≈ c)")
    sheet.save()


if __name__ == "__main__":
    main()
