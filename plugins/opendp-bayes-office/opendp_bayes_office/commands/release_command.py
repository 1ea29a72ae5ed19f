"""`opendp-bayes release`: a question of one result, asked by options, through a specification."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import beside, display, kept_in, on_a_terminal
from opendp_bayes_office.commands.owned import opened_data
from opendp_bayes_office.commands.specified import Specified, carried_out, echoed

if TYPE_CHECKING:
    from opendp_bayes_office.report.field_errors import FieldError

#: In place of the categories in a specification: those that private counts show.
DISCOVER = "discover"
#: How a specification asks for categories that nobody can list, which here is an option.
_DISCOVERED = re.compile(r"write categories = 'discover'(; that needs delta[^.]*)?")
#: What leaves records out, in a specification too.
_DROP = "DROP"


def release(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=(
                "A .csv, .tsv (also .gz or .zst), .parquet, .ipc, .arrow, .feather, .ods, .xlsx,"
                " .xlsm, .sav, .zsav, .por, .dta, .sas7bdat or .xpt file, or a folder of .parquet"
                " files; - for CSV from standard input; or the owner's data.toml, which leads to"
                " one."
            ),
            show_default=False,
        ),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="The column of categories. Give it several times for a joint table.",
            rich_help_panel=options.DATA,
            show_default=False,
        ),
    ] = None,
    discover: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help=(
                "A column whose categories nobody can list, in place of --column. Categories are"
                " shown if their noisy counts reach a threshold. Needs --delta."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    always: Annotated[
        str | None,
        typer.Option(
            metavar="a,b",
            help="With --discover, categories that are always shown, whatever their counts.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    rest: options.Rest = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "All categories, separated by commas, in the order of the output. An Enum or"
                " Boolean column has its own. For a joint table, give COLUMN=a,b,c for each column."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    nulls: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Count rows without a value as this category, which may be a new one. For a joint"
                " table, give COLUMN=label."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Count rows with any other value as this category, or leave them out with DROP."
                " By default, they are a category of their own, other."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=a,b",
            help=(
                "Release a posterior for each of these groups of a column, and leave out all other"
                " rows. An Enum or Boolean column has its own groups and needs no list."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    glob: options.Glob = False,
    prior: Annotated[
        str,
        typer.Option(
            help=(
                "Prior concentration: one number, or one for each category, new ones included. Or"
                " learned: estimated from the release. Or auto: learned for ten or more"
                " categories with noise on the counts, and 1 otherwise."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = "auto",
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A column whose categories have an order. A learned prior is smooth along it. Give"
                " it once for each such column."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help=(
                "auto (`opendp-bayes plan` explains the choice), laplace_parameters, the name of an"
                " installed mechanism, or, with --size, "
                "knorm_parameters, permute_and_flip, hellinger_exponential or"
                " smooth_hellinger_exponential. Its scale follows from the budget."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = "auto",
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    delta: options.Delta = None,
    size: options.Size = None,
    contributions: Annotated[
        int | None,
        typer.Option(
            help=(
                "The most rows that one person has, or the most identifiers with --identifier. The"
                " default is 1. This is a promise: it is not enforced."
            ),
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option(
            help="The column that identifies whose row it is. Needs --rows-per-identifier.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    rows_per_identifier: Annotated[
        int | None,
        typer.Option(
            help="Keep at most this number of rows of each identifier, drawn at random.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    output: options.Output = None,
) -> None:
    """Release a private posterior of the shares of a column's categories, or of the cells of a
    joint table of several columns. With --discover, release noisy counts of categories that nobody
    listed.

    Without --size, the number of rows is private, and neighbouring data sets differ by adding or
    removing one person's rows. Rows without a value are left out unless --nulls names a category
    for them. Rows with a value outside the categories are counted as `other` unless --unknown names
    another category or leaves them out. A message says so before any data are read.

    With --size, the number of rows is public, and neighbouring data sets differ by changing one
    person's rows. Every row must be counted, so --nulls is needed: `--size 944 --nulls NA`.

    With --discover, every value that occurs gets a noisy count. The value is shown, with its noisy
    count, if that count reaches a threshold. δ bounds the probability of showing a value that only
    one person has. --rest 0.2 spends a fifth of the budget on the number of all other rows.
    `opendp-bayes plan --discover` says which counts are likely to be shown.

    With --identifier, the unit of privacy is all rows with one identifier. The estimates are of the
    rows that are kept (docs: Known limits).

    The first line of a CSV file names the columns. All its values are text, and empty values are
    nulls. The same holds for workbooks and files of SPSS, Stata and SAS, where 1.0 is read as 1.
    A file that is not text in its --encoding is refused before anything is released.

    Each run spends its own budget. The losses of several runs on the same people add up, and
    --ledger FILE keeps account of them. To see what a release would cost, use `opendp-bayes plan`
    or `opendp-bayes report --dry-run`. A release that was made is not lost: if it cannot be
    printed, it goes to a file, and a message says which.

    Exit code: 0 if the release was made, 1 if it failed while data were read, 2 for wrong options,
    3 if it was made but could not be written to its file.

    Examples. The first one makes the file for the others:

        printf '%s\\n' vote yes no yes yes no > votes.csv

        opendp-bayes release votes.csv --column vote --categories yes,no --epsilon 1

        opendp-bayes release votes.csv --column vote --categories yes,no --rho 0.1

        opendp-bayes release votes.csv --discover vote --epsilon 1 --delta 1e-8
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes_office.report.specification_text import specification_of

    if (epsilon is None) == (rho is None):
        fail(
            f"--epsilon, --rho: {'neither is' if epsilon is None else 'both are'} given; give"
            " exactly one, such as --epsilon 1."
        )
    column = _asked_for(column or [], discover, {"categories": categories, "by": by})
    owned = opened_data(file, ledger, dataset)
    columns: dict[str, dict[str, Any]] = {name: {} for name in column}
    alone = column[0] if len(column) == 1 and by is None and size is None else None
    for name, text in _by_column("--categories", categories, column).items():
        columns[name]["categories"] = _listed("--categories ", text, alone)
    if discover is not None:
        columns[discover]["categories"] = DISCOVER
    if always is not None:
        columns[column[0]]["always"] = options.labels("--always", always)
    for option, given in (("nulls", nulls), ("unknown", unknown)):
        for name, text in _by_column(f"--{option}", given, column).items():
            columns[name][option] = text.strip()
    groups = None
    if by is not None:
        groups, equals, listed = by.partition("=")
        columns[groups] = {"categories": _listed(f"--by {groups}=", listed)} if equals else {}
    result = {
        "column": column if len(column) > 1 else column[0],
        "by": groups,
        "prior": prior if prior in ("auto", "learned") else options.prior(prior),
        "ordered": ordered or None,
        "mechanism": mechanism,
        "rest": rest,
    }
    privacy = {
        "epsilon": epsilon,
        "rho": rho,
        "delta": delta,
        "size": size,
        "contributions": contributions,
        "identifier": identifier,
        "rows_per_identifier": rows_per_identifier,
    }
    heading = " × ".join(column) or '""'
    document = {
        "title": heading if groups is None else f"{heading} by {groups}",
        "separator": separator,
        "encoding": encoding,
        "sheet": sheet,
        **({"glob": True} if glob else {}),  # which an owner may have stated
        "privacy": {name: value for name, value in privacy.items() if value is not None},
        "columns": columns,
        "results": [result],
    }
    errors = partial(_errors, joint=len(column) > 1, by=groups)
    with errors():
        asked = Specified(specification_of(document, owner=owned.facts), owned, errors)
    path = output or beside(file, heading)
    with carried_out(asked, output=path) as released:
        if echoed(path, released):
            return
        with waiting("Computing the posterior"):
            shown = released.sheet()
        said = [] if on_a_terminal() else list(released.said)
        display(shown, *said, *kept_in(path, output))


