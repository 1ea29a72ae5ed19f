"""`opendp-bayes show`: a release that was saved, as a table and as a picture."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import (
    PRINTED,
    NewFile,
    display,
    echo,
    text_in,
    waiting,
    written,
)

if TYPE_CHECKING:
    import polars as pl

#: Workbooks hold texts as texts: no formulas, and no links, which open what a label names.
_WORKBOOK = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}


def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON of a release, a survey or a report, or - for standard input.",
            show_default=False,
        ),
    ],
    level: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="Probability of the intervals.", rich_help_panel=options.OUTPUT
        ),
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Draw the posterior to this file: .png, .svg, .pdf, ... (`opendp-bayes[plot]`).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="TABLE",
            help="Also write the table to this new workbook, .xlsx. - prints its JSON instead.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    mechanism: options.Plugins = None,
) -> None:
    """Print the release in FILE, and draw it with --plot. Needs no data and costs nothing.

    FILE is a file that `opendp-bayes release` wrote with --output, or the text that `to_json` of a
    release or a survey returned. Of a report, each release is shown by itself, as shares of all
    records; its page may estimate results together, or among answers. Only the first 1000 rows are
    printed. --output writes the table of `to_frame`: full numbers, and a row for each category,
    group and question. A workbook holds every label as text. `--output -` prints JSON for other
    programs.

    Exit code: 0 if the release was shown, 2 for wrong options or a file without a release, 3 if the
    table or the picture could not be written.

    Examples. The first two make the file for the others:

        printf '%s\\n' a yes no yes yes no > v.csv

        opendp-bayes release v.csv --column a --categories yes,no --rho 1 -o v.json

        opendp-bayes show v.json

        opendp-bayes show v.json --level 0.5 --plot vote.svg

        opendp-bayes show v.json -o vote.xlsx
    """
    from opendp_bayes_office.report.report_document import Report

    if output not in (None, PRINTED) and output.suffix.lower() != ".xlsx":
        fail(f"--output {output}: must end in .xlsx, or be - for JSON.")
    with option_errors(f"FILE {file}: "):
        report = Report.read(text_in(file), file.stem, mechanism)
    whole = report.results
    with waiting("Computing the posterior"):
        if plot is not None:
            _draw(whole, level, plot)
        if output == PRINTED:
            echo(whole.to_frame(level).write_json())
            return
        if output is not None:
            NewFile(output).write(_workbook(whole.to_frame(level)))
        sheet = whole.sheet(level, percent=True)
    display(sheet)


def _workbook(table: "pl.DataFrame") -> bytes:
    """The table as a workbook."""
    from xlsxwriter import Workbook

    content = BytesIO()
    with Workbook(content, _WORKBOOK) as book:
        table.write_excel(book, autofit=True, float_precision=6)
    return content.getvalue()


def _draw(results: Any, level: float, path: Path) -> None:
    """Draw the picture into the file."""
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError:
        fail("--plot needs matplotlib: pip install 'opendp-bayes[plot]'.")
    matplotlib.use("agg")  # no window
    with written(f"--plot {path}"):
        results.plot(level=level)
        pyplot.savefig(path, dpi=200)
    pyplot.close()
