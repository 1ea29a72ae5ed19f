"""Merged categories: a question with fewer categories, each of which counts several."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.queries.question import Question
from opendp_bayes.queries.sentinels import LeftOut
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import are_same, place_of
from opendp_bayes.release_format.merging import merged_places


def merged_cells(
    labels: tuple[Label, ...], index: Integers, question: Question
) -> tuple[tuple[Label, ...], Integers]:
    """Merged labels, and the number of the merged category for every entry of `index`, where there
    was that of one of `labels`. Every record is still in one category (`docs/research/proofs.md`,
    "Counts").

    Raises
    ------
    ValueError, TypeError
        Unless `question.merge` has every label once.
    """
    merge: Any = question.merge
    number = np.append(merged_places(merge, labels), -1)  # the last of what is left out
    if question.by:
        raise ValueError(
            f"merge={told(merge)}: is of one table; ask for the joint table of the groups' column"
            " and this one, and merge its cells."
        )
    if len(merge) < 2:
        raise ValueError(
            f"merge={told(list(merge))}: must have at least 2 labels; add another. Of a noisy total"
            " from elsewhere noisy_counts(merge=...) makes a level."
        )
    return tuple(merge), number[index]


def warn_of_places(questions: Mapping[str, Question]) -> None:
    """Warn where two questions without groups count the nulls or the unknown values of a column in
    different places: their true counts do not add up, and one posterior of both would not know.
    """
    alone = {name: question for name, question in questions.items() if not question.by}
    for (name, one), (other_name, other) in combinations(alone.items(), 2):
        columns = {variable.column: variable for variable in other.variables}
        for variable in one.variables:
            if variable.column not in columns:
                continue
            for policy in ("nulls", "unknown"):
                places = getattr(variable, policy), getattr(columns[variable.column], policy)
                if not _is_one_place(*places, one, other):
                    warn(
                        f"questions[{name!r}], questions[{other_name!r}]: count {policy} of"
                        f" {variable.column!r} in different places, {told(places[0])} and"
                        f" {told(places[1])}, so that their counts do not add up; for one posterior"
                        " of both give them the same."
                    )


def _is_one_place(first: Any, second: Any, *questions: Question) -> bool:
    """True if two questions count records of a kind alike, or there are none of it."""
    if first is None or second is None or are_same(first, second):
        return True
    if isinstance(first, LeftOut) or isinstance(second, LeftOut):
        return False
    return any(
        place_of(first, part) is not None and place_of(second, part) is not None
        for question in questions
        for part in question.parts
    )
