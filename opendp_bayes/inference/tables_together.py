"""One posterior of tables of the same records: by their structure an exact one, or by chains."""

from collections.abc import Mapping

from opendp_bayes.inference.levels.levels_posterior import LevelsPosterior
from opendp_bayes.inference.levels.nesting import Columns, likely_columns, nested_parts
from opendp_bayes.inference.survey_tables.noisy_tables import check_tables
from opendp_bayes.inference.survey_tables.posterior_of_tables import survey_posterior
from opendp_bayes.inference.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.release_format.data import ReleasedData


def posterior_of_tables(
    tables: Mapping[str, ReleasedData],
    columns: Mapping[str, Columns] | None = None,
    *,
    draws_may_agree: bool = False,
) -> LevelsPosterior | SurveyPosterior:
    """The posterior given releases of tables of the same records.

    Parameters
    ----------
    tables : releases by name.
    columns : that each one counts; by default the axes of a joint table, of a release of one column
        its name, and of merged categories those of the table whose labels they merge.
    draws_may_agree : whether two releases of one table that drew the same are two draws.

    Where merged categories, or cells of a joint table that leaves some out, are sums of those of
    others, and of any two tables one is finer: a `LevelsPosterior`, exact. Otherwise a
    `SurveyPosterior`, by chains.

    Raises `ValueError`/`TypeError` for releases that do not fit each other.
    """
    if not isinstance(tables, Mapping) or any(
        not isinstance(release, ReleasedData) or type(name) is not str
        for name, release in tables.items()
    ):
        return survey_posterior(tables, draws_may_agree=draws_may_agree)  # refuses them
    parts = nested_parts(tables, likely_columns(tables) if columns is None else columns)
    if parts is not None:
        check_tables(list(tables.items()), draws_may_agree)
        return LevelsPosterior(tables, parts)
    return survey_posterior(tables, draws_may_agree=draws_may_agree)
