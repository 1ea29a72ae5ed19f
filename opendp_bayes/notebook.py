"""A release as a table for notebooks: HTML without scripts, style sheets or anything from elsewhere."""

from html import escape
from typing import TYPE_CHECKING

from opendp_bayes._wording import described, guarantee
from opendp_bayes.estimates import Estimate, estimate_or_reason, plug_in_estimate

if TYPE_CHECKING:
    from opendp_bayes.release import Release

_TEXT, _NUMBER = 'style="text-align: left"', 'style="text-align: right; font-variant-numeric: tabular-nums"'


def release_html(release: "Release", *, level: float = 0.95) -> str:
    """A row for every category, and a paragraph with the guarantee and how to read the intervals.

    The noise-aware columns are left out, and the paragraph says so, where the posterior takes long or is refused (`estimate_or_reason`).
    Raises `ValueError` unless `0 < level < 1`.
    """
    plug_in, aware = plug_in_estimate(release, level), estimate_or_reason(release, level, wait=False)
    percent = f"{100 * level:.6g}&nbsp;%"
    headings, columns = ["Released count"], [[str(count) for count in release.counts]]
    if isinstance(aware, Estimate):
        headings += ["Posterior mean", f"{percent} interval"]
        columns += [[f"{mean:.3f}" for mean in aware.mean], _intervals(aware)]
        reading = (
            f"Mean and interval take the noise into account: given the release and the prior, each probability lies in its interval with "
            f"probability {percent}. The plug-in interval takes the released counts for the data and claims too much."
        )
    else:
        reading = escape(aware)
    headings.append(f"Plug-in {percent} interval<br>(ignores the noise)")
    columns.append(_intervals(plug_in))
    head = "".join(f"<th {_NUMBER}>{heading}</th>" for heading in headings)
    rows = "".join(
        f"<tr><th {_TEXT}>{escape(str(label))}</th>{''.join(f'<td {_NUMBER}>{cell}</td>' for cell in cells)}</tr>"
        for label, *cells in zip(release.categories, *columns, strict=True)
    )
    promise = f"{escape(guarantee(release))} Mechanism: <code>{escape(described(release.mechanism))}</code>."
    return (
        f"<div><table><thead><tr><th {_TEXT}>Category</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p style="max-width: 48em">{promise} {reading}</p></div>'
    )


def _intervals(estimate: Estimate) -> list[str]:
    return [f"{low:.3f}&nbsp;to&nbsp;{high:.3f}" for low, high in zip(estimate.lower, estimate.upper, strict=True)]
