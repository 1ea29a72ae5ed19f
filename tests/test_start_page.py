"""The first page names every extra and every plugin, by its true name."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = re.findall(
    r"^\| (`opendp-bayes.*?) \|", (ROOT / "docs" / "index.md").read_text("utf-8"), re.M
)


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


def test_all_extras_and_plugins_are_named() -> None:
    plugins = [file.parent for file in ROOT.glob("plugins/*/pyproject.toml")]
    assert len(plugins) >= 3
    for package, project in {"opendp-bayes": ROOT, **{one.name: one for one in plugins}}.items():
        assert named(package, TABLE) == extras(project), package


def test_notices_an_extra_that_is_not_there() -> None:
    """Negative control."""
    assert named("opendp-bayes", [*TABLE, "`opendp-bayes[pictures]`"]) != extras(ROOT)
