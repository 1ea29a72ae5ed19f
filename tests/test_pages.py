"""Pages: their examples are run and are code, and what they cite and name is there."""

import ast
import re
import runpy
import sys
from functools import cache
from inspect import cleandoc
from pathlib import Path

import pytest

from tests.helpers.sources import PAGES, ROOT, SOURCES

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def outside_of_code(page: str) -> list[str]:
    """Examples of a page that Markdown shows as a quotation of a quotation of a quotation."""
    return re.findall(r"^ *>>> .*", _FENCED.sub("", page), re.MULTILINE)


def inside_of_text(docstring: str) -> list[str]:
    """Paragraphs with an example that is not their beginning, shown as text."""
    parts = cleandoc(docstring).replace("Examples\n--------\n", "").split("\n\n")
    return [part for part in parts if ">>> " in part and not part.startswith(">>> ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_of_pages_are_code_and_items_begin_a_line(page: Path) -> None:
    assert not outside_of_code(page.read_text(encoding="utf-8"))
    assert not re.findall(r"[.:] - \*\*", page.read_text(encoding="utf-8"))


def test_examples_of_docstrings_begin_a_paragraph() -> None:
    """Negative control."""
    docstrings = [
        ast.get_docstring(node, clean=False) or ""
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, _DOCUMENTED)
    ]
    assert sum(">>>" in docstring for docstring in docstrings) > 50
    assert not [part for docstring in docstrings for part in inside_of_text(docstring)]
    assert outside_of_code("Text\n\n>>> 1 + 1\n2\n") == [">>> 1 + 1"]
    assert outside_of_code("```python\n>>> 1 + 1\n2\n```\n") == []
    assert inside_of_text("Text.\n\n    # Why\n    >>> 1 + 1\n    2") == ["# Why\n>>> 1 + 1\n2"]
    assert inside_of_text("Text.\n\n    >>> 1 + 1\n    2\n    >>> 2 + 2\n    4") == []


# --- What the code says of pages
_CITED = re.compile(r"docs/([\w/-]+\.md)`?(?:, (?:\"([^\"]+)\"|'([^']+)'))?")
_NAMED = re.compile(r"[(]docs: ([^).;]+)[).;]")


@cache
def headings(page: Path) -> list[str]:
    """The headings of a page, its own name first, and the words in bold that begin a paragraph."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return [
        *re.findall(r"^#+ (.+)$", text, re.MULTILINE),
        *re.findall(r"^\*\*([^*]+?)\.?\*\*", text, re.MULTILINE),
    ]


def texts(path: Path) -> list[str]:
    """The texts and comments of a module, each on one line."""
    source = path.read_text(encoding="utf-8")
    found = re.findall(r"(?:^ *#.*\n)+", source, re.MULTILINE)
    found = [re.sub(r"^ *#:? ?", "", text, flags=re.MULTILINE) for text in found]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(getattr(part, "value", "…")) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return [re.sub(r"\s+", " ", text) for text in found]


def cited(text: str) -> set[str]:
    """What a text cites that is not there: a page, or a heading of a page that it names."""
    missing = set()
    for name, *quoted in _CITED.findall(text):
        pages = [page for page in PAGES if page.as_posix().endswith(f"/docs/{name}")]
        heading = "".join(quoted)
        if not pages or (heading and heading not in headings(pages[0])):
            missing.add(f"{name}, {heading}")
    for named in _NAMED.findall(text):
        titles = {heading for page in PAGES for heading in headings(page)}
        missing |= {part for part in named.replace('"', "").split(", ") if part not in titles}
    return missing


def test_pages_and_headings_that_the_code_cites_are_there() -> None:
    """Negative control."""
    everything = {path.name: " ".join(texts(path)) for path in SOURCES}
    assert {name: lacking for name, text in everything.items() if (lacking := cited(text))} == {}
    assert len(_CITED.findall(" ".join(everything.values()))) > 80
    assert len(_NAMED.findall(" ".join(everything.values()))) > 10
    assert cited('`docs/guarantee.md`, "Plans"; (docs: Known limits)') == set()
    assert cited('`docs/guarantee.md`, "Plots"') == {"guarantee.md, Plots"}
    assert cited("`docs/no_page.md`") == {"no_page.md, "}
    assert cited("(docs: Known limits, Tyme).") == {"Tyme"}


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


EXAMPLES = ROOT / "examples"
PRINTED = {
    "penguins.py": (
        "Adelie ",
        "The number of records is private.",
        "Penguins with flippers longer than 200 mm: ",
    ),
    "framework.py": ("epsilon: 0.5 + 0.25 = 0.75", "OpenDP's noisy counts", "are equal: False"),
    "groups.py": (
        "One entry in the budget: [1.0]",
        "Torgersen",
        "P(Adelie is more frequent on Dream than on Biscoe) = ",
    ),
    "tables.py": (
        "Posterior of 6 cells ┆ KNormParameters ┆ 2.0   ┆ 0.5 (MaxDivergence)",
        "│ Republican  ┆ Dole ",
        "P(Dole | Independent) = ",
    ),
    "sampler.py": ("opendp-bayes                  0.437 ± 0.094", "emcee, in order"),
    "mechanisms.py": (
        "Laplace, discrete                       2      0.0943",
        "Hellinger, smooth (EHDS), γ = 1",
    ),
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", PRINTED)
def test_example(name, tmp_path, monkeypatch, capsys):
    """As the main program, and with no other module beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    if name == "sampler.py":
        shorten_chains(monkeypatch)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for part in PRINTED[name]:
        assert part in printed


def shorten_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a quarter of the steps: what is printed of chains is not compared."""
    from emcee import EnsembleSampler

    run = EnsembleSampler.run_mcmc
    monkeypatch.setattr(
        EnsembleSampler, "run_mcmc", lambda self, start, steps: run(self, start, steps // 4)
    )
