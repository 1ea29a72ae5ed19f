"""The sentences of a report on where records are counted, and on the methods."""

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from opendp_bayes.release_format.labels import OTHER
from opendp_bayes_office.files.reading import as_text
from opendp_bayes_office.report.language import Language
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Result, Specification


def named(column: Column, value: Any, say: Language) -> str:
    """Name in the report of a category, or of all values that are no category."""
    text = "(null)" if value is None else as_text(value)
    listed = column.listed or []
    if column.labels is not None and text in listed:
        return column.labels[listed.index(text)]
    is_own = column.unknown is None and text == column.counted_unknown == OTHER
    return say(OTHER) if is_own else text


def counted(specification: Specification, result: Result, say: Language) -> Iterator[str]:
    """Yield a sentence for each column of a result on where records are counted that have no value
    in it, or one that is no category.
    """
    for column in result.used:
        stated = specification.columns[column]
        without, unlisted = stated.counted_nulls, stated.counted_unknown
        is_group = column == result.by
        left = say("in no group") if is_group else say("left out")
        labels = [without, None if is_group and stated.unknown is None else unlisted]
        places = [
            left
            if label is None
            else say("counted as “%(label)s”", label=named(stated, label, say))
            for label in labels[: 1 if stated.listed is None else 2]
        ]
        sentence = (
            "In %(column)s, records without a value are %(without)s."
            if len(places) == 1
            else "In %(column)s, records without a value are %(without)s, those with any value not"
            " listed are %(other)s."
        )
        yield say(sentence, column=column, without=places[0], other=places[-1])


def methods(report: Report, level: float, say: Language) -> str:
    """A paragraph for a publication."""
    specification, releases = report.specification, report.survey.releases
    versions = ", ".join(f"{package} {version}" for package, version in report.software.items())
    released = (
        "The results were released under zero-concentrated differential privacy with %(software)s;"
        " bounds of the privacy loss are certified and rounded up."
        if releases[0].guarantee.is_concentrated
        else "The results were released under differential privacy with %(software)s; bounds of the"
        " privacy loss are certified and rounded up."
    )
    sentences = [
        say(released, software=versions or "OpenDP"),
        say(
            "Estimates are means and equal-tailed %(level)s credible intervals of the posterior"
            " given the released values, which takes the randomness of the release into account.",
            level=f"{100 * level:.6g}\N{NO-BREAK SPACE}%",
        ),
    ]
    if specification.joint:
        sentences.append(
            say(
                "All results were estimated together, as tables of the same records, with a prior"
                " whose concentration was learned."
            )
        )
    if any(result.pooled for result in specification.results):
        sentences.append(
            say("Groups were estimated together, drawn towards each other where alike.")
        )
    return Markup(" ").join((*sentences, *specification.sentences(dict(specification.columns))))
