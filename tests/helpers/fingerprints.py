"""One number for an answer of any kind, that another order, sign, length or label changes."""

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from opendp.mod import Measurement, Transformation
from scipy import sparse

_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
#: Numbers below this are taken as they are.
_SMALL = 1e-6
#: What stands for answers that are no finite numbers.
_NOTHING, _NAN, _INFINITY = -0.123, 999.25, 12345.75


def fingerprint(answer: Any) -> float:
    """A sum over all numbers of an answer, weighted by their places; of logarithms, so that small
    numbers beside large ones count as much.
    """
    logs = np.arcsinh(np.fromiter(_numbers(answer), dtype=float) / _SMALL)
    places = np.arange(1, logs.size + 1)
    return float(f"{logs @ (0.5 + places * 0.6180339887498949 % 1) + logs.size:.9g}")


def numbers(answer: Any) -> list[float]:
    """All numbers of an answer, in their places: what stays of it where it does not stay itself."""
    return list(_numbers(answer))


def are_same(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-6)


def words(text: str) -> list[str]:
    """Those of a text, in their order, without its numbers."""
    return re.sub(r" at 0x[0-9a-f]+", "", _NUMBER.sub(" ", text)).split()


def _of_label(text: str) -> float:
    return crc32(text.encode()) / 2**32


def _of_text(text: str) -> Iterator[float]:
    """The number of its lines, and the numbers in it; a word is a label, and JSON what it says."""
    if text.startswith('{"'):
        yield from _numbers(json.loads(text))
        return
    if not re.search(r"\s", text):
        yield _of_label(text)
        return
    yield float(sum(1 for line in text.splitlines() if line.strip()))
    for number in _NUMBER.findall(text):
        yield from _numbers(float(number.replace("−", "-")))


def _of_picture(axes: Axes) -> Iterator[float]:
    """Places and colours of what is drawn, ends and ticks of the axes, and all texts."""
    for line in axes.lines:
        yield from _numbers([line.get_xydata(), to_hex(line.get_color())])
    for artist in axes.collections:
        assert isinstance(artist, Collection)
        yield from _numbers([artist.get_offsets(), artist.get_array(), artist.get_edgecolor()])
        for path in artist.get_paths():
            yield from _numbers(path.vertices)
    yield from _numbers([axes.get_xlim(), axes.get_ylim(), axes.axison, axes.get_facecolor()])
    yield from _numbers([axes.get_xticks(), axes.get_yticks()])
    legend = axes.get_legend()
    texts = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
    texts += [axes.yaxis.label, *([] if legend is None else legend.get_texts())]
    said = [axes.get_title(), axes.get_title(loc="left"), *(text.get_text() for text in texts)]
    yield from chain.from_iterable(_of_text(f"{text} \n") for text in said)
    yield _of_label("\n".join(words(" | ".join(said))))


def _numbers(answer: Any) -> Iterator[float]:
    if answer is None:
        yield _NOTHING
    elif isinstance(answer, (bool, int, float, np.generic, Fraction, Decimal)):
        number = float(answer)
        if math.isnan(number):
            yield _NAN
        else:
            yield number if math.isfinite(number) else math.copysign(_INFINITY, number)
    elif isinstance(answer, str):
        yield from _of_text(answer)
    elif isinstance(answer, np.ndarray) and answer.dtype.kind in "biuf":
        entries = answer.astype(np.float64).ravel()
        entries = np.nan_to_num(entries, nan=_NAN, posinf=_INFINITY, neginf=-_INFINITY)
        yield from entries.tolist()
        yield from map(float, answer.shape)
    elif isinstance(answer, np.ndarray):
        yield from chain.from_iterable(map(_numbers, answer.ravel().tolist()))
        yield from map(float, answer.shape)
    elif sparse.issparse(answer):
        yield from _numbers(answer.toarray())
    elif isinstance(answer, pl.DataFrame):
        yield from chain.from_iterable(map(_numbers, answer.columns))
        yield from chain.from_iterable(map(_numbers, chain.from_iterable(answer.rows())))
    elif isinstance(answer, (Measurement, Transformation)):
        yield from _numbers(answer.map(1))
        yield from _numbers(answer.map(2))
    elif isinstance(answer, Figure):
        yield from (*answer.get_size_inches(), *map(float, (len(answer.axes), len(answer.texts))))
        yield _of_label("\n".join(words(answer.get_suptitle())))
        yield from chain.from_iterable(map(_of_picture, answer.axes))
    elif isinstance(answer, Axes):
        yield from _of_picture(answer)
    elif isinstance(answer, (tuple, list, set, frozenset)):
        entries = sorted(answer, key=str) if isinstance(answer, (set, frozenset)) else answer
        yield from chain.from_iterable(map(_numbers, entries))
    elif type(answer).__str__ is object.__str__ and isinstance(answer, Mapping):
        yield from chain.from_iterable(map(_numbers, answer.items()))
    elif type(answer).__str__ is not object.__str__ or type(answer).__repr__ is not object.__repr__:
        yield from _numbers(re.sub(r" at 0x[0-9a-f]+", "", f"{answer} \n"))
    elif dataclasses.is_dataclass(answer):
        for field in dataclasses.fields(answer):
            yield from _numbers(getattr(answer, field.name))
    else:
        yield from _numbers(type(answer).__name__)
