"""The analyst's result of a survey: a release for each question, under one debit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from opendp_bayes.display.pictures import plot_panels
from opendp_bayes.display.sheet import Sheet, ShownAtOnce
from opendp_bayes.display.tables import Table
from opendp_bayes.display.wording import stated_loss
from opendp_bayes.mathematics.rounding import sum_up
from opendp_bayes.mathematics.telling import shortly, told
from opendp_bayes.mathematics.validation import as_flag, as_level, as_size
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.release_format.kind_of_text import decoded
from opendp_bayes.release_format.labels import position_of
from opendp_bayes.results.figures import panel_of
from opendp_bayes.results.reader import result_from_json
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.surveys.joint_posterior import combine_tables
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

#: What one question releases, a `Result`.
SurveyResult = Release | GroupedRelease | Any


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["opendp-bayes survey"]
    version: Literal[2]
    releases: dict[str, msgspec.Raw]


@dataclass(frozen=True)
class Survey(ShownAtOnce, Mapping[str, Any]):
    """The private releases of several questions: a mapping from the name of each to its `Release`,
    `GroupedRelease` or `DiscoveredRelease`. Plain data: everything here may be published.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the questions, in the order in which they were asked.
    releases : tuple[SurveyResult, ...]
        One for each; each states its own loss, `loss` that of all together.
    """

    names: tuple[str, ...]
    releases: tuple[SurveyResult, ...]

    def __post_init__(self) -> None:
        names = self.names if isinstance(self.names, tuple) else ()
        if not names or not len(set(names)) == len(names) == len(self.releases):
            raise ValueError(
                f"names={told(self.names)}: must be different, at least one, and as many as"
                f" releases, {len(self.releases)}."
            )
        measures = {release.guarantee.measure for release in self.releases}
        if len(measures) > 1:
            raise ValueError(
                f"releases: must be of one privacy measure, not {', '.join(sorted(measures))}; keep"
                " those of different budgets apart."
            )

    @property
    def loss(self) -> PrivacyLoss:
        """Certified upper bounds on the privacy loss of all releases together, for one privacy
        unit: the sums of their bounds, rounded up.
        """
        losses = [release.loss for release in self.releases]
        return PrivacyLoss(
            epsilon=sum_up([loss.epsilon for loss in losses]),
            rho=sum_up([loss.rho for loss in losses]),
            range=sum_up([loss.range for loss in losses]),
            delta=min(1.0, sum_up([loss.delta for loss in losses])),
            method=", ".join(dict.fromkeys(loss.method for loss in losses)),
        )

    @property
    def measure(self) -> str:
        """The OpenDP privacy measure that the releases were made under."""
        return self.releases[0].guarantee.measure

    @cached_property
    def posterior(self) -> SurveyPosterior | LevelsPosterior:
        """One posterior of all tables of the survey, whose answers agree with each other, and from
        which synthetic records are drawn; computed when first asked for. Where the categories of
        all questions are sums of those of one, it is a `LevelsPosterior`, exact, from whose mapping
        `posterior["county"]` answers for one question (`docs/levels.md`).

        The columns are the variables, whatever the questions are called, so that two questions of
        one column are two measurements of one variable.

        Raises
        ------
        ValueError
            For questions by groups or with categories that were discovered, and where the tables do
            not fit each other; warns where its chains have not met (`docs/surveys.md`).
        """
        tables = {
            question: release for question, release in self.items() if isinstance(release, Release)
        }
        for question in (question for question in self if question not in tables):
            raise ValueError(
                f"releases[{question!r}]: is of groups, or of categories that were discovered,"
                " which have no posterior together with others; in place of groups ask for a joint"
                " table, as in column=['region', 'vote'], or combine the others by name:"
                " ob.combine_tables({...})."
            )
        # Questions of a survey are draws of their own.
        return combine_tables(tables, draws_may_agree=True)

    def __getitem__(self, question: str) -> Any:
        return self.releases[position_of(question, self.names, ("question", "questions"))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for every question, group and category: `mean`, `std`, `lower`
        and `upper` of the noise-aware posterior, their `level`, and the `count` as released.

        `lower` and `upper` are the ends of the equal-tailed interval of probability `level`.
        `question`, `group` and `category` are text; `group` is null where a question has none, and
        labels of several columns are separated by commas. Where categories were discovered the
        shares are those among all, with a last row for everything else, whose category is null; or
        where the rest was not bought, those among the categories that are shown.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`, or where a posterior is refused.
        """
        import polars as pl

        return pl.concat(
            release.estimates(level).select(pl.lit(question).alias("question"), pl.all())
            for question, release in self.items()
        )

    def plot(self, columns: int = 2, *, level: float = 0.95) -> "Figure":
        """One figure with a small picture of every question, each with a scale of its own from 0;
        returns a matplotlib `Figure`.

        Each category, or cell of a joint table, has a dot and an interval of probability `level`. A
        question by groups has a row for each group, with the categories in colours. There are
        `columns` pictures in a row.

        Raises
        ------
        ImportError
            Without matplotlib (extra `plot`).
        ValueError, TypeError
            Unless `0 < level < 1` and `columns` is at least 1.
        """
        columns, level = as_size(columns, "columns", "columns"), as_level(level)
        panels = [
            panel_of(release.estimates(level), _panel_title(question, release))
            for question, release in self.items()
        ]
        sentences = (
            f"{self._together()} Means with {100 * level:.6g} % intervals, which take the noise"
            " into account."
        )
        return plot_panels(panels, sentences, columns)

    def _together(self) -> str:
        """State the loss of all releases in a sentence, where one is stated."""
        if not self.releases[0].guarantee.is_stated:
            return "No privacy loss is stated here."
        whole = replace(self.releases[0].guarantee, loss=self.loss)
        return f"All together: {stated_loss(whole)} for one privacy unit."

    def sheet(self, level: float = 0.95, *, wait: bool = True, percent: bool = False) -> Sheet:
        """Sheet of the survey: a table for each question, with counts, means and intervals of
        probability `level`, perhaps in per cent, and the guarantee of each and of all together.

        Computes the posteriors, which may take seconds, or without `wait` only where that is quick.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        wait, percent = as_flag(wait, "wait"), as_flag(percent, "percent")
        sheets = [release.sheet(level, wait=wait, percent=percent) for release in self.releases]
        named = list(zip(self.names, sheets, strict=True))
        tables = [_headed(table, question) for question, sheet in named for table in sheet.tables]
        together = self._together()
        if self.releases[0].guarantee.is_stated:
            together = f"{self._together()[:-1]}, the sum of the losses below."
        notes = [f"{question}: {note}" for question, sheet in named for note in sheet.notes]
        return Sheet(tuple(tables), (together, *notes))

    def __str__(self) -> str:
        headings = ("Question", "Counts", "Mechanism", "Loss")
        rows = [
            (question, *release.overview, _loss_of(release)) for question, release in self.items()
        ]
        notes = [
            f"{question}: {note}"
            for question, release in self.items()
            for note in release.unmatched
        ]
        table = Table(headings, rows, texts=len(headings))
        return str(Sheet((table,), (self._together(), *notes), title="Survey"))

    def to_json(self) -> str:
        """The survey as JSON; `Survey.from_json` reads it back."""
        releases = {
            question: msgspec.Raw(release.to_json().encode()) for question, release in self.items()
        }
        return msgspec.json.encode(_Document("opendp-bayes survey", 2, releases)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Survey":
        """Read a survey written by `to_json`, checking its format, version and every release.

        Raises
        ------
        ValueError
            That says which release and field is wrong, and how.
        """
        document = decoded(_Document, text)
        releases = []
        for question, release in document.releases.items():
            try:
                releases.append(result_from_json(bytes(release)))
            except ValueError as error:
                raise ValueError(f"releases[{question!r}]: {error}") from None
        return cls(tuple(document.releases), tuple(releases))

    def __repr__(self) -> str:
        texts = (f"{question!r}: {release!r}" for question, release in self.items())
        return f"Survey({{{shortly(texts, len(self))}}})"


def _loss_of(release: SurveyResult) -> str:
    return stated_loss(release.guarantee) if release.guarantee.is_stated else "not stated"


def _headed(table: Table, question: str) -> Table:
    """Put the name of its question before every row of a table."""
    rows = [(question, *row) for row in table.rows]
    return replace(table, headings=("Question", *table.headings), rows=rows, texts=table.texts + 1)


def _panel_title(question: str, result: Any) -> str:
    """The name of a question; of values that were discovered without the number of all others, that
    the shares are of those shown.
    """
    of_shown = hasattr(result, "discovery") and result.rest is None
    return f"{question}: of those shown" if of_shown else question
