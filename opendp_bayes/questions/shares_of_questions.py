"""Divide the budget of a survey among its questions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast, get_args

from opendp_bayes.accounting.calibration import smallest_scale
from opendp_bayes.inference.levels.nesting import nested_parts
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice, as_positive, as_size
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.expected_error import PartError
from opendp_bayes.planning.joint_error import (
    Blocks,
    JointLevels,
    JointTables,
    Together,
    noise_variance,
)
from opendp_bayes.planning.shares import solved_shares
from opendp_bayes.questions.asked import Asked, frames_of_the_same_rows
from opendp_bayes.questions.discovery_query import Discovering
from opendp_bayes.questions.summary import balanced_error
from opendp_bayes.release_format.labels import distinct, identity, in_order
from opendp_bayes.trusted.budget import as_tuple
from opendp_bayes.trusted.interrupts import interruptible
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.spaces import groups_and_labels

#: How a budget is divided: in equal parts, so that the mean error is smallest, or by weights.
Share = Literal["equal", "smallest_error"] | Mapping[str, float]


@dataclass(frozen=True)
class Division:
    """The arguments of `survey` that divide its budget, checked; `weights` are the shares that
    questions state themselves, by name, which `"equal"` leaves in place.
    """

    share: Share
    error: PartError
    guess_size: int | None
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.guess_size is not None:
            as_size(self.guess_size, "guess_size")
        as_choice(self.error, "error", get_args(PartError))
        if not isinstance(self.share, Mapping) and self.share not in ("equal", "smallest_error"):
            raise ValueError(
                f"share={told(self.share)}: must be 'equal', 'smallest_error', or a mapping from"
                " every question to a weight."
            )

    def check(self, asked: Mapping[str, Asked | Discovering]) -> None:
        """Raise `ValueError`/`TypeError` for shares that do not fit the questions."""
        listed = {name: one for name, one in asked.items() if isinstance(one, Asked)}
        for name, weight in self.weights.items():
            as_positive(weight, f"questions[{name!r}]: share")
        if isinstance(self.share, Mapping):
            if in_order(self.share, list(asked)) is None:
                raise ValueError(
                    f"share={dict(self.share)!r}: must have a weight for each of"
                    f" {', '.join(map(repr, asked))}, and no other."
                )
            for name in asked:
                as_positive(self.share[name], f"share[{name!r}]")
        by_errors = self.share == "smallest_error"
        if self.error != "total_variation" and not by_errors:
            raise ValueError(
                f"error={told(self.error)}: is for shares by errors; leave it out, or pass"
                " share='smallest_error'."
            )
        private = [name for name, one in listed.items() if one.space.size is None]
        for name in (name for name in asked if by_errors and name not in listed):
            raise ValueError(
                f"share={told(self.share)}: no error is foreseen of questions[{name!r}], whose"
                " categories are to be discovered; give every question a weight, as in"
                f" share={{{name!r}: 1, ...}}, or leave share out."
            )
        if self.guess_size is not None and not (by_errors and private):
            raise ValueError(
                f"guess_size={self.guess_size}: is for shares by errors where the number of records"
                " is private; leave it out."
            )
        if by_errors and private and self.guess_size is None:
            raise ValueError(
                f"share={told(self.share)}: errors depend on the number of records, which is"
                f" private in questions[{private[0]!r}]; pass a public guess of it, guess_size=."
            )
        for name, one in listed.items():
            if by_errors and isinstance(one.fit, Mechanism):
                raise ValueError(
                    f"share={told(self.share)}: no share changes the error of questions[{name!r}],"
                    " whose mechanism has its scale; give the mechanism by name."
                )

    def settled(
        self, asked: Mapping[str, Asked | Discovering]
    ) -> tuple[dict[str, Asked | Discovering], tuple[float, ...]]:
        """The questions, and the weight of each in their order, for the budget of their query.

        Where shares go by errors, the mechanism of a question is that of an equal share, with
        another scale: then its error has no jumps, and a choice takes its time only once. Depends
        on public things only.
        """
        if self.share == "equal":
            return dict(asked), tuple(float(self.weights.get(name, 1)) for name in asked)
        if isinstance(self.share, Mapping):
            return dict(asked), tuple(float(self.share[name]) for name in asked)
        every = {name: one for name, one in asked.items() if isinstance(one, Asked)}  # as checked
        settled = {name: _settled(one, 1 / len(every)) for name, one in every.items()}
        errors = {name: partial(self._error, one) for name, one in settled.items()}
        noise, ratios = {}, None
        if self.error == "total_variation":
            equal = {name: one.fitted(_part(one, 1 / len(every))) for name, one in settled.items()}
            if (together := estimated_together(settled, equal)) is not None:
                noise = {name: partial(_noise, settled[name]) for name in together.names}
                ratios = together.ratios
        return {**settled}, tuple(solved_shares(errors, noise, ratios).values())

    def _error(self, asked: Asked, share: float) -> float:
        """The expected error of a question at a share of the budget."""
        size, setting = asked.space.size, asked.fitted(_part(asked, share))
        records = cast(int, self.guess_size) if size is None else size
        with interruptible():
            return balanced_error(asked, setting, records, self.error)


@dataclass(frozen=True)
class _Counted:
    """The structure of a question's table, as that of its release."""

    categories: tuple[Any, ...]
    axes: tuple[str, ...]
    parts: tuple[Any, ...]


