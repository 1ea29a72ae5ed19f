"""`opendp-bayes init`: a specification to start from, of the names and types of columns alone.

A CSV file does not say whether its first line names the columns or is a record already, and no look
at the line can tell. A specification is published with the report, so `init` writes no name of a
CSV file that was not given to it, unless it was told that there is a header.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors, say
from opendp_bayes_office.commands.output import Kept, echo
from opendp_bayes_office.commands.specified import NOT_SEEN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from opendp_bayes.trusted.kinds import ColumnKind
    from opendp_bayes_office.files.files import Source

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
            "--header",
            help="The first line of the CSV file names the columns and is not a record.",
        ),
    ] = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    glob: options.Glob = False,
    epsilon: Annotated[
        float, typer.Option(help="The budget ε to write down.", rich_help_panel=options.PRIVACY)
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SPEC.toml",
            help="The new file. The default is standard output. A .json file has no comments.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
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
    from opendp_bayes_office.files.tables import LABELLED

    if owner is not None and data == STANDARD_INPUT:
        fail("--owner: needs a file that can be read again, and not standard input.")
    if not 0 < epsilon < float("inf"):
        fail(f"--epsilon {epsilon}: must be finite and greater than 0, such as 1.")
    is_json = output is not None and output.suffix.lower() == ".json"
    listed = _listed(categories or [])
    with option_errors():
        how = Reading(separator=separator, encoding=encoding, sheet=sheet, glob=glob)
        read = source(data, how)
        if not listed and read.kind in LABELLED:
            how = replace(how, labels=True)
            read = source(data, how)
    named = _named(read, column or [], listed, header)
    with Kept(output) as kept, Kept(owner) as kept_by_owner, scannable(read) as found:
        columns = kinds_of(found, named)
        if data != STANDARD_INPUT:
            found.complete()
        known = {name: found.codebook(name, Steps()) for name in columns}
        known = {name: of for name, of in known.items() if of} | listed
        given = {name: getattr(how, name) for name in Reading.__struct_fields__}
        reading = [
            f"{name} = {_text(value)}"
            for name, value in given.items()
            if value != getattr(Reading(), name) and (name != "labels" or known)
        ]
        of_columns = {
            name: list(_column(name, of, known.get(name))) for name, of in columns.items()
        }
        asked = [name for name, lines in of_columns.items() if not lines[1].startswith("#")]
        if not asked:
            problem = (
                "no column lists its categories, which are public knowledge and never read off the"
                " data; list those of one or more, as in --categories COLUMN=a,b,c"
            )
            if is_json:  # which has no comments
                fail(f"--output {output}: {problem}.")
            say(f"{problem}, or in the file.")
        if owner is not None:
            path = os.path.relpath(data, owner.parent)
            facts = _facts(path, found.title, reading, of_columns, epsilon)
            kept_by_owner.keep("\n".join(facts) + "\n")
            reading, of_columns = [], {}
        if listed:
            say(NOT_SEEN)
        text = "\n".join(_question(found.title, reading, of_columns, asked, epsilon))
        if is_json:
            text = json.dumps(tomllib.loads(text), ensure_ascii=False, indent=2)
        if output is None:
            echo(text)
        else:
            kept.keep(text)


def _named(
    read: "Source", columns: list[str], listed: dict[str, list[str]], header: bool
) -> list[str] | None:
    """The columns to write down; None for all. Exits with a message where nobody says that the
    names of a CSV file are names.
    """
    named = list(dict.fromkeys([*columns, *listed]))
    if not columns and (header or not read.may_lack_header):
        return None
    if not named:
        fail(
            f"FILE {read.name}: its first line may be data, and a specification must not contain"
            " data. Name the columns to write down, as in --column vote --column age, or say with"
            " --header that the first line names the columns."
        )
    return named


def _listed(given: list[str]) -> dict[str, list[str]]:
    """Parse the options COLUMN=a,b,c into the labels after the equals sign, by column."""
    labels: dict[str, list[str]] = {}
    for option in given:
        name, equals, values = option.partition("=")
        if not (name and equals and values) or name in labels:
            fail(
                f"--categories {option}: must be COLUMN=a,b,c, such as --categories vote=yes,no,"
                " once for each column."
            )
        labels[name] = options.labels(f"--categories {name}=", values)
    return labels


def _column(name: str, of: "ColumnKind", categories: list[str] | None) -> Iterator[str]:
    """The lines of the table of a column; decisions that are left to the user are comments."""
    table = f"[columns.{name if _BARE.fullmatch(name) else _text(name)}]"
    if of.kind == "other":
        yield from ("", f"# {table} has type {of.type}, which is not counted")
    elif categories is None and of.kind != "boolean" and of.declared is None:
        yield from ("", f"# {table}", f"# categories = []  # {of.type}: list all of them")
    else:
        yield from ("", table)
        if categories is None:
            yield "# The categories are those of its type, which must not be made from the data."
        else:
            yield f"categories = {_text(categories)}"
        yield '# nulls = "missing"  # without it, records without a value are left out'
        yield '# unknown = "DROP"  # without it, all other values are a category, other'


def _question(
    title: str,
    reading: list[str],
    columns: dict[str, list[str]],
    asked: list[str],
    epsilon: float,
) -> Iterator[str]:
    """The specification; with an owner's file the facts of the data stand there."""
    yield from (
        f"title = {_text(f'Report on {title}')}",
        'text = ""  # where the data are from',
        "# joint = true  # estimate all results together, so that sums agree; needs nulls",
        *reading,
        f"\n[privacy]\nepsilon = {epsilon!r}  # of all results together; or rho = ...",
    )
    if columns:
        yield from (
            'unit = "one record"  # whom or what it protects, in words',
            "# size = 1000  # the number of records, if it is public",
            "# guess_size = 1000  # a guess, for the widths that --dry-run shows",
            '# identifier = "person"  # if a unit has several records; needs rows_per_identifier',
        )
    for lines in columns.values():
        yield from lines
    for name in asked:
        yield f"\n[[results]]\ncolumn = {_text(name)}"
    if not asked:
        yield '\n# [[results]]\n# column = "..."'


def _facts(
    path: str, title: str, reading: list[str], columns: dict[str, list[str]], epsilon: float
) -> Iterator[str]:
    """The owner's file; decisions that are left to the owner are comments."""
    yield from (
        "# Facts of the data, which only their owner states. A question may repeat them.",
        f"path = {_text(path)}",
        *reading,
        "# trim = true  # leave out blanks around every text",
        '# null_values = ["NA", "-99"]  # what stands for no value; also in a table of a column',
        "plugins = []  # mechanisms of installed plugins that a question may name",
        f"epsilon_at_most = {epsilon!r}  # of one run; or rho_at_most = ..., and delta_at_most",
        '\n[privacy]\nunit = "one record"  # whom or what it protects, in words',
        "contributions = 1  # the most records of one unit",
        "# size = 1000  # the number of records, if it is public",
        '# identifier = "person"  # whose a record is; contributions are then persons',
        "# most_rows_per_identifier = 1  # goes with identifier",
    )
    for lines in columns.values():
        yield from (line for line in lines if not line.startswith("# unknown"))
    yield from (
        f"\n[ledger]\npath = {_text(f'{title}.ledger')}",
        f"total = {{ epsilon = {epsilon!r} }}  # of all runs together",
        '# dataset = "..."  # its name in the ledger, if that keeps several',
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # what JSON says of a label, TOML does too
