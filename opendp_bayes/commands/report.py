"""`opendp-bayes report`: from a specification and data to a page that can be published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail
from opendp_bayes.commands.output import NewFile, display, echo, written
from opendp_bayes.commands.specified import (
    carried_out,
    check_data,
    check_dry_run,
    foreseen,
    report_in,
    report_of,
    text_of_report,
)

if TYPE_CHECKING:
    from opendp_bayes.report.report_document import Report


def _print_schema(wanted: bool) -> None:
    if wanted:
        import msgspec

        from opendp_bayes.report.specification import json_schema

        echo(msgspec.json.format(msgspec.json.encode(json_schema())).decode())
        raise typer.Exit()


def report(
    specification: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC.toml",
            help=(
                "What to release, in TOML or JSON; or, without DATA, the .json of a report, to make"
                " its page again."
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
            help="The page. The releases go to a file of that name that ends in .json.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("report.html"),
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    dry_run: options.DryRun = False,
    guess_size: options.GuessSize = None,
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
    """Make a report: all releases that SPEC.toml asks for, from one budget, and a page of them.

    The page says what is promised, to whom and at what cost, shows every result as a table with a
    picture in each row, and tells how to read it. It needs no other file, and holds the releases as
    JSON. `opendp-bayes init DATA` writes a specification to start from; its format is
    in the documentation (Reports), and --schema prints it.

    Exit code: 0 if the report was made, 1 if a release failed while data was read, 2 for a wrong
    specification or wrong options. It is 3 if the report was made and could not be written where it
    was to go.

    With --dry-run nothing is read but the names and types of columns, and nothing of DATA at all
    where it is left out.

    Examples, of which the first two make the files for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no -o v.toml

        opendp-bayes report v.toml v.csv --dry-run --guess-size 1000

        opendp-bayes report v.toml v.csv -o v.html

        opendp-bayes report v.json -o again.html
    """
    check_dry_run(dry_run, guess_size)
    if dry_run:
        from opendp_bayes.display import terminal

        display(terminal.rendered(foreseen(specification, data, ledger, dataset, guess_size)))
        return
    check_data(specification, data)
    try:
        import jinja2  # noqa: F401 - before anything is paid for
    except ImportError:
        fail("report needs jinja2: pip install 'opendp-bayes[report]'.")
    if data is None and ledger is not None:
        fail(f"--ledger {ledger}: is for a report from data; to make a page again costs nothing.")
    page = NewFile(output)
    try:
        made = (
            report_in(specification)
            if data is None
            else _made(specification, data, output, ledger, dataset)
        )
        _write(made, page, specification if data is None else _releases_of(output))
    finally:
        page.close()
    number = len(made.releases)
    echo(f"{output}: a report of {number} result{'' if number == 1 else 's'}.")


def _made(
    specification: Path, data: Path, output: Path, ledger: Path | None, dataset: str | None
) -> "Report":
    """Release everything that the specification asks for, and keep it."""
    kept = _releases_of(output)
    with carried_out(
        specification, data, ledger, dataset, output=kept, text_of=text_of_report
    ) as released:
        return report_of(*released)


def _write(made: "Report", page: NewFile, kept: Path) -> None:
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.report.page import rendered

    with waiting("Computing the posteriors"):
        content = rendered(made)
    with written(page.path, f" The releases are in {kept}: `opendp-bayes report {kept}` makes it."):
        page.write(content.encode())


def _releases_of(page: Path) -> Path:
    """The file of the releases that a page shows."""
    return page.with_suffix(".json")
