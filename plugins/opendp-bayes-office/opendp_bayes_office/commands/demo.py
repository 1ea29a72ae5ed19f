"""`opendp-bayes demo`: posteriors of public data sets, through OpenDP Contexts as if they were not
public.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors, release_errors
from opendp_bayes_office.commands.output import display, echo, written

if TYPE_CHECKING:
    import polars as pl

# Codes 0, 1, 2, ... of the survey, as its documentation names them.
_VOTES = ("Clinton", "Dole")
_PARTIES = (
    "Strong Democrat",
    "Weak Democrat",
    "Independent-Democrat",
    "Independent-Independent",
    "Independent-Republican",
    "Weak Republican",
    "Strong Republican",
)
_ANSWERS = {"vote": _VOTES, "party": _PARTIES}
_QUESTIONS = {
    "Expected vote, American National Election Study 1996": "vote",
    "Party identification, same survey": "party",
}
_SPECIES = ("Adelie", "Chinstrap", "Gentoo")

_NOTE = (
    "The two questions were put to the same people, so for them ε adds up.\n\nAll these are noisy:"
    " intervals that know of the noise are wider than the plug-in ones, which are too narrow. Try"
    " `opendp-bayes demo --epsilon 1`, where they nearly agree (docs: Reading a posterior).\n\nTrue"
    " counts are never shown: a release is all that leaves a Context. Run it again to see other"
    " noise."
)
_OPENERS = {"darwin": "open", "win32": "start"}


def demo(
    epsilon: Annotated[
        float, typer.Option(help="Budget ε of each release.", rich_help_panel=options.PRIVACY)
    ] = 0.1,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page of the two questions of the survey; an earlier one is replaced.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("opendp-bayes-demo.html"),
) -> None:
    """Release posteriors of real data, show them with their guarantees, and write a page.

    * Species of the Palmer penguins (package palmerpenguins): 3 categories, private number of
      records.

    * Expected vote in the American National Election Study of 1996 (package statsmodels): 2
      categories, public number of records.

    * Party identification in the same survey: 7 categories, public number of records.

    Exit code: 0 if the releases were made, 1 if not, 2 for wrong options, 3 if the page could not
    be written.

    Example:

        opendp-bayes demo
    """
    from opendp.context import loss_of, unit_of
    from opendp.mod import enable_features

    import opendp_bayes as ob
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts
    from opendp_bayes_office.report.page import rendered
    from opendp_bayes_office.report.report_document import Report

    enable_features("contrib", "honest-but-curious")
    try:
        penguins, survey = _penguins(), _survey()
    except ModuleNotFoundError as error:
        fail(
            f"the demo needs {error.name}, which is not installed: pip install"
            " 'opendp-bayes-office[demo]'",
            code=1,
        )
    size = survey.height  # published with the survey
    with option_errors():
        of_penguins = ob.context(
            penguins,
            privacy_unit=unit_of(contributions=1),
            privacy_loss=loss_of(epsilon=epsilon),
            split_evenly_over=1,
        )
        of_survey = ob.context(
            survey,
            privacy_unit=unit_of(changes=1),
            privacy_loss=loss_of(epsilon=2 * epsilon),
            split_evenly_over=1,
        )
        # No value is missing, so where such are counted does not matter.
        species = ob.posterior(of_penguins.query(), "species", nulls=_SPECIES[0])
        questions: dict[str, Any] = {
            heading: {"column": column, "nulls": _ANSWERS[column][0], "size": size}
            for heading, column in _QUESTIONS.items()
        }
        answers = ob.survey(of_survey.query(), questions)
    with release_errors(), waiting("Releasing"), deferred_interrupts():
        releases = {"Species of Palmer penguins": species.release()}
        released = answers.release()
    with waiting("Computing the posteriors"):
        releases |= dict(released.items())
        sheets = [release.sheet(title=title) for title, release in releases.items()]
        page = rendered(Report(None, released.releases, {}, released))
    display(*(part for sheet in sheets for part in (sheet, "")), _NOTE, "")
    with written(output):
        output.write_text(page, encoding="utf-8")
    opener = _OPENERS.get(sys.platform, "xdg-open")
    echo(f"{output}: the page of the survey. Open it:\n    {opener} {output}")


def _penguins() -> "pl.DataFrame":
    import polars as pl
    from palmerpenguins import load_penguins

    return pl.DataFrame(
        {"species": pl.Series(list(load_penguins()["species"]), dtype=pl.Enum(_SPECIES))}
    )


def _survey() -> "pl.DataFrame":
    import polars as pl
    from statsmodels.datasets import anes96

    answers = anes96.load_pandas().data
    codes = {"vote": answers["vote"], "party": answers["PID"]}
    return pl.DataFrame(
        {
            name: pl.Series([labels[int(code)] for code in codes[name]], dtype=pl.Enum(labels))
            for name, labels in _ANSWERS.items()
        }
    )
