"""A report as data: its specification and its releases, as JSON."""

from functools import cached_property
from typing import Any, Literal

import msgspec

from opendp_bayes.inference.combine import posterior_of_tables
from opendp_bayes.inference.levels.levels_posterior import LevelsPosterior
from opendp_bayes.inference.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.release_format.kind_of_text import check_kind, without_mark
from opendp_bayes.report.problems import problems
from opendp_bayes.report.specification import DROP, Result, Specification
from opendp_bayes.results.discovered import DiscoveredRelease
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.results.survey import SurveyResult, result_from_json

NAME = "opendp-bayes report"
VERSION = 1


class Report(msgspec.Struct, frozen=True, dict=True):
    """A report: the specification, a release for each of its results, and the versions of the
    software that made them. All of it may be published.
    """

    specification: Specification
    releases: tuple[SurveyResult, ...]
    software: dict[str, str]

    def posterior(self) -> SurveyPosterior | LevelsPosterior:
        """One posterior of all results, as tables of the same records; its variables are columns,
        or where categories are merged, its levels are the results by `names`.

        Computed when first asked for. Raises `ValueError` where they cannot be estimated together,
        such as results by groups.
        """
        return self._posterior

    @cached_property
    def _posterior(self) -> SurveyPosterior | LevelsPosterior:
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
    def together(self) -> SurveyPosterior | LevelsPosterior | None:
        """The `posterior` of all results, where that is asked for; None where each has its own."""
        return self.posterior() if self.specification.joint else None

    def posterior_of(self, number: int) -> Any:
        """The posterior of a result without groups, by its number: that of all results, where they
        have one, or its own.
        """
        if isinstance(self.together, SurveyPosterior):
            return self.together.marginal(*self.specification.results[number].columns)
        if self.together is not None:
            return self.together[self.names[number]]
        release: Any = self.releases[number]
        return release.posterior

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
            document = msgspec.json.decode(without_mark(text), type=_Document)
            asked = msgspec.convert(_renamed(document.specification), Specification)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"text: is not a report in JSON: {error}") from None
        for path, problem in problems(asked):
            raise ValueError(f"specification: {'.'.join(map(str, path))}: {problem}")
        if len(document.releases) != len(asked.results):
            raise ValueError("releases: must be one for each of the results.")
        releases = tuple(result_from_json(bytes(release)) for release in document.releases)
        for number, release in enumerate(releases):
            if problem := _disagreement(asked, asked.results[number], release):
                raise ValueError(
                    f"releases[{number}]: {problem}; it is not of this specification, or one of"
                    " them was changed."
                )
        return cls(asked, releases, document.software)


def _disagreement(asked: Specification, result: Result, release: SurveyResult) -> str:
    """Say where a release differs from what the page would say of it by its specification."""
    privacy, promise = asked.privacy, release.promise
    d_in = privacy.contributions * (privacy.rows_per_identifier or 1)
    truncated = privacy.rows_per_identifier is not None
    if isinstance(release, GroupedRelease) != (result.by is not None):
        return f"by={result.by!r} is asked for"
    discovered = [name for name in result.columns if asked.columns[name].discovered]
    if discovered != ([release.column] if isinstance(release, DiscoveredRelease) else []):
        return f"column={result.column!r} is asked for, of which {discovered} is to be discovered"
    if promise.size != privacy.size:
        return f"size={promise.size}, and {privacy.size} is asked for"
    if promise.d_in != d_in:
        return f"d_in={promise.d_in}, and {d_in} is asked for"
    if promise.truncated != truncated:
        return f"truncated={promise.truncated}, and {truncated} is asked for"
    return ""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["opendp-bayes report"]
    version: Literal[1]
    software: dict[str, str]
    specification: dict[str, Any]
    releases: list[msgspec.Raw]


def _renamed(specification: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of a report that was written before their names of today."""
    privacy, columns = specification.get("privacy"), specification.get("columns")
    if isinstance(privacy, dict) and "shares" in privacy:
        privacy["share"] = privacy.pop("shares")
    if isinstance(privacy, dict) and privacy.get("share") == "equal_errors":  # each says its loss
        privacy["share"] = "weights"
    for column in columns.values() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and column.pop("unmatched", "other") == "drop":
            column["unknown"] = DROP
    return specification
