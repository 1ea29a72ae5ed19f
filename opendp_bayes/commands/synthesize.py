"""`opendp-bayes synthesize`: from a specification and data to synthetic records."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, option_errors
from opendp_bayes.commands.output import NOT_WRITTEN, echo, written
from opendp_bayes.commands.specified import (
    carried_out,
    check_data,
    report_in,
    report_of,
    text_of_report,
)

#: The file in the folder that holds what was released.
_RELEASES = "releases.json"


def synthesize(
    specification: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC.toml",
            help="What to release, as for `report`; or the .json of an earlier run, without data.",
            show_default=False,
        ),
    ],
    data: options.Data = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="A new folder for the copies, and the releases behind them as releases.json.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("synthetic"),
    copies: Annotated[
        int, typer.Option(help="The number of files.", rich_help_panel=options.OUTPUT)
    ] = 20,
    kind: Annotated[
        Literal["population", "predictive"],
        typer.Option(
            help="The records as they may have been, or new ones.", rich_help_panel=options.OUTPUT
        ),
    ] = "population",
    rows: Annotated[
        int | None,
        typer.Option(
            help="Records of each predictive copy; as many as there may have been unless given.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    format: Annotated[  # noqa: A002  # the option
        Literal["parquet", "csv"],
        typer.Option(help="The format of the files.", rich_help_panel=options.OUTPUT),
    ] = "parquet",
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
) -> None:
    """Release the tables that SPEC.toml asks for, from one budget, and draw synthetic records.

    All tables are estimated together, as with `joint = true` in a report. Every copy is another
    draw from what is known of the records, so that an analysis of all copies knows its error
    (combine_estimates in Python). More copies of an earlier run cost nothing: name its
    releases.json, or the .json of a report, instead of SPEC.toml. Copies are data: those of CSV
    hold every label as it is, also one that a spreadsheet would take for a formula.

    Exit code: 0 if the copies were made, 1 if a release failed while data was read, 2 for a wrong
    specification or wrong options. It is 3 if the releases were made and a copy could not be
    written.

    Examples, of which the first two make the files for the others:

        printf '%s\\n' a,b x,1 y,2 x,2 x,1 > v.csv

        opendp-bayes init v.csv --categories a=x,y --categories b=1,2 -o v.toml

        opendp-bayes synthesize v.toml v.csv -o copies

        opendp-bayes synthesize copies/releases.json --kind predictive --rows 100 -o new
    """
    from opendp_bayes.commands.progress_bar import waiting

    if copies < 1:
        fail(f"--copies {copies}: must be at least 1.")
    if rows is not None and (rows < 1 or kind == "population"):
        fail(f"--rows {rows}: must be at least 1, and is for --kind predictive.")
    check_data(specification, data)
    if data is None and ledger is not None:
        fail(f"--ledger {ledger}: is for data; more copies of an earlier run cost nothing.")
    from opendp_bayes.inference.levels.levels_posterior import LevelsPosterior

    with _new_folder(output) as kept:
        if data is None:
            made = report_in(specification)
        else:
            with carried_out(
                specification,
                data,
                ledger,
                dataset,
                output=kept,
                text_of=text_of_report,
                joint=True,
            ) as released:
                made = report_of(*released)
        advice, code = ("", 2) if data is None else (f" The releases are in {kept}.", NOT_WRITTEN)
        with option_errors(advice, code=code), written(output, advice), waiting("Drawing records"):
            posterior = made.posterior()
            if isinstance(posterior, LevelsPosterior):
                raise ValueError("results: merge categories, and synthetic records need all.")
            paths = posterior.write_synthetic(output, copies, kind, size=rows, format=format)
    echo(f"{output}: {len(paths)} cop{'y' if len(paths) == 1 else 'ies'} of {kind} records.")


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A block with the file for the releases in a new folder, which goes if nothing is in it."""
    if os.path.lexists(path):
        fail(f"--output {path}: exists already; name a new folder.")
    try:
        path.mkdir()
    except OSError as error:
        fail(f"--output {path}: cannot be made ({error.strerror}); name another folder.")
    try:
        yield path / _RELEASES
    finally:
        with suppress(OSError):
            path.rmdir()
