"""Fields on the reading of a file with data, which its owner states."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

Value = str | bool | int


def as_text(value: Value) -> str:
    """A value as text: of integers and Booleans as JSON writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def says(description: str) -> msgspec.Meta:
    """State what a field is for, as its JSON Schema does."""
    return msgspec.Meta(description=description)


NULL_VALUES = says("Texts and whole numbers that stand for no value, such as 'NA' or '-99'.")
RECODE = says("From values to the category that each is counted in, such as another spelling.")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a specification, or of an owner's file."""


class Steps(Part, frozen=True, kw_only=True):
    """Steps that are taken with each value of a column, by itself."""

    null_values: Annotated[list[str | int], NULL_VALUES] = msgspec.field(default_factory=list)
    recode: Annotated[dict[str, Value], RECODE] = msgspec.field(default_factory=dict)

    @property
    def recoded(self) -> dict[str, str]:
        """The category that each value is counted in, as text."""
        return {value: as_text(label) for value, label in self.recode.items()}


class Reading(Part, frozen=True, kw_only=True):
    """Facts on the reading of the file with the data."""

    separator: Annotated[str | None, says("Between the values of a line of CSV.")] = None
    encoding: Annotated[str | None, says("Of the text of CSV; UTF-8 unless given.")] = None
    trim: Annotated[
        bool, says("Leave out blanks around every text, and around the names of a CSV file.")
    ] = False
    null_values: Annotated[list[str | int], NULL_VALUES] = msgspec.field(default_factory=list)
    rows_above: Annotated[
        int, msgspec.Meta(ge=0, description="Rows of CSV or a sheet above the names, not empty.")
    ] = 0
    skip_rows: Annotated[
        int, msgspec.Meta(ge=0, description="Rows of CSV or a sheet below the names, no records.")
    ] = 0
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

    def codes(self, steps: Steps) -> list[str]:
        """The texts that stand for no value in a column."""
        return list(map(as_text, (*steps.null_values, *self.null_values)))

    def sentences(self, columns: Mapping[str, Steps]) -> list[str]:
        """Say what is done to values before they are counted."""
        catalogue = f" in {self.labels}" if isinstance(self.labels, str) else ""
        said: list[Any] = [
            self.sheet and f"The sheet is {self.sheet!r}.",
            self.labels and f"Codes are read as their value labels{catalogue}.",
            self.trim and "Blanks around texts are left out.",
            self.null_values and f"What reads {_either(self.null_values)} is no value.",
            self.rows_above and f"Rows above the names: {self.rows_above}.",
            self.skip_rows and f"Rows below the names that are no records: {self.skip_rows}.",
        ]
        for name, steps in columns.items():
            said += [
                f"In {name}, {value!r} is counted as {label!r}."
                for value, label in steps.recoded.items()
            ]
            if steps.null_values:
                said.append(f"In {name}, what reads {_either(steps.null_values)} is no value.")
        return list(filter(None, said))


def _either(codes: Sequence[Value]) -> str:
    return " or ".join(map(repr, codes))
