"""One rule for labels: two are the same where both their types and their values are."""

import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from opendp_bayes.mathematics.telling import listed_names, meant, shortly

#: What the category of values that are no other category is called, where it has no other name.
OTHER = "other"
#: What labels are called, one and several.
CATEGORIES = "category", "categories"

K = TypeVar("K")
T = TypeVar("T")


def identity(label: Any) -> Hashable:
    """Stand in for a label where it is compared or looked up.

    To Python 1, 1.0 and True are equal and have one hash; labels they are different ones. A scalar
    of numpy and a member of an Enum of texts are the values that they hold (`plain`), and a tuple
    is compared entry by entry.

    Examples
    --------
    >>> identity(1) == identity(True), identity(("a", 1)) == identity(("a", np.int64(1)))
    (False, True)
    """
    label = plain(label)
    if isinstance(label, tuple):
        return tuple(map(identity, label))
    return type(label), label


def plain(label: Any) -> Any:
    """The value that a scalar of numpy holds, or a member of an Enum whose members are texts or
    whole numbers; anything else as it is.

    Examples
    --------
    >>> plain(np.int64(1)), plain(np.str_("yes"))
    (1, 'yes')
    """
    if isinstance(label, np.generic):
        return label.item()
    return label.value if isinstance(label, Enum) and isinstance(label, (str, int)) else label


def are_same(first: Any, second: Any) -> bool:
    """True if two labels are equal; also two tuples of labels, in their order."""
    return identity(first) == identity(second)


def place_of(label: Any, labels: Iterable[Any]) -> int | None:
    """Find a label among others: its place, or None if it is not there."""
    wanted = identity(label)
    return next(
        (place for place, candidate in enumerate(labels) if identity(candidate) == wanted), None
    )


def distinct(labels: Iterable[K]) -> list[K]:
    """Every label once, in the order in which they come first."""
    return list({identity(label): label for label in labels}.values())


def places_of(labels: Iterable[Any]) -> dict[Hashable, int]:
    """The place of every label among those that differ, by its `identity`."""
    return {identity(label): position for position, label in enumerate(distinct(labels))}


def numbered(labels: Sequence[Any]) -> list[int]:
    """The place of each of some labels among those that differ.

    Examples
    --------
    >>> numbered(["n", "s", "n"])
    [0, 1, 0]
    """
    places = places_of(labels)
    return [places[identity(label)] for label in labels]


def in_order(by_label: Mapping[Any, T], labels: Sequence[Any]) -> list[T] | None:
    """The values of a mapping in the order of the labels; None unless it has one for each label,
    and no other.
    """
    values = {identity(label): value for label, value in by_label.items()}
    wanted = [identity(label) for label in labels]
    if len(values) < len(by_label) or values.keys() != set(wanted):
        return None
    return [values[label] for label in wanted]


def look_alike(label: Any, labels: Iterable[K]) -> K | None:
    """The first of some labels that reads like this one and is another: apart from case, from
    blanks around it and from the type; None where there is none.

    Examples
    --------
    >>> look_alike("clinton", ["Dole", "Clinton"])
    'Clinton'
    """
    text = _as_read(label)
    return next(
        (
            candidate
            for candidate in labels
            if _as_read(candidate) == text and not are_same(candidate, label)
        ),
        None,
    )


def twins(labels: Iterable[Any]) -> tuple[str, str] | None:
    """The first two texts that differ in nothing but blanks around them or the form of Unicode, by
    which one letter may be one character or two; None where there are none.

    Examples
    --------
    >>> twins(["yes", "no", "yes "])
    ('yes', 'yes ')
    """
    seen: dict[str, str] = {}
    for label in labels:
        if isinstance(label, str):
            form = unicodedata.normalize("NFC", label).strip()
            if seen.setdefault(form, label) != label:
                return seen[form], label
    return None


def spare(text: str, labels: Iterable[Any]) -> str:
    """A name that reads like none of some labels: in brackets, as many as that takes.

    Examples
    --------
    >>> spare("other", ["yes", "Other"])
    '(other)'
    """
    taken = set(map(_as_read, labels))
    while _as_read(text) in taken:
        text = f"({text})"
    return text


def _as_read(label: Any) -> Any:
    if isinstance(label, tuple):
        return tuple(map(_as_read, label))
    return unicodedata.normalize("NFKC", str(label)).strip().casefold()


class ByLabel(Mapping[K, T]):
    """A mapping from labels, which tells which there are where another one is asked for.

    `kind` is what the labels are called, one and several.
    """

    def __init__(self, items: Iterable[tuple[K, T]], kind: tuple[str, str]) -> None:
        self._items = {identity(label): (label, value) for label, value in items}
        self._kind = kind

    def __getitem__(self, label: K) -> T:
        try:
            return self._items[identity(label)][1]
        except (KeyError, TypeError):  # a list has no hash
            raise absent(label, self, self._kind) from None

    def __iter__(self) -> Iterator[K]:
        return (label for label, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        texts = (f"{label!r}: {value!r}" for label, value in self._items.values())
        return f"{{{shortly(texts, len(self))}}}"


def absent(label: Any, labels: Iterable[Any], kind: tuple[str, str]) -> KeyError:
    """Make the error for a label that is not among others."""
    listed = list(labels)
    return KeyError(
        f"{label!r}: is not a {kind[0]}; the {kind[1]} are"
        f" {listed_names(listed)}.{meant(label, listed)}"
    )


def position_of(label: Any, labels: Sequence[Any], kind: tuple[str, str] = CATEGORIES) -> int:
    """The place of a label among others, which are what `kind` calls them, one and several.

    Raises
    ------
    KeyError
        For what is none of them.
    """
    position = place_of(label, labels)
    if position is None:
        raise absent(label, labels, kind)
    return position
