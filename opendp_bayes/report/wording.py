"""What a release promises and what a plan is for, in sentences, for tables, pages and pictures.
Reads results, never data.
"""

import math
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opendp_bayes.mechanisms.protocol import Mechanism
    from opendp_bayes.planning.plan import Plan
    from opendp_bayes.results.release import Release

_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
_SIGNIFICANT = Context(prec=4, rounding=ROUND_CEILING)


def guarantee(release: "Release") -> str:
    """What the release promises, in sentences: privacy loss, neighbours, whether the number of
    records is public.

    Bounds are rounded up to four significant digits.

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), 8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> guarantee(release)
    'ε = 0.5 for data sets that differ by 1 record changed. The number of records, 8, is public.'
    """
    loss = (
        f"ρ = {at_most(release.rho)} (zero-concentrated)"
        if "ZeroConcentrated" in release.measure
        else f"ε = {at_most(release.epsilon)}"
    )
    if release.delta:
        loss += f", δ = {at_most(release.delta)}"
    records = (
        f"{release.d_in} record{'' if release.d_in == 1 else 's'}"
        f" {'added or removed' if release.size is None else 'changed'}"
    )
    size = (
        "The number of records is private."
        if release.size is None
        else f"The number of records, {release.size}, is public."
    )
    return f"{loss} for data sets that differ by {records}. {size}"


def described(mechanism: "Mechanism") -> str:
    """The mechanism with the parameters that are set, numbers to six digits."""
    values = asdict(mechanism)
    parameters = [
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in values.items()
        if value is not None
    ]
    return f"{type(mechanism).__name__}({', '.join(parameters)})"


def without_scale(mechanism: "Mechanism") -> str:
    """The kind of a mechanism and its parameters other than the scale, in few words."""
    values = {
        name: value
        for name, value in asdict(mechanism).items()
        if name != "scale" and value is not None
    }
    shown = ", ".join(
        value if isinstance(value, str) else f"{name}={value:.4g}" for name, value in values.items()
    )
    return f"{type(mechanism).__name__}({shown})" if shown else type(mechanism).__name__


def budget(plan: "Plan") -> str:
    """The loss that was planned for."""
    return ", ".join(f"{_SYMBOLS[name]} = {value:.6g}" for name, value in plan.budget.items())


def setting(plan: "Plan") -> str:
    """The number of records, the prior and the neighbours of a plan, in sentences."""
    records = (
        f"{plan.records} records, a public number"
        if plan.size is not None
        else f"A private number of records, guessed to be {plan.records}"
    )
    change = (
        f"{plan.d_in} record{'' if plan.d_in == 1 else 's'}"
        f" {'added or removed' if plan.size is None else 'changed'}"
    )
    return (
        f"{records}, prior ({', '.join(f'{alpha:.6g}' for alpha in plan.prior)}). Neighbours differ"
        f" by {change}."
    )


def at_most(bound: float) -> str:
    """The bound rounded up, so that what is printed still holds; the float 0.2 is 0.2, though it is
    1e-17 more in binary.
    """
    return (
        f"{float(_SIGNIFICANT.create_decimal(Decimal(repr(float(bound))))):.4g}"
        if math.isfinite(bound)
        else "∞"
    )
