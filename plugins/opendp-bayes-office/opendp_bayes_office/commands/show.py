"""`opendp-bayes show`: a release that was saved, as a table and as a picture."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import PRINTED, NewFile, display, echo, text_in, written

if TYPE_CHECKING:
    import polars as pl

#: Workbooks hold texts as texts: no formulas, and no links, which open what a label names.
_WORKBOOK = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}

#: What makes a spreadsheet take a text for a formula, at its beginning or after what may divide it
#: into cells. The last four are signs of full width; a number is none.
_FORMULA = "^ *[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]"
_INNER_FORMULA = "([;\t\r\n|] *)([=+@\uff1d\uff0b\uff0d\uff20-])"
_NUMBER = r"^[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?$"


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
            help="Also write the table to this new file, .csv or .xlsx. - prints its JSON instead.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    percent: Annotated[
        bool,
        typer.Option(
            " /--no-percent",
            help="Print shares as numbers from 0 to 1.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = True,
    mechanism: options.Plugins = None,
) -> None:
    """Print the release in FILE, and draw it with --plot. Needs no data and costs nothing.

    FILE is a file that `opendp-bayes release` wrote with --output, or the text that `to_json` of a
    release or a survey returned. Of a report, each release is shown by itself, as shares of all
    records; its page may estimate results together, or among answers. Only the first 1000 rows are
    printed. --output writes the table of `to_frame`: full numbers, and a row for each category,
    group and question. A workbook holds every label as text. In a .csv file a label that
    spreadsheets would take for a formula gets an apostrophe. `--output -` prints JSON for other
    programs.

    Exit code: 0 if the release was shown, 2 for wrong options or a file without a release, 3 if the
    table or the picture could not be written.

    Examples. The first two make the file for the others:

        printf '%s\\n' a yes no yes yes no > v.csv

        opendp-bayes release v.csv --column a --categories yes,no --rho 1 -o v.json

        opendp-bayes show v.json

        opendp-bayes show v.json --level 0.5 --plot vote.svg

        opendp-bayes show v.json -o vote.csv
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes_office.report.report_document import Report

    kind = None if output is None or output == PRINTED else output.suffix.lower()
    if kind is not None and kind not in _FILES:
        fail(f"--output {output}: must end in .csv or .xlsx, or be - for JSON.")
    with option_errors(f"FILE {file}: "):
        report = Report.read(text_in(file), file.stem, mechanism)
    whole, percent = report.results, percent and report.specification.percent
    with waiting("Computing the posterior"):
        if plot is not None:
            _draw(whole, level, plot)
        if output == PRINTED:
            echo(whole.to_frame(level).write_json())
            return
        if output is not None and kind is not None:
            NewFile(output).write(_FILES[kind](whole.to_frame(level)))
        sheet = whole.sheet(level, percent=percent)
    display(sheet)


def _workbook(table: "pl.DataFrame") -> bytes:
    """The table as a workbook."""
    from xlsxwriter import Workbook

    content = BytesIO()
    with Workbook(content, _WORKBOOK) as book:
        table.write_excel(book, autofit=True, float_precision=6)
    return content.getvalue()


def _csv(table: "pl.DataFrame") -> bytes:
    """The table as CSV, with an apostrophe before what a spreadsheet would carry out: in a cell of
    text, or in a part of it that may become a cell, a sign that begins a formula. Numbers stay.
    """
    import polars as pl
    import polars.selectors as cs

    def safe(texts: pl.Expr) -> pl.Expr:
        marked = texts.str.replace_all(_INNER_FORMULA, "${1}'${2}").str.replace(_FORMULA, "'${0}")
        return pl.when(texts.str.contains(_NUMBER)).then(texts).otherwise(marked)

    labels = cs.string() | cs.categorical() | cs.enum()
    headings = pl.select(safe(pl.lit(pl.Series(table.columns)))).to_series()
    safe_table = table.with_columns(safe(labels.cast(pl.String)))
    renamed = safe_table.rename(dict(zip(table.columns, headings, strict=True)))
    return renamed.write_csv(quote_style="non_numeric").encode()


_FILES = {".csv": _csv, ".xlsx": _workbook}


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
