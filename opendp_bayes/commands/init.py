"""`opendp-bayes init`: a specification to start from, of the names and types of columns alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, option_errors
from opendp_bayes.commands.output import Kept, echo

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes.released.data import Value as Label

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
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=a,b,c",
            help="The categories of a column that does not list its own; may be repeated.",
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between the values of a line of CSV.")
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="The budget ε to write down.", rich_help_panel=options.PRIVACY)
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SPEC.toml",
            help="The file, which must not exist yet; standard output unless given.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Write a specification for `opendp-bayes report`, to be completed by hand.

    It is made of the names and types of the columns, never of values: the categories of an Enum or
    Boolean column are in its type, all others are for you to list.

    Exit code: 0 if it was written, 2 for wrong options.

    Examples, of which the first makes the file for the other:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no
    """
    from opendp_bayes.commands.files import scan_columns, scannable, schema_of, source
    from opendp_bayes.commands.query import budget, labels_of

    with option_errors():
        budget(epsilon, None, None)
        listed = _listed(categories or [])
        read = source(data, separator)
    with Kept(output) as kept, scannable(read) as found:
        types = scan_columns(found, list(listed), _refuse).collect_schema()
        labels = {
            name: labels_of(f"--categories {name}=", values, name, types[name])
            for name, values in listed.items()
        }
        text = "\n".join(_lines(found.title, schema_of(found), labels, separator, epsilon))
        if output is None:
            echo(text)
        else:
            kept.keep(text)


def _refuse(column: str, problem: str) -> NoReturn:
    fail(f"--categories {column}=: {problem}")


def _listed(options: list[str]) -> dict[str, str]:
    """What is listed of each column."""
    found: dict[str, str] = {}
    for option in options:
        name, equals, values = option.partition("=")
        if not (name and equals and values):
            fail(f"--categories {option}: must be COLUMN=a,b,c, such as --categories vote=yes,no.")
        if name in found:
            fail(
                f"--categories {option}: {name} has its categories already; list all of them at"
                f" once, as in --categories {name}=a,b,c."
            )
        found[name] = values
    return found


def _lines(
    title: str,
    schema: "pl.Schema",
    listed: "dict[str, list[Label]]",
    separator: str | None,
    epsilon: float,
) -> Iterator[str]:
    """The specification. What is still to be decided is a comment."""
    import polars as pl

    from opendp_bayes.commands.files import countable_type

    yield f"title = {_text(f'Report on {title}')}"
    yield 'text = ""  # where the data are from'
    if separator is not None:
        yield f"separator = {_text(separator)}"
    yield f"\n[privacy]\nepsilon = {epsilon!r}  # of all results together; or rho = ..."
    yield 'unit = "one record"  # whom or what it protects, in words'
    yield "# size = 1000  # the number of records, if it is public"
    yield '# identifier = "person"  # if the unit has several records; needs rows_per_identifier'
    results = []
    for name, dtype in schema.items():
        plain = countable_type(dtype)
        key = name if _BARE.fullmatch(name) else _text(name)
        if plain is None:
            yield f"\n# [columns.{key}] has type {dtype}, which is not counted"
            continue
        known = listed.get(name)
        yield ""
        if known is None and plain != pl.Boolean and not isinstance(plain, pl.Enum):
            yield f"# [columns.{key}]\n# categories = []  # {plain}: list all of them"
            continue
        yield f"[columns.{key}]"
        if known is not None:
            yield f"categories = [{', '.join(map(_text, known))}]"
        else:
            yield "# The categories are those of its type."
        yield '# nulls = "missing"  # without it, records without a value are left out'
        results.append(name)
    for name in results:
        yield f"\n[[results]]\ncolumn = {_text(name)}"
    if not results:
        yield '\n# [[results]]\n# column = "..."'


def _text(value: "Label") -> str:
    return json.dumps(value, ensure_ascii=False)  # what JSON says of a label, TOML does too
