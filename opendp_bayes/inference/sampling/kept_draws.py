"""Draws that take seconds are kept beside the file of their release, for whoever reads it again.

They follow from what was released, the version of this package and a seed, so that those that are
kept are those that would be drawn again.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

from opendp_bayes.release_format.data import ReleasedData

Arrays = dict[str, Any]

#: Seconds that draws took at least to be kept, and bytes that all of a file have at most.
_WORTH, _LARGEST = 1.0, 1 << 26


class Draws(Protocol):
    """Draws that can be kept."""

    def arrays(self) -> Arrays:
        """Arrays by name, from which the draws can be made again."""
        ...


D = TypeVar("D", bound=Draws)


class _DrawsFile:
    """The draws in a file, by the key of what they were made from, and new ones."""

    def __init__(self, path: Path) -> None:
        self._path, self._arrays = path, _read(path)
        self._new: Arrays = {}

    def draws(self, key: str, draw: Callable[[], D], of_arrays: Callable[[Arrays], D]) -> D:
        arrays = (self._arrays | self._new).items()
        arrays_of_key = {
            label[len(key) + 1 :]: values for label, values in arrays if label.startswith(key)
        }
        if arrays_of_key:
            with suppress(KeyError, IndexError, TypeError, ValueError):  # which are not all of ours
                return of_arrays(arrays_of_key)
        start = perf_counter()
        draws = draw()
        if perf_counter() - start >= _WORTH:
            self._new |= {f"{key}/{label}": values for label, values in draws.arrays().items()}
        return draws

    def write(self) -> None:
        """Write all draws, if some are new, where the folder lets us: the new ones alone where all
        are too large, and none where these are.
        """
        both = self._arrays | self._new
        written = next((arrays for arrays in (both, self._new) if _size(arrays) <= _LARGEST), {})
        if not (self._new and written):
            return
        with suppress(OSError):
            beside = self._path.with_name(f".{self._path.name}-{token_hex(4)}")
            try:
                with open(beside, "xb") as file:
                    np.savez_compressed(file, allow_pickle=False, **written)
                os.replace(beside, self._path)
            finally:
                beside.unlink(missing_ok=True)


def _read(path: Path) -> Arrays:
    """The arrays in a file; none where there is none, or it is none of ours."""
    try:
        with open(path, "rb") as file:  # which numpy leaves open where it fails
            archive = np.load(file, allow_pickle=False)
            read = {label: archive[label] for label in getattr(archive, "files", ())}
    except Exception:  # noqa: BLE001 - zip, zlib and numpy have many for what is damaged
        return {}
    return {label: values for label, values in read.items() if isinstance(values, np.ndarray)}


def _size(arrays: Arrays) -> int:
    return sum(values.nbytes for values in arrays.values())


_CACHE: ContextVar[_DrawsFile | None] = ContextVar("kept", default=None)


@contextmanager
def kept_beside(file: Path) -> Iterator[None]:
    """Take draws within the block from `FILE.draws.npz` beside a file, or keep them there if they
    take more than a second.
    """
    cache = _DrawsFile(file.with_name(f"{file.name}.draws.npz"))
    token = _CACHE.set(cache)
    try:
        yield
        cache.write()
    finally:
        _CACHE.reset(token)


def cached(
    facts: Sequence[Any],
    releases: Sequence[ReleasedData],
    draw: Callable[[], D],
    of_arrays: Callable[[Arrays], D],
) -> D:
    """Return what `draw` draws of releases and of what `facts` says, in values whose `repr` tells
    them apart, the seed last; or what `of_arrays` makes of those that are kept, if there are such.
    """
    cache = _CACHE.get()
    # Without a seed, and of a generator, others are wanted each time.
    if cache is None or isinstance(facts[-1], np.random.Generator | None):
        return draw()
    key = version("opendp-bayes"), facts, list(map(_facts, releases))
    return cache.draws(sha256(repr(key).encode()).hexdigest()[:32], draw, of_arrays)


def _facts(release: ReleasedData) -> list[Any]:
    values = [getattr(release, field.name) for field in fields(ReleasedData)]
    return [_facts(value) if isinstance(value, ReleasedData) else value for value in values]
