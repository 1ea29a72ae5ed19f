"""`opendp-bayes init`: a specification to start from, of the names and types of columns alone.

A CSV file does not say whether its first line names the columns or is a record already, and no look
at the line can tell. A specification is published with the report, so `init` writes no name of a
CSV file that was not given to it, unless it was told that there is a header.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors, say
from opendp_bayes_office.commands.output import Kept, echo
from opendp_bayes_office.commands.specified import NOT_SEEN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from opendp_bayes.release_format.data import Value as Label
    from opendp_bayes.trusted.kinds import ColumnKind
    from opendp_bayes_office.files.files import Refuse, Source

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
    from opendp_bayes.mathematics.validation import as_positive
    from opendp_bayes.trusted.kinds import kinds_in
    from opendp_bayes_office.files.files import (
        STANDARD_INPUT,
        Cleaning,
        codebook,
        named_columns,
        scan_columns,
        scannable,
        source,
    )
    from opendp_bayes_office.files.tables import LABELLED

    if owner is not None and data == STANDARD_INPUT:
        fail("--owner: needs a file that can be read again, and not standard input.")
    with option_errors():
        as_positive(epsilon, "epsilon")
        json_ = output is not None and output.suffix.lower() == ".json"
        listed = _listed(categories or [])
        read = source(data, separator, encoding, sheet=sheet, glob=glob)
        if not listed and read.kind in LABELLED:
            read = replace(read, cleaning=Cleaning(labels=True))
        named = _named(read, column or [], listed, header)
    with Kept(output) as kept, Kept(owner) as kept_by_owner, scannable(read) as found:

        def refuse(name: str, problem: str) -> NoReturn:
            fail(
                f"--categories {name}=: {problem}"
                if name in listed
                else f"--column {name}: {problem}"
            )

        types = kinds_in(scan_columns(found, list(listed), refuse))
        schema = named_columns(found, named, refuse)
        book = {name: of for name, of in codebook(found).items() if name in schema}
        schema |= {name: replace(schema[name], declared=tuple(of)) for name, of in book.items()}
        if read.path != STANDARD_INPUT:
            found.complete()
        labels = {name: _labels(name, texts, types[name], refuse) for name, texts in listed.items()}
        reading: dict[str, Label | None] = {
            "separator": separator,
            "encoding": encoding,
            "sheet": sheet,
            "glob": glob or None,
            "labels": bool(book) or None,
        }
        lines = list(_lines(found.title, schema, labels, reading, epsilon, owner is not None))
        if not any(line.startswith("\n[[results]]") for line in lines):
            problem = (
                "no column lists its categories, which are public knowledge and never read off the"
                " data; list those of one or more, as in --categories COLUMN=a,b,c"
            )
            if json_:  # which has no comments
                fail(f"--output {output}: {problem}.")
            say(f"{problem}, or in the file.")
        if owner is not None:
            where = os.path.relpath(data, owner.parent)
            facts = _facts(where, found.title, schema, labels, reading, epsilon)
            kept_by_owner.keep("\n".join(facts) + "\n")
        if labels:
            say(NOT_SEEN)
        text = "\n".join(lines)
        if json_:
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
    if header and not read.may_lack_header:
        fail(f"--header: is for CSV and workbooks, and {read.name} is {read.kind}.")
    if not columns and (header or not read.may_lack_header):
        return None
    if not named:
        fail(
            f"FILE {read.name}: its first line may be a record, which a specification must not"
            " hold. Name the columns to write down, as in --column vote --column age, or say with"
            " --header that the first line names the columns."
        )
    return named


def _labels(name: str, texts: list[str], known: "ColumnKind", refuse: "Refuse") -> "list[Label]":
    """The labels of a column in its type, each once; `refuse` is told of others."""
    from opendp_bayes_office.commands.answers import typed_label
    from opendp_bayes_office.report.field_errors import FieldError

    try:
        labels = [typed_label(text, known, ("columns", name, "categories")) for text in texts]
    except FieldError as error:
        refuse(name, error.problem)
    if len(set(labels)) < len(labels):
        refuse(name, "must not repeat a label.")
    return labels


def _listed(given: list[str]) -> dict[str, list[str]]:
    """Parse the options COLUMN=a,b,c into the labels after the equals sign, by column."""
    found: dict[str, list[str]] = {}
    for option in given:
        name, equals, values = option.partition("=")
        if not (name and equals and values):
            fail(f"--categories {option}: must be COLUMN=a,b,c, such as --categories vote=yes,no.")
        if name in found:
            fail(
                f"--categories {option}: {name} has its categories already; list all of them at"
                f" once, as in --categories {name}=a,b,c."
            )
        found[name] = options.labels(f"--categories {name}=", values)
    return found


def _lines(
    title: str,
    schema: "dict[str, ColumnKind]",
    listed: "dict[str, list[Label]]",
    reading: "Mapping[str, Label | None]",
    epsilon: float,
    owned: bool,
) -> Iterator[str]:
    """Write the specification, without the facts of the data where they are `owned`; decisions that
    are left to the user are comments.
    """
    from opendp_bayes.queries.columns import covers

    yield from (
        f"title = {_text(f'Report on {title}')}",
        'text = ""  # where the data are from',
        "# joint = true  # estimate all results together, so that sums agree; needs nulls",
        *(() if owned else _reading(reading)),
        f"\n[privacy]\nepsilon = {epsilon!r}  # of all results together; or rho = ...",
    )
    if not owned:
        yield from (
            'unit = "one record"  # whom or what it protects, in words',
            "# size = 1000  # the number of records, if it is public",
            "# guess_size = 1000  # a guess, for the widths that --dry-run shows",
            '# identifier = "person"  # if a unit has several records; needs rows_per_identifier',
        )
    results = []
    unlisted = '; or categories = "discover", which shows the frequent ones and needs delta'
    for name, plain, lines in _columns(schema, listed, unlisted):
        known = listed.get(name)
        others = known is not None and plain is not None and not covers(plain, tuple(known))
        if plain is not None:
            results.append(name)
        if not owned:
            yield from lines
        elif others:
            yield f"\n[columns.{_key(name)}]"
        if others:
            yield '# unknown = "DROP"  # without it, all other values are a category, other'
    for name in results:
        yield f"\n[[results]]\ncolumn = {_text(name)}"
    if not results:
        yield '\n# [[results]]\n# column = "..."'
    if len(results) > 1:
        pair = ", ".join(map(_text, results[:2]))
        yield f"\n# [[results]]\n# column = [{pair}]  # their cross table"


def _facts(
    path: str,
    title: str,
    schema: "dict[str, ColumnKind]",
    listed: "dict[str, list[Label]]",
    reading: "Mapping[str, Label | None]",
    epsilon: float,
) -> Iterator[str]:
    """Write the owner's file; decisions that are left to the owner are comments."""
    yield from (
        "# Facts of the data, which only their owner states. A question may repeat them.",
        f"path = {_text(path)}",
        *_reading(reading),
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
    allowed = "; or discover = true, which lets questions discover them and needs delta_at_most"
    for _, _, lines in _columns(schema, listed, allowed):
        yield from lines
    yield from (
        f"\n[ledger]\npath = {_text(f'{title}.ledger')}",
        f"total = {{ epsilon = {epsilon!r} }}  # of all runs together",
        '# dataset = "..."  # its name in the ledger, if that keeps several',
    )


def _reading(reading: "Mapping[str, Label | None]") -> Iterator[str]:
    """Write how the file is read."""
    for field, value in reading.items():
        if value is not None:
            yield f"{field} = {_text(value)}"


def _columns(
    schema: "dict[str, ColumnKind]", listed: "dict[str, list[Label]]", unlisted: str
) -> "Iterator[tuple[str, ColumnKind | None, list[str]]]":
    """Yield each column, what is known of it, None where its categories are not, and the lines of
    its table. `unlisted` says what else is possible where nobody can list them.
    """
    for name, column in schema.items():
        known = listed.get(name)
        table = f"[columns.{_key(name)}]"
        if column.kind == "other":
            yield name, None, [f"\n# {table} has type {column.type}, which is not counted"]
        elif known is None and column.kind != "boolean" and column.declared is None:
            of = f"# categories = []  # {column.type}: list all of them{unlisted}"
            yield name, None, [f"\n# {table}", of]
        else:
            where = "type" if column.type in ("Enum", "Boolean") else "code book"
            categories = (
                f"# The categories are those of its {where}, which must not be made from the data."
                if known is None
                else f"categories = [{', '.join(map(_text, known))}]"
            )
            nulls = '# nulls = "missing"  # without it, records without a value are left out'
            yield name, column, [f"\n{table}", categories, nulls]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: "Label") -> str:
    return json.dumps(value, ensure_ascii=False)  # what JSON says of a label, TOML does too
