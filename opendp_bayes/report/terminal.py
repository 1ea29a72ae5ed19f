"""Releases, audits and plans as tables for the terminal. Reads results, never data."""

import math
from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from opendp_bayes.auditing.audit import Audit
from opendp_bayes.inference.estimates import Estimate, estimate_or_reason, plug_in_estimate
from opendp_bayes.planning.plan import Plan
from opendp_bayes.report.wording import (
    at_most,
    budget,
    described,
    guarantee,
    setting,
    without_scale,
)
from opendp_bayes.results.release import Release


def release_report(release: Release, *, title: str | None = None, level: float = 0.95) -> Group:
    """A table with the released count of each category, its posterior mean and interval of
    probability `level`, and the plug-in interval; and the guarantee.

    Computes `release.posterior`, which may take seconds; where it is refused, its columns are
    missing and a line says why. Raises `ValueError` unless `0 < level < 1`.
    """
    aware, plug_in = estimate_or_reason(release, level, wait=True), plug_in_estimate(release, level)
    table = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column(
        "Category", overflow="fold"
    )  # in a narrow terminal the labels take more lines, and the numbers do not
    table.add_column("Released\ncount", justify="right", no_wrap=True)
    columns = [[str(count) for count in release.counts]]
    percent = f"{100 * level:.6g} %"
    if isinstance(aware, Estimate):
        table.add_column("Mean", justify="right", no_wrap=True)
        table.add_column(f"{percent}\ninterval", justify="right", style="bold", no_wrap=True)
        columns += aware.shown()
    table.add_column(
        f"Plug-in {percent}\n(ignores noise)", justify="right", style="dim", no_wrap=True
    )
    columns.append(plug_in.shown(aware.decimals if isinstance(aware, Estimate) else None)[1])
    for label, *cells in zip(release.categories, *columns, strict=True):
        table.add_row(Text(str(label)), *cells)
    notes = [guarantee(release), f"Mechanism: {described(release.mechanism)}."]
    if not isinstance(aware, Estimate):
        notes.append(aware)
    return Group(table, *(Text(note) for note in notes))


def audit_report(audit: Audit) -> Group:
    """What was audited, its losses, the profile with what the draws refute, the four checks, and
    the verdict.
    """
    records = "A private number of records" if audit.size is None else f"{audit.size} records"
    neighbours = "added or removed" if audit.size is None else "changed"
    prior = ", ".join(f"{alpha:.6g}" for alpha in audit.prior)
    return Group(
        Text(f"Audit of {described(audit.mechanism)}", style="bold"),
        Text(f"{records}, prior ({prior}). Neighbours differ by one record {neighbours}.\n"),
        _losses(audit),
        _claims(audit),
        _checks(audit),
        _verdict(audit),
    )


def _losses(audit: Audit) -> Table:
    table = _plain_table("Privacy loss", "ε", "range", "ρ (zCDP)")
    table.add_row(
        "Nominal, the papers' calibration",
        "–" if audit.nominal is None else f"{audit.nominal:.4g}",
        "",
        "",
    )
    for name, loss in (
        ("Proven, closed form", audit.proven),
        (f"Exact accounting ({audit.exact.method})", audit.exact),
    ):
        table.add_row(name, at_most(loss.epsilon), at_most(loss.range), at_most(loss.rho))
    table.add_row("Claimed", at_most(audit.epsilon), "", "")
    return table


def _claims(audit: Audit) -> Table:
    table = _plain_table(
        "δ",
        "ε claimed",
        f"ε refuted by draws\n({100 * audit.confidence:.6g} % confidence)",
        "expected to be\nrefuted",
    )
    for claim in audit.claims:
        style = "bold red" if claim.refuted > claim.epsilon else ""
        table.add_row(
            f"{claim.delta:.4g}",
            at_most(claim.epsilon),
            Text(_below(claim.refuted), style=style),
            _below(claim.refutable),
        )
    return table


