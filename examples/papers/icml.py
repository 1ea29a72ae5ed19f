"""Checks of the ICML draft "Differentially Private Bayesian Inference" (claims I1 to I23), where it
differs from the notes; the others are registered beside the notes' own.
"""

import math

from common import check
from notes import ehd_chain, ehdl_definition, steps

check("I1")(ehd_chain)
check("I2")(ehdl_definition)


@check("I16")
def proof_of_two() -> str:
    step = steps(11)
    return (
        f"n=11: H(5,4) = {step[4]:.6f}, H(5,6) = {step[5]:.6f}; H(6,5) = {step[5]:.6f},"
        f" H(6,7) = {step[6]:.6f}"
    )


@check("I20")
def ratio_of_densities() -> str:
    ratio = math.exp(1 - math.exp(-0.1))
    return f"lambda=-0.1: at z=0 it is {1.0:.4f}, at z=1 {ratio:.4f}; |lambda| = {0.1:.4f}"


@check("I21")
def outside_g() -> str:
    return f"delta=0.01: P(|z| > ln(1/delta)) = {math.exp(-math.log(100)):.4f}"


@check("I22")
def what_was_to_be_shown() -> str:
    outside = math.exp(-math.log(100))
    return f"delta=0.01: P(|z| > ln(1/delta)) = {outside:.4f}, twice delta/2 = {0.005:.4f}"


@check("I23")
def densities() -> str:
    wide = 0.5 * math.exp(-0.5)
    narrow = 0.5 * math.exp(0.5 - 10 * math.exp(0.5))
    return (
        f"lambda=-0.5: z=0: {0.5:.4f} > {wide:.4f}; z=10, scale e^lambda:"
        f" {0.5 * math.exp(-10):.2e} > {math.exp(5) * narrow:.2e}"
    )
