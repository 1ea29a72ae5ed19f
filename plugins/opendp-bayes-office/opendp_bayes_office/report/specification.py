"""The format of a specification, which says what a report is to release."""

from typing import Annotated, Any, Literal

import msgspec

from opendp_bayes.mathematics.validation import LARGEST_CONCENTRATION
from opendp_bayes.release_format.labels import OTHER, spare

Value = str | bool | int
#: In place of a category: records without a value, or with another one, are left out.
DROP = "DROP"
#: What an empty line of CSV is: no record, or one without a value.
BlankLines = Literal["skip", "null"]
#: OpenDP counts rows in 32 bits, two for each change.
MOST_ROWS = 2**31 - 1
_Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Number = Annotated[int, msgspec.Meta(ge=1, le=int(LARGEST_CONCENTRATION))]
Rows = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
_Several = Annotated[int, msgspec.Meta(ge=2)]
Values = Annotated[list[Value], msgspec.Meta(min_length=1)]
#: In place of the categories: those that private counts show.
DISCOVER: Literal["discover"] = "discover"


def as_text(value: Value) -> str:
    """A value as text: of integers and Booleans as JSON writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def says(description: str) -> msgspec.Meta:
    """State what a field is for, as its JSON Schema does."""
    return msgspec.Meta(description=description)


NULL_VALUES = says("Texts and whole numbers that stand for no value, such as 'NA' or '-99'.")
RECODE = says("From values to the category that each is counted in, such as another spelling.")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class Reading(Part, frozen=True, kw_only=True):
    """How the file with the data is read."""

    separator: Annotated[str | None, says("Between the values of a line of CSV.")] = None
    encoding: Annotated[str | None, says("Of the text of CSV; UTF-8 unless given.")] = None
    trim: Annotated[
        bool, says("Leave out blanks around every text, and around the names of a CSV file.")
    ] = False
    null_values: Annotated[list[str | int], NULL_VALUES] = msgspec.field(default_factory=list)
    blank_lines: Annotated[
        BlankLines,
        says("An empty line or row is no record (skip), or one without a value (null)."),
    ] = "skip"
    labels: Annotated[
        bool | str,
        says(
            "Codes of SPSS and Stata become their value labels, a fact of the code book; of SAS the"
            " catalogue that has them, such as 'formats.sas7bcat', from the folder of the file."
        ),
    ] = False
    sheet: Annotated[
        str | None, says("The sheet of a workbook; it may be left out where there is one.")
    ] = None
    glob: Annotated[
        bool,
        says("The path stands for all files of Parquet that match it, as in 'data/*.parquet'."),
    ] = False


class Privacy(Part, frozen=True, kw_only=True):
    """The people whom the report protects, and the budget for all results together."""

    unit: Annotated[str, says("Whom or what a privacy unit is, in words.")] = "one record"
    epsilon: Annotated[_Positive | None, says("Budget ε; either this or rho.")] = None
    rho: Annotated[
        _Positive | None, says("Budget ρ of zero-concentrated differential privacy (zCDP).")
    ] = None
    delta: Annotated[Share | None, says("The δ that goes with ε or ρ.")] = None
    size: Annotated[Number | None, says("The number of records, if it is public.")] = None
    guess_size: Annotated[
        Number | None,
        says("A public guess of a private number of records, for widths that --dry-run foresees."),
    ] = None
    contributions: Annotated[
        Rows, says("The most records, or identifiers, of one unit. A promise.")
    ] = 1
    identifier: Annotated[str | None, says("The column that says whose a record is.")] = None
    rows_per_identifier: Annotated[
        Rows | None, says("Keep at most so many records of each identifier.")
    ] = None


class Column(Part, frozen=True, kw_only=True):
    """A column, its categories, and where other values are counted."""

    categories: Annotated[
        Values | Literal["discover"] | None,
        says(
            "All categories, in order; an Enum or Boolean column has its own. Where nobody can list"
            " them, 'discover' shows those whose noisy counts reach a threshold, and needs delta."
        ),
    ] = None
    always: Annotated[
        list[Value],
        says("With 'discover', categories that are shown whatever their count."),
    ] = msgspec.field(default_factory=list)
    recode: Annotated[dict[str, Value], RECODE] = msgspec.field(default_factory=dict)
    null_values: Annotated[list[str | int], NULL_VALUES] = msgspec.field(default_factory=list)
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
    def listed(self) -> list[Value] | None:
        """The categories that are listed; None where they are those of the type, or discovered."""
        return None if isinstance(self.categories, str) else self.categories

    @property
    def counted_nulls(self) -> Value | None:
        """The category in which records without a value are counted; None where they are left
        out.
        """
        return None if self.nulls == DROP else self.nulls

    @property
    def counted_unknown(self) -> Value | None:
        """The category that is named for other values; None where none is, or they are left out."""
        return None if self.unknown == DROP else self.unknown

    @property
    def own_unknown(self) -> str | None:
        """The category of their own that other values have; None where they have none, as in a
        column with the categories of its type, which are all that it can hold.
        """
        if self.listed is None or self.unknown is not None:
            return None
        nulls = self.counted_nulls
        return spare(OTHER, [*self.listed, *([] if nulls is None else [nulls])])


class Result(Part, frozen=True, kw_only=True):
    """A posterior, or one for each group."""

    column: Annotated[
        str | list[str],
        says("The column, described under `columns`; several are one joint table."),
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
        _Several | dict[str, list[Value | list[Value]]] | None,
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
    share: Annotated[_Positive, says("Weight of the result in the budget.")] = 1.0
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
        bool,
        says("Estimate all results together, so that the tables agree with each other."),
    ] = False
    privacy: Privacy
    columns: Annotated[
        dict[str, Column], says("By name; not needed where the owner of the data lists them.")
    ] = msgspec.field(default_factory=dict)
    results: Annotated[list[Result], says("In the order of the report.")]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a specification."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Specification),
    }
