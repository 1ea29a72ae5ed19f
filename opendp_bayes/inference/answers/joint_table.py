"""Joint tables: the posterior of some of their variables, and of some given others."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from opendp_bayes.inference.engines.true_counts import TrueCounts
from opendp_bayes.release_format.combination import Combination
from opendp_bayes.release_format.data import Label, ReleasedData, Value
from opendp_bayes.release_format.labels import are_same, distinct, identity, place_of, places_of

T = TypeVar("T", bound="JointTable")


class JointTable:
    """Marginal and conditional posteriors of a joint table. Its cells are the categories, and their
    labels are tuples with a value of each of `axes`, the variables. `axes` is empty where there is
    no table.
    """

    release: ReleasedData | Combination
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    axes: tuple[str, ...]
    _true_counts: TrueCounts

    def marginal(self: T, *variables: str) -> T:
        """The posterior of the probabilities of one variable, or of a table of several in the order
        given, whatever the others are.

        The probability of a value is the sum of those of its cells, which is Dirichlet given the
        counts as they are, so nothing is lost. Values are in the order of the cells.
        Raises `ValueError`/`TypeError` for what is no table or no variable of it, and where less
        than two values remain.

        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
        >>> promise = Promise(9, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> cells = (("n", "yes"), ("n", "no"), ("s", "yes"), ("s", "no"))
        >>> axes = ("region", "vote")
        >>> drawn, mechanism = (3, 2, 1, 3), LaplaceParameters(2.0)
        >>> table = Release(drawn, cells, (1.0,) * 4, mechanism, promise, axes).posterior
        >>> table.marginal("vote").categories
        ('yes', 'no')
        >>> table.conditional("vote", region="n").mean().round(2).tolist()
        [0.55, 0.45]
        """
        return _collapsed(self, self._places(variables), range(len(self.categories)))

    def conditional(self: T, /, *variables: str, **given: Value) -> T:
        """The posterior of the probabilities of one variable, or of a table of several, among the
        records for which other variables have the values `given`.

        It is a mixture of Dirichlets too: probabilities within some cells are Dirichlet given their
        counts. Without `variables`, of all that are not given. Raises `ValueError`/`TypeError` for
        what is no table, no variable or no value of it, and where less than two values remain.
        """
        names = variables or [name for name in self.axes if name not in given]
        kept = self._places(names)
        if not given or set(names) & set(given):
            raise ValueError(
                f"given={given!r}: must give the values of other variables than {list(names)!r}."
            )
        fixed = dict(zip(self._places(given, "given"), given.values(), strict=True))
        inside = list(range(len(self.categories)))
        for place, value in fixed.items():
            values = [cell[place] for cell in _cells(self)]
            if place_of(value, values) is None:
                shown = ", ".join(map(repr, distinct(values)))
                raise ValueError(
                    f"{self.axes[place]}={value!r}: is not a value of it; those are {shown}."
                )
            inside = [at for at in inside if are_same(values[at], value)]
        return _collapsed(self, kept, inside)

    def _places(self, names: Any, argument: str = "variables") -> list[int]:
        """Positions of the variables among the axes."""
        names = list(names)
        if not self.axes:
            raise ValueError(
                f"{argument}={names!r}: needs the posterior of a joint table, as that of"
                " `ob.posterior(query, ['region', 'vote'])` is."
            )
        if not names or set(names) - set(self.axes) or len(set(names)) < len(names):
            raise ValueError(
                f"{argument}={names!r}: must be some of the variables of the table, each once:"
                f" {', '.join(map(repr, self.axes))}."
            )
        return [self.axes.index(name) for name in names]


def part_of(table: T, release: ReleasedData) -> T:
    """The posterior of one group of a table of groups: conditional on being in it."""
    inside = range(release.start, release.start + release.k)
    made: T = cast(Any, type(table))(release, table._true_counts.given(inside))
    return made


def _cells(table: JointTable) -> tuple[tuple[Value, ...], ...]:
    return cast(tuple[tuple[Value, ...], ...], table.categories)


def _collapsed(table: T, kept: Sequence[int], inside: Sequence[int]) -> T:
    """The posterior of the variables at `kept` among the cells at `inside`."""
    cells, prior = _cells(table), table.prior
    order = [places_of(cell[place] for cell in cells) for place in kept]
    members: dict[tuple[int, ...], list[int]] = {}
    for number, at in enumerate(inside):
        values = [cells[at][place] for place in kept]
        key = tuple(known[identity(value)] for known, value in zip(order, values, strict=True))
        members.setdefault(key, []).append(number)
    together = [members[key] for key in sorted(members)]
    firsts = [[cells[inside[group[0]]][place] for place in kept] for group in together]
    labels: list[Label] = [tuple(values) if len(kept) > 1 else values[0] for values in firsts]
    if len(labels) < 2:
        raise ValueError(
            f"variables={[table.axes[place] for place in kept]!r}: have the values"
            f" {labels!r} only; the probability of one value is 1."
        )
    found = table._true_counts
    if len(inside) < len(cells):
        found = found.given(inside)
    if together != [[number] for number in range(len(inside))]:
        found = found.merged(together)
    alphas = tuple(sum(prior[inside[number]] for number in group) for group in together)
    made: T = cast(Any, table)._made(found, tuple(labels), alphas)
    made.axes = tuple(table.axes[place] for place in kept) if len(kept) > 1 else ()
    return made
