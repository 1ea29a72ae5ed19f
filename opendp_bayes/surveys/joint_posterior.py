"""One posterior of several tables of the same records: by levels where their categories nest, and
otherwise of all variables together.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from opendp_bayes.display.wording import listed
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import (
    Integers,
    as_choice,
    as_flag,
    as_generator,
    as_positive,
    as_size,
)
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import distinct, identity, places_of
from opendp_bayes.release_format.merging import merged_in
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.levels.tree import are_a_chain, check_sums
from opendp_bayes.surveys.survey_tables.consistent_draws import draw
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables, check_tables
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.tables import Model

Columns = tuple[str, ...]


@np.errstate(under="ignore")
def combine_tables(
    tables: Mapping[str, ReleasedData], *, draws_may_agree: bool = False
) -> SurveyPosterior | LevelsPosterior:
    """The posterior given releases of tables of the same records, whose prior is learned.

    Parameters
    ----------
    tables : mapping of str to Release
        The tables by name. A table of one column is of the variable of that column, or of its name
        where the release does not say its `columns`; where categories are merged, tables of the
        same labels are of one column then, and refused where they differ by more than their noise
        explains. Their losses add up (`docs/budgets.md`).
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
    draws_may_agree = as_flag(draws_may_agree, "draws_may_agree")
    if not isinstance(tables, Mapping) or any(
        not isinstance(release, ReleasedData) or type(table) is not str
        for table, release in tables.items()
    ):
        return survey_posterior(tables, draws_may_agree=draws_may_agree)  # refuses them
    parts = nested_parts(tables, likely_columns(tables))
    if parts is not None:
        check_tables(list(tables.items()), draws_may_agree)
        if not all(release.columns for release in tables.values()):
            check_sums(tables, parts)
        return LevelsPosterior(tables, parts)
    return survey_posterior(tables, draws_may_agree=draws_may_agree)


