"""`opendp-bayes demo`: posteriors of public data sets, through OpenDP Contexts as if they were not
public.
"""

from typing import TYPE_CHECKING

from opendp_bayes_office.commands.errors import fail, release_errors
from opendp_bayes_office.commands.output import display

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes import Release

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
_SPECIES = ("Adelie", "Chinstrap", "Gentoo")

#: By title, the columns of the survey that are asked for.
_QUESTIONS = {
    "Expected vote, American National Election Study 1996": "vote",
    "Party identification, same survey": "party",
}
_NOTE = (
    "The two questions were put to the same people, so for them ε adds up to 2.\n\nWith so many"
    " records at ε = 1 the noise is small, and the two columns of intervals nearly agree. With"
    " fewer records or a smaller ε the plug-in intervals are too narrow (docs: Reading a"
    " posterior).\n\nTrue counts are never shown: a release is all that leaves a Context."
    " Run it again to see other noise."
)


def demo() -> None:
    """Release posteriors of real data at ε = 1 each, and show them with their guarantees.

    * Species of the Palmer penguins (package palmerpenguins): 3 categories, private number of
      records.

    * Expected vote in the American National Election Study of 1996 (package statsmodels): 2
      categories, public number of records.

    * Party identification in the same survey: 7 categories, public number of records.

    Exit code: 0 if the releases were made, 1 if not, 2 for wrong options.

    Example:

        opendp-bayes demo
    """
    from opendp.mod import enable_features

    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts

    enable_features("contrib", "honest-but-curious")
    try:
        penguins, survey = _penguins(), _survey()
    except ModuleNotFoundError as error:
        fail(
            f"the demo needs {error.name}, which is not installed: pip install"
            " 'opendp-bayes-office[demo]'",
            code=1,
        )
    with release_errors(), waiting("Releasing"), deferred_interrupts():
        releases = _released(penguins, {"Species of Palmer penguins": "species"}, size=None)
        releases |= _released(survey, _QUESTIONS, size=survey.height)  # published with the survey
    with waiting("Computing the posteriors"):
        sheets = [release.sheet(title=title) for title, release in releases.items()]
    display(*(part for sheet in sheets for part in (sheet, "")), _NOTE)


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
    columns = {"vote": _VOTES, "party": _PARTIES}
    codes = {"vote": answers["vote"], "party": answers["PID"]}
    return pl.DataFrame(
        {
            name: pl.Series([labels[int(code)] for code in codes[name]], dtype=pl.Enum(labels))
            for name, labels in columns.items()
        }
    )


def _released(
    frame: "pl.DataFrame", questions: dict[str, str], *, size: int | None
) -> "dict[str, Release]":
    """Releases of columns, at ε = 1 each, by their titles; with a public number of records a unit
    changes one. No value is missing, so where such are counted does not matter.
    """
    from opendp.context import loss_of, unit_of

    import opendp_bayes as ob

    context = ob.context(
        frame,
        privacy_unit=unit_of(contributions=1) if size is None else unit_of(changes=1),
        privacy_loss=loss_of(epsilon=float(len(questions))),
        split_evenly_over=len(questions),
    )
    first = {"vote": _VOTES[0], "party": _PARTIES[0], "species": _SPECIES[0]}
    return {
        title: ob.posterior(context.query(), column, nulls=first[column], size=size).release()
        for title, column in questions.items()
    }
