"""`opendp-bayes release`: columns of a file, through an OpenDP Context, to a release."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import option_errors, release_errors, say
from opendp_bayes.commands.output import Kept, display, echo, on_a_terminal

_DATA = "Data"


def release(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=(
                "A .csv, .tsv (also .gz or .zst), .parquet, .ipc, .arrow or .feather file, or - for"
                " CSV from standard input; or the owner's data.toml, which leads to one."
            ),
            show_default=False,
        ),
    ],
    column: Annotated[
        list[str],
        typer.Option(
            help="The column of categories; repeated, the columns of a joint table.",
            rich_help_panel=_DATA,
            show_default=False,
        ),
    ],
    categories: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "All categories, separated by commas, in the order of the output. An Enum or"
                " Boolean column has its own. Of a joint table, COLUMN=a,b,c for each column."
            ),
            rich_help_panel=_DATA,
        ),
    ] = None,
    nulls: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Count rows without a value as this category, which may be a new one; of a joint"
                " table, COLUMN=label."
            ),
            rich_help_panel=_DATA,
        ),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            help="The same for rows with any other value.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    unmatched: Annotated[
        Literal["other", "drop"],
        typer.Option(
            help=(
                "What becomes of rows with any other value, unless --unknown says so: other, a"
                " category of their own, or drop, left out."
            ),
            rich_help_panel=_DATA,
        ),
    ] = "other",
    group_by: Annotated[
        str | None,
        typer.Option(
            help="A posterior for each group: the column that says which group a row is in.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help=(
                "The groups, separated by commas; rows of others are left out. An Enum or Boolean"
                " column has its own."
            ),
            rich_help_panel=_DATA,
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="Between the values of a line of CSV: one character, or tab.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Of the text of CSV, such as latin-1 or utf-16; UTF-8 unless given.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            help=(
                "Prior concentration: one number, or one for each category, new ones included;"
                " learned, from the release; or auto, which is learned of ten or more categories"
                " with noise on the counts, and 1 elsewhere."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = "auto",
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A column whose categories are in order, along which a learned prior is smooth;"
                " once for each such column."
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
    parameter: options.Parameter = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    delta: Annotated[
        float | None,
        typer.Option(help="The δ that goes with ε or ρ.", rich_help_panel=options.PRIVACY),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="The number of rows, if it is public.", rich_help_panel=options.PRIVACY),
    ] = None,
    contributions: Annotated[
        int | None,
        typer.Option(
            help=(
                "The most rows, or with --identifier the most identifiers, that one person has; 1"
                " unless given. A promise: it is not enforced."
            ),
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option(
            help="The column that says whose a row is. Needs --rows-per-identifier.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    rows_per_identifier: Annotated[
        int | None,
        typer.Option(
            help="Keep at most so many rows of each identifier, drawn at random.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Release the posterior of the category probabilities of a column of FILE, or of the cells of a
    joint table of several.

    Without --size the number of rows is private, and the privacy unit is the presence of a person's
    rows. Rows without a value are left out, unless --nulls says where to count them. Rows with a
    value that is not a category are counted as a category of their own, `other`, unless --unknown
    names another or --unmatched drop leaves them out. A message says so before data are read.

    With --size the number of rows is public, and the privacy unit is a change of a person's rows.
    Every row must be counted, so --nulls is needed: `--size 944 --nulls NA`.

    With --identifier the privacy unit is everything that has one identifier, and what is estimated
    is the rows that are kept (docs: Known limits).

    The first line of a CSV file names the columns. All its values are text, empty ones are nulls.
    A file that is not text in its --encoding is refused before anything is released.

    Each run spends its own budget: what several runs reveal about the same people adds up, and
    --ledger FILE keeps account of it. A release that was made is not lost: where it cannot be
    printed, it goes to a file, and a message says which.

    Exit code: 0 if the release was made, 1 if it failed while data was read, 2 for wrong options, 3
    if it was made and could not be written where it was to go.

    Examples, of which the first makes the file for the others:

        printf '%s\\n' vote yes no yes yes no > votes.csv

        opendp-bayes release votes.csv --column vote --categories yes,no --epsilon 1

        opendp-bayes release votes.csv --column vote --categories yes,no --rho 0.1
    """
    from opendp_bayes.commands import query
    from opendp_bayes.commands.answers import labelled_by_type
    from opendp_bayes.commands.owned import (
        opened_data,
        readable,
        refusals_entered,
        specification_errors,
    )
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.display import terminal
    from opendp_bayes.trusted.files import source
    from opendp_bayes.trusted.interrupts import deferred_interrupts
    from opendp_bayes.trusted.opening import check_room

    owned = opened_data(file, ledger, dataset)
    with option_errors():
        asked = query.Asked(
            columns=tuple(column),
            separator=separator,
            encoding=encoding,
            categories=query.by_column("--categories", categories, column),
            nulls=query.by_column("--nulls", nulls, column),
            unknown=query.by_column("--unknown", unknown, column),
            unmatched=unmatched,
            group_by=group_by,
            groups=groups,
            size=size,
            contributions=contributions,
            identifier=identifier,
            rows_per_identifier=rows_per_identifier,
            loss=query.budget(epsilon, rho, delta),
            limits={"epsilon": epsilon, "rho": rho, "delta": delta},
            model={
                "prior": options.prior_or_learned(prior),
                **({"ordered": ordered} if ordered else {}),
                "mechanism": mechanism,
                **options.parameters(parameter or []),
            },
        )
        if owned.facts is not None:
            with specification_errors(file):
                asked = query.answered_options(asked, owned.facts)
        found = source(owned.path or file, asked.separator, asked.encoding)
    book = owned.ledger(asked.title)
    with Kept(output) as kept, readable(found, book) as opened:
        with option_errors(), deferred_interrupts():
            posterior, counted = query.posterior_query(opened, asked, book)
            check_room(posterior)
        say(counted)
        for line in labelled_by_type(opened, asked.counted_by):
            say(line)
        with refusals_entered(book), waiting("Reading"):
            opened.complete()
        with release_errors(), waiting("Counting"), deferred_interrupts():
            with refusals_entered(book):
                released = posterior.release()
            kept.keep(released.to_json())
        if json:
            echo(released.to_json())
            return
        with waiting("Computing the posterior"):
            sheet = replace(released.sheet(), title=asked.title)
        display(terminal.rendered(sheet), *([] if on_a_terminal() else [counted]))
