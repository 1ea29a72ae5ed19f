"""`opendp-bayes demo`: posteriors of a public survey, released as if it were not public."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, release_errors
from opendp_bayes_office.commands.output import display, echo, waiting, written

if TYPE_CHECKING:
    import polars as pl

#: The labels of the codes 0, 1, 2, ... of the survey, as its documentation names them.
_ANSWERS = {
    "vote": ["Clinton", "Dole"],
    "party": [
        "Strong Democrat",
        "Weak Democrat",
        "Independent-Democrat",
        "Independent-Independent",
        "Independent-Republican",
        "Weak Republican",
        "Strong Republican",
    ],
}
_NOTES = (
    "The two questions were put to the same people, so ε adds up.",
    "Both results are noisy: intervals that know of the noise are wider than the plug-in ones,"
    " which are too narrow. Try `opendp-bayes demo --epsilon 1`, where they nearly agree (docs:"
    " Reading a posterior).",
    "True counts are never shown: a release is all that leaves a Context. Run it again to see other"
    " noise.",
)


def demo(
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="Budget ε of each release.", rich_help_panel=options.PRIVACY
        ),
    ] = 0.1,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page; an earlier one is replaced.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("opendp-bayes-demo.html"),
) -> None:
    """Release posteriors of real data, show them with their guarantees, and write a page.

    The data are two questions of the American National Election Study of 1996 (package
    statsmodels): the expected vote, of 2 categories, and party identification, of 7. The number of
    records is public.

    Exit code: 0 if the releases were made, 1 if not, 2 for wrong options, 3 if the page could not
    be written.

    Example:

        opendp-bayes demo
    """
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes_office.commands.answers import survey_of
    from opendp_bayes_office.report.page import rendered
    from opendp_bayes_office.report.report_document import Report
    from opendp_bayes_office.report.specification_text import specification_of

    try:
        answers = _survey()
    except ModuleNotFoundError:
        fail("the demo needs statsmodels, which is not installed: pip install statsmodels", code=1)
    specification = specification_of(
        {
            "title": "How Americans meant to vote in 1996",
            "privacy": {"epsilon": 2 * epsilon, "size": answers.height},
            # No value is missing or another one, so where such are counted does not matter.
            "columns": {
                question: {"categories": labels, "nulls": labels[0], "unknown": labels[0]}
                for question, labels in _ANSWERS.items()
            },
            "results": [
                {"column": "vote", "title": "Expected vote, American National Election Study 1996"},
                {"column": "party", "title": "Party identification, same survey"},
            ],
        }
    )
    query = survey_of(answers.lazy(), specification)
    with release_errors(), waiting("Releasing"):
        survey = query.release()
    with waiting("Computing the posteriors"):
        sheets = [release.sheet(title=title, percent=True) for title, release in survey.items()]
        page = rendered(Report(specification, survey))
    display(*(item for sheet in sheets for item in (sheet, "")), Sheet((), _NOTES), "")
    with written(output):
        output.write_text(page, encoding="utf-8")
    echo(f"{output}: the page of the survey; open it in a browser.")


def _survey() -> "pl.DataFrame":
    import polars as pl
    from statsmodels.datasets import anes96

    answers = anes96.load_pandas().data
    codes = {"vote": answers["vote"], "party": answers["PID"]}
    return pl.DataFrame(
        {
            question: pl.Series(
                [labels[int(code)] for code in codes[question]], dtype=pl.Enum(labels)
            )
            for question, labels in _ANSWERS.items()
        }
    )
