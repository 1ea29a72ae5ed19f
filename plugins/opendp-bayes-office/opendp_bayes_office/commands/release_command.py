"""`opendp-bayes release`: a question of one result, asked by options, through a specification."""

from pathlib import Path
from typing import Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail
from opendp_bayes_office.commands.specified import Specified, opened_data, release_and_show


def release(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help=(
                "A .csv, .tsv (also .gz), .parquet, .ipc, .arrow, .feather, .xlsx,"
                " .xlsm, .sav, .zsav, .dta, .sas7bdat or .xpt file, or a folder of .parquet"
                " files; - for CSV from standard input; or the owner's data.toml, which leads to"
                " one."
            ),
            show_default=False,
        ),
    ],
    column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of categories.",
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
    rest: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help=(
                "With --discover, the part of the budget spent on the number of all rows whose"
                " category is not shown, such as 0.2."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help=(
                "All categories, separated by commas, in the order of the output. An Enum or"
                " Boolean column has its own."
            ),
            rich_help_panel=options.DATA,
        ),
    ] = None,
    nulls: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Count rows without a value as this category, which may be a new one.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
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
    rows_above: options.RowsAbove = 0,
    skip_rows: options.SkipRows = 0,
    prior: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            help=(
                "Prior concentration: one number, or one for each category, new ones included. Or"
                " learned: estimated from the release. Or auto: learned for ten or more"
                " categories with noise on the counts, and 1 otherwise."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = "auto",
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="The categories have an order. A learned prior is smooth along it.",
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
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
    guess_size: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="With --dry-run, a guess of the number of rows, if it is private.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    contributions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
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
            metavar="COLUMN",
            help="The column that identifies whose row it is. Needs --rows-per-identifier.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    rows_per_identifier: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Keep at most this number of rows of each identifier, drawn at random.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    dry_run: options.DryRun = False,
    output: options.Output = None,
) -> None:
    """Release a private posterior of the shares of a column's categories. With --discover, release
    noisy counts of categories that nobody listed. For joint tables and several results, write a
    specification (`opendp-bayes init`).

    Without --size, the number of rows is private, and neighbouring data sets differ by adding or
    removing one person's rows. Rows without a value are left out unless --nulls names a category
    for them. Rows with a value outside the categories are counted as `other` unless --unknown names
    another category or leaves them out. A message says so before any data are read.

    With --size, the number of rows is public, and neighbouring data sets differ by changing one
    person's rows. Every row must be counted, so --nulls is needed: `--size 944 --nulls NA`.

    With --discover, every value that occurs gets a noisy count. The value is shown, with its noisy
    count, if that count reaches a threshold. δ bounds the probability of showing a value that only
    one person has. --rest 0.2 spends a fifth of the budget on the number of all other rows.
    --dry-run says which counts are likely to be shown.

    With --identifier, the unit of privacy is all rows with one identifier. The estimates are of the
    rows that are kept (docs: Known limits).

    The first line of a CSV file names the columns. All its values are text, and empty values are
    nulls. The same holds for workbooks and files of SPSS, Stata and SAS, where 1.0 is read as 1.
    A file that is not text in its --encoding is refused before anything is released.

    Each run spends its own budget. The losses of several runs on the same people add up, and
    --ledger FILE keeps account of them. To see what a release would cost, use `opendp-bayes plan`
    or --dry-run. A release that was made is not lost: if it cannot be
    printed, it goes to a file, and a message says which.

    Exit code: 0 if the release was made, 1 if it failed while data were read, 2 for wrong options,
    3 if it was made but could not be written to its file.

    Examples. The first one makes the file for the others:

        printf '%s\\n' vote yes no yes yes no > votes.csv

        opendp-bayes release votes.csv --column vote --categories yes,no --epsilon 1

        opendp-bayes release votes.csv --column vote --categories yes,no --rho 0.1

        opendp-bayes release votes.csv --discover vote --epsilon 1 --delta 1e-8
    """
    from opendp_bayes_office.report.specification_text import specification_of

    if discover is not None and (column or categories or by):
        fail(f"--discover {discover}: does not go with --column, --categories and --by.")
    counted = column if discover is None else discover
    if counted is None:
        fail("--column: is missing; name the column of categories, or --discover one.")
    stated: dict[str, Any] = {} if discover is None else {"categories": "discover"}
    for field, text in (("categories", categories), ("nulls", nulls), ("unknown", unknown)):
        if text is not None:
            label = text.removeprefix(f"{counted}=").strip()
            is_list = field == "categories"
            stated[field] = options.labels("--categories", label) if is_list else label
    if always is not None:
        stated["always"] = options.labels("--always", always)
    columns, groups = {counted: stated}, None
    if by is not None:
        groups, equals, listed = by.partition("=")
        columns[groups] = (
            {"categories": options.labels(f"--by {groups}=", listed)} if equals else {}
        )
    heading = counted or '""'
    texts = [label for listed in columns.values() for label in listed.get("categories", ())]
    numbers = [] if prior in ("auto", "learned") else options.numbers("--prior", prior)
    result = {
        "column": counted,
        "by": groups,
        "prior": numbers if len(numbers) > 1 else numbers[0] if numbers else prior,
        "ordered": [counted] if ordered else None,
        "mechanism": mechanism,
        "rest": rest,
    }
    privacy = {
        "epsilon": epsilon,
        "rho": rho,
        "delta": delta,
        "size": size,
        "guess_size": guess_size,
        "contributions": contributions,
        "identifier": identifier,
        "rows_per_identifier": rows_per_identifier,
    }
    reading = {
        "separator": separator,
        "encoding": encoding,
        "sheet": sheet,
        "labels": discover is None and options.has_labels(file, texts),
        "rows_above": rows_above,
        "skip_rows": skip_rows,
    }
    document = {
        "title": heading if by is None else f"{heading} by {groups}",
        # What is not given, an owner may have stated.
        **{field: value for field, value in reading.items() if value not in (None, False, 0)},
        "privacy": {field: value for field, value in privacy.items() if value is not None},
        "columns": columns,
        "results": [result],
    }
    path, facts, book = opened_data(file, ledger, dataset)
    specified = Specified(specification_of(document, owner=facts), path, book)
    release_and_show(specified, file, heading, output, dry_run=dry_run)
