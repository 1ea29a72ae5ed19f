"""Table 1 of the tailoring paper: probability of the posterior that is t records to one side of the
true one, ε = 1. The paper has symbols for EHDS; here n = 100, x = 30.
"""

from drawing import keep
from settings import at_exact_scales, at_papers_scales

import opendp_bayes as ob

SIZE, FIRST = 100, 30


def steps(mechanism: ob.Mechanism, first: int = FIRST) -> list[float]:
    """P(released first count = true + t) for t = 0, 1, 2."""
    outcomes, log_p = mechanism.log_pmf([first, SIZE - first], 1.0)
    places = {int(counts[0]): place for place, counts in enumerate(outcomes)}
    return [float(2.718281828459045 ** log_p[places[first + t]]) for t in (0, 1, 2)]


def table(name: str, first: int, both_sides: bool) -> None:
    rows = []
    for part, mechanisms in (("a", at_papers_scales), ("b", at_exact_scales)):
        for label, mechanism in mechanisms(SIZE, 2, 1.0).items():
            # K-norm lists no outcomes that are not counts; the two are the same noise.
            listed = ob.LaplaceParameters(1.0) if "K-norm" in label else mechanism
            values = two_sided(listed, first) if both_sides else steps(listed, first)
            rows.append(
                {
                    "scales": part,
                    "mechanism": label,
                    "t=0": values[0],
                    "t=1": values[1],
                    "t=2": values[2],
                }
            )
    keep(name, rows)


def two_sided(mechanism: ob.Mechanism, first: int) -> list[float]:
    """P(released first count = true ± t) for t = 0, 1, 2."""
    outcomes, log_p = mechanism.log_pmf([first, SIZE - first], 1.0)
    moved = abs(outcomes[:, 0] - first)
    return [float((2.718281828459045 ** log_p[moved == t]).sum()) for t in (0, 1, 2)]


if __name__ == "__main__":
    table("table_1", FIRST, both_sides=False)
