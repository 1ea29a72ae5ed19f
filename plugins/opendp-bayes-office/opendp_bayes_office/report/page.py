"""The page of a report: HTML that needs nothing else, from what was released alone."""

import math
from collections.abc import Iterator
from typing import Any

import polars as pl

from opendp_bayes.display.wording import at_most
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Result, Specification
from opendp_bayes_office.report.statements import counted, methods, named
from opendp_bayes_office.report.templates import filled

#: Probability of the intervals, and for the ε that a ρ implies, an example of a δ.
LEVEL, DELTA = 0.95, 1e-6
#: What quantiles are called.
_QUARTILES = {0.25: "Lower quartile", 0.5: "Median", 0.75: "Upper quartile"}
#: The most rows of a result that are shown.
_MOST_ROWS = 1000


def rendered(report: Report) -> str:
    """The report as one HTML file, without scripts and without anything from elsewhere. Computes
    every posterior.
    """
    asked = report.specification
    return filled(
        "page.html",
        title=report.survey.names[0] if asked is None else asked.title,
        text="" if asked is None else asked.text,
        sections=[_section(report, number) for number in range(len(report.survey))],
        promise=promise(report),
        loss=_loss(report.survey),
        joint=asked is not None and asked.joint,
        methods=methods(report, LEVEL),
        level=f"{100 * LEVEL:.6g} %",
        # In a script element only `<` can end the text.
        document=report.to_json().replace("<", "\\u003c"),
    )


