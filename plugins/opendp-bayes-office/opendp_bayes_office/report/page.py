"""The page of a report: HTML that needs nothing else, from what was released alone."""

import math
from collections.abc import Iterator
from typing import Any

import polars as pl
from markupsafe import Markup

from opendp_bayes.display.wording import at_most
from opendp_bayes_office.report.language import Language, Tag, language_of
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Result, Specification
from opendp_bayes_office.report.statements import counted, methods, named
from opendp_bayes_office.report.templates import filled

#: Probability of the intervals, and for the ε that a ρ implies, an example of a δ.
LEVEL, DELTA = 0.95, 1e-6
#: What quantiles are called.
_QUARTILES = {0.25: "Lower quartile", 0.5: "Median", 0.75: "Upper quartile"}
#: How notes begin that are on other estimates than a page shows: on those of a release by itself
#: where all are estimated together, and of counts where categories were discovered.
_ON_OTHERS = ("Prior: ", "The intervals ", "Mean and interval ")
#: The most rows of a result that are shown.
_MOST_ROWS = 1000


def rendered(report: Report, language: Tag | None = None) -> str:
    """The report as one HTML file, without scripts and without anything from elsewhere, in a
    language or that of its specification. Computes every posterior.
    """
    specification = report.specification
    say = language_of(language or specification.language)
    return filled(
        "page.html",
        title=specification.title,
        text=specification.text,
        say=say,
        sections=[_section(report, number, say) for number in range(len(report.survey))],
        promise=promise(report, say),
        loss=_loss(report.survey, say),
        methods=methods(report, LEVEL, say),
        level=f"{100 * LEVEL:.6g}\N{NO-BREAK SPACE}%",
        # In a script element only `<` can end the text.
        document=report.to_json().replace("<", "\\u003c"),
    )


