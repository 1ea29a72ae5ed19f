"""The sentences of a page in a language, from its catalogue."""

import re
from pathlib import Path
from typing import Literal

import msgspec
from markupsafe import Markup

#: Languages with a catalogue in this package, and English, which needs none.
Tag = Literal["de", "en", "es", "fr"]
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language of pages: its tag, its decimal mark, and its sentences by the English ones. One
    that has no translation stays English.
    """

    language: str = "en"
    decimal: str = "."
    sentences: dict[str, str] = {}

    def __call__(self, english: str, **values: object) -> Markup:
        """The sentence with values in it, which are escaped unless they are HTML."""
        # A catalogue is the package's or the owner's, and may have markup; values are escaped.
        return Markup(self.sentences.get(english, english)) % values  # noqa: S704

    def number(self, text: str) -> str:
        """A number as text, with the decimal mark."""
        return text.replace(".", self.decimal)

    def numbered(self, english: str) -> str | None:
        """A sentence whose numbers are written as # in the catalogue; None without translation."""
        if self.language == "en":
            return english
        numbers = iter(_NUMBER.findall(english))
        other = self.sentences.get(_NUMBER.sub("#", english))
        return other and re.sub("#", lambda _: self.number(next(numbers)), other)


def language_of(tag: Tag) -> Language:
    """A language by its tag."""
    if tag == "en":
        return Language()
    catalogue = Path(__file__).parent / "languages" / f"{tag}.toml"
    return msgspec.toml.decode(catalogue.read_bytes(), type=Language)
