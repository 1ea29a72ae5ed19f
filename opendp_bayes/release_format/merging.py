"""Merged categories: labels that stand for several others each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import listed_names, meant, told
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import identity, places_of, plain


def merged_places(merge: Any, labels: Sequence[Label]) -> Integers:
    """The place in `merge` of the label that every one of `labels` is merged into, shape
    `(labels,)`.

    One label for all is their total.

    Raises
    ------
    ValueError, TypeError
        Unless `merge` is a mapping from labels to lists that have each of `labels` once; of a joint
        table a cell may be a list.
    """
    is_mapping = isinstance(merge, Mapping) and all(
        type(merged) in (str, int, bool) and isinstance(members, Sequence) and len(members)
        for merged, members in merge.items()
    )
    if not is_mapping or any(isinstance(members, str) for members in merge.values()):
        raise TypeError(
            f"merge={told(merge)}: must be a mapping from each new label, a str, an int or a bool,"
            " to a list of at least one category, as in"
            " merge={'north': ['Kent', 'Essex'], 'south': ['Devon']}."
        )
    places, number = places_of(labels), np.full(len(labels), -1)
    for row, (merged, members) in enumerate(zip(merge, merged_parts(merge), strict=True)):
        for label in members:
            try:
                place = places[identity(label)]
            except (KeyError, TypeError):  # what has no hash is no category
                raise ValueError(
                    f"merge[{merged!r}]: {label!r} is not a category; those are"
                    f" {listed_names(labels)}.{meant(label, labels)}"
                ) from None
            if number[place] >= 0:
                raise ValueError(
                    f"merge[{merged!r}]: {label!r} is in {list(merge)[number[place]]!r} already;"
                    " name it once."
                )
            number[place] = row
    if np.any(number < 0):
        raise ValueError(
            f"merge={told(list(merge))}: leaves out {labels[int(np.argmax(number < 0))]!r}, and"
            " every category must be counted; add it to one of the lists, or as a list of its own."
        )
    return number


def merged_parts(merge: Mapping[Value, Sequence[Any]]) -> tuple[tuple[Label, ...], ...]:
    """The labels that each merged category stands for, cells as tuples."""
    return tuple(
        tuple(
            tuple(map(plain, label)) if isinstance(label, (list, tuple)) else plain(label)
            for label in members
        )
        for members in merge.values()
    )


def merged_in(release: Any) -> list[tuple[Label, ...]]:
    """The labels before they were merged that each category of a release stands for, if any were;
    otherwise its own.
    """
    return list(getattr(release, "parts", ())) or [(label,) for label in release.categories]


def neighbours(labels: Sequence[Value], width: int) -> dict[Value, list[Value]]:
    """Merge ordered categories, `width` at a time; the last group may be smaller. A group is named
    by its first and last category, and one of a single category by this.

    Raises
    ------
    ValueError
        Where two groups would have one name.

    Examples
    --------
    >>> neighbours(["18-24", "25-34", "35-44"], 2)
    {'18-24 to 25-34': ['18-24', '25-34'], '35-44': ['35-44']}
    """
    groups = [list(labels[start : start + width]) for start in range(0, len(labels), width)]
    names = [str(g[0]) if len(g) == 1 else f"{g[0]} to {g[-1]}" for g in groups]
    merge: dict[Value, list[Value]] = dict(zip(names, groups, strict=True))
    if len(merge) < len(groups):
        raise ValueError(
            f"categories={told(list(labels))}: two groups of {width} would have one name, among"
            f" {told(names)}; rename a category, or merge them with names of your own,"
            " merge={...}."
        )
    return merge
