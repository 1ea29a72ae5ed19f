"""A report as data: its specification and its releases, as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

from opendp_bayes import Survey, load_mechanism
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.release_format.kind_of_text import decoded, format_of
from opendp_bayes.results.reader import result_from_json
from opendp_bayes_office.files.reading import as_text
from opendp_bayes_office.report.checks import check
from opendp_bayes_office.report.specification import Column, Privacy, Result, Specification

NAME: Final = "opendp-bayes report"


@dataclass(frozen=True)
class Report:
    """A report, all of which may be published.

    Attributes
    ----------
    specification : Specification
        What was asked for.
    survey : Survey
        The releases, by the headings of the results.
    software : dict[str, str]
        The versions that made them.
    is_specified : bool
        False where nobody wrote the specification, so that it has headings and categories alone.
    """

    specification: Specification
    survey: Survey
    software: dict[str, str] = field(default_factory=dict)
    is_specified: bool = True

    @property
    def results(self) -> Any:
        """The only release, or the survey of several."""
        return self.survey if len(self.survey) > 1 else self.survey.releases[0]

    def sheet(self) -> Sheet:
        """The sheet of the releases; computes their posteriors."""
        sheet: Sheet = self.results.sheet(percent=True)
        return sheet if len(self.survey) > 1 else replace(sheet, title=self.specification.title)

    @classmethod
    def read(
        cls, text: str | bytes, title: str, mechanisms: Iterable[str] | None = None
    ) -> "Report":
        """Read a report, or make one under a title of the JSON of a release or a survey, of
        built-in mechanisms and of those named; raises `ValueError` for anything else.
        """
        for name in mechanisms or ():
            load_mechanism(name)
        kind = format_of(text)
        if kind == NAME:
            return cls.from_json(text)
        if kind == "opendp-bayes survey":
            survey = Survey.from_json(text)
        else:
            release: Any = result_from_json(text)
            heading = " × ".join(getattr(release, "columns", ())) or title
            survey = Survey((heading,), (release,))
        return cls(_implied(survey, title), survey, is_specified=False)

    def to_json(self) -> str:
        """The report as JSON, or where nobody wrote a specification that of its releases;
        `Report.read` reads it back.
        """
        if not self.is_specified:
            return str(self.results.to_json())
        releases = [msgspec.Raw(release.to_json().encode()) for release in self.survey.releases]
        document = _Document(NAME, 1, self.software, self.specification, releases)
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Report":
        """Read a report written by `to_json`; `ValueError` for anything else."""
        document = decoded(_Document, text)
        specification = document.specification
        check(specification)
        if len(document.releases) != len(specification.results):
            raise ValueError("releases: must be one for each of the results.")
        releases = tuple(result_from_json(bytes(release)) for release in document.releases)
        for result, release in zip(specification.results, releases, strict=True):
            groups_differ = hasattr(release, "grouped_by") != bool(result.by)
            if groups_differ or release.guarantee.size != specification.privacy.size:
                raise ValueError(
                    f"releases: the one for {result.heading!r} is not of this specification, or one"
                    " of them was changed."
                )
        headings = tuple(result.heading for result in specification.results)
        return cls(specification, Survey(headings, releases), document.software)


def _implied(survey: Survey, title: str) -> Specification:
    """The specification of releases, as far as they tell it: their headings, and of each of their
    columns the categories but for other values.
    """
    columns: dict[str, Column] = {}
    results = []
    for heading, release in survey.items():
        names = []
        for position, unknown in enumerate(getattr(release, "unknown", ())):
            values = [
                cell[position] if isinstance(cell, tuple) else cell for cell in release.categories
            ]
            names.append(f"{heading}, column {position + 1}")
            columns[names[-1]] = Column(categories=[as_text(v) for v in values if v != unknown])
        results.append(Result(column=names, title=heading))
    return Specification(title=title, privacy=Privacy(), columns=columns, results=results)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["opendp-bayes report"]
    version: Literal[1]
    software: dict[str, str]
    specification: Specification
    releases: list[msgspec.Raw]
