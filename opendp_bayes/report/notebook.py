"""Releases and plans as tables for notebooks: HTML without scripts, style sheets, colours or
anything from elsewhere.

Notebooks bring their own colours, light or dark, and some of them no space between columns.
"""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from opendp_bayes.inference.estimates import (
    Estimate,
    estimate_or_reason,
    noise_aware_estimate,
    plug_in_estimate,
)
from opendp_bayes.report.wording import (
    at_most,
    budget,
    described,
    guarantee,
    setting,
    without_scale,
)

if TYPE_CHECKING:
    from opendp_bayes.planning.plan import Plan
    from opendp_bayes.results.grouped_release import GroupedRelease
    from opendp_bayes.results.release import Release

_SPACE = "padding: 0.3em 0.7em"
_TEXT = (
    'style="text-align: left; vertical-align: top; max-width: 26em; overflow-wrap: break-word;'
    f' {_SPACE}"'
)
_NUMBER = (
    'style="text-align: right; vertical-align: top; white-space: nowrap; font-variant-numeric:'
    f' tabular-nums; {_SPACE}"'
)
_LINE = 'style="border-bottom: 1px solid"'


def release_html(release: "Release", *, level: float = 0.95) -> str:
    """A row for every category, and a paragraph with the guarantee and how to read the intervals.

    The noise-aware columns are left out, and the paragraph says so, where the posterior takes long
    or is refused (`estimate_or_reason`). Raises `ValueError` unless `0 < level < 1`.
    """
    plug_in, aware = (
        plug_in_estimate(release, level),
        estimate_or_reason(release, level, wait=False),
    )
    percent = f"{100 * level:.6g}&nbsp;%"
    headings, columns = ["Released<br> count"], [[str(count) for count in release.counts]]
    if isinstance(aware, Estimate):
        headings += ["Posterior<br> mean", f"{percent}<br> interval"]
        columns += aware.shown()
        reading = (
            "Mean and interval take the noise into account: given the release and the prior, each"
            f" probability lies in its interval with probability {percent}. The plug-in interval"
            " takes the released counts for the data: where the noise matters, it is too narrow."
        )
    else:
        reading = escape(aware)
    headings.append(f"Plug-in {percent}<br> (ignores noise)")
    columns.append(plug_in.shown(aware.decimals if isinstance(aware, Estimate) else None)[1])
    rows = [_row(label, *cells) for label, *cells in zip(release.categories, *columns, strict=True)]
    return _page(
        _table(["Category"], headings, [rows]),
        escape(guarantee(release)),
        _mechanism(release),
        reading,
    )


def grouped_html(release: "GroupedRelease", *, level: float = 0.95) -> str:
    """A row for every group and category, and a paragraph with the guarantee; noise-aware columns
    as in `release_html`, for all groups or none.
    """
    from opendp_bayes.inference.posterior import is_quick

    percent = f"{100 * level:.6g}&nbsp;%"
    headings, reading = (
        ["Released<br> count"],
        f"Mean and {percent} interval take the noise into account.",
    )
    shown = is_quick(*(one for one in release.values() if "posterior" not in vars(one)))
    if shown:
        headings += ["Posterior<br> mean", f"{percent}<br> interval"]
    else:
        reading = (
            "The noise-aware posteriors of these groups take long: call to_frame() of this release,"
            " then show it again."
        )
    bodies = []
    for group, one in release.items():
        columns = [
            [str(count) for count in one.counts],
            *(noise_aware_estimate(one, level).shown() if shown else ()),
        ]
        rows = [_row(label, *cells) for label, *cells in zip(one.categories, *columns, strict=True)]
        name = "(null)" if group is None else str(group)
        rows[0] = f'<th scope="rowgroup" rowspan="{len(rows)}" {_TEXT}>{escape(name)}</th>{rows[0]}'
        bodies.append(rows)
    whole: Any = release
    return _page(
        _table(["Group", "Category"], headings, bodies),
        f"All groups together: {escape(guarantee(whole))}",
        _mechanism(whole),
        reading,
    )


def plan_html(plan: "Plan") -> str:
    """A row for every mechanism that can be used, with its loss and expected Hellinger errors;
    below it the recommendation and the others.
    """
    usable = [row for row in plan.rows if row.loss is not None]
    headings = [
        "Scale",
        "ε",
        "ρ (zCDP)",
        *(f"Error,<br> {escape(shares)}" for shares in plan.proportions),
    ]
    rows = []
    for row in usable:
        assert row.loss is not None  # noqa: S101 - a usable one has a loss
        errors = [
            f"{error.hellinger:.4f}{'*' if error.method == 'simulated' else ''}"
            for error in row.errors.values()
        ]
        rows.append(
            _row(
                without_scale(row.mechanism),
                f"{row.mechanism.scale:.4g}",
                at_most(row.loss.epsilon),
                at_most(row.loss.rho),
                *errors,
            )
        )
    refused = [
        escape(f"{type(row.mechanism).__name__}: {row.refused}")
        for row in plan.rows
        if row.refused is not None
    ]
    others = (
        "<details><summary>Cannot be used:"
        f" {len(refused)}</summary><ul>{''.join(f'<li>{reason}</li>' for reason in refused)}</ul></details>"
    )
    return _page(
        _table(["Mechanism, best first"], headings, [rows]),
        f"<strong>Recommended:</strong> {escape(plan.reason)}",
        f"Plan for {budget(plan)}. {setting(plan)}",
        "Errors are expected Hellinger distances, from 0 to 1; those with * are simulated.",
        others if refused else "",
    )


def _table(names: list[str], headings: list[str], bodies: Iterable[list[str]]) -> str:
    """`names` stand above the headers of the rows, and every body is a list of rows; wider than the
    notebook, it scrolls.
    """
    head = "".join(
        [f'<th scope="col" {_TEXT}>{name}</th>' for name in names]
        + [f'<th scope="col" {_NUMBER}>{heading}</th>' for heading in headings]
    )
    body = "".join(
        f"<tbody {_LINE}>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody>" for rows in bodies
    )
    return (
        '<div style="overflow-x: auto"><table style="border-collapse: collapse"><thead'
        f" {_LINE}><tr>{head}</tr></thead>{body}</table></div>"
    )


def _row(label: object, *cells: str) -> str:
    return f'<th scope="row" {_TEXT}>{escape(str(label))}</th>' + "".join(
        f"<td {_NUMBER}>{escape(cell)}</td>" for cell in cells
    )


def _mechanism(release: "Release") -> str:
    return f"Mechanism: <code>{escape(described(release.mechanism))}</code>."


def _page(table: str, *sentences: str) -> str:
    return (
        f'<div>{table}<div style="max-width: 48em; margin: 0.7em'
        f' 0">{" ".join(sentences)}</div></div>'
    )
