"""The format of a specification, which says what a report is to release."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from opendp_bayes.mathematics.validation import LARGEST_CONCENTRATION
from opendp_bayes.release_format.labels import OTHER, spare
from opendp_bayes.trusted.account import Loss
from opendp_bayes_office.files.reading import Part, Reading, Steps, Value, as_text, says
from opendp_bayes_office.report.language import Tag

#: In place of a category: records without a value, or with another one, are left out.
DROP = "DROP"
#: OpenDP counts rows in 32 bits, two for each change.
MOST_ROWS = 2**31 - 1
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Number = Annotated[int, msgspec.Meta(ge=1, le=int(LARGEST_CONCENTRATION))]
Rows = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
Values = Annotated[list[Value], msgspec.Meta(min_length=1)]
#: In place of the categories: those that private counts show.
DISCOVER: Literal["discover"] = "discover"


class Unit(Part, frozen=True, kw_only=True):
    """The people behind the data."""

    unit: Annotated[str, says("Whom or what a privacy unit is, in words.")] = "one record"
    contributions: Annotated[
        Rows, says("The most records, or identifiers, of one unit. A promise.")
    ] = 1
    identifier: Annotated[str | None, says("The column that says whose a record is.")] = None
    size: Annotated[Number | None, says("The number of records, if it is public.")] = None


class Privacy(Unit, frozen=True, kw_only=True):
    """The people whom the report protects, and the budget for all results together."""

    epsilon: Annotated[Positive | None, says("Budget ε; either this or rho.")] = None
    rho: Annotated[
        Positive | None, says("Budget ρ of zero-concentrated differential privacy (zCDP).")
    ] = None
    delta: Annotated[Share | None, says("The δ that goes with ε or ρ.")] = None
    guess_size: Annotated[
        Number | None,
        says("A public guess of a private number of records, for widths that --dry-run foresees."),
    ] = None
    rows_per_identifier: Annotated[
        Rows | None, says("Keep at most so many records of each identifier.")
    ] = None

    @property
    def loss(self) -> Loss:
        """The budget."""
        return Loss(epsilon=self.epsilon, rho=self.rho, delta=self.delta or 0.0)


class Column(Steps, frozen=True, kw_only=True):
    """A column, its categories, and where other values are counted. All of them are compared as
    text.
    """

    categories: Annotated[
        Values | Literal["discover"] | None,
        says(
            "All categories, in order; an Enum or Boolean column has its own. Where nobody can list"
            " them, 'discover' shows those whose noisy counts reach a threshold, and needs delta."
        ),
    ] = None
    always: Annotated[
        list[Value], says("With 'discover', categories that are shown whatever their count.")
    ] = msgspec.field(default_factory=list)
    labels: Annotated[
        list[str] | None, says("What the report calls the categories, in the same order.")
    ] = None
    nulls: Annotated[
        Value | None,
        says(
            "The category in which records without a value are counted, also as a group; without"
            " it, or with 'DROP', they are left out."
        ),
    ] = None
    unknown: Annotated[
        Value | None,
        says(
            "The category in which other values are counted, also as a group; 'DROP' leaves them"
            " out. Without it they are a category of their own, other, and in no group."
        ),
    ] = None

    @property
    def discovered(self) -> bool:
        """True if the categories are to be discovered."""
        return self.categories == DISCOVER

    @property
    def listed(self) -> list[str] | None:
        """The categories that are listed; None where they are those of the type, or discovered."""
        is_list = isinstance(self.categories, list)
        return texts(self.categories or ()) if is_list else None

    @property
    def named(self) -> dict[str, list[str]]:
        """The values of its records that each field names."""
        return {
            "categories": self.listed or [],
            "always": texts(self.always),
            "recode": list(self.recode),
            "null_values": texts(self.null_values),
            "nulls": texts([] if self.nulls is None else [self.nulls]),
            "unknown": texts([] if self.unknown is None else [self.unknown]),
        }

    @property
    def counted_nulls(self) -> str | None:
        """The category in which records without a value are counted; None where they are left
        out.
        """
        return None if self.nulls in (None, DROP) else as_text(self.nulls)

    @property
    def counted_unknown(self) -> str | None:
        """The category in which other values are counted, which is one of their own unless one is
        named; None where they are left out, or cannot occur, as in a column with the categories of
        its type.
        """
        if self.unknown is not None:
            return None if self.unknown == DROP else as_text(self.unknown)
        if self.listed is None:
            return None
        return spare(OTHER, [*self.listed, *filter(None, [self.counted_nulls])])


class Result(Part, frozen=True, kw_only=True):
    """A posterior, or one for each group."""

    column: Annotated[
        str | list[str], says("The column, described under `columns`; several are one joint table.")
    ]
    title: Annotated[str, says("The heading; the column unless given.")] = ""
    text: Annotated[str, says("A paragraph below the heading.")] = ""
    by: Annotated[
        str | None, says("A posterior for each category of this column, also under `columns`.")
    ] = None
    pooled: Annotated[
        bool, says("With `by`, estimate the groups together, so that they borrow strength.")
    ] = False
    prior: Annotated[
        float | list[float] | Literal["auto", "learned"],
        says(
            "Prior concentration: one number, or one for each category; learned, from the release;"
            " or auto, learned of ten or more categories with noise on the counts, and 1 elsewhere."
        ),
    ] = "auto"
    ordered: Annotated[
        list[str] | None,
        says(
            "Columns whose categories are in order: a learned prior is smooth along them, and of"
            " one column quantiles are shown."
        ),
    ] = None
    merge: Annotated[
        Annotated[int, msgspec.Meta(ge=2)] | dict[str, list[Value | list[Value]]] | None,
        says(
            "Count merged categories: a list of categories for each new label; or so many"
            " neighbours together."
        ),
    ] = None
    rest: Annotated[
        Share | None,
        says(
            "Of discovered categories, the part of the result's loss that buys the number of all"
            " records that are not shown, such as 0.2."
        ),
    ] = None
    share: Annotated[Positive, says("Weight of the result in the budget.")] = 1.0
    mechanism: Annotated[
        str, says("The name of a mechanism, or auto, which chooses by public things only.")
    ] = "auto"

    @property
    def heading(self) -> str:
        """Heading of the result in the report."""
        columns = " × ".join(self.columns)
        if isinstance(self.merge, dict):
            columns = f"{columns}, merged"
        by = self.merge if isinstance(self.merge, int) else self.by
        return self.title or (columns if by is None else f"{columns} by {by}")

    @property
    def columns(self) -> list[str]:
        """The columns whose categories are counted."""
        return [self.column] if isinstance(self.column, str) else self.column

    @property
    def used(self) -> list[str]:
        """These, and the column that makes groups."""
        return [*self.columns, *([] if self.by is None else [self.by])]


class Specification(Reading, frozen=True, kw_only=True):
    """Specification of a report: its results, their columns, the privacy unit and the budget."""

    title: Annotated[str, msgspec.Meta(min_length=1, description="The title of the report.")]
    text: Annotated[str, says("A paragraph below the title: where the data are from.")] = ""
    joint: Annotated[
        bool, says("Estimate all results together, so that the tables agree with each other.")
    ] = False
    language: Annotated[
        Tag, says("The language of the page's own sentences, with its decimal mark.")
    ] = "en"
    among: Annotated[
        Literal["answered", "all"],
        says(
            "Whether the page shows shares of those who answered, where a new category stands for"
            " no value, or of all."
        ),
    ] = "answered"
    privacy: Privacy
    columns: Annotated[
        dict[str, Column], says("By name; not needed where the owner of the data lists them.")
    ] = msgspec.field(default_factory=dict)
    results: Annotated[list[Result], says("In the order of the report.")]


def texts(values: Iterable[Value]) -> list[str]:
    """Values as text."""
    return list(map(as_text, values))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a specification."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Specification),
    }
