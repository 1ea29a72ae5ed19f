"""Makes one posterior of releases of tables of the same records."""

from collections.abc import Mapping
from functools import partial

from opendp_bayes.display.wording import listed
from opendp_bayes.inference.sampling.kept_draws import kept
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import as_choice, as_generator, as_positive, as_size
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.surveys.survey_tables.consistent_draws import ConsistentDraws, draw
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.tables import Model


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
    for name, release in tables.items():
        if type(name) is not str or not isinstance(release, ReleasedData):
            raise TypeError(
                f"tables[{name!r}]: must be a Release under a name of type str, not"
                f" {type(release).__name__}; of a grouped release give `grouped.whole`."
            )
    if concentration is not None:
        concentration = as_positive(concentration, "concentration")
    effective = as_size(ess, "ess", "draws")
    as_choice(draws_may_agree, "draws_may_agree", (True, False))
    noisy = NoisyTables.of(tables.items(), draws_may_agree)
    model = Model(noisy.levels, noisy.looks, noisy.size, concentration)
    rng = as_generator(random_state)
    draws = kept(
        ["survey", list(tables), concentration, effective, random_state],
        list(tables.values()),
        partial(draw, model, effective, rng),
        partial(ConsistentDraws.of_arrays, model),
    )
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
            " a larger concentration (docs: Surveys, Chains).",
        )
    narrow = posterior.undercovered
    if narrow:
        warn(
            f"the noise is wide for the margins of {listed(narrow, 'and')}. In real surveys, only"
            " 87 % of 95 % intervals held the truth of such a margin. Ask fewer tables, or spend"
            " more on those with these variables (docs: Surveys, Wide noise).",
        )
    return posterior
