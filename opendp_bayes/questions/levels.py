"""Questions of a tree over ordered categories."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from opendp_bayes.inference.levels.nested_tables import are_a_chain
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers, as_choice
from opendp_bayes.planning.best_levels import Budget, best_levels, best_shares
from opendp_bayes.planning.tree_errors import Wanted
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.labels import identity, place_of
from opendp_bayes.release_format.merging import merged_places, neighbours

#: Arguments of `survey` that a tree of one column has no use for, or sets itself.
_OF_ONE = ("merge", "share", "by", "cells")


def levels(
    column: str,
    categories: Sequence[Value],
    *,
    branching: int | None = None,
    merges: Mapping[str, Mapping[Value, Sequence[Value]]] | None = None,
    for_: Wanted = "quantiles",
    budget: Budget = "epsilon",
    **question: Any,
) -> dict[str, dict[str, Any]]:
    """Questions for `survey` that count ordered categories at several levels: each category, and
    neighbours merged; `Survey.posterior` makes one of all levels. Reads no data.

    The question of the categories has the name of the column, and that of groups of ten "age by
    10". A group is named by its first and last category, as in "18-24 to 40-44", and one of a
    single category by this. Each question has a `share`, its weight in the budget: shares add up to
    1 and make the mean squared error small that least squares has in one estimate of all levels.
    They depend on the number of categories alone. A level that is worth less than 1 % of the budget
    is left out, and among few categories that is every level but the finest.

    Parameters
    ----------
    column : the name of the column.
    categories : its labels in their order, at least 2.
    branching : how many neighbours are merged, again and again until at most so many groups remain;
        the last group of a level may be smaller. By default the number from 2 to 64 with the
        smallest error, or no levels where these only cost.
    merges : instead of groups of equal numbers, a `merge` for each level by the name of its
        question: from each label to the neighbours counted in it. Of any two levels one must be
        finer. For merges of others than neighbours, survey with `share="smallest_error"`.
    for_ : the errors that are made small: `"quantiles"`, those of the number of records up to each
        category; `"ranges"`, in all intervals of categories; or `"cells"`, in each category. The
        number of records itself is taken as given.
    budget : how the survey's budget is divided: `"epsilon"`, for ε with or without δ, where a
        quarter of the budget has 16 times the variance of the noise; or `"rho"`, where it has 4
        times, and more levels with fewer neighbours are better.
    **question : other arguments of each question, as of `survey`: `nulls`, `unknown`, `size`,
        `prior`, `mechanism` and its options. A new label for nulls or unknown values is a category
        of its own on every level.

    Raises `ValueError`/`TypeError` for arguments that do not fit each other. Source: Honaker,
    "Efficient use of differentially private binary trees" (2015), for the errors.

    >>> import opendp_bayes as ob
    >>> questions = ob.levels("age", [str(age) for age in range(100)], unknown="99")
    >>> {name: round(of["share"], 2) for name, of in questions.items()}
    {'age': 0.54, 'age by 10': 0.46}
    >>> list(questions["age by 10"]["merge"])[:2]
    ['0 to 9', '10 to 19']
    """
    labels = _checked(column, categories, branching, question)
    as_choice(for_, "for_", get_args(Wanted))
    as_choice(budget, "budget", get_args(Budget))
    merge: dict[str, Any] = {column: None}
    if merges is None:
        widths, _ = best_levels(len(labels), branching, for_, budget)
        shares = {f"{column} by {w}" if w > 1 else column: share for w, share in widths.items()}
        merge |= {
            name: neighbours(labels, width) if width > 1 else None
            for width, name in zip(widths, shares, strict=True)
        }
    else:
        merge |= merges
        shares, _ = best_shares(_partitions(column, labels, branching, merges), for_, budget)
    found = {}
    for name, share in shares.items():
        of = {"column": column, "categories": labels, **question, "share": share}
        if merge[name] is not None:
            of["merge"] = _with_new(merge[name], labels, question)
        found[name] = of
    return found


def _partitions(
    column: str, labels: Sequence[Value], branching: int | None, merges: Any
) -> dict[str, Integers]:
    """The part of each category at every level, finest first, in the order of the categories."""
    if branching is not None:
        raise TypeError(
            f"branching={branching}: is for groups of neighbours; leave out merges or it."
        )
    if not isinstance(merges, Mapping) or not merges or column in merges:
        raise TypeError(
            f"merges={told(merges)}: must be a mapping from the names of levels, of which none is"
            f" {column!r}, to what each merges."
        )
    found = {column: np.arange(len(labels))}
    for name, merge in merges.items():
        try:
            number = merged_places(merge, labels)
            if len(merge) < 2:
                raise ValueError(
                    f"merge={told(list(merge))}: must have at least 2 labels; add another, or"
                    " leave the level out."
                )
        except (TypeError, ValueError) as error:
            raise type(error)(f"merges[{name!r}]: {error}") from None
        _, first, place = np.unique(number, return_index=True, return_inverse=True)
        found[name] = np.argsort(np.argsort(first))[place]
        if np.any(np.diff(found[name]) < 0):
            raise ValueError(
                f"merges[{name!r}]: must merge neighbours in categories; put these in another"
                " order, or write the questions out, and survey with share='smallest_error'."
            )
    found = dict(sorted(found.items(), key=lambda level: -int(level[1].max())))
    sizes = {int(part.max()) for part in found.values()}
    if len(sizes) < len(found) or not are_a_chain(list(found.values())):
        raise ValueError(
            f"merges={told(merges)}: of any two levels one must be finer, and its groups parts of"
            " those of the other."
        )
    return found


def _with_new(
    given: Mapping[Value, Sequence[Value]], labels: Sequence[Value], question: dict[str, Any]
) -> dict[Value, Sequence[Value]]:
    """Add new labels of nulls and unknown values, alone, to what is merged."""
    merge = dict(given)
    for policy in ("nulls", "unknown"):
        label = question.get(policy)
        if isinstance(label, (str, int)) and place_of(label, labels) is None:
            merge[label] = [label]
    return merge


def _checked(column: Any, categories: Any, branching: Any, question: dict[str, Any]) -> list[Value]:
    """The categories as a list."""
    if type(column) is not str:
        raise TypeError(f"column={told(column)}: must be the name of one column, a str.")
    if not isinstance(categories, Sequence) or isinstance(categories, str):
        raise TypeError(
            f"categories={told(categories)}: must be a list of labels in their order, as in"
            " categories=['18-24', '25-34', '35-44']."
        )
    labels = list(categories)
    if len(labels) < 2 or len(set(map(identity, labels))) < len(labels):
        raise ValueError(
            f"categories={told(labels)}: must be at least 2 labels, and each once; add or drop one."
        )
    if branching is not None and (type(branching) is not int or branching < 2):
        raise ValueError(
            f"branching={told(branching)}: must be a whole number of neighbours, at least 2, or"
            " None to have it found."
        )
    own = [name for name in _OF_ONE if name in question]
    if own:
        raise TypeError(
            f"{own[0]}={told(question[own[0]])}: belongs to one question; write the questions out"
            " for `survey`, or change those that `levels` returns."
        )
    return labels