def estimated_together(
    questions: Mapping[str, Asked], settings: Mapping[str, Setting]
) -> Blocks | None:
    """The questions of which one posterior can be made: those without groups whose mechanisms add
    noise to the counts, of rows that are the same for each. Of questions that share columns, those
    that are nested are levels, in a block of their own; others are tables, unless they merge
    categories.
    """
    alike = bool(frames_of_the_same_rows(questions.values()))
    noisy = {
        name: asked
        for name, asked in questions.items()
        if not groups_and_labels(asked.space.categories)[0]
        and noise_variance(settings[name]) is not None
        and (alike or asked.kept or not asked.truncated)
    }
    levels, tables = [], {name: one for name, one in noisy.items() if not one.question.parts}
    for names in _sharing_columns(noisy):
        if (nested := joint_levels({name: noisy[name] for name in names})) is not None:
            levels.append(nested)
            tables = {name: one for name, one in tables.items() if name not in names}
    joint = _joint_tables(tables)
    blocks: tuple[Together, ...] = (*levels, *([] if joint is None else [joint]))
    return Blocks(blocks) if blocks else None


def _sharing_columns(questions: Mapping[str, Asked]) -> list[list[str]]:
    """The questions by what columns they share, directly or by way of others."""
    found: list[tuple[set[str], list[str]]] = []
    for name, asked in questions.items():
        columns, names = set(asked.question.columns), [name]
        apart = []
        for others in found:
            if columns & others[0]:
                columns, names = columns | others[0], others[1] + names
            else:
                apart.append(others)
        found = [*apart, (columns, names)]
    return [names for _, names in found]


def joint_levels(questions: Mapping[str, Asked]) -> JointLevels | None:
    """The questions as levels of a tree; None where they are not nested."""
    tables = {
        name: _Counted(asked.space.labels, asked.space.axes, asked.question.parts)
        for name, asked in questions.items()
    }
    columns = {name: asked.question.columns for name, asked in questions.items()}
    parts = nested_parts(tables, columns)
    return None if parts is None else JointLevels(parts)


def _joint_tables(questions: Mapping[str, Asked]) -> JointTables | None:
    """The questions as tables of all combinations of their variables' labels, by the names of the
    questions; None where their posterior would be refused, as for labels that differ.
    """
    levels: dict[str, list[Any]] = {}
    scopes: dict[str, frozenset[str]] = {}
    for name, asked in questions.items():
        axes = asked.question.columns
        for at, variable in enumerate(axes):
            cells: Any = asked.space.categories
            own = distinct(cell[at] if asked.space.axes else cell for cell in cells)
            if set(map(identity, levels.setdefault(variable, own))) != set(map(identity, own)):
                return None
        scopes[name] = frozenset(axes)
        if math.prod(len(levels[variable]) for variable in axes) != asked.space.k:
            return None
    if not scopes:
        return None
    return JointTables(scopes, {variable: len(labels) for variable, labels in levels.items()})


def _noise(asked: Asked, share: float) -> float:
    """The variance of the noise of a question at a share of the budget."""
    found = noise_variance(asked.fitted(_part(asked, share)))
    assert found is not None  # noqa: S101  # as at an equal share
    return found


def _settled(asked: Asked, share: float) -> Asked:
    """The question with one mechanism for every budget, but for its scale."""
    template = asked.fitted(_part(asked, share))
    return replace(asked, fit=lambda loss: smallest_scale(template, loss))


def _part(asked: Asked, share: float) -> Any:
    budget = parts_of(asked.base).d_out
    parts = tuple(share * limit for limit in as_tuple(budget))
    return parts if isinstance(budget, tuple) else parts[0]
