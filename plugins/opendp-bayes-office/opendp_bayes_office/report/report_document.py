"""A report as data: its specification and its releases, as JSON."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import msgspec

from opendp_bayes import Survey
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.release_format.kind_of_text import decoded, format_of
from opendp_bayes.results.reader import result_from_json
from opendp_bayes_office.report.checks import check
from opendp_bayes_office.report.specification import Specification

NAME = "opendp-bayes report"
VERSION = 1


@dataclass(frozen=True)
class Report:
    """A report, all of which may be published.

    Attributes
    ----------
    specification : Specification or None
        What was asked for; None where a page is made of releases alone.
    releases : tuple
        A release for each of its results.
    software : dict[str, str]
        The versions that made them.
    source : Survey or None
        The releases where nobody wrote a specification.
    """

    specification: Specification | None
    releases: tuple[Any, ...]
    software: dict[str, str] = field(default_factory=dict)
    source: Survey | None = None

    @cached_property
    def survey(self) -> Survey:
        """The releases by the headings of the results."""
        results = [] if self.specification is None else self.specification.results
        names = tuple(result.heading for result in results)
        columns = tuple(tuple(result.columns) for result in results)
        return self.source or Survey(names, self.releases, columns)

    @property
    def results(self) -> Any:
        """The only release, or the survey of several."""
        return self.survey if len(self.survey) > 1 else self.releases[0]

    @property
    def percent(self) -> bool:
        """False where the specification shows shares as numbers from 0 to 1."""
        return self.specification is None or self.specification.percent

    def sheet(self) -> Sheet:
        """The sheet of the releases; computes their posteriors."""
        sheet: Sheet = self.results.sheet(percent=self.percent)
        if self.specification is None or len(self.survey) > 1:
            return sheet
        return replace(sheet, title=self.specification.title)

    @classmethod
    def read(cls, text: str | bytes, title: str) -> "Report":
        """Read a report, or make one of the JSON of a release, under a title, or of a survey.

        Raises
        ------
        ValueError
            For anything else, and where the privacy of a release is not stated, because a page
            states it.
        """
        if format_of(text) == NAME:
            return cls.from_json(text)
        found, _ = read_results(text)
        survey = found if isinstance(found, Survey) else Survey((title,), (found,))
        if not all(release.guarantee.is_stated for release in survey.releases):
            raise ValueError(
                "has noisy counts whose privacy is not stated, and a page states it. Show them with"
                " `opendp-bayes show`, or make the page of a release."
            )
        return cls(None, survey.releases, {}, survey)

    def to_json(self) -> str:
        """The report as JSON, or where nobody wrote a specification that of its releases;
        `Report.read` reads it back.
        """
        if self.specification is None:
            return str(self.results.to_json())
        document = {
            "format": NAME,
            "version": VERSION,
            "software": self.software,
            "specification": self.specification,
            "releases": [msgspec.Raw(release.to_json().encode()) for release in self.releases],
        }
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Report":
        """Read a report written by `to_json`; `ValueError` for anything else."""
        document = decoded(_Document, text, NAME, VERSION)
        asked = document.specification
        check(asked)
        if len(document.releases) != len(asked.results):
            raise ValueError("releases: must be one for each of the results.")
        releases = tuple(result_from_json(bytes(release)) for release in document.releases)
        for result, release in zip(asked.results, releases, strict=True):
            size = release.guarantee.size
            if size != asked.privacy.size or hasattr(release, "grouped_by") != bool(result.by):
                raise ValueError(
                    f"releases: the one for {result.heading!r} is not of this specification, or one"
                    " of them was changed."
                )
        return cls(asked, releases, document.software)


def read_results(text: str | bytes) -> tuple[Any, bool]:
    """The release, the releases of groups, or the survey, in a text of JSON; of a report, the
    survey of its results, or its only release. And whether shares are shown in per cent.

    Raises
    ------
    ValueError
        For anything else.
    """
    if format_of(text) == NAME:
        report = Report.from_json(text)
        return report.results, report.percent
    if format_of(text) == "opendp-bayes survey":
        return Survey.from_json(text), True
    return result_from_json(text), True


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["opendp-bayes report"]
    version: Literal[1]
    software: dict[str, str]
    specification: Specification
    releases: list[msgspec.Raw]
