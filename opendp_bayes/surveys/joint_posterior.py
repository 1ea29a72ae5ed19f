"""One posterior of several tables of the same records: by levels where their categories nest, and
otherwise of all variables together.
"""

from collections.abc import Mapping
from dataclasses import replace

from opendp_bayes.mathematics.underflow import underflow_is_zero
from opendp_bayes.mathematics.validation import as_flag
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.levels.nested_tables import check_sums
from opendp_bayes.surveys.levels.nesting import Columns, likely_columns, nested_parts
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables, check_tables
from opendp_bayes.surveys.survey_tables.posterior_of_tables import survey_posterior
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior


@underflow_is_zero
def combine_tables(
    tables: Mapping[str, ReleasedData], *, draws_may_agree: bool = False
) -> SurveyPosterior | LevelsPosterior:
    """The posterior given releases of tables of the same records, whose prior is learned.

    Parameters
    ----------
    tables : mapping of str to Release
        The tables by name. A table of one column is of the variable of that column, or of its name
        where the release does not say its `columns`. Their losses add up (`docs/budgets.md`).
    draws_may_agree : bool
        A release that is given twice would count twice, so that identical draws of one mechanism
        are refused. With True they are two draws that happen to agree.

    Returns
    -------
    SurveyPosterior or LevelsPosterior
        A `LevelsPosterior`, exact, where the categories of each are sums of those of one of them
        (`docs/levels.md`). Otherwise a `SurveyPosterior`, by Markov chains with a fixed seed
        (`docs/surveys.md`).

    Raises
    ------
    ValueError, TypeError
        For releases that do not fit each other, for one that is given twice, and where the
        posterior is out of reach (`docs/limits.md`).
    """
    agree = as_flag(draws_may_agree, "draws_may_agree")
    return posterior_of_tables(tables, draws_may_agree=agree)


def posterior_of_tables(
    tables: Mapping[str, ReleasedData],
    columns: Mapping[str, Columns] | None = None,
    *,
    draws_may_agree: bool = False,
) -> LevelsPosterior | SurveyPosterior:
    """The posterior given releases of tables of the same records.

    Where merged categories, or cells of a joint table that leaves some out, are sums of those of
    others, and of any two tables one is finer: a `LevelsPosterior`, exact. Otherwise a
    `SurveyPosterior`, by chains.

    Parameters
    ----------
    tables : Mapping[str, Release]
        Releases by name.
    columns : Mapping[str, Columns], optional
        That each one counts, where releases written before do not say so. Without them it is the
        axes of a joint table, and of a release of one column its name. Where categories are merged,
        tables of the same labels are of one column then, and refused where they differ by more than
        their noise explains.
    draws_may_agree : bool, default False
        Whether two identical releases of one table are two draws.

    Raises
    ------
    ValueError, TypeError
        For releases that do not fit each other.
    """
    if not isinstance(tables, Mapping) or any(
        not isinstance(release, ReleasedData) or type(name) is not str
        for name, release in tables.items()
    ):
        return survey_posterior(tables, draws_may_agree=draws_may_agree)  # refuses them
    if columns is not None:
        tables = {name: replace(one, columns=columns[name]) for name, one in tables.items()}
    parts = nested_parts(tables, likely_columns(tables))
    if parts is not None:
        check_tables(list(tables.items()), draws_may_agree)
        if not all(release.columns for release in tables.values()):
            check_sums(tables, parts)
        return LevelsPosterior(tables, parts)
    return survey_posterior(tables, draws_may_agree=draws_may_agree)


def check_joint(tables: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where `posterior_of_tables` refuses tables before it computes anything:
    whatever was drawn, where their labels or mechanisms do not fit each other or they tie too many
    variables together.
    """
    if nested_parts(tables, likely_columns(tables)) is None:
        NoisyTables.of(tables.items(), draws_may_agree=True)