def _checks(audit: Audit) -> Table:
    if audit.computed is None:
        accounting = "there is no exact accounting for this mechanism and size"
    else:
        accounting = f"the largest loss from the probabilities is {_nearly(audit.computed)}"
    if audit.law is None:
        law = "the mechanism does not list its outcomes"
    else:
        pairs = (
            f"over all {audit.law.pairs} pairs of neighbours"
            if audit.law.complete
            else "for the pairs drawn from alone"
        )
        law = (
            f"the largest log-ratio {pairs} is {_nearly(audit.law.epsilon)}, for counts"
            f" {_counts(audit.law.first)} and {_counts(audit.law.second)}"
        )
    drawn = " and for ".join(
        f"{_counts(first)} and {_counts(second)}" for first, second in audit.drawn
    )
    draws = (
        f"{audit.draws} draws for each of {drawn} refute"
        f" {'more than' if 'draws' in audit.failures else 'no more than'} is claimed"
    )
    if audit.fits:
        worst = min(audit.fits, key=lambda fit: fit.p_value)
        fit = (
            f"the smallest p-value is {worst.p_value:.2g}, for counts {_counts(worst.counts)}; it"
            f" fails below {audit.level:.2g}"
        )
    else:
        fit = "without listed probabilities there is nothing to compare the draws with"
    table = _plain_table("Check", "Result", "Found", right=())
    for name, done, found in (
        ("Accounting", audit.computed is not None, accounting),
        ("Law", audit.law is not None, law),
        ("Draws", True, draws),
        ("Fit", bool(audit.fits), fit),
    ):
        result = (
            Text("fails", "bold red")
            if name.lower() in audit.failures
            else Text("passes", "green")
            if done
            else Text("–")
        )
        table.add_row(name, result, Text(f"{found[0].upper()}{found[1:]}."))
    return table


def _verdict(audit: Audit) -> Text:
    claim = f"ε = {at_most(audit.epsilon)}"
    if not audit.passed:
        return Text(
            f"Failed: {', '.join(audit.failures)}. The claim of {claim} does not hold as stated.",
            style="bold red",
        )
    if not audit.certified:
        return Text(
            f"Passed, but not proven: nothing refutes {claim}, and no certified bound is as small.",
            style="bold yellow",
        )
    return Text(f"Passed: {claim} is certified, and nothing refutes it.", style="bold green")


def plan_report(plan: Plan) -> Group:
    """What was planned for, the usable mechanisms with their losses and errors, those that cannot
    be used, and the recommendation.
    """
    usable = [row for row in plan.rows if row.loss is not None]
    costs = _plain_table("Mechanism, best first", "Scale", "ε", "ρ (zCDP)", "Accounting")
    for row in usable:
        assert row.loss is not None  # noqa: S101 - a usable one has a loss
        scale, epsilon, rho = (
            f"{row.mechanism.scale:.4g}",
            at_most(row.loss.epsilon),
            at_most(row.loss.rho),
        )
        costs.add_row(Text(without_scale(row.mechanism)), scale, epsilon, rho, row.loss.method)
    parts: list[Table | Text] = [
        Text(f"Plan for {budget(plan)}", style="bold"),
        Text(f"{setting(plan)}\n"),
        costs,
    ]
    for title, name in (
        ("Expected Hellinger error", "hellinger"),
        ("Expected total variation, of predictions of the next record", "total_variation"),
        ("Expected width of a 95 % interval, noise included", "interval_width"),
    ):
        table = _plain_table(
            title, *(shares.capitalize() for shares in plan.proportions), right=range(1, 5)
        )
        for row in usable:
            values = [
                f"{getattr(error, name):.4f}" + ("*" if error.method == "simulated" else "")
                for error in row.errors.values()
            ]
            table.add_row(Text(without_scale(row.mechanism)), *values)
        parts.append(table)
    if any(error.method == "simulated" for row in usable for error in row.errors.values()):
        parts.append(Text("* simulated; the others are sums over all outcomes.\n"))
    refused = [
        f"{type(row.mechanism).__name__} cannot be used. {row.refused}\n"
        for row in plan.rows
        if row.refused is not None
    ]
    parts += [Text(reason) for reason in dict.fromkeys(refused)]
    return Group(*parts, Text(f"Recommended: {plan.reason}", style="bold green"))


def _plain_table(*headings: str, right: Sequence[int] = (1, 2, 3)) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place in right else "left", overflow="fold")
    return table


def _below(epsilon: float | None) -> str:
    return "–" if epsilon is None else f"below {epsilon:.4g}" if epsilon else "none"


def _counts(counts: tuple[int, ...]) -> str:
    return f"({','.join(map(str, counts))})"


def _nearly(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "∞"