def _asked_for(
    columns: list[str], discover: str | None, listed: dict[str, list[str] | str | None]
) -> list[str]:
    """The columns that are asked for, of which one may be discovered; exits with a message where
    both kinds are given, or what says that categories are `listed`.
    """
    if not columns and discover is None:
        fail("--column: is missing; name the column of categories, or --discover one.")
    if discover is None:
        return columns
    for option, given in {"column": columns, **listed}.items():
        if given:
            fail(f"--{option}: does not go with --discover {discover}; leave out one of the two.")
    return [discover]


def _listed(before: str, text: str, column: str | None = None) -> list[str]:
    """The labels in a text; `before` is all that stands before it. Exits with a message where they
    are to be discovered, which only those of a `column` alone can be.
    """
    labels = options.labels(before.rstrip(" "), text)
    if labels == [DISCOVER]:
        advice = "list the labels, from what is public and not from the data"
        if column is not None:
            advice += f"; or where nobody can, write --discover {column} --delta 1e-8 in place of"
            advice += " --column and --categories"
        fail(f"{before}{text}: is one label, named {DISCOVER}; {advice}.")
    return labels


def _by_column(option: str, given: Sequence[str] | None, columns: Sequence[str]) -> dict[str, str]:
    """Assign the values of an option to the columns: one column takes the value as it is, several
    take COLUMN=..., or all of them DROP.
    """
    if len(columns) == 1:
        if given is not None and len(given) > 1:
            fail(f"{option}: is given more than once; give it once.")
        return dict(zip(columns, given or [], strict=False))
    found: dict[str, str] = {}
    if given == [_DROP] and option != "--categories":
        return dict.fromkeys(columns, _DROP)
    for text in given or []:
        named = [name for name in columns if text.startswith(f"{name}=")]
        name = max(named, key=len, default="")
        if not named or name in found:
            fail(
                f"{option} {text}: must be given once for each column of the joint table, as"
                f" COLUMN=..., such as {option} {columns[0]}=..."
            )
        found[name] = text[len(name) + 1 :]
    return found