def _section(report: Report, number: int, say: Language) -> dict[str, Any]:
    """The part of a page about one result, as its template takes it."""
    specification, heading = report.specification, report.survey.names[number]
    release: Any = report.survey.releases[number]
    result = specification.results[number]
    posteriors = _posteriors(report, number)
    frame = _estimated(report, number, posteriors)
    # Categories that were discovered may be anything, and none is everything else.
    names: list[str] = [
        say("and everything else")
        if label is None
        else label
        if label.isprintable()
        else repr(label)
        for label in frame["category"]
    ]
    if result.columns and hasattr(release, "mechanism"):
        columns = [specification.columns[column] for column in result.columns]
        categories = [_label(columns, result, label, say) for label in release.categories]
        names = categories * (len(names) // len(categories))
    groups = frame["group"].to_list()
    if result.by is not None:
        groups = [named(specification.columns[result.by], group, say) for group in groups]
    end = max(frame["upper"].to_list(), default=1.0)
    notes: list[str] = []
    if report.is_specified:
        notes += [
            *counted(specification, result, say),
            *_quantiles(posteriors, specification, result, say),
        ]
    if frame["among_all"].any():
        notes.append(
            say("Shares are of the records with an answer, but where it says of all records.")
        )
    if not posteriors and release.rest is None:
        notes.append(say("Shares are of the records in the categories that are shown."))
    is_other = specification.joint or result.pooled or not posteriors
    remarks = {
        note: say.note(note)
        for note in release.sheet(LEVEL, wait=False).notes
        if not (is_other and note.startswith(_ON_OTHERS))
    }
    return {
        "heading": heading,
        "text": result.text,
        "rows": list(_rows(frame.head(_MOST_ROWS), names, groups, end, say)),
        "left": max(frame.height - _MOST_ROWS, 0),
        "end": say.number(f"{float(f'{100 * end:.2g}'):g} %"),
        "grouped": any(group is not None for group in groups),
        "notes": [*notes, *filter(None, remarks.values())],
        "remarks": [note for note, translation in remarks.items() if not translation],
        "loss": _loss(release, say),
        "mechanism": say.note(release.overview[1]) or release.overview[1],
    }


def _posteriors(report: Report, number: int) -> list[Any]:
    """The posteriors of a result, one for each group: of all results where that is asked for. None
    of discovered categories.
    """
    specification, result = report.specification, report.specification.results[number]
    release: Any = report.survey.releases[number]
    if not hasattr(release, "mechanism"):
        return []
    if specification.joint:
        whole: Any = report.survey.posterior
        is_of_levels = not hasattr(whole, "marginal")
        return [whole[result.heading] if is_of_levels else whole.marginal(*result.columns)]
    if result.pooled:
        return list(release.pooled().values())
    releases = release.values() if hasattr(release, "grouped_by") else [release]
    return [one.posterior for one in releases]


def _estimated(report: Report, number: int, posteriors: list[Any]) -> pl.DataFrame:
    """The estimates of a result by its posteriors."""
    release: Any = report.survey.releases[number]
    frame = release.estimates(LEVEL)
    if not posteriors:
        return frame.with_columns(among_all=False)
    answered = report.specification.among == "answered" and release.nulls[:1] != (None,)
    return frame.with_columns(pl.concat([_shares(posterior, answered) for posterior in posteriors]))


def _shares(posterior: Any, answered: bool) -> pl.DataFrame:
    """The means and intervals of shares, where `answered` says so of those of the records with an
    answer; those of the other records stay shares `among_all`.
    """
    shares = posterior.to_frame(LEVEL).select("mean", "lower", "upper")
    others = [label in posterior.unordered for label in posterior.categories]
    if not (answered and any(others) and others.count(False) > 1):
        return shares.with_columns(among_all=False)
    answers = [
        label for label, is_other in zip(posterior.categories, others, strict=True) if not is_other
    ]
    among = posterior.given(answers).to_frame(LEVEL).select("mean", "lower", "upper").iter_rows()
    rows = [
        (*(row if is_other else next(among)), is_other)
        for row, is_other in zip(shares.iter_rows(), others, strict=True)
    ]
    return pl.DataFrame(rows, ["mean", "lower", "upper", "among_all"], orient="row")


def _quantiles(
    posteriors: list[Any], specification: Specification, result: Result, say: Language
) -> Iterator[str]:
    """The quartiles of one column whose categories are in order."""
    if not result.ordered or len(result.columns) > 1 or result.by is not None or result.merge:
        return
    column, posterior = specification.columns[result.columns[0]], posteriors[0]
    if len(posterior.categories) - len(posterior.unordered) < 2:  # none is before another one
        return
    quantiles = posterior.quantiles(list(_QUARTILES))
    for level, quantile in quantiles.items():
        lower, upper = (named(column, end, say) for end in quantile.interval(LEVEL))
        yield say(
            "%(quartile)s: %(category)s, and with probability %(level)s between %(lower)s and"
            " %(upper)s.",
            quartile=say(_QUARTILES[level]),
            category=named(column, quantile.category, say),
            level=f"{100 * LEVEL:.6g}\N{NO-BREAK SPACE}%",
            lower=lower,
            upper=upper,
        )
    if quantiles.warning:
        yield quantiles.warning


def _rows(
    frame: pl.DataFrame, names: list[str], groups: list[str | None], end: float, say: Language
) -> Iterator[dict[str, Any]]:
    """The rows of a table, shares in per cent as text, and where the picture has them, in per cent
    of its `end`.
    """
    narrowest = min((frame["upper"] - frame["lower"]).to_list(), default=1.0)
    places = min(max(0, -1 - math.floor(math.log10(max(narrowest, 1e-4)))), 2)
    for row, label, group in zip(frame.iter_rows(named=True), names, groups, strict=False):
        mean, lower, upper = (row[number] for number in ("mean", "lower", "upper"))
        yield {
            "group": group,
            "name": label,
            "count": row["count"],
            "among_all": row["among_all"],
            "mean": say.number(f"{100 * mean:.{places}f} %"),
            "interval": say(
                "%(lower)s to %(upper)s",
                lower=say.number(f"{100 * lower:.{places}f}"),
                upper=say.number(f"{100 * upper:.{places}f} %"),
            ),
            "at": round(100 * mean / end, 3),
            "low": round(100 * lower / end, 3),
            "width": round(100 * (upper - lower) / end, 3),
        }


def _label(columns: list[Column], result: Result, label: Any, say: Language) -> str:
    """Name of a category in the report, or of a cell of a table."""
    if result.merge is not None:
        return str(label)
    labels = label if isinstance(label, tuple) else (label,)
    values = zip(columns, labels, strict=False)
    return " × ".join(named(column, value, say) for column, value in values)


def _loss(released: Any, say: Language) -> dict[str, str]:
    """The loss of a release, or of all together, as text."""
    loss = released.loss
    return {
        measure: say.number(at_most(getattr(loss, measure)))
        for measure in ("epsilon", "rho", "delta")
    }


def promise(report: Report, say: Language) -> dict[str, Any]:
    """The promise in words: the `outcome` that e^ε bounds, or the ε that ρ implies with a δ, and
    the `bound` of the loss, with the data sets between which it holds.
    """
    specification, first, loss = report.specification, report.survey.releases[0], report.survey.loss
    text, is_concentrated = _loss(report.survey, say), first.guarantee.is_concentrated
    symbol = "ρ" if is_concentrated else "ε"
    stated = f"{symbol} = {text['rho' if is_concentrated else 'epsilon']}"
    times = Markup("e<sup>ε</sup>")
    addition = say(", plus δ") if loss.delta or is_concentrated else ""
    if is_concentrated:
        epsilon = at_most(loss.rho + 2 * math.sqrt(loss.rho * math.log(1 / DELTA)))
        addition += say.number(f" (ε = {epsilon}, δ = {at_most(loss.delta + DELTA)})")
    elif loss.epsilon < math.log(1e12):  # else it says nothing
        times += f" = {say.number(at_most(math.exp(loss.epsilon)))}"
    outcome = (
        "If %(unit)s had been left out, any outcome would be at most %(times)s times as"
        " likely%(rest)s."
        if first.guarantee.size is None
        else "If %(unit)s had been different, any outcome would be at most %(times)s times as"
        " likely%(rest)s."
    )
    bound = (
        "The privacy loss of all results together is at most <strong>%(loss)s</strong>, for all"
        " data sets that differ by %(change)s."
        if len(report.survey) > 1
        else "The privacy loss is at most <strong>%(loss)s</strong>, for all data sets that differ"
        " by %(change)s."
    )
    statement = first.sheet(LEVEL, wait=False).notes[0]
    change, _, size = statement.partition("differ by ")[2].partition(". ")
    unit = specification.privacy.unit
    unit = say(unit) if unit in say.sentences else unit
    stated += f", δ = {text['delta']}" if loss.delta else ""
    promised = say(bound, loss=stated, change=say.note(change) or change)
    return {
        "loss": stated,
        "unit": unit,
        "symbol": symbol,
        "outcome": say(outcome, unit=unit, times=times, rest=addition),
        "bound": Markup(" ").join([promised, say.note(size) or size]),
        "is_concentrated": is_concentrated,
    }
