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
from zipfile import BadZipFile

import numpy as np

from opendp_bayes.release_format.data import ReleasedData

Arrays = dict[str, Any]

#: Seconds that draws took at least, and bytes that they are at most, to be kept.
_WORTH, _LARGEST = 1.0, 1 << 26


class Draws(Protocol):
    """Draws that can be kept."""

    def arrays(self) -> Arrays:
        """Arrays by name, from which the draws can be made again."""
        ...


D = TypeVar("D", bound=Draws)


class _Kept:
    """The draws in a file: those that were found there and used, and new ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: Arrays = {}
        self._is_new = False

    def of(self, key: str, drawn: Callable[[], D], of_arrays: Callable[[Arrays], D]) -> D:
        arrays = self._read(key)
        if arrays is not None:
            self._use(key, arrays)
            return of_arrays(arrays)
        start = perf_counter()
        found = drawn()
        if perf_counter() - start >= _WORTH:
            arrays = found.arrays()
            if sum(values.nbytes for values in arrays.values()) <= _LARGEST:
                self._use(key, arrays)
                self._is_new = True
        return found

    def _use(self, key: str, arrays: Arrays) -> None:
        self._used |= {f"{key}/{name}": values for name, values in arrays.items()}

    def _read(self, key: str) -> Arrays | None:
        """The arrays of a key; None where there are none, or the file is none of ours."""
        try:
            with open(self._path, "rb") as file:  # which numpy leaves open where it fails
                found = np.load(file, allow_pickle=False)
                names = [name for name in getattr(found, "files", ()) if name.startswith(key)]
                return {name.partition("/")[2]: found[name] for name in names} or None
        except (OSError, ValueError, EOFError, BadZipFile):
            return None

    def write(self) -> None:
        """Write what was used, if some of it is new, where the folder lets us."""
        if not self._is_new:
            return
        with suppress(OSError):
            beside = self._path.with_name(f".{self._path.name}-{token_hex(4)}")
            try:
                with open(beside, "xb") as file:
                    np.savez_compressed(file, allow_pickle=False, **self._used)
                os.replace(beside, self._path)
            finally:
                beside.unlink(missing_ok=True)


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept_beside(file: Path) -> Iterator[None]:
    """Take draws within the block from `FILE.draws.npz` beside a file, or keep them there if they
    take more than a second. Draws of what the file no longer holds are thrown away.
    """
    kept = _Kept(file.with_name(f"{file.name}.draws.npz"))
    token = _KEPT.set(kept)
    try:
        yield
        kept.write()
    finally:
        _KEPT.reset(token)


def kept(
    of: Sequence[Any],
    releases: Sequence[ReleasedData],
    drawn: Callable[[], D],
    of_arrays: Callable[[Arrays], D],
) -> D:
    """Return what `drawn` draws of releases and of what `of` says, in values whose `repr` tells
    them apart, the seed last; or what `of_arrays` makes of those that are kept, if there are such.
    """
    kept = _KEPT.get()
    if kept is None or of[-1] is None:  # without a seed others are wanted each time
        return drawn()
    facts = version("opendp-bayes"), of, list(map(_facts, releases))
    return kept.of(sha256(repr(facts).encode()).hexdigest()[:32], drawn, of_arrays)


def _facts(release: ReleasedData) -> list[Any]:
    values = [getattr(release, field.name) for field in fields(ReleasedData)]
    return [_facts(of) if isinstance(of, ReleasedData) else of for of in values]
