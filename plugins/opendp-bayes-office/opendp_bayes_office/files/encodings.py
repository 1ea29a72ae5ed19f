"""The encodings in which text is read: those in which one line of bytes is one line of text.

In others one record can end, join or split the lines of others: `+AAo-` of utf-7 and the letter `%`
of EBCDIC are ends of lines, and after `~` of hz an end of a line is none. So there is a list, and
each of its encodings was tried on all sequences of bytes (`docs/research/encodings.md`).
"""

import string
from encodings.aliases import aliases
from typing import Final

from opendp_bayes.mathematics.telling import told

UTF_8: Final = "utf-8"
_ASCII = "".join(map(chr, range(128)))
_UNICODE = "utf-8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be"
_ONE_BYTE = """
ascii latin-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9
iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252 cp1253 cp1254
cp1255 cp1256 cp1257 cp1258 cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp856 cp857 cp858 cp860 cp861
cp862 cp863 cp865 cp866 cp869 cp874 cp1006 cp1125 hp-roman8 koi8-r koi8-t koi8-u kz1048 mac-croatian
mac-cyrillic mac-greek mac-iceland mac-latin2 mac-roman mac-romanian mac-turkish palmos ptcp154
tis-620
"""
#: By encoding, the characters of ASCII that are no separators there, because their byte may be part
#: of another character, or is another one, or they have other bytes.
HIDDEN: Final = {
    **dict.fromkeys([*_UNICODE.split(), *_ONE_BYTE.split()], ""),
    "cp864": "%",
    **dict.fromkeys(("gb2312", "euc-kr"), ""),
    **dict.fromkeys(("euc-jp", "euc-jis-2004", "euc-jisx0213"), "~"),
    **dict.fromkeys(("shift-jis", "shift-jis-2004", "shift-jisx0213", "cp932"), _ASCII[0x40:0x7F]),
    **dict.fromkeys(("big5", "big5hkscs", "cp950", "gbk"), _ASCII[0x40:0x7F]),
    "gb18030": string.digits + _ASCII[0x40:0x7F],
    "cp949": string.ascii_letters,
    "johab": _ASCII[0x31:0x7F],
}


def _plain(encoding: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in encoding.lower()).split())


#: Other names in Python; UTF-8 is read with a mark at its beginning and without.
_ALIASES = {_plain(alias): _plain(encoding) for alias, encoding in aliases.items()} | {
    "utf-8-sig": UTF_8
}


def as_encoding(alias: str) -> str:
    """The name in `HIDDEN` of the encoding that has this name in Python; raises `ValueError` where
    it is not there.
    """
    encoding = _ALIASES.get(_plain(alias), _plain(alias))
    if encoding not in HIDDEN:
        raise ValueError(
            f"encoding={told(alias)}: is not an encoding that is read; must be one in which every"
            f" line of bytes is a line of text: {', '.join(HIDDEN)}. Save the file in UTF-8."
        )
    return encoding


def as_separator(separator: str, encoding: str) -> str:
    """The character that separates values; raises `ValueError` for what is none, and for one that
    an encoding of `HIDDEN` may hide in another character.
    """
    character = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        raise ValueError(
            f"separator={separator!r}: must be one ASCII character that is no quote, such as ';',"
            " or tab."
        )
    if character in HIDDEN[encoding]:
        raise ValueError(
            f"separator={separator!r}: may be part of another character in {encoding}, where it"
            " would not end a value; must be ',' or tab there. Or save the file in UTF-8."
        )
    return character


def check_text(separator: str | None, encoding: str | None) -> None:
    """Raise `ValueError` for a separator or an encoding of CSV that is none."""
    codec = as_encoding(UTF_8 if encoding is None else encoding)
    as_separator("," if separator is None else separator, codec)
