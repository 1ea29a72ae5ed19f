"""The metric spaces between frame and release. Everything that tells two of them apart is in the
identifier, the only thing OpenDP compares.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from opendp.domains import user_domain
from opendp.metrics import user_distance
from opendp.mod import Domain, Metric

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_prior
from opendp_bayes.mechanisms.neighbours import relation_of
from opendp_bayes.release_format.data import Key, Label, Value
from opendp_bayes.release_format.labels import are_same, distinct, in_order
from opendp_bayes.trusted.boundary import ContractError


class Cell(NamedTuple):
    """Label of one count of a query per group: the rows of one category in one group."""

    group: Key
    label: Label


@dataclass(frozen=True)
class NoGroup:
    """Label of the last count of a query per group where the number of records is public: the rows
    that are in no group.
    """


#: Of a Dirichlet distribution: a number for every category, one for each, or one for each label.
Prior = ArrayLike | Mapping[Any, float]

#: What one count is of. No two kinds look alike in an identifier: labels are quoted text, numbers
#: or booleans there.
Category = Label | Cell | NoGroup


class UserSpace(ABC):
    """A space of values that OpenDP does not know: its domain and what tells it from others."""

    @property
    @abstractmethod
    def identifier(self) -> str:
        """Everything that tells the space from others."""

    @abstractmethod
    def is_member(self, value: Any) -> bool:
        """True for a value of the space."""

    @property
    @abstractmethod
    def metric(self) -> Metric:
        """The metric of its values."""

    @property
    def domain(self) -> Domain:
        space = deepcopy(self)  # OpenDP hands it to anyone, so no map or sampler may read it
        return user_domain(space.identifier, space.is_member, space)

    def check_metric(self, metric: Metric) -> None:
        if metric != self.metric:
            raise ValueError(
                f"input_metric={metric}: must be the metric that belongs to the input domain,"
                f" {self.metric}."
            )


@dataclass(frozen=True)
class CountsSpace(UserSpace):
    """Counts of `k` categories. `size` is the public number of records (change-one neighbours), or
    None (add/remove neighbours).

    `axes` are the columns of a joint table, whose labels are tuples; empty where one column is
    counted. `by` are the columns that make groups. `nulls` and `unknown` are, of each column
    counted, the label of nulls and that of values that are no category, where it is none itself.
    The distance is the number of records changed, or added and removed; or a `Distance`.
    """

    categories: tuple[Category, ...]
    size: int | None
    axes: tuple[str, ...] = field(default=(), kw_only=True)
    by: tuple[str, ...] = field(default=(), kw_only=True)
    nulls: tuple[Value | None, ...] = field(default=(), kw_only=True)
    unknown: tuple[Value | None, ...] = field(default=(), kw_only=True)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The categories as a release names them: cells as text."""
        return tuple(
            repr(category) if isinstance(category, (Cell, NoGroup)) else category
            for category in self.categories
        )

    @property
    def k(self) -> int:
        return len(self.categories)

    @property
    def identifier(self) -> str:
        return f"CategoricalCounts({self._named})"

    @property
    def _named(self) -> str:
        named = ((name, getattr(self, name)) for name in ("axes", "by", "nulls", "unknown"))
        more = "".join(f", {name}={list(of)!r}" for name, of in named if set(of) - {None})
        return f"categories={list(self.categories)!r}, size={self.size}{more}"

    @property
    def metric(self) -> Metric:
        return user_distance(f"CountsDistance({relation_of(self.size)})", relation_of(self.size))

    def as_prior(self, prior: Prior) -> tuple[float, ...]:
        """The prior of every category from one number or one for each; of every cell from that of
        the labels, the same in each group, and for the rows in no group, of which it changes
        nothing, 1. `ValueError`/`TypeError` for another.
        """
        groups, labels = groups_and_labels(self.categories)
        if not groups:
            return _prior_of(self.categories, prior)
        rest = () if self.size is None else (1.0,)
        return (*_prior_of(labels, prior) * len(groups), *rest)

    @classmethod
    def of_groups(
        cls, groups: tuple[Key, ...], labels: tuple[Label, ...], size: int | None, **of_columns: Any
    ) -> "CountsSpace":
        """The space of the counts of the same labels in every group, group by group; and last,
        where the number of records is public, of the rows that are in no group.
        """
        cells = (Cell(group, label) for group in groups for label in labels)
        rest = () if size is None else (NoGroup(),)
        return cls((*cells, *rest), size, **of_columns)

    def is_member(self, value: Any) -> bool:
        try:
            self.counts(value)
        except BaseException:  # noqa: BLE001 - OpenDP calls this
            return False
        return True

    def __deepcopy__(self, memo: Any) -> "CountsSpace":
        return copy(self)  # of thousands of parts, which nobody can change

    def counts(self, value: Any) -> Integers:
        """Return a member as int64 counts; `ContractError` if it is not one."""
        try:
            counts = as_counts(value, self.k)
        except (TypeError, ValueError):
            counts = None
        if counts is None:
            raise ContractError(
                f"the input must hold {self.k} non-negative whole numbers, one for each category."
            )
        if self.size is not None and counts.sum() != self.size:
            raise ContractError(
                f"the number of records is not size={self.size}, the public number that was"
                " declared; pass the true one."
            )
        return counts


