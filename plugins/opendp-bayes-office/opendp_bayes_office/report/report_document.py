"""A report as data: its specification and its releases, as JSON."""

from collections.abc import Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal

import msgspec

from opendp_bayes import DiscoveredRelease, Release, Survey
from opendp_bayes.display.wording import limited
from opendp_bayes.mathematics.rounding import sum_up
from opendp_bayes.release_format.document import format_of
from opendp_bayes.release_format.kind_of_text import check_kind, without_mark
from opendp_bayes.results.reader import result_from_json
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.joint_posterior import posterior_of_tables
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.survey import NAME as SURVEY, SurveyResult
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes_office.report.problems import problems
from opendp_bayes_office.report.specification import (
    DISCOVER,
    Column,
    Privacy,
    Result,
    Specification,
)

NAME = "opendp-bayes report"
#: The numbers of a privacy loss, which add up.
LOSSES = ("epsilon", "rho", "delta")
VERSION = 1


class Report(msgspec.Struct, frozen=True, dict=True):
    """A report: the specification, a release for each of its results, and the versions of the
    software that made them. All of it may be published.
    """

    specification: Specification
    releases: tuple[SurveyResult, ...]
    software: dict[str, str]
    #: What the specification was made from, where nobody wrote one.
    source: SurveyResult | Survey | None = None

    @classmethod
    def of(cls, source: SurveyResult | Survey, title: str) -> "Report":
        """Make a report of what was released, with as much of a specification as that states.

        Parameters
        ----------
        source : SurveyResult or Survey
            The release, or the releases of several questions.
        title : str
            The title of the report, and the heading of a release alone.

        Raises
        ------
        ValueError
            Where the privacy of the counts is not stated, because a page states it.
        """
        named = source if isinstance(source, Survey) else {title: source}
        columns: dict[str, Column] = {}
        results = []
        for heading, release in named.items():
            if not release.guarantee.is_stated:
                raise ValueError(
                    f"{heading}: is of noisy counts whose privacy is not stated, and a page states"
                    " it. Show them with `opendp-bayes show`, or make the page of a release."
                )
            own = _columns_of(release, heading)
            by = " × ".join(getattr(release, "grouped_by", ())) or "group"
            grouped = isinstance(release, GroupedRelease)
            columns |= own | ({by: Column()} if grouped else {})
            results.append(
                Result(
                    column=next(iter(own)) if len(own) == 1 else list(own),
                    title=heading,
                    text=" ".join(limited(release.guarantee)),
                    by=by if grouped else None,
                    ordered=list(getattr(release, "ordered", ())) or None,
                )
            )
        releases = tuple(named.values())
        specification = Specification(
            title=title, privacy=_privacy_of(releases), columns=columns, results=results
        )
        return cls(specification, releases, {}, source)

    @classmethod
    def read(cls, text: str | bytes, title: str) -> "Report":
        """Read a report, or make one of the JSON of a release or a survey, under a title.

        Raises
        ------
        ValueError
            For anything else.
        """
        if format_of(text) == NAME:
            return cls.from_json(text)
        if format_of(text) == SURVEY:
            return cls.of(Survey.from_json(text), title)
        return cls.of(result_from_json(text), title)

    def posterior(self) -> SurveyPosterior | LevelsPosterior:
        """One posterior of all results, as tables of the same records; its variables are columns,
        or where categories are merged, its levels are the results by `names`.

        Computed when first asked for.

        Raises
        ------
        ValueError
            Where they cannot be estimated together, such as results by groups.
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
        """The report as JSON, or that of its `source`; `Report.read` reads it back."""
        if self.source is not None:
            return self.source.to_json()
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
            asked = msgspec.convert(document.specification, Specification)
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


def _columns_of(release: SurveyResult, heading: str) -> dict[str, Column]:
    """The columns of a release, with the labels that it states for nulls and unknown values."""
    if isinstance(release, DiscoveredRelease):
        listed = list(release.categories[: release.listed])
        return {release.column: Column(categories=DISCOVER, always=listed)}
    names = release.columns or release.axes or (heading,)
    labels = zip_longest(names, release.nulls, release.unknown)
    return {name: Column(nulls=nulls, unknown=unknown) for name, nulls, unknown in labels}


def _privacy_of(releases: Sequence[SurveyResult]) -> Privacy:
    """The privacy unit and the loss of some releases together."""
    guarantee = releases[0].guarantee
    records = guarantee.distance.records
    loss = {name: sum_up([getattr(one, name) for one in releases]) for name in LOSSES}
    return Privacy(
        unit="one record" if records == 1 else f"{records} records",
        rho=loss["rho"] if guarantee.is_concentrated else None,
        epsilon=None if guarantee.is_concentrated else loss["epsilon"],
        delta=loss["delta"] or None,
        size=guarantee.size,
        contributions=records,
    )


def _disagreement(asked: Specification, result: Result, release: SurveyResult) -> str:
    """Say where a release differs from what the page would say of it by its specification."""
    privacy, guarantee = asked.privacy, release.guarantee
    d_in = privacy.contributions * (privacy.rows_per_identifier or 1)
    truncated = privacy.rows_per_identifier is not None
    if isinstance(release, GroupedRelease) != (result.by is not None):
        return f"by={result.by!r} is asked for"
    discovered = [name for name in result.columns if asked.columns[name].discovered]
    if discovered != ([release.column] if isinstance(release, DiscoveredRelease) else []):
        return f"column={result.column!r} is asked for, of which {discovered} is to be discovered"
    if guarantee.size != privacy.size:
        return f"size={guarantee.size}, and {privacy.size} is asked for"
    if guarantee.distance.records != d_in:
        return f"d_in={guarantee.d_in}, and {d_in} is asked for"
    if guarantee.truncated != truncated:
        return f"truncated={guarantee.truncated}, and {truncated} is asked for"
    return ""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["opendp-bayes report"]
    version: Literal[1]
    software: dict[str, str]
    specification: dict[str, Any]
    releases: list[msgspec.Raw]
