"""`opendp-bayes report`: from a specification and data to a page that can be published."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, release_errors, say
from opendp_bayes.commands.output import Kept, NewFile, echo, written

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
            help="What to release; or the .json of a report, to make its page again without data.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            help="The file with the data, as for `release`; - is standard input.",
            show_default=False,
        ),
    ] = None,
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

    The page says what is promised, to whom and at what cost, and shows every result as a table and
    a picture, how to read it, and a paragraph on the methods. It needs no other file, and holds the
    releases as JSON. `opendp-bayes init DATA` writes a specification to start from; its format is
    in the documentation (Reports), and --schema prints it.

    Exit code: 0 if the report was made, 1 if a release failed while data was read, 2 for a wrong
    specification or wrong options. It is 3 if the report was made and could not be written where it
    was to go.

    Examples, of which the first two make the files for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no -o v.toml

        opendp-bayes report v.toml v.csv -o v.html

        opendp-bayes report v.json -o again.html
    """
    if data is None and specification.suffix.lower() == ".toml":
        fail("DATA: is missing; name the file with the data after the specification.")
    try:
        import jinja2  # noqa: F401 - before anything is paid for
    except ImportError:
        fail("report needs jinja2: pip install 'opendp-bayes[report]'.")
    if data is None and ledger is not None:
        fail(f"--ledger {ledger}: is for a report from data; to make a page again costs nothing.")
    page = NewFile(output)
    try:
        made = (
            _again(specification)
            if data is None
            else _made(specification, data, output, ledger, dataset)
        )
        _write(made, page, specification if data is None else _releases_of(output))
    finally:
        page.close()
    number = len(made.releases)
    echo(f"{output}: a report of {number} result{'' if number == 1 else 's'}.")


def _again(path: Path) -> "Report":
    """The report in a file that an earlier run wrote."""
    from opendp_bayes.report.report_document import Report

    try:
        return Report.from_json(_text(path))
    except ValueError as error:
        fail(f"{path}: {error}")


def _made(
    specification: Path, data: Path, output: Path, ledger: Path | None, dataset: str | None
) -> "Report":
    """Release everything that the specification asks for, and keep it."""
    from importlib.metadata import version

    from opendp_bayes.commands.answers import field_errors, survey_of, where_counted
    from opendp_bayes.commands.files import scannable, source
    from opendp_bayes.commands.ledger_command import opened
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.framework.interrupts import deferred_interrupts
    from opendp_bayes.report.lines import located
    from opendp_bayes.report.report_document import Report
    from opendp_bayes.report.specification_text import read_specification

    text = _text(specification)
    with _specification_errors(specification):
        asked = read_specification(text)
    book = opened(ledger, dataset, asked.title)
    software = {"OpenDP": version("opendp"), "opendp-bayes": version("opendp-bayes")}
    with _specification_errors(specification), located(text), field_errors():
        found = source(data, asked.separator, asked.encoding)
    with Kept(_releases_of(output)) as kept, scannable(found) as readable:
        with _specification_errors(specification), located(text), deferred_interrupts():
            survey = survey_of(readable, asked, book)
        for line in where_counted(survey, asked):
            say(line)
        with waiting("Reading"):
            readable.complete()
        with release_errors(), waiting("Counting"), deferred_interrupts():
            report = Report(asked, survey.release().releases, software)
            kept.keep(report.to_json())
    return report


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


@contextmanager
def _specification_errors(path: Path) -> Iterator[None]:
    from opendp_bayes.report.lines import SpecificationError

    try:
        yield
    except SpecificationError as error:
        fail(f"{path}: {error}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        fail(f"{path}: cannot be read ({error.strerror}).")
    except UnicodeDecodeError:
        fail(f"{path}: is not text in UTF-8; save it in that encoding.")