def groups_and_labels(
    categories: tuple[Category, ...],
) -> tuple[tuple[Key, ...], tuple[Label, ...]]:
    """The groups, and the labels in each, of the cells among `categories`; both empty where there
    are none.
    """
    cells = [category for category in categories if isinstance(category, Cell)]
    return (
        tuple(distinct(cell.group for cell in cells)),
        tuple(cell.label for cell in cells if are_same(cell.group, cells[0].group)),
    )


def _prior_of(labels: tuple[Category, ...], prior: Prior) -> tuple[float, ...]:
    if isinstance(prior, Mapping):
        entries = in_order(prior, labels)
        if entries is None:
            shown = ", ".join(map(repr, labels))
            raise ValueError(f"prior={told(prior)}: must have one entry for each of {shown}.")
        prior = entries
    return tuple(as_prior(prior, len(labels)).tolist())


@dataclass(frozen=True)
class CountsOfSeveral(UserSpace):
    """Counts of the same records by several questions, a tuple with those of each. The distance is
    that of the records: `Bounds` on those that are added and removed, or their number.
    """

    spaces: tuple[CountsSpace, ...]

    @property
    def identifier(self) -> str:
        return f"CountsOfSeveral({[space.identifier for space in self.spaces]!r})"

    @property
    def metric(self) -> Metric:
        return user_distance("RecordsDistance(added and removed)", None)

    def is_member(self, value: Any) -> bool:
        """True for a tuple with counts of each space."""
        return (
            isinstance(value, tuple)
            and len(value) == len(self.spaces)
            and all(space.is_member(one) for space, one in zip(self.spaces, value, strict=True))
        )


@dataclass(frozen=True)
class PosteriorSpace(CountsSpace):
    """Dirichlet posteriors of counts under one prior, as concentrations of shape `(k,)`. Beta
    posteriors are the case `k = 2`.
    """

    prior: tuple[float, ...]

    @property
    def identifier(self) -> str:
        return f"DirichletPosterior({self._named}, prior={list(self.prior)!r})"

    @property
    def prior_array(self) -> Floats:
        return np.array(self.prior)

    def counts(self, value: Any) -> Integers:
        """Recover the counts of a concentration, exactly: the limit on priors and sizes keeps the
        sum's rounding below one half.
        """
        is_array = (
            isinstance(value, np.ndarray) and value.shape == (self.k,) and value.dtype == np.float64
        )
        if not is_array or not np.all(np.isfinite(value)):
            raise ContractError(f"the input must be a float64 array of {self.k} concentrations.")
        return super().counts(np.rint(value - self.prior_array))
