"""Every sequence of bytes that an encoding may read as one character, tried one after the other,
and the page of encodings, which says how many; run as a module, this writes its tables.
"""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, permutations, product

import numpy as np

from opendp_bayes_office.files.encodings import HIDDEN
from tests.helpers.sources import ROOT

PAGE = ROOT / "docs" / "research" / "encodings.md"
_BYTES = [bytes([number]) for number in range(256)]
_ASCII = frozenset(map(chr, range(128)))
#: Fourth bytes of gb18030, of which each of 327 680 beginnings has to be tried: the digits, and all
#: of ASCII that second bytes are not.
_FOURTH = _BYTES[:0x41]
#: A syllable of euc-kr in eight bytes, the only character of more than four.
_MADE_UP = "갂".encode("euc-kr")
#: Encodings of which all sequences take more than some seconds.
SLOW = ("gb18030", "utf-8")
#: Encodings that are one of two others, as the mark at the beginning of a file says.
MARKED = ("utf-16", "utf-32")
_ROW = re.compile(r"^\| `([\w-]+)` (\|.*\n)", re.MULTILINE)
_SINGLE = re.compile(r"^\| of one byte: (.*?) \| 256 each \| \| \|$", re.MULTILINE)


@dataclass
class Tried:
    """Sequences tried, characters they are, and those of ASCII that are part of other ones."""

    sequences: int = 0
    characters: int = 0
    hidden: set[str] = field(default_factory=set)

    def add(self, sequence: bytes, text: str) -> None:
        """Note the text of a sequence that is complete."""
        self.characters += 1
        plain = sequence.decode("latin-1")
        if text != plain or plain not in _ASCII:
            self.hidden |= _ASCII & {*plain, *text}


@cache
def tried(encoding: str, every: int = 1) -> Tried:
    """Try an encoding that is not in `MARKED`, one in `every` of beginnings of three bytes."""
    found = Tried()
    if encoding.startswith("utf-16"):
        _try_units_of_two(encoding, found)
    elif encoding.startswith("utf-32"):
        _try_units_of_four(encoding, found)
    else:
        _try_bytes(encoding, found, every)
    return found


def _try_bytes(encoding: str, found: Tried, every: int) -> None:
    """Sequences of any bytes, longer by one as long as they are incomplete. An encoding may hide
    whatever follows in which one of four is, one is no text, or a decoder waits after a character.
    """
    decode, decoder = codecs.getdecoder(encoding), codecs.getincrementaldecoder(encoding)()
    started = [b""]
    for length in range(4):
        longer = []
        last = _FOURTH if length == 3 and encoding == "gb18030" else _BYTES
        for start in started[:: every if length == 3 else 1]:
            found.sequences += len(last)
            for byte in last:
                sequence = start + byte
                try:
                    text, _ = decode(sequence)
                except UnicodeError as error:
                    if length == 3 and getattr(error, "end", 4) == 4:
                        found.hidden |= _ASCII
                    elif length < 3 and _decoded(decoder, sequence) == "":
                        longer.append(sequence)
                else:
                    found.add(sequence, text)
                    if not text or _decoded(decoder, sequence) != text:
                        found.hidden |= _ASCII
        if encoding == "euc-kr" and length == 1:
            assert longer == [_MADE_UP[:2]]
            _try_made_up(found)
            return
        started = longer


def _decoded(decoder: codecs.IncrementalDecoder, sequence: bytes) -> str | None:
    """The text of bytes before others, None for bytes that are none."""
    decoder.reset()
    try:
        return decoder.decode(sequence)
    except UnicodeError:
        return None


def _try_made_up(found: Tried) -> None:
    """Sequences of eight bytes with one replaced by any byte, and another by one that matters."""
    for places in permutations(range(2, 8), 2):
        for two in product(range(256), b'\t\n\r",;|\xa4'):
            sequence = bytearray(_MADE_UP)
            for place, byte in zip(places, two, strict=True):
                sequence[place] = byte
            found.sequences += 1
            with suppress(UnicodeError):
                found.add(bytes(sequence), sequence.decode("euc-kr"))


