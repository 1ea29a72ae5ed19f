"""Options that several commands have, and how they are read."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from opendp_bayes_office.commands.errors import fail

DATA, MODEL, PRIVACY, OUTPUT = "Data", "Model", "Privacy", "Output"

Size = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", help="The number of records, if it is public.", rich_help_panel=PRIVACY
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="The separator of values in a CSV file: one character, or tab.",
        rich_help_panel=DATA,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "The encoding of a CSV file, such as latin-1 or utf-16. The default is UTF-8. For SPSS,"
            " Stata and SAS, it replaces the encoding that the file states."
        ),
        rich_help_panel=DATA,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The sheet of a workbook; it may be left out where there is one.",
        rich_help_panel=DATA,
    ),
]
RowsAbove = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        help="Rows of a CSV file or sheet above the names, without empty ones.",
        rich_help_panel=DATA,
    ),
]
SkipRows = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        help="Rows of a CSV file or sheet below the names that are no records.",
        rich_help_panel=DATA,
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help=(
            "A plugin mechanism that made a release, if it is not one of this package. It may be"
            " given several times."
        ),
        rich_help_panel=MODEL,
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER", help="Budget ε. Give either this or --rho.", rich_help_panel=PRIVACY
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="The δ that goes with ε or ρ.", rich_help_panel=PRIVACY),
]
Rho = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Budget ρ of zero-concentrated differential privacy (zCDP).",
        rich_help_panel=PRIVACY,
    ),
]
Data = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help=(
            "The file with the data, as for `release`, or the owner's data.toml; - is standard"
            " input."
        ),
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=(
            "Write the release to this new JSON file. By default, a new file beside the first"
            " argument. - prints it instead."
        ),
        rich_help_panel=OUTPUT,
    ),
]
Ledger = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=(
            "Record the spending in this ledger, and refuse what would exceed its total"
            " (`opendp-bayes ledger` makes one)."
        ),
        rich_help_panel=PRIVACY,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --ledger, the data set in it; required if the ledger has several.",
        rich_help_panel=PRIVACY,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help=(
            "Show what each result will cost and how wide its intervals will be, and exit without"
            " reading any record."
        ),
        rich_help_panel=PRIVACY,
    ),
]


def numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        fail(f"{option} {text}: must be numbers separated by commas, such as {option} 0.2,0.8.")


def labels(option: str, listed: str) -> list[str]:
    """The labels in a text with commas between them, without blanks around each; `option` is all
    that stands before it.
    """
    before = option if option.endswith("=") else f"{option} "
    texts = [text.strip() for text in next(csv.reader([listed], skipinitialspace=True), [])]
    if not texts or "" in texts:
        fail(
            f"{before}{listed!r}: must be labels separated by commas, none of them empty, such as"
            f" {before}a,b,c."
        )
    if len(texts) == 1 and any(mark in listed for mark in ";|") and not listed.startswith('"'):
        fail(
            f"{before}{listed!r}: is one label, because labels are separated by commas, such as"
            f" {before}a,b,c. Quote a label that holds a ';' or '|': {before}'\"{listed}\"'."
        )
    return texts


def has_labels(file: Path, listed: list[str]) -> bool:
    """True for a file of SPSS or Stata of which no categories are listed, or others than numbers:
    its codes are read as their value labels.
    """
    from opendp_bayes_office.files.files import EXTENSIONS
    from opendp_bayes_office.files.tables import LABELLED

    are_codes = all(label.lstrip("-").replace(".", "", 1).isdigit() for label in listed)
    is_labelled = EXTENSIONS.get(file.suffix.lower()) in LABELLED
    return is_labelled and not (listed and are_codes)
