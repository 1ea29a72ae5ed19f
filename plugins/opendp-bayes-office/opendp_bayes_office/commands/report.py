"""`opendp-bayes report`: from a specification and data to a page that can be published."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import (
    NOT_WRITTEN,
    NewFile,
    display,
    echo,
    text_in,
    waiting,
    written,
)
from opendp_bayes_office.commands.specified import carried_out, foreseen, specified_in
from opendp_bayes_office.report.language import Tag


def _print_schema(wanted: bool) -> None:
    if wanted:
        import msgspec

        from opendp_bayes_office.report.specification import json_schema

        echo(msgspec.json.format(msgspec.json.encode(json_schema())).decode())
        raise typer.Exit()


def report(
    specification: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC.toml",
            help=(
                "The specification, in TOML or JSON. Without DATA, the .json file of a release, or"
                " of a report, to make its page."
            ),
            show_default=False,
        ),
    ],
    data: options.Data = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PAGE.html",
            help="The page. The releases go to a file of the same name that ends in .json.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("report.html"),
    language: Annotated[
        Tag | None,
        typer.Option(
            metavar="de|en|es|fr",
            help="The language of the page; by default that of the specification.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    dry_run: options.DryRun = False,
    synthetic: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Also draw synthetic records, as CSV files in this new folder. All results are then"
                " estimated together."
            ),
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="The number of copies of the synthetic records. The default is 20.",
            min=1,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    mechanism: options.Plugins = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON Schema of a specification and exit.",
            callback=_print_schema,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Make a report: release everything that SPEC.toml asks for, from one budget, and write a page.

    The page states what is promised, to whom and at what cost. It shows every result as a table
    with a picture in each row, and explains how to read it. It needs no other file and holds the
    releases as JSON. `opendp-bayes init DATA` writes a specification to start from. Its format is
    in the documentation (Reports), and --schema prints it.

    Exit code: 0 if the report was made, 1 if a release failed while data were read, 2 for a wrong
    specification or wrong options, 3 if the report could not be written to its file.

    With --dry-run, only the names and types of the columns are read. Without DATA, nothing is read.
    The JSON of a release becomes a page too, which states what the release does; a mechanism of a
    plugin is named by --mechanism.
    `guess_size` under [privacy] is the number of records for which widths are shown.

    With --synthetic, all results are estimated together, as with `joint = true`. Every copy is
    another draw of the records as they may have been, so an analysis of all copies accounts for its
    error (docs: Synthetic records). Copies are data: they hold every label unchanged, even one that
    a spreadsheet would take for a formula. More copies of an earlier run cost nothing.

    Examples. The first two make the files for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no -o v.toml

        opendp-bayes report v.toml v.csv --dry-run

        opendp-bayes report v.toml v.csv -o v.html

        opendp-bayes report v.json -o again.html --synthetic copies

        opendp-bayes release v.csv --column vote --categories yes,no --rho 1

        opendp-bayes report v-vote.json -o one.html
    """
    if copies is not None and synthetic is None:
        fail(f"--copies {copies}: needs --synthetic, the folder for them.")
    for option, value in (("--ledger", ledger), ("--dataset", dataset)):
        if data is None and value is not None:
            fail(f"{option} {value}: is for a report from data; a page made again costs nothing.")
    if mechanism and (dry_run or data is not None):
        fail("--mechanism: is for a page made again; a specification names its mechanisms.")
    if dry_run and synthetic is not None:
        fail("--dry-run: draws nothing that --synthetic could hold; leave it out.")
    if dry_run:
        display(foreseen(specified_in(specification, data, ledger, dataset)))
        return
    if data is None and specification.suffix.lower() == ".toml":
        fail("DATA: is missing; name the file with the data after the specification.")
    if synthetic is not None and os.path.lexists(synthetic):
        fail(f"--synthetic {synthetic}: exists already; name a new folder.")
    from opendp_bayes_office.report.page import rendered
    from opendp_bayes_office.report.report_document import Report

    kept = specification if data is None else output.with_suffix(".json")
    page = NewFile(output)
    with ExitStack() as block:
        if data is None:
            with option_errors(f"{specification}: "):
                result = Report.read(text_in(specification), specification.stem, mechanism)
                if not all(release.guarantee.is_stated for release in result.survey.releases):
                    raise ValueError(
                        "has noisy counts whose privacy is not stated, and a page states it. Show"
                        " them with `opendp-bayes show`, or make the page of a release."
                    )
        else:
            joint = synthetic is not None
            specified = specified_in(specification, data, ledger, dataset, joint=joint)
            result = block.enter_context(carried_out(specified, output=kept, as_report=True))
        if synthetic is not None:
            with option_errors(code=2 if data is None else NOT_WRITTEN), written(synthetic):
                posterior = result.survey.posterior
                if not hasattr(posterior, "write_synthetic"):
                    raise ValueError("results: merge categories, and synthetic records need all.")
                posterior.write_synthetic(synthetic, copies or 20, format="csv")
        with waiting("Computing the posteriors"):
            page.write(rendered(result, language).encode())
    number = len(result.survey)
    echo(
        f"{output}: a report of {number} result{'' if number == 1 else 's'}."
        + ("" if data is None else f" {kept} keeps the releases.")
    )
    if synthetic is not None:
        echo(
            f"{synthetic}: {copies or 20} cop{'y' if copies == 1 else 'ies'} of synthetic records."
        )