def _try_units_of_two(encoding: str, found: Tried) -> None:
    """All units before an end of a line, all pairs of one character, and others after each 64th."""
    kind = "<u2" if encoding.endswith("le") else ">u2"
    units = np.arange(1 << 16)
    first, second = (units >= 0xD800) & (units < 0xDC00), (units >= 0xDC00) & (units < 0xE000)
    alone = ["\ufffd" if wrong else chr(unit) for unit, wrong in enumerate(first | second)]
    ends = np.full_like(units, ord("\n"))
    for start in (None, *units[first][::64]):
        before = [] if start is None else [np.full_like(units, start)]
        read = np.stack([*before, units, ends], axis=1).astype(kind).tobytes()
        expected = [f"{'' if start is None else chr(0xFFFD)}{text}\n" for text in alone]
        for unit in () if start is None else units[second]:
            expected[unit] = f"{chr(0x10000 + ((start - 0xD800) << 10) + unit - 0xDC00)}\n"
        assert read.decode(encoding, "replace") == "".join(expected)
        found.sequences += len(units)
    pairs = np.array(list(product(units[first], units[second])))
    assert pairs.astype(kind).tobytes().decode(encoding) == "".join(
        map(chr, range(0x10000, 0x110000))
    )
    found.sequences += len(pairs)
    found.characters = int((~first & ~second).sum()) + len(pairs)


def _try_units_of_four(encoding: str, found: Tried) -> None:
    """All units up to 0x0010ffff, which hold all characters, and each 65 521st of the others."""
    kind = "<u4" if encoding.endswith("le") else ">u4"
    units = np.concatenate([np.arange(0x110000), np.arange(0x110000, 1 << 32, 65521)])
    right = (units < 0x110000) & ~((units >= 0xD800) & (units < 0xE000))
    expected = np.where(right, units, 0xFFFD).astype("<u4")
    read = units.astype(kind).tobytes().decode(encoding, "replace")
    assert read.encode("utf-32-le") == expected.tobytes()
    found.sequences, found.characters = len(units), int(right.sum())


def hexadecimal(characters: str) -> str:
    """The bytes of characters of ASCII in their order, as ranges of hexadecimal numbers."""
    numbered = enumerate(sorted(map(ord, characters)))
    runs = [[byte for _, byte in run] for _, run in groupby(numbered, lambda at: at[1] - at[0])]
    return ", ".join(
        f"{run[0]:02X}" if len(run) == 1 else f"{run[0]:02X}–{run[-1]:02X}" for run in runs
    )


def row(encoding: str) -> str:
    """The row of the page for an encoding, without its name."""
    if encoding in MARKED:
        return f"| as `{encoding}-le` or `{encoding}-be` | | |\n"
    found = tried(encoding)
    numbers = (f"{number:,}".replace(",", " ") for number in (found.sequences, found.characters))
    return f"| {' | '.join([*numbers, hexadecimal(''.join(found.hidden))])} |\n"


def rows(page: str) -> dict[str, str]:
    """The row of every encoding on the page, without its name."""
    return dict(_ROW.findall(page))


def single(page: str) -> list[str]:
    """The encodings of one row: one byte a character, every separator."""
    together = _SINGLE.search(page)
    return re.findall(r"`([^`]+)`", together[1]) if together else []


def filled(page: str) -> str:
    """The page with all encodings in place of those that it has."""
    alone = [
        one
        for one in HIDDEN
        if one not in MARKED and not HIDDEN[one] and tried(one).sequences == 256
    ]
    names = ", ".join(f"`{one}`" for one in alone)
    together = f"| of one byte: {names} | 256 each | | |"
    made = "".join(f"| `{one}` {row(one)}" for one in HIDDEN if one not in alone)
    page = _SINGLE.sub(lambda _: together, page)
    start = _ROW.search(page)
    assert start is not None
    return page[: start.start()] + made + _ROW.sub("", page[start.start() :])


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
