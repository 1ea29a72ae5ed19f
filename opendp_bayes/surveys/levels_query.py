"""Questions of a tree over ordered categories."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.labels import identity, place_of
from opendp_bayes.release_format.merging import merged_places, neighbours
from opendp_bayes.surveys.levels.tree import are_a_chain

#: What is divided: ε, where half of it doubles the noise, or ρ, where a quarter does.
Budget = Literal["epsilon", "rho"]
#: The share of a level in the budget, as a multiple of that of the next coarser one.
_RATIO = 1.2
#: Fewer categories are one table alone: the noise of levels would cost more than they tell.
_FEWEST: dict[Budget, int] = {"epsilon": 50, "rho": 11}
#: The most neighbours that are merged where the user names no number.
_WIDEST = 32
#: Arguments of `survey` that a tree of one column has no use for, or sets itself.
_OF_ONE = ("merge", "share", "by", "cells")


def levels(
    column: str,
    categories: Sequence[Value],
    *,
    branching: int | None = None,
    merges: Mapping[str, Mapping[Value, Sequence[Value]]] | None = None,
    budget: Budget = "epsilon",
    **question: Any,
) -> dict[str, dict[str, Any]]:
    """Questions for `survey` that count ordered categories at several levels: each category, and
    neighbours merged; `Survey.posterior` makes one of all levels. Reads no data.

    The question of the categories has the name of the column, and that of groups of ten "age by
    10". A group is named by its first and last category, as in "18-24 to 40-44", and one of a
    single category by this. Each question has a `share`, its weight in the budget: shares add up to
    1, and that of a level is 1.2 times that of the next coarser one.

    Sources: Cormode, Procopiuc, Srivastava, Shen and Yu, "Differentially private spatial
    decompositions" (2012), for geometric shares; Qardaji, Yang and Li, "Understanding hierarchical
    methods for differentially private histograms" (2013), for the branching.

    Parameters
    ----------
    column : str
        The name of the column.
    categories : Sequence[str or int or bool]
        Its labels in their order, at least 2.
    branching : int, optional
        How many neighbours are merged, again and again until at most so many groups remain; the
        last group of a level may be smaller. By default as `budget` says.
    merges : Mapping[str, Mapping[str or int or bool, Sequence[str or int or bool]]], optional
        Instead of groups of equal numbers, a `merge` for each level by the name of its question:
        from each label to the categories counted in it. Of any two levels one must be finer.
    budget : Budget, default "epsilon"
        What the survey divides, where neither `branching` nor `merges` is given: `"epsilon"`, with
        or without δ, merges up to 32 neighbours on as few levels as that allows, and has no levels
        below 50 categories; `"rho"`, where noise grows less with every level, merges 2, and has
        none below 11.
    **question : Any
        Other arguments of each question, as of `survey`: `nulls`, `unknown`, `size`, `prior`,
        `mechanism` and its options. A new label for nulls or unknown values is a category of its
        own on every level.

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit each other.

    Examples
    --------
    >>> import opendp_bayes as ob
    >>> questions = ob.levels("age", [str(age) for age in range(100)], unknown="99")
    >>> {name: round(of["share"], 2) for name, of in questions.items()}
    {'age': 0.55, 'age by 10': 0.45}
    >>> list(questions["age by 10"]["merge"])[:2]
    ['0 to 9', '10 to 19']
    """
    labels = _checked(column, categories, branching, question)
    as_choice(budget, "budget", get_args(Budget))
    if merges is None:
        number = _branching(len(labels), budget) if branching is None else branching
        coarser = _groups_of_neighbours(column, labels, number)
    else:
        coarser = _finest_first(column, labels, branching, merges)
    weights = [_RATIO**-level for level in range(len(coarser) + 1)]
    shares = [weight / math.fsum(weights) for weight in weights]
    common = {"column": column, "categories": labels, **question}
    questions = {column: {**common, "share": shares[0]}}
    for (question_name, merge), share in zip(coarser.items(), shares[1:], strict=True):
        questions[question_name] = {
            **common,
            "share": share,
            "merge": _with_new(merge, labels, question),
        }
    return questions


def _branching(k: int, budget: Budget) -> int:
    """The number of neighbours that are merged where the user names none; k for no levels."""
    if k < _FEWEST[budget]:
        return k
    if budget == "rho":
        return 2
    number = next(number for number in itertools.count(2) if _WIDEST**number >= k)
    return next(branching for branching in range(2, k) if branching**number >= k)


def _groups_of_neighbours(column: str, labels: Sequence[Value], branching: int) -> dict[str, Any]:
    """Merges of each level but that of the categories, finest first."""
    merges: dict[str, Any] = {}
    width = 1
    while -(-len(labels) // width) > branching:
        width *= branching
        merges[f"{column} by {width}"] = neighbours(labels, width)
    return merges


def _finest_first(
    column: str, labels: Sequence[Value], branching: int | None, merges: Any
) -> dict[str, Any]:
    """The user's merges, checked, in order of fineness."""
    if branching is not None:
        raise TypeError(
            f"branching={branching}: is for groups of neighbours; leave out merges or it."
        )
    if not isinstance(merges, Mapping) or not merges or column in merges:
        raise TypeError(
            f"merges={told(merges)}: must be a mapping from the names of levels, of which none is"
            f" {column!r}, to what each merges."
        )
    parts = [np.arange(len(labels))]
    for level, merge in merges.items():
        try:
            parts.append(merged_places(merge, labels))
            if len(merge) < 2:
                raise ValueError(
                    f"merge={told(list(merge))}: must have at least 2 labels; add another, or"
                    " leave the level out."
                )
        except (TypeError, ValueError) as error:
            raise type(error)(f"merges[{level!r}]: {error}") from None
    if len({int(partition.max()) for partition in parts}) < len(parts) or not are_a_chain(parts):
        raise ValueError(
            f"merges={told(merges)}: of any two levels one must be finer, and its groups parts of"
            " those of the other."
        )
    return {level: merges[level] for level in sorted(merges, key=lambda level: -len(merges[level]))}


def _with_new(
    merges_of_user: Mapping[Value, Sequence[Value]],
    labels: Sequence[Value],
    question: dict[str, Any],
) -> dict[Value, Sequence[Value]]:
    """Add new labels of nulls and unknown values, alone, to what is merged."""
    merge = dict(merges_of_user)
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
    reserved = [argument for argument in _OF_ONE if argument in question]
    if reserved:
        raise TypeError(
            f"{reserved[0]}={told(question[reserved[0]])}: belongs to one question; write the"
            " questions out for `survey`, or change those that `levels` returns."
        )
    return labels
