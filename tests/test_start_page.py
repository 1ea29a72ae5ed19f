"""The first page has one piece of code, which opens a Context of ours, and shows what it prints. It
has three ways in, and names every extra and every plugin by its true name. The README begins with
the same code.
"""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "index.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
TABLE = re.findall(r"^\| (`opendp-bayes.*?) \|", PAGE, re.M)


def extras(project: Path) -> set[str]:
    """The names of the extras of a package."""
    text = (project / "pyproject.toml").read_text("utf-8")
    _, _, section = text.partition("\n[project.optional-dependencies]\n")
    return set(re.findall(r"^([\w-]+) = ", section.partition("\n[")[0], re.M))


def named(package: str, table: list[str]) -> set[str]:
    """The extras that the rows of a package have."""
    rows = [row for row in table if re.match(rf"`{package}[\[`]", row)]
    assert rows, f"{package} is not on the page"
    return {name for row in rows for name in re.findall(r"\[([\w-]+)\]", row)}


def test_extras_plugins_and_a_context_of_ours_are_on_it() -> None:
    plugins = [file.parent for file in ROOT.glob("plugins/*/pyproject.toml")]
    assert len(plugins) >= 3
    for package, project in {"opendp-bayes": ROOT, **{one.name: one for one in plugins}}.items():
        assert named(package, TABLE) == extras(project), package
    # Negative control.
    assert named("opendp-bayes", [*TABLE, "`opendp-bayes[pictures]`"]) != extras(ROOT)
    assert "ob.context(" in code(PAGE)
    assert of_opendp(code(PAGE)) == {"enable_features", "unit_of", "loss_of"}
    # Negative control.
    assert "Context" in of_opendp(code(PAGE).replace("ob.context(", "dp.Context.compositor("))
    assert code(README) == code(PAGE)
    assert shown(README) == shown(PAGE)


def shown(page: str) -> str:
    """The output that follows the first code of the page."""
    found = re.search(r"^```text\n(.*?)^```$", page, re.M | re.S)
    assert found
    return found[1]


def constant(output: str) -> str:
    """An output on one line, without the numbers of rows, which noise changes."""
    rows = re.sub(
        r"^(?:yes|no|missing) .*", lambda row: re.sub(r"-?[\d.]+", "0", row[0]), output, flags=re.M
    )
    return " ".join(rows.split())


def code(page: str) -> str:
    """The only code of the page in Python."""
    (found,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    return str(found)


def printed(page: str) -> str:
    """The output of the code of the page."""
    with redirect_stdout(StringIO()) as output:
        exec(code(page), {})  # noqa: S102
    return output.getvalue()


def of_opendp(python: str) -> set[str]:
    """The names of OpenDP that the code uses."""
    return set(re.findall(r"\bdp\.(\w+)", python))


def doors(page: str) -> dict[str, str]:
    """The parts of the page below its ways in, by their headings."""
    _, _, section = page.partition("\n## Three ways in\n")
    parts = re.split(r"^### (.+)\n", section.partition("\n## ")[0], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_three_ways_lead_on_and_the_output_shown_is_printed() -> None:
    """Negative control: another loss; other counts are none."""
    assert list(doors(PAGE)) == ["I have a file", "I have a frame", "I compose with OpenDP"]
    for heading, text in doors(PAGE).items():
        assert f"**{heading}.**" in README
        leads = re.findall(r"\]\(([\w/-]+\.md)[#)]", text)
        assert leads, heading
        assert all((ROOT / "docs" / page).is_file() for page in leads)
    assert constant(shown(PAGE)) == constant(printed(PAGE))
    output = printed(PAGE)
    assert constant(output.replace("ε = 0.2", "ε = 0.3")) != constant(output)
    assert constant(re.sub(r"^yes +-?\d+", "yes   9", output, flags=re.M)) == constant(output)
