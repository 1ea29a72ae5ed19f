"""Write `docs/research/trusted.md`, which lists what must be right for the guarantee, from what is
said of each file in `trusted_rooms.toml`: `python -m tests.helpers.trusted_page`.
"""

import ast
import re
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from tests.helpers.sources import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = ROOT / "docs"
PAGE = DOCS / "research" / "trusted.md"
FACTS = Path(__file__).with_name("trusted_rooms.toml")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

_INTRODUCTION = """\
# What must be right

This page is for whoever audits the guarantee. It lists every file of this package that the
guarantee rests on: how large it is, what it does, what would go wrong if it were not right, the
proof or page that it implements, and tests that would notice. It is generated from the files, by
`python -m tests.helpers.trusted_page`. Statements are counted without imports and docstrings; those
within a function or a class count too.

In the package, `opendp_bayes/trusted` alone opens frames, runs plans and debits budgets. Everything
else asks it for five things:

| verb | by | what it does |
|---|---|---|
{verbs}

The numbers that it debits, and most of its noise, come from four rooms that know nothing of frames:
mathematics, samplers, mechanisms and accounting. What only exponential mechanisms need is in a
section of its own. Who audits Laplace, K-norm or Gaussian noise can skip those four sections: they
are imported, but compute no loss and no draw of noise on the counts. The files of the office are
needed only where it reads a file, and the engines plugin only where frames of other engines are
counted.

| room | files | lines | statements | at most |
|---|--:|--:|--:|--:|
{rooms}

A room that grows beyond its last column fails a test, so that somebody looks at what became of it.

## What stands outside

- **`queries`** states public values: labels, places and priors. It hands them over as `Cells`,
  whose index and kinds the trusted room checks when they are made. A wrong label there is a wrong
  label, and no loss of privacy: each record is still in one cell, by its own values.
- Two things of `queries` matter all the same. It sends plans through the gate
  (`counts_of_frame`), and it names the loss that a release states for a privacy unit
  (`bound_query`). If that were wrong, the release would state a wrong loss; what the Context
  debits is the map of the
  measurement itself.
- **`inference`, `results`, `planning`, `display`** and the documents of `release_format` see
  releases or public numbers. A mistake there is a wrong estimate or a wrong picture.
- **Research** and the rest of the office, **`commands`** and **`report`**, call what is listed
  here. The command line opens files and Contexts by the listed rooms alone.
- **Not counted, and trusted too**: OpenDP, polars, numpy, scipy and Python; the system's random
  source; the packages of mechanisms that you name; and your own word on what is
  [public](../guarantee.md#margins-and-invariants).

"""


@dataclass(frozen=True)
class Fact:
    """What is said of one file.

    Attributes
    ----------
    does : what it does, and what would go wrong.
    proof : the page that it implements, with the anchor of a heading.
    test : the test that would notice, as pytest names it, or several.
    """

    does: str
    proof: str
    test: str | list[str]

    @property
    def tests(self) -> list[str]:
        return [self.test] if isinstance(self.test, str) else self.test


@dataclass(frozen=True)
class Room:
    """Files that are listed together.

    Attributes
    ----------
    title, about : the heading, and what stands below it.
    folder : where its files are.
    ceiling : the most statements that all of them may have.
    files : by name, without the extension, in the order of the page.
    only : True where the folder has other files that are none of its own.
    """

    title: str
    about: str
    folder: str
    ceiling: int
    files: dict[str, Fact]
    only: bool = False

    def path(self, name: str) -> Path:
        return ROOT / self.folder / f"{name}.py"

    @property
    def sources(self) -> dict[str, str]:
        """The text of each file."""
        return {name: self.path(name).read_text(encoding="utf-8") for name in self.files}

    @property
    def statements(self) -> int:
        return sum(map(statements, self.sources.values()))

    @property
    def unlisted(self) -> set[str]:
        """Files that nothing is said of."""
        found = {path.stem for path in (ROOT / self.folder).glob("*.py")} - {"__init__"}
        return set() if self.only else found - set(self.files)

    @property
    def absent(self) -> set[str]:
        """Names of no file."""
        return {name for name in self.files if not self.path(name).exists()}


def rooms() -> list[Room]:
    """All rooms, in the order of the page."""
    given = tomllib.loads(FACTS.read_text(encoding="utf-8"))["rooms"]
    return [
        Room(**{**room, "files": {name: Fact(**of) for name, of in room["files"].items()}})
        for room in given
    ]


def verbs() -> list[dict[str, str]]:
    """What others ask of the trusted room: `verb`, `door`, a function of it, and `does`."""
    found: list[dict[str, str]] = tomllib.loads(FACTS.read_text(encoding="utf-8"))["verbs"]
    return found


def statements(source: str) -> int:
    """The number of statements, nested ones too, without imports and docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        id(node.body[0])
        for node in nodes
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    }
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, (ast.Import, ast.ImportFrom))
        and id(node) not in docstrings
        for node in nodes
    )


def anchor_of(heading: str) -> str:
    """The anchor that mkdocs gives a heading."""
    text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def heading_of(link: str) -> str:
    """The heading that a link to a page leads to; `ValueError` where there is none."""
    name, _, anchor = link.partition("#")
    page = (PAGE.parent / name).resolve()
    text = _FENCED.sub("", page.read_text(encoding="utf-8")) if page.is_file() else ""
    for heading in _HEADING.findall(text):
        if anchor_of(heading) == anchor:
            return str(heading)
    raise ValueError(f"{link}: leads to no heading.")


def is_defined(name: str, folder: Path = ROOT) -> bool:
    """True if a function is there, of the form `path::function`."""
    path, _, function = name.partition("::")
    if not (folder / path).is_file():
        return False
    body = ast.parse((folder / path).read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in body)


def page() -> str:
    """The whole page."""
    every = rooms()
    parts = [_INTRODUCTION.format(verbs="\n".join(map(_verb, verbs())), rooms=_table(every))]
    parts += ["\n\n".join(_section(room)) + "\n" for room in every]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _verb(given: dict[str, str]) -> str:
    path, _, function = given["door"].partition("::")
    return f"| {given['verb']} | `{function}`, `{Path(path).name}` | {given['does']} |"


def _table(every: list[Room]) -> str:
    rows = [
        (
            f"[{room.title}](#{anchor_of(room.title)})",
            len(room.files),
            sum(source.count("\n") for source in room.sources.values()),
            room.statements,
            room.ceiling,
        )
        for room in every
    ]
    numbers = [sum(row[at] for row in rows) for at in (1, 2, 3, 4)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [*rows, ("all", *numbers)])


def _section(room: Room) -> list[str]:
    parts = [f"## {room.title}", _wrapped(f"`{room.folder}`. {room.about}")]
    for name, source in room.sources.items():
        fact = room.files[name]
        size = f"{source.count(chr(10))} lines, {statements(source)} statements"
        proof = f"[{heading_of(fact.proof)}]({fact.proof})"
        parts.append(_wrapped(f"**`{name}.py`**, {size}. {fact.does}"))
        noticing = ",\n  ".join(f"`{test}`" for test in fact.tests)
        parts.append(f"- Implements: {proof}\n- Would notice: {noticing}")
    return parts


def _wrapped(text: str) -> str:
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
