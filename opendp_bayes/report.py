"""A release as a table for the terminal. Reads releases, never data."""

import math
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal

from rich.console import Group
from rich.table import Table
from rich.text import Text
from scipy import stats

from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.release import Release

_SIGNIFICANT = Context(prec=4, rounding=ROUND_CEILING)


def release_table(release: Release, *, title: str | None = None, level: float = 0.95) -> Table:
    """One row for each category: the released count, the posterior mean, and the plug-in credible interval of probability `level`.

    The interval is that of `Beta(a_i, sum(a) - a_i)`, the marginal of the plug-in posterior with concentration `a`, and its heading says that it
    takes the released counts as if they were exact. Raises `ValueError` unless `0 < level < 1`.
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: must be between 0 and 1.")
    table = Table(title=None if title is None else Text(title, style="bold"), title_justify="left")
    table.add_column("Category")
    table.add_column("Released\ncount", justify="right")
    table.add_column("Posterior\nmean", justify="right")
    table.add_column(f"Plug-in {100 * level:.6g} % interval\n(ignores the noise)", justify="right")
    concentration = release.concentration
    total = concentration.sum()
    marginals = stats.beta(concentration, total - concentration)
    lower, upper = marginals.interval(level)
    for label, count, mean, low, high in zip(release.categories, release.counts, concentration / total, lower, upper, strict=True):
        table.add_row(Text(str(label)), str(count), f"{mean:.3f}", f"{low:.3f} to {high:.3f}")
    return table


def guarantee(release: Release) -> str:
    """What the release promises, in sentences: privacy loss, neighbours, whether the number of records is public, mechanism.

    Bounds are rounded up to four significant digits.

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), 8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> print(guarantee(release))
    ε = 0.5 for data sets that differ by 1 record changed. The number of records, 8, is public.
    Mechanism: LaplaceParameters(scale=2, noise='discrete', total='remainder').
    """
    loss = f"ρ = {_at_most(release.rho)} (zero-concentrated)" if "ZeroConcentrated" in release.measure else f"ε = {_at_most(release.epsilon)}"
    if release.delta:
        loss += f", δ = {_at_most(release.delta)}"
    records = f"{release.d_in} record{'' if release.d_in == 1 else 's'} {'added or removed' if release.size is None else 'changed'}"
    size = "The number of records is private." if release.size is None else f"The number of records, {release.size}, is public."
    return f"{loss} for data sets that differ by {records}. {size}\nMechanism: {_described(release.mechanism)}."


def release_report(release: Release, *, title: str | None = None) -> Group:
    """The table of a release followed by its guarantee."""
    return Group(release_table(release, title=title), Text(guarantee(release)))


def _described(mechanism: Mechanism) -> str:
    """The mechanism with the parameters that are set, numbers to six digits."""
    values = asdict(mechanism)
    parameters = [f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in values.items() if value is not None]
    return f"{type(mechanism).__name__}({', '.join(parameters)})"


def _at_most(bound: float) -> str:
    """The bound rounded up, so that what is printed still holds."""
    return f"{float(_SIGNIFICANT.create_decimal(Decimal(bound))):.4g}" if math.isfinite(bound) else "∞"
