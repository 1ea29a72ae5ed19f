"""The sentences of a page in a language, from its catalogue."""

import re
from pathlib import Path
from typing import Literal

import msgspec
from markupsafe import Markup

#: Languages with a catalogue in this package, and English, which needs none.
Tag = Literal["de", "en", "es", "fr"]
_PLACE = re.compile(r"%\(\w+\)s|#")
_IN_FORM = re.compile(r"%\\\(\w+\\\)s|\\#")  # escaped


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language of pages: its tag and decimal mark, the sentences of a page by the English ones,
    and the notes of results, in which a number is # and another part is %(...)s. What has no
    translation stays English.
    """

    language: str = "en"
    decimal: str = "."
    sentences: dict[str, str] = {}
    notes: dict[str, str] = {}

    def __call__(self, english: str, **values: object) -> Markup:
        """The sentence with values in it, which are escaped unless they are HTML."""
        # A catalogue is the package's, and may have markup; values are escaped.
        return Markup(self.sentences.get(english, english)) % values  # noqa: S704

    def number(self, text: str) -> str:
        """A number as text, with the decimal mark."""
        return text.replace(".", self.decimal)

    def note(self, english: str) -> str | None:
        """A sentence of a result, or a part of one, by the first that it reads as in `notes`; None
        without translation.
        """
        if self.language == "en":
            return english
        for pattern, translation in self.notes.items():
            if match := re.fullmatch(_IN_FORM.sub(_form, re.escape(pattern)), english):
                places = list(zip(_PLACE.findall(pattern), match.groups(), strict=True))
                numbers = iter([self.number(text) for hole, text in places if hole == "#"])
                parts = {hole: self.note(text) or text for hole, text in places if hole != "#"}
                pieces = re.split(f"({_PLACE.pattern})", translation)
                return "".join(
                    next(numbers) if piece == "#" else parts.get(piece, piece) for piece in pieces
                )
        return None


def _form(hole: re.Match[str]) -> str:
    """The form of what stands in a place of a note: a number, or another part."""
    return r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)" if hole[0] == r"\#" else "(.+?)"


def language_of(tag: Tag) -> Language:
    """A language by its tag."""
    if tag == "en":
        return Language()
    catalogue = Path(__file__).parent / "languages" / f"{tag}.toml"
    return msgspec.toml.decode(catalogue.read_bytes(), type=Language)
