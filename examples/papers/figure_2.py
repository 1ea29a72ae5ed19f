"""Figure 2 of the tailoring paper: the largest change of the score over neighbours x', for every
candidate r. It does not depend on a calibration.
"""

import numpy as np
from drawing import Sheet

import opendp_bayes as ob


def main() -> None:
    n = 100
    posteriors = np.stack([np.arange(n + 1) + 1.0, n - np.arange(n + 1) + 1.0], axis=1)
    distance = ob.mechanisms.hellinger_distance(posteriors[:, None], posteriors[None])
    sheet = Sheet("figure_2", [["Largest |H(x, r) - H(x', r)| over neighbours x', n = 100"]])
    for x, color in ((50, "#1f77b4"), (30, "#2ca02c"), (5, "#d62728")):
        change = np.abs(distance[[x - 1, x + 1]] - distance[x]).max(axis=0)
        sheet.line(0, f"x = {x}", np.arange(n + 1), change, color=color)
        sheet.axes.flat[0].plot(x, change[x], "o", color=color)
    sheet.finish("candidate r (records of the first category)", "change of H")


if __name__ == "__main__":
    main()
