"""Fonts for labels in any script: those installed that have the characters are added to those that
matplotlib draws with, and what no font has is said.
"""

import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from opendp_bayes.display.wording import listed
from opendp_bayes.mathematics.telling import warn

T = TypeVar("T")  # Axes or Figure
#: What the font of a script is called where it has more than that script.
_TOGETHER = {
    **dict.fromkeys(("CJK", "Hiragana", "Katakana", "Hangul"), "Noto Sans CJK JP"),
    **dict.fromkeys(("Latin", "Greek", "Cyrillic"), "Noto Sans"),
    "symbols": "Noto Emoji",
}
#: Categories of characters that are not drawn: controls, marks of a form, blanks.
_NOT_DRAWN = ("Cc", "Cf", "Zs", "Zl", "Zp")
#: Weights of a plain face.
_PLAIN = (400, "normal", "regular", "book")
#: What is no letter of a script, and the most characters that a message shows.
_SYMBOLS, _SHOWN = "symbols", 20
_FORMS = tuple(map(chr, range(0xFE00, 0xFE10)))
#: A font of matplotlib's own, in some versions from 3.10 on, with a sign for every script and no
#: letters.
_LAST = "Last Resort High-Efficiency"
#: The version of matplotlib that joins letters and draws from right to left.
_SHAPES = (3, 11)


def with_fonts(drawn: T) -> T:
    """Let installed fonts draw the characters that the fonts of a text lack, and return the axes or
    the figure. Warns once of those that no font has, and where letters cannot be joined.
    """
    import matplotlib
    from matplotlib.text import Text

    found: Any = drawn
    texts = [(one, _characters(one.get_text())) for one in found.findobj(Text)]
    lacking = {
        text: missing
        for text, of in texts
        if of and (missing := _without_glyph(of, map(_font, text.get_fontfamily())))
    }
    more, left = _fonts_with("".join(dict.fromkeys("".join(lacking.values()))))
    for text in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *more])
    if left:
        of_left = next(text for text, of in lacking.items() if set(of) & set(left))
        own = [one for one in of_left.get_fontfamily() if one not in more]
        warn(_of_missing(left, own))
    turned = [one for _, of in texts for one in of if unicodedata.bidirectional(one) in ("R", "AL")]
    if turned and matplotlib.__version_info__ < _SHAPES:
        warn(
            f"labels in {listed(_scripts(turned), 'and')} are drawn from left to right, letter by"
            f" letter, by matplotlib {matplotlib.__version__}; version 3.11 draws them as they are"
            " written."
        )
    return drawn


def _characters(text: str) -> str:
    """The characters of a text that need more than any font has, each once."""
    return "".join(
        one
        for one in dict.fromkeys("" if text.isascii() else text)
        if unicodedata.category(one) not in _NOT_DRAWN and one not in _FORMS
    )


def _without_glyph(characters: str, fonts: Iterable[Any]) -> str:
    """Those characters that none of some fonts has."""
    known = [font for font in fonts if font is not None]
    return "".join(
        one for one in characters if not any(font.get_char_index(ord(one)) for font in known)
    )


def _font(family: str) -> Any:
    """The font of a family; None where it is not installed."""
    from matplotlib import font_manager

    wanted = font_manager.FontProperties(family=[family])
    try:
        path = font_manager.findfont(wanted, fallback_to_default=False)
    except ValueError:
        return None
    return font_manager.get_font(path)


@cache
def _fonts_with(characters: str) -> tuple[tuple[str, ...], str]:
    """Families of installed fonts that have as many of the characters as there are fonts for, at
    last the one that has a sign for all, and the characters that no other has.
    """
    from matplotlib import font_manager

    fonts, chosen, left = _installed() if characters else {}, list[str](), characters
    while left:
        remain = {
            name: _without_glyph(left, [font_manager.get_font(path)])
            for name, path in fonts.items()
            if name != _LAST
        }
        best = min(remain, key=lambda name: (len(remain[name]), "Sans" not in name, name))
        if remain[best] == left:
            return (*chosen, *([_LAST] if _LAST in fonts else [])), left
        chosen.append(best)
        left = remain[best]
    return tuple(chosen), ""


@cache
def _installed() -> dict[str, str]:
    """Families of fonts with the file of their plain face, also of those that were installed after
    matplotlib made its list.
    """
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {entry.fname for entry in manager.ttflist}
    for path in sorted({*font_manager.findSystemFonts()} - known):
        with suppress(Exception):  # which matplotlib cannot read, such as emoji in colours
            manager.addfont(path)
    plain = [one for one in manager.ttflist if one.style == "normal" and one.weight in _PLAIN]
    return {one.name: one.fname for one in sorted(plain, key=lambda one: one.fname, reverse=True)}


def _scripts(characters: Iterable[str]) -> list[str]:
    """The scripts of characters, by their names in Unicode."""
    found: dict[str, None] = {}
    for one in characters:
        name = unicodedata.name(one, "").partition(" ")[0].partition("-")[0]
        is_letter = name and unicodedata.category(one)[0] in "LMN"
        found[name if name == "CJK" else name.capitalize() if is_letter else _SYMBOLS] = None
    return list(found)


def _of_missing(characters: str, families: list[str]) -> str:
    """Say what no font has, and what to do."""
    scripts = _scripts(characters)
    # Of the family Noto, which is free and has every script.
    wanted = list(dict.fromkeys(_TOGETHER.get(one, f"Noto Sans {one}") for one in scripts))
    fonts = [one.family_name for one in map(_font, families) if one is not None]
    shown = characters if len(characters) <= _SHOWN else f"{characters[:_SHOWN]}…"
    setting = [*families, *wanted]
    return (
        f"labels hold {shown} ({listed(scripts, 'and')}), for which neither the font"
        f" {listed(fonts, 'or')} nor another installed one has signs, so that boxes are drawn."
        f" Install {listed(wanted, 'and')}, found in a new process by itself. Or choose another"
        f" font that has them, by matplotlib.rcParams['font.family'] = {setting}, or as"
        f" font.family: {', '.join(setting)} in a file matplotlibrc."
    )
