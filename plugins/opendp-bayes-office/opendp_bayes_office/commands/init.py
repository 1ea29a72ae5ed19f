"""`opendp-bayes init`: a specification to start from, of the names and types of columns alone.

A CSV file does not say whether its first line names the columns or is a record already, and no look
at the line can tell. A specification is published with the report, so `init` writes no name of a
CSV file that was not given to it, unless it was told that there is a header.
"""

import json
import os
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, say
from opendp_bayes_office.commands.output import PRINTED, NewFile
from opendp_bayes_office.commands.specified import NOT_SEEN

if TYPE_CHECKING:
    from opendp_bayes.trusted.kinds import ColumnKind

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def init(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="The file with the data, as for `release`; - is standard input.",
            show_default=False,
        ),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column to include. It may be given several times. The default is all columns.",
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=a,b,c",
            help="The categories of a column without its own. It may be given several times.",
        ),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(
            "--header", help="The first line of the CSV file names the columns and is not a record."
        ),
    ] = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    rows_above: options.RowsAbove = 0,
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="The budget ε to write down.", rich_help_panel=options.PRIVACY
        ),
    ] = 1.0,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="SPEC.toml",
            help="The new file; - is standard output.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = PRINTED,
    owner: Annotated[
        Path | None,
        typer.Option(
            metavar="data.toml",
            help=(
                "Write to this new file what only the owner of DATA may state, and leave it out of"
                " the specification."
            ),
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Write a specification for `opendp-bayes report` or `run`, to be completed by hand.

    If every column has its categories, the file can be run unchanged. It is made from the names and
    types of the columns, never from values. The type of an Enum or Boolean column holds its
    categories, and you list all others.

    The first line of a CSV file may be a record, which must not be published. For CSV files, only
    the columns that --column or --categories names are therefore written, or all with --header.

    With --owner, there are two files. One holds the facts of the data, for the owner to complete:
    where they are and how they are read, whom they are about, which columns may be asked for, and
    how much may be spent. The other holds the question, which somebody else may write.

    Exit code: 0 if the file was written, 2 for wrong options.

    Examples. The first one makes the file for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no

        opendp-bayes init v.csv --categories vote=yes,no --owner d.toml -o q.toml
    """
    from opendp_bayes_office.files.files import STANDARD_INPUT, kinds_of, scannable, source
    from opendp_bayes_office.files.reading import Reading, Steps
    from opendp_bayes_office.report.templates import filled

    if owner is not None and data == STANDARD_INPUT:
        fail("--owner: needs a file that can be read again, and not standard input.")
    listed = _listed(categories or [])
    how = Reading(
        separator=separator,
        encoding=encoding,
        sheet=sheet,
        rows_above=rows_above,
        labels=options.has_labels(data, list(chain.from_iterable(listed.values()))),
    )
    file = source(data, how)
    names = None
    if column or not (header or not file.may_lack_header):
        names = list(dict.fromkeys([*(column or []), *listed]))
    if names == []:
        fail(
            f"data={file.name}: its first line may be data, and a specification must not contain"
            " data. Name the columns to write down, as in --column vote --column age, or say with"
            " --header that the first line names the columns."
        )
    with scannable(file) as opened:
        new, new_of_owner = NewFile(output), None if owner is None else NewFile(owner)
        kinds = kinds_of(opened, names)
        if data != STANDARD_INPUT:
            opened.complete()
        described = {
            label: values for label in kinds if (values := opened.codebook(label, Steps()))
        } | listed
        reading = {
            field: value
            for field, value in structs.asdict(how).items()
            if value != getattr(Reading(), field) and (field != "labels" or described)
        }
        columns = [_column(label, kind, described.get(label)) for label, kind in kinds.items()]
        counted = [
            label
            for label, stated in zip(kinds, columns, strict=True)
            if stated["state"] == "counted"
        ]
        if not counted:
            say(
                "no column lists its categories, which are public knowledge and never read off the"
                " data; list those of one or more, as in --categories COLUMN=a,b,c, or in the file."
            )
        facts: dict[str, Any] = {
            "title": opened.name.partition(".")[0],
            "reading": reading,
            "columns": columns,
            "epsilon": epsilon,
            "counted": counted,
            "owned": owner is not None,
        }
        if new_of_owner is not None:
            path = os.path.relpath(data, new_of_owner.path.parent)
            new_of_owner.write(filled("owner.toml", path=path, **facts).encode())
        if listed:
            say(NOT_SEEN)
        new.write(filled("specification.toml", **facts).encode())


def _listed(texts: list[str]) -> dict[str, list[str]]:
    """Parse the options COLUMN=a,b,c into the labels after the equals sign, by column."""
    labels: dict[str, list[str]] = {}
    for text in texts:
        column, equals, values = text.partition("=")
        if not (column and equals and values) or column in labels:
            fail(
                f"--categories {text}: must be COLUMN=a,b,c, such as --categories vote=yes,no,"
                " once for each column."
            )
        labels[column] = options.labels(f"--categories {column}=", values)
    return labels


def _column(column: str, kind: "ColumnKind", categories: list[str] | None) -> dict[str, Any]:
    """A column as a template takes it: counted, if its categories are known."""
    key = column if _BARE.fullmatch(column) else json.dumps(column, ensure_ascii=False)
    is_listed = categories is not None or kind.kind == "boolean" or kind.declared is not None
    state = "not counted" if kind.kind == "other" else "counted" if is_listed else "not listed"
    return {"key": key, "type": kind.type, "state": state, "categories": categories}
