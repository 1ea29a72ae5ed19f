"""`opendp-bayes show`: a release that was saved, as a table and as a picture."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, option_errors
from opendp_bayes.commands.output import display

if TYPE_CHECKING:
    from opendp_bayes.results.grouped_release import GroupedRelease
    from opendp_bayes.results.release import Release
    from opendp_bayes.results.survey import Survey

_STANDARD_INPUT = Path("-")


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
            help="Draw the posterior into this file: .png, .svg, .pdf, ... (extra `plot`).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="The installed mechanism that made the release, if it is none of this package.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
) -> None:
    """Print the release in FILE, and draw it with --plot. Needs no data and costs nothing.

    FILE is what `opendp-bayes release` wrote with --output or printed with --json, or what
    `to_json` of a release or a survey returned.

    Exit code: 0 if it was shown, 2 for wrong options or a file that is no release.

    Examples, of which the first two make the file for the others:

        printf '%s\\n' a yes no yes yes no > v.csv

        opendp-bayes release v.csv --column a --categories yes,no --rho 1 -o v.json

        opendp-bayes show v.json

        opendp-bayes show v.json --level 0.5 --plot vote.svg
    """
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.display import terminal
    from opendp_bayes.mechanisms.registry import load_mechanism

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
            releases = _releases(text)
        except ValueError as error:
            fail(f"FILE {file}: {error}")
        if plot is not None and len(releases) > 1:
            fail(f"--plot {plot}: FILE holds {len(releases)} releases; it draws one.")
        with waiting("Computing the posterior"):
            sheets = [replace(one.sheet(level), title=title) for title, one in releases]
            if plot is not None:
                _draw(releases[0][1], level, plot)
    shown = [part for sheet in sheets for part in (terminal.rendered(sheet), "")]
    display(*shown[:-1])


def _releases(text: bytes) -> "list[tuple[str, Release | GroupedRelease | Survey]]":
    """Read the releases in the file of a release, a survey or a report, with a title for each."""
    from opendp_bayes.report.report_document import NAME, Report
    from opendp_bayes.results import survey
    from opendp_bayes.results.reading_results import format_of, release_from_json

    if format_of(text) == survey.NAME:
        return [("", survey.Survey.from_json(text))]
    if format_of(text) != NAME:
        return [("", release_from_json(text))]
    report = Report.from_json(text)
    headings = [result.heading for result in report.specification.results]
    return list(zip(headings, report.releases, strict=False))


def _content(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == _STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        fail(f"FILE {file}: cannot be read ({error.strerror}).")


def _draw(released: "Release | GroupedRelease | Survey", level: float, path: Path) -> None:
    """Draw the picture into the file."""
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError:
        fail("--plot needs matplotlib: pip install 'opendp-bayes[plot]'.")
    from opendp_bayes.results.release import Release
    from opendp_bayes.results.survey import Survey

    if isinstance(released, Survey):
        fail(f"--plot {path}: FILE is a survey of {len(released)} releases; it draws one.")
    matplotlib.use("agg")  # no window
    if isinstance(released, Release):
        released.plot(level=level)
    elif level == 0.95:
        released.plot()
    else:
        fail(f"--level {level}: the picture of groups has intervals of 95 %; leave out --plot.")
    try:
        pyplot.savefig(path, dpi=200)
    except (OSError, ValueError) as error:
        fail(f"--plot {path}: cannot be written ({error}); name another file.")
    finally:
        pyplot.close()
