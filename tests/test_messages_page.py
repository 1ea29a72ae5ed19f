"""The page of messages has none that the package does not say."""

import ast
import re

from tests.helpers.sources import ROOT, SOURCES

PAGE = (ROOT / "docs" / "help.md").read_text(encoding="utf-8")


def messages(page: str) -> list[str]:
    """The texts in code of the first cell of every row."""
    rows = re.findall(r"^\| (`.*?) \| ", page, re.MULTILINE)
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row)]


def said() -> str:
    """Everything that is text in the package, with what is filled in left out."""
    texts = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [str(getattr(part, "value", "")) for part in node.values]
                filled = [
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                ]
                texts += [" ".join(map(str, filled)), "".join(map(str, filled)), *parts]
    return "\n".join(texts)


EVERYTHING = said()


def test_every_message_of_the_page_is_one_of_the_package() -> None:
    assert len(messages(PAGE)) > 35
    assert [text for text in messages(PAGE) if text not in EVERYTHING] == []
    # Negative control.
    page = PAGE + "| `is on fire` | Run. |\n"
    assert [text for text in messages(page) if text not in EVERYTHING] == ["is on fire"]
