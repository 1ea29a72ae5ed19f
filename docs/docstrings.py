"""Turn the docstrings of the package into Markdown for the API reference: sections into lists,
doctests into code blocks.
"""

import inspect
import re
from typing import Any

from griffe import Extension, Object

_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\S.*?) : (.*)$", re.MULTILINE)


class Docstrings(Extension):
    """A griffe extension, named in mkdocs.yml."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of every object that has one."""
        if obj.docstring:
            obj.docstring.value = to_markdown(inspect.cleandoc(obj.docstring.value))


def to_markdown(text: str) -> str:
    """Rewrite one docstring, paragraph by paragraph."""
    text = _SECTION.sub(lambda match: f"**{match[1]}**\n\n", text)
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        _code(part) if part.startswith(">>>") else _entries(part) for part in paragraphs
    )


def _code(paragraph: str) -> str:
    return f"```pycon\n{paragraph}\n```"


def _entries(paragraph: str) -> str:
    """A paragraph of `name : description` lines, with indented continuations, as a list."""
    if not _ENTRY.match(paragraph):
        return paragraph
    lines = []
    for line in paragraph.split("\n"):
        entry = _ENTRY.match(line)
        names = ", ".join(f"`{name.strip()}`" for name in entry[1].split(",")) if entry else ""
        lines.append(f"- {names}: {entry[2]}" if entry else line)
    return "\n".join(lines)