def check_joint(tables: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where `combine_tables` refuses tables before it computes anything:
    whatever was drawn, where their labels or mechanisms do not fit each other or they tie too many
    variables together.
    """
    if nested_parts(tables, likely_columns(tables)) is None:
        NoisyTables.of(tables.items(), draws_may_agree=True)


def nested_parts(
    tables: Mapping[str, ReleasedData], columns: Mapping[str, Columns]
) -> dict[str, Integers] | None:
    """For each table, the place of its category that every cell of the finest is a part of, shape
    `(cells,)`; None where the tables are not nested, or are whole tables of all combinations.

    `columns` are those that each table counts. A table's categories are sums of those of another if
    it merges them, or if it is of some of the other's columns. Of any two tables one must be finer.
    """
    if not any(release.parts or _leaves_out(release) for release in tables.values()):
        return None
    atoms = {
        table: list(chain.from_iterable(merged_in(release))) for table, release in tables.items()
    }
    widest = max(tables, key=lambda table: (len(columns[table]), len(atoms[table])))
    parts = {}
    for table, release in tables.items():
        seen = _projected(atoms[widest], columns[widest], columns[table])
        number = {
            identity(label): row
            for row, places in enumerate(merged_in(release))
            for label in places
        }
        if seen is None or {identity(label) for label in seen} != number.keys():
            return None
        parts[table] = np.array([number[identity(label)] for label in seen])
    if not are_a_chain(list(parts.values())):
        return None
    finest = max(parts.values(), key=lambda places: int(places.max()))
    first = np.unique(finest, return_index=True)[1]
    return {table: places[first] for table, places in parts.items()}


def likely_columns(tables: Mapping[str, ReleasedData]) -> dict[str, Columns]:
    """The columns that tables count. Of those that do not say so, as far as their names and labels
    tell: those of a joint table, and of one column its name. Tables of the same labels, merged or
    not, are of one column, unless several joint tables, or variables of them, have these labels.
    """
    axes = {axis for release in tables.values() for axis in release.columns or release.axes}
    labels = {
        table: frozenset(map(identity, chain.from_iterable(merged_in(release))))
        for table, release in tables.items()
    }
    stated = {
        table: release.columns or release.axes or (table,)
        for table, release in tables.items()
        if release.columns or release.axes or (table in axes and not release.parts)
    }
    columns = {}
    for table in tables:
        alike = [alike_table for alike_table in tables if labels[alike_table] == labels[table]]
        named = {stated[alike_table] for alike_table in alike if alike_table in stated}
        plain = min(alike, key=lambda alike_table: bool(tables[alike_table].parts))
        if table in stated:
            columns[table] = stated[table]
        elif len(named) == 1:
            columns[table] = named.pop()
        else:
            columns[table] = (table if named else plain,)
    return columns


def _leaves_out(release: ReleasedData) -> bool:
    """True for a joint table without a cell for some combination of its labels."""
    cells: Any = release.categories
    labels = (distinct(cell[axis] for cell in cells) for axis in range(len(release.axes)))
    return len(cells) < math.prod(map(len, labels))


def _projected(cells: Sequence[Any], columns: Columns, wanted: Columns) -> list[Label] | None:
    """The labels of some columns of cells; None where the cells do not have them."""
    if columns == wanted:
        return list(cells)
    if len(columns) < 2 or not set(wanted) <= set(columns):
        return None
    axes = [places_of(columns)[identity(column)] for column in wanted]
    return [
        cell[axes[0]] if len(axes) == 1 else tuple(cell[axis] for axis in axes) for cell in cells
    ]


def survey_posterior(
    tables: Mapping[str, ReleasedData],
    *,
    concentration: float | None = None,
    ess: int = 400,
    draws_may_agree: bool = False,
    random_state: int | None = 0,
) -> SurveyPosterior:
    """The posterior given releases of tables of the same records, whatever variables they share.

    Nothing is drawn from data. What is said of variables that no table ties rests on an interaction
    that is assumed (`docs/surveys.md`).

    Warns where chains have not met, by the names of the tables, and where noise is so wide that
    intervals of margins hold the truth too rarely, by the names of the variables.

    Parameters
    ----------
    tables : Mapping[str, Release]
        Releases by name, with independent noise on the counts of whole tables. A release of one
        column is a table of one variable, its column, or of that name where the release does not
        say its `columns`; the axes of a joint table are its variables. Variables of one name are
        the same, and so must their labels be.
    concentration : float, optional
        The sum of the Dirichlet prior of every table, spread evenly over its cells; by default it
        is learned. The releases' own `prior`, each of which is for a table alone, is not used.
    ess : int, default 400
        Those of each margin of one variable, unless long chains do not suffice.
    draws_may_agree : bool, default False
        Whether two identical releases of one table are two draws; otherwise they are taken
        for one, given twice, and refused.
    random_state : int or None, default 0
        Of the chains; None for another at each call.

    Raises
    ------
    ValueError, TypeError
        For releases that do not fit each other, and for tables that tie too many variables
        together, with the one to leave out.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise TypeError("tables: must be a mapping from names to at least one release.")
    for table, release in tables.items():
        if type(table) is not str or not isinstance(release, ReleasedData):
            raise TypeError(
                f"tables[{table!r}]: must be a Release under a name of type str, not"
                f" {type(release).__name__}; of a grouped release give `grouped.whole`."
            )
    if concentration is not None:
        concentration = as_positive(concentration, "concentration")
    effective = as_size(ess, "ess", "draws")
    as_choice(draws_may_agree, "draws_may_agree", (True, False))
    noisy = NoisyTables.of(tables.items(), draws_may_agree)
    model = Model(noisy.levels, noisy.looks, noisy.size, concentration)
    rng = as_generator(random_state)
    draws = draw(model, effective, rng)
    posterior = SurveyPosterior(noisy, draws, rng.spawn(1)[0])
    loose = posterior.unsettled
    if loose:
        shown = "; ".join(
            f"{' × '.join(names) or 'the number of records'} (R-hat {posterior.r_hat[names]:.2f},"
            f" {posterior.ess[names]:.0f} effective draws)"
            for names in loose
        )
        warn(
            f"the chains have not settled for {shown}. Ask fewer tables of these variables, or give"
            " a larger concentration (docs: Surveys, Chains)."
        )
    narrow = posterior.undercovered
    if narrow:
        warn(
            f"the noise is wide for the margins of {listed(narrow, 'and')}. In real surveys, only"
            " 87 % of 95 % intervals held the truth of such a margin. Ask fewer tables, or spend"
            " more on those with these variables (docs: Surveys, Wide noise)."
        )
    return posterior