@contextmanager
def _errors(*, joint: bool, by: str | None) -> Iterator[None]:
    """A block that reports what is wrong with a field of the specification as the option that it
    came from, which of a `joint` table names the column.
    """
    from opendp_bayes_office.commands.answers import field_errors
    from opendp_bayes_office.report.field_errors import FieldError

    with option_errors():
        try:
            with field_errors():
                yield
        except FieldError as error:
            fail(_of_option(error, joint=joint, by=by))


def _of_option(error: "FieldError", *, joint: bool, by: str | None) -> str:
    """Turn an error about a field into one about an option."""
    match error.path:
        case ("privacy",):
            option = "--identifier" if "identifier" in error.problem else "the budget"
        case ("columns", name):
            option = f"--{'by' if name == by else 'column'} {name!r}"
        case ("columns", name, _) if name == by:
            option = f"--by {name}="
        case ("columns", name, field):
            option = f"--{field} {name}=" if joint else f"--{field}"
        case ("privacy" | "results", *_, str(field)) | (str(field),):
            option = f"--{field.replace('_', '-')}"
        case _:
            option = ""
    problem = _DISCOVERED.sub(_as_discovery(error.path), error.problem)
    if not option:
        return problem
    return f"{option}{problem}" if problem.startswith("=") else f"{option}: {problem}"


def _as_discovery(path: tuple[str | int, ...]) -> Callable[[re.Match[str]], str]:
    """How options ask for the categories of the column that a path leads to."""

    def option(written: re.Match[str]) -> str:
        needed = " --delta 1e-8" if written[1] else ""
        return f"write --discover {path[1]}{needed} in place of --column {path[1]}"

    return option
