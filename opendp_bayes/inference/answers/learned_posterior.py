"""The posterior under a prior that was learned from the release itself."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.quantities import OfDraws, Quantities, Quantity
from opendp_bayes.inference.learned.learned_counts import LearnedCounts, learned_counts
from opendp_bayes.inference.learned.noised_table import NoisedTable, table_of
from opendp_bayes.inference.sampling.kept_draws import cached
from opendp_bayes.inference.sampling.markov_chain import warn_of_draws
from opendp_bayes.mathematics.validation import Floats, as_generator
from opendp_bayes.release_format.data import ReleasedData


class LearnedPosterior(NoiseAwarePosterior):
    """The posterior of the category probabilities under a learned prior, by draws of Markov chains.

    It answers what a `NoiseAwarePosterior` answers. Given a draw the probabilities are Gamma
    variates divided by their sum and not Dirichlet, so that `prior` holds zeros; `learned` says
    what took its place.

    Source: `docs/research/computation.md`, "A prior that is learned".
    """

    _engine: LearnedCounts

    @property
    def learned(self) -> Quantities:
        """Posteriors of what describes the prior: the share of empty cells, the standard deviation
        of the others' log-intensity within margins, and that of the effects of each margin.
        """

        def quantity(label: str, values: Floats) -> Quantity:
            behind = min(self._engine.independent, values.size)
            law = OfDraws(partial(_chosen, values), values.size, behind, 0)
            return Quantity(label, law, None)

        return Quantities((label, quantity(label, v)) for label, v in self._engine.learned.items())

    def __repr__(self) -> str:
        diagnostics = self._engine.diagnostics
        return (
            f"LearnedPosterior({{{self._estimates()}}}, prior learned by Markov chains, R-hat"
            f" {diagnostics.r_hat.max():.3f}, ESS {diagnostics.ess.min():.0f})"
        )


def _chosen(values: Floats, draws: int, random_state: int | None) -> Floats:
    """Some of the values, which may repeat."""
    return as_generator(random_state).choice(values, draws)


def learned_from(
    release: ReleasedData, prior: Any, ordered: Any, records_prior: Any, random_state: int | None
) -> LearnedPosterior:
    """The posterior under a learned prior, of arguments that are checked here."""
    if prior != "learned":
        numbers = "a number, one for each category, or 'learned'"
        wanted = "'learned' where ordered is given" if prior is None else numbers
        raise ValueError(f"prior={prior!r}: must be {wanted}.")
    if records_prior is not None:
        raise ValueError(
            f"records_prior={records_prior!r}: must be None with prior='learned', which learns the"
            " scale of the number of records with the rest."
        )
    if release.group_size is not None:
        raise ValueError(
            f"prior='learned': is for a whole table, not for one group of public size"
            f" {release.group_size}; use the release of all groups, or pooled()."
        )
    names = release.ordered if ordered is None else ordered
    return learned_posterior([release], release.size, names, random_state)


def learned_posterior(
    releases: Sequence[ReleasedData],
    size: int | None,
    ordered: Any = (),
    random_state: int | None = 0,
) -> LearnedPosterior:
    """The posterior of a table of `size` records, drawn once or several times, under a learned
    prior.
    """
    table = table_of(releases, size)
    names = _ordered(table, releases[0].axes, ordered)
    draws = cached(
        ["learned prior", size, names, random_state],
        releases,
        lambda: learned_counts(table, names, as_generator(random_state)),
        LearnedCounts.of_arrays,
    )
    warn_of_draws(draws.diagnostics)
    return LearnedPosterior(releases, draws)


def check_learned(release: ReleasedData) -> None:
    """Raise `ValueError`/`TypeError` where no prior can be learned from a release, whatever is
    drawn.
    """
    _ordered(table_of([release], release.size), release.axes, release.ordered)


def _ordered(table: NoisedTable, axes: tuple[str, ...], names: Any) -> list[str]:
    """The names of ordered variables, as the table has them."""
    are_names = isinstance(names, Sequence) and all(isinstance(variable, str) for variable in names)
    if isinstance(names, str) or not are_names:
        raise TypeError(f"ordered={names!r}: must be a sequence of names, such as ['age'].")
    if not axes:
        if len(names) > 1:
            raise ValueError(f"ordered={names!r}: must be one name, for there is one column.")
        return list(table.variables) if names else []
    if set(names) - set(axes):
        raise ValueError(
            f"ordered={names!r}: must be variables of the table: {', '.join(map(repr, axes))}."
        )
    return list(names)