def _section(report: Report, number: int) -> dict[str, Any]:
    """What the page shows of a result."""
    heading = report.survey.names[number]
    release: Any = report.survey.releases[number]
    asked = report.specification
    result = None if asked is None else asked.results[number]
    frame = _estimated(report, number)
    names = list(map(_printable, frame["category"]))
    if asked is not None and result is not None and hasattr(release, "mechanism"):
        columns = [asked.columns[name] for name in result.columns]
        every = [_name(columns, result, label) for label in release.categories]
        names = every * (len(names) // len(every))
    groups = frame["group"].to_list()
    if asked is not None and result is not None and result.by is not None:
        groups = [named(asked.columns[result.by], group) for group in groups]
    end = max(frame["upper"].to_list(), default=1.0)
    percent = asked is None or asked.percent
    notes = list(release.sheet(LEVEL, wait=False).notes)
    if frame["among_all"].any():
        notes.insert(
            0, "Shares are of the records with an answer, but where it says of all records."
        )
    if asked is not None and result is not None:
        notes = [*counted(asked, result), *_quantiles(release, asked, result), *notes]
    return {
        "heading": heading,
        "text": "" if result is None else result.text,
        "rows": list(_rows(frame.head(_MOST_ROWS), names, groups, end, percent)),
        "left": max(frame.height - _MOST_ROWS, 0),
        "end": f"{100 * end:.2g} %" if percent else f"{end:.2g}",
        "grouped": any(group is not None for group in groups),
        "notes": notes,
        "loss": _loss(release),
        "mechanism": release.overview[1],
    }


def _estimated(report: Report, number: int) -> pl.DataFrame:
    """The estimates of a result, from the posterior of all results where that is asked for."""
    heading = report.survey.names[number]
    release: Any = report.survey.releases[number]
    frame = release.estimates(LEVEL)
    if not hasattr(release, "mechanism"):  # of discovered categories
        return frame.with_columns(among_all=False)
    asked = report.specification
    every = list(release.values()) if hasattr(release, "grouped_by") else [release]
    if asked is not None and asked.joint:
        whole: Any = report.survey.posterior
        merged = not hasattr(whole, "marginal")
        posteriors = [whole[heading] if merged else whole.marginal(*asked.results[number].columns)]
    elif asked is not None and asked.results[number].pooled:
        posteriors = list(release.pooled().values())
    else:
        posteriors = [one.posterior for one in every]
    answered = every[0].nulls[:1] != (None,) and (asked is None or asked.among == "answered")
    return frame.with_columns(pl.concat([_shares(one, answered) for one in posteriors]))


def _shares(posterior: Any, answered: bool) -> pl.DataFrame:
    """The means and intervals of shares, where `answered` says so of those of the records with an
    answer; those of the other records stay shares `among_all`.
    """
    shares = posterior.to_frame(LEVEL).select("mean", "lower", "upper")
    others = [label in posterior.unordered for label in posterior.categories]
    if not (answered and any(others) and others.count(False) > 1):
        return shares.with_columns(among_all=False)
    answers = [
        label for label, other in zip(posterior.categories, others, strict=True) if not other
    ]
    among = posterior.given(answers).to_frame(LEVEL).select("mean", "lower", "upper").iter_rows()
    rows = [
        (*(row if other else next(among)), other)
        for row, other in zip(shares.iter_rows(), others, strict=True)
    ]
    return pl.DataFrame(rows, ["mean", "lower", "upper", "among_all"], orient="row")


def _quantiles(release: Any, asked: Specification, result: Result) -> Iterator[str]:
    """The quartiles of one column whose categories are in order."""
    if not result.ordered or len(result.columns) > 1 or result.by is not None or result.merge:
        return
    column = asked.columns[result.columns[0]]
    quantiles = release.posterior.quantiles(list(_QUARTILES))
    for level, quantile in quantiles.items():
        lower, upper = (named(column, end) for end in quantile.interval(LEVEL))
        yield (
            f"{_QUARTILES[level]}: {named(column, quantile.category)}, and with probability"
            f" {100 * LEVEL:.6g} % between {lower} and {upper}."
        )
    if quantiles.warning:
        yield quantiles.warning


def _rows(
    frame: pl.DataFrame, names: list[str], groups: list[str | None], end: float, percent: bool
) -> Iterator[dict[str, Any]]:
    """The rows of a table, the numbers as text, and where the picture has them, in per cent of its
    `end`.
    """
    narrowest = min((frame["upper"] - frame["lower"]).to_list(), default=1.0)
    decimals = min(max(2, 1 - math.floor(math.log10(max(narrowest, 1e-4)))), 4)
    scale, places, unit = (100, decimals - 2, " %") if percent else (1, decimals, "")
    for row, name, group in zip(frame.iter_rows(named=True), names, groups, strict=False):
        mean, lower, upper = (row[number] for number in ("mean", "lower", "upper"))
        yield {
            "group": group,
            "name": name,
            "count": row["count"],
            "among_all": row["among_all"],
            "mean": f"{scale * mean:.{places}f}{unit}",
            "interval": f"{scale * lower:.{places}f} to {scale * upper:.{places}f}{unit}",
            "at": round(100 * mean / end, 3),
            "low": round(100 * lower / end, 3),
            "width": round(100 * (upper - lower) / end, 3),
        }


def _name(columns: list[Column], result: Result, label: Any) -> str:
    """Name of a category in the report, or of a cell of a table."""
    if result.merge is not None or not isinstance(label, tuple):
        return str(label) if result.merge is not None else named(columns[0], label)
    return " × ".join(named(column, value) for column, value in zip(columns, label, strict=True))


def _printable(label: str | None) -> str:
    """A category that may be discovered, as it is shown, or everything else."""
    if label is None:
        return "and everything else"
    return label if label.isprintable() else repr(label)


def _loss(released: Any) -> dict[str, str]:
    """The loss of a release, or of all together, as text."""
    loss = released.loss
    return {name: at_most(getattr(loss, name)) for name in ("epsilon", "rho", "delta")}


def promise(report: Report) -> dict[str, str]:
    """The promise in words, with the `factor` of ε, or with the `epsilon` that ρ implies with
    `delta`.
    """
    asked, first, loss = report.specification, report.survey.releases[0], report.survey.loss
    said, is_concentrated = _loss(report.survey), first.guarantee.is_concentrated
    stated = f"ρ = {said['rho']}" if is_concentrated else f"ε = {said['epsilon']}"
    promise = {
        "loss": f"{stated}, δ = {said['delta']}" if loss.delta else stated,
        "unit": "one record" if asked is None else asked.privacy.unit,
        "change": first.sheet(LEVEL, wait=False).notes[0].partition("differ by ")[2],
        "otherwise": "left out" if first.guarantee.size is None else "different",
        "factor": "",
        "epsilon": "",
        "delta": said["delta"] if loss.delta else "",
    }
    if is_concentrated:
        promise["epsilon"] = at_most(loss.rho + 2 * math.sqrt(loss.rho * math.log(1 / DELTA)))
        promise["delta"] = at_most(loss.delta + DELTA)
    elif loss.epsilon < math.log(1e12):  # else it says nothing
        promise["factor"] = at_most(math.exp(loss.epsilon))
    return promise
