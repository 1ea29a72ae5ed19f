"""`opendp-bayes show`: a release that was saved, as a table and as a picture."""

import re
import sys
from codecs import BOM_UTF8
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import PRINTED, NewFile, display, echo, written

if TYPE_CHECKING:
    import polars as pl

_STANDARD_INPUT = Path("-")
#: Workbooks hold texts as texts: no formulas, and no links, which open what a label names.
_WORKBOOK = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
#: What makes a spreadsheet take a text for a formula, at its beginning or after what may divide it
#: into cells. The last four are signs of full width; a number is none.
_FORMULA = "^ *[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]"
_INNER_FORMULA = "([;\t\r\n|] *)([=+@\uff1d\uff0b\uff0d\uff20-])"
_NUMBER = r"^[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?$"
#: How the library says that the mechanism of an installed package is to be loaded.
_LOADED = re.compile(r"call load_mechanism\('(.*?)'\) first")


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
        float, typer.Option(help="Probability of the intervals.", rich_help_panel=options.OUTPUT)
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
            help=(
                "Also write the table to this new file: .csv, .json or .xlsx. -"
                " prints its JSON instead."
            ),
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="The plugin mechanism that made the release, if it is not one of this package.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
) -> None:
    """Print the release in FILE, and draw it with --plot. Needs no data and costs nothing.

    FILE is a file that `opendp-bayes release` wrote with --output, or the text that `to_json` of a
    release or a survey returned. Posterior draws that take more than a second are kept beside it,
    in FILE.draws.npz, for the next time. Only the first 1000 rows are printed. --output writes the
    table of `to_frame`: full numbers, and a row for each category, group and question. Spreadsheets
    open .csv files, so a label that would be a formula gets an apostrophe there. A .json file has
    every label unchanged.

    Exit code: 0 if the release was shown, 2 for wrong options or a file without a release.

    Examples. The first two make the file for the others:

        printf '%s\\n' a yes no yes yes no > v.csv

        opendp-bayes release v.csv --column a --categories yes,no --rho 1 -o v.json

        opendp-bayes show v.json

        opendp-bayes show v.json --level 0.5 --plot vote.svg

        opendp-bayes show v.json -o vote.csv
    """
    from opendp_bayes import load_mechanism
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.inference.sampling.kept_draws import kept_beside
    from opendp_bayes_office.report.report_document import read_results

    kind = _kind_of(output)
    with option_errors():
        if mechanism is not None:
            load_mechanism(mechanism)
        text = _content(file)
        if text[:100].lstrip().startswith(b"<"):
            beside = file.with_suffix(".json")
            fail(
                f"FILE {file}: is a page. The releases of a report are in the .json beside it:"
                f" `opendp-bayes show {beside}`."
            )
        try:
            whole = read_results(text)
        except ValueError as error:
            problem = _LOADED.sub(r"name it, as in --mechanism \1", str(error))
            fail(f"FILE {file}: {problem}")
        with waiting("Computing the posterior"), kept_beside(file):
            content = None if kind is None else _content_of(whole.to_frame(level), kind)
            if content is not None and output is not None and output != PRINTED:
                with closing(NewFile(output)) as new, written(output):
                    new.write(content)
            if plot is not None:
                _draw(whole, level, plot)
            if output != PRINTED:
                sheet = whole.sheet(level)
    if content is not None and output == PRINTED:
        echo(content.decode())
        return
    display(sheet)


def _kind_of(output: Path | None) -> str | None:
    """The extension of the table to write, .json where it is printed; None where there is none."""
    if output is None:
        return None
    kind = ".json" if output == PRINTED else output.suffix.lower()
    if kind not in (".csv", ".json", ".xlsx"):
        fail(f"--output {output}: must end in .csv, .json or .xlsx, or be - for JSON.")
    return kind


def _content_of(table: "pl.DataFrame", kind: str) -> bytes:
    """The table as a file of a kind."""
    content = BytesIO()
    if kind == ".json":
        table.write_json(content)
    elif kind == ".csv":
        _as_text(table).write_csv(content, quote_style="non_numeric")
    else:
        from xlsxwriter import Workbook

        with Workbook(content, _WORKBOOK) as book:
            table.write_excel(book, autofit=True, float_precision=6)
    return content.getvalue()


def _as_text(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with an apostrophe before what a spreadsheet would carry out: in a cell of text, or
    in a part of it that may become a cell, a sign that begins a formula. Numbers stay.
    """
    import polars as pl
    import polars.selectors as cs

    def safe(texts: pl.Expr) -> pl.Expr:
        marked = texts.str.replace_all(_INNER_FORMULA, "${1}'${2}").str.replace(_FORMULA, "'${0}")
        return pl.when(texts.str.contains(_NUMBER)).then(texts).otherwise(marked)

    labels = cs.string() | cs.categorical() | cs.enum()
    headings = pl.select(safe(pl.lit(pl.Series(table.columns)))).to_series()
    named = dict(zip(table.columns, headings, strict=True))
    return table.with_columns(safe(labels.cast(pl.String))).rename(named)


def _content(file: Path) -> bytes:
    try:
        text = sys.stdin.buffer.read() if file == _STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        fail(f"FILE {file}: cannot be read ({error.strerror}).")
    return text.removeprefix(BOM_UTF8)


def _draw(released: Any, level: float, path: Path) -> None:
    """Draw the picture into the file."""
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError:
        fail("--plot needs matplotlib: pip install 'opendp-bayes[plot]'.")
    matplotlib.use("agg")  # no window
    released.plot(level=level)
    try:
        pyplot.savefig(path, dpi=200)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        fail(f"--plot {path}: cannot be written ({reason}); name another file.")
    finally:
        pyplot.close()
