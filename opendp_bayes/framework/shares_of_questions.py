"""Divide the budget of a survey among its questions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from opendp_bayes.accounting.calibration import smallest_scale
from opendp_bayes.framework.asked import Asked
from opendp_bayes.framework.budget import as_tuple
from opendp_bayes.framework.interrupts import interruptible
from opendp_bayes.framework.summary import balanced_error
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice, as_positive, as_size
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.planning.expected_error import PartError
from opendp_bayes.planning.shares import Goal, solved_shares
from opendp_bayes.release_format.labels import in_order

#: How a budget is divided: in equal parts, so that errors are what is asked for, or by weights.
Share = Literal["equal", "equal_errors", "smallest_error"] | Mapping[str, float]


@dataclass(frozen=True)
class Division:
    """The arguments of `survey` that divide its budget, checked."""

    share: Share
    error: PartError
    guess_size: int | None

    def __post_init__(self) -> None:
        if self.guess_size is not None:
            as_size(self.guess_size, "guess_size")
        as_choice(self.error, "error", get_args(PartError))
        if not isinstance(self.share, Mapping) and self.share not in ("equal", *get_args(Goal)):
            raise ValueError(
                f"share={told(self.share)}: must be 'equal',"
                f" {' or '.join(map(repr, get_args(Goal)))},"
                " or a mapping from every question to a weight."
            )

    def check(self, asked: Mapping[str, Asked]) -> None:
        """Raise `ValueError`/`TypeError` for shares that do not fit the questions."""
        if isinstance(self.share, Mapping):
            if in_order(self.share, list(asked)) is None:
                raise ValueError(
                    f"share={dict(self.share)!r}: must have a weight for each of"
                    f" {', '.join(map(repr, asked))}, and no other."
                )
            for name in asked:
                as_positive(self.share[name], f"share[{name!r}]")
        by_errors = self.share in get_args(Goal)
        if self.error != "total_variation" and not by_errors:
            raise ValueError(
                f"error={told(self.error)}: is for shares by errors; leave it out, or pass"
                f" share={' or share='.join(map(repr, get_args(Goal)))}."
            )
        private = [name for name, one in asked.items() if one.space.size is None]
        if self.guess_size is not None and not (by_errors and private):
            raise ValueError(
                f"guess_size={self.guess_size}: is for shares by errors where the number of records"
                " is private; leave it out."
            )
        if by_errors and private and self.guess_size is None:
            raise ValueError(
                f"share={told(self.share)}: errors depend on the number of records, which is"
                " private in"
                f" questions[{private[0]!r}]; pass a public guess of it, guess_size=."
            )
        for name, one in asked.items():
            if by_errors and isinstance(one.fit, Mechanism):
                raise ValueError(
                    f"share={told(self.share)}: no share changes the error of questions[{name!r}],"
                    " whose mechanism has its scale; give the mechanism by name."
                )

    def settled(self, asked: Mapping[str, Asked]) -> tuple[dict[str, Asked], tuple[float, ...]]:
        """The questions, and the weight of each in their order, for the budget of their query.

        Where shares go by errors, the mechanism of a question is that of an equal share, with
        another scale: then its error has no jumps, and a choice takes its time only once. Depends
        on public things only.
        """
        if self.share == "equal":
            return dict(asked), (1.0,) * len(asked)
        if isinstance(self.share, Mapping):
            return dict(asked), tuple(float(self.share[name]) for name in asked)
        settled = {name: _settled(one, 1 / len(asked)) for name, one in asked.items()}
        errors = {name: self._error(one) for name, one in settled.items()}
        return settled, tuple(solved_shares(errors, self.share).values())

    def _error(self, asked: Asked) -> Callable[[float], float]:
        """The expected error of a question as a function of its share of the budget."""
        size = asked.space.size
        records = cast(int, self.guess_size) if size is None else size

        def error(share: float) -> float:
            setting = asked.fitted(_part(asked, share))
            with interruptible():
                return balanced_error(asked, setting, records, self.error)

        return error


def _settled(asked: Asked, share: float) -> Asked:
    """The question with one mechanism for every budget, but for its scale."""
    template = asked.fitted(_part(asked, share))
    return replace(asked, fit=lambda loss: smallest_scale(template, loss))


def _part(asked: Asked, share: float) -> Any:
    budget = asked.base._d_out
    parts = tuple(share * limit for limit in as_tuple(budget))
    return parts if isinstance(budget, tuple) else parts[0]
