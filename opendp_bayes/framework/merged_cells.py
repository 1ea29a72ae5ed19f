"""Merged categories: a question with fewer categories, each of which counts several."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from opendp_bayes.framework.question import Question
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import identity, places_of


def merged_cells(
    labels: tuple[Label, ...], index: Integers, question: Question
) -> tuple[tuple[Label, ...], Integers]:
    """Merged labels, and the number of the merged category for every entry of `index`, where there
    was that of one of `labels`. Every record is still in one category (`docs/proofs.md`, "Counts").

    Raises `ValueError`/`TypeError` unless `question.merge` has every label once.
    """
    merge: Any = question.merge
    if not isinstance(merge, Mapping) or not all(_is_list(part) for part in merge.values()):
        raise TypeError(
            f"merge={told(merge)}: must be a mapping from each new label to a list of categories,"
            " as in merge={'north': ['Kent', 'Essex'], 'south': ['Devon']}."
        )
    if question.by:
        raise ValueError(
            f"merge={told(merge)}: is of one table; ask for the joint table of the groups' column"
            " and this one, and merge its cells."
        )
    for label in merge:
        if type(label) not in (str, int, bool):
            raise TypeError(f"merge: its label {label!r} must be a str, an int or a bool.")
    if len(merge) < 2:
        raise ValueError(f"merge={told(merge)}: must have at least 2 labels; add another.")
    places = places_of(labels)
    number = np.full(len(labels), -1)
    for at, (merged, part) in enumerate(merge.items()):
        if not part:
            raise ValueError(
                f"merge[{merged!r}]=[]: must name at least one category, or be left out."
            )
        for label in part:
            place = _place_of(label, places)
            if place is None:
                raise ValueError(
                    f"merge[{merged!r}]: {label!r} is not a category; those are"
                    f" {told(list(labels))}."
                )
            if number[place] >= 0:
                first = list(merge)[number[place]]
                raise ValueError(
                    f"merge[{merged!r}]: {label!r} is in {first!r} already; name it once."
                )
            number[place] = at
    if np.any(number < 0):
        missing = labels[int(np.argmax(number < 0))]
        raise ValueError(
            f"merge={told(merge)}: leaves out {missing!r}, and every category must be counted; add"
            f" it to one of the lists, or as a list of its own."
        )
    return tuple(merge), number[index]


def _place_of(label: Any, places: Mapping[Hashable, int]) -> int | None:
    """The place of a label, which of a joint table may be a list; None for what is none."""
    try:
        return places.get(identity(tuple(label) if isinstance(label, list) else label))
    except TypeError:  # has no hash
        return None


def _is_list(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str)
