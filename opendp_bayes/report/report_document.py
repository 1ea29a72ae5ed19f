"""A report as data: its specification and its releases, as JSON."""

import msgspec

from opendp_bayes.inference.levels.levels_posterior import LevelsPosterior
from opendp_bayes.inference.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.inference.tables_together import posterior_of_tables
from opendp_bayes.release_format.kind_of_text import check_kind
from opendp_bayes.report.specification import Specification
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.reading_results import release_from_json
from opendp_bayes.results.release import Release

NAME = "opendp-bayes report"
VERSION = 1


class Report(msgspec.Struct, frozen=True):
    """A report: the specification, a release for each of its results, and the versions of the
    software that made them. All of it may be published.
    """

    specification: Specification
    releases: tuple[Release | GroupedRelease, ...]
    software: dict[str, str]

    def posterior(self) -> SurveyPosterior | LevelsPosterior:
        """One posterior of all results, as tables of the same records; its variables are columns,
        or where categories are merged, its levels are the results by `names`.

        Raises `ValueError` where they cannot be estimated together, such as results by groups.
        """
        named: dict[str, Release] = {}
        columns = {}
        for name, result, release in zip(
            self.names, self.specification.results, self.releases, strict=True
        ):
            columns[name] = tuple(result.columns)
            if not isinstance(release, Release) or name in named:
                raise ValueError(
                    f"results: {result.heading!r} is by groups, or of a table that is there"
                    " already, and cannot be estimated together with the others."
                )
            named[name] = release
        return posterior_of_tables(named, columns)

    @property
    def names(self) -> list[str]:
        """The names of the results in their posterior: the columns, or of those that merge
        categories the heading.
        """
        results = self.specification.results
        return [" × ".join(one.columns) if one.merge is None else one.heading for one in results]

    def to_json(self) -> str:
        """The report as JSON; `Report.from_json` reads it back."""
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
        check_kind(text, NAME, VERSION)
        try:
            document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"text: is not a report in JSON: {error}") from None
        if (document.format, document.version) != (NAME, VERSION):
            raise ValueError(f"format={document.format!r}: must be {NAME!r}, version {VERSION}.")
        if len(document.releases) != len(document.specification.results):
            raise ValueError("releases: must be one for each of the results.")
        releases = tuple(release_from_json(bytes(release)) for release in document.releases)
        return cls(document.specification, releases, document.software)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    software: dict[str, str]
    specification: Specification
    releases: list[msgspec.Raw]
