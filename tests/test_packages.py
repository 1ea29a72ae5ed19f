"""What packages say of themselves, and how they are cited."""

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

import opendp_bayes
import opendp_bayes as ob

ROOT = Path(__file__).parent.parent
LICENSE = (ROOT / "LICENSE").read_text("utf-8")
NAMES = ["opendp-bayes", *sorted(path.name for path in (ROOT / "plugins").glob("opendp-*"))]


def test_every_package_is_looked_at_and_cited_in_this_version() -> None:
    assert len(NAMES) == len(set(NAMES)) == 6
    assert f"\nversion: {opendp_bayes.__version__}\n" in CITATION.read_text(encoding="utf-8")
    for name in NAMES[1:]:
        requires = distribution(name).requires or []
        [core] = [one for one in requires if one.startswith("opendp-bayes") and ";" not in one]
        assert core in ("opendp-bayes<2,>=1.0", "opendp-bayes>=1.0,<2"), name
        is_ours = name != "opendp-bayes-template"  # which is there to be copied
        assert not is_ours or distribution(name).version == ob.__version__, name


@pytest.fixture(params=NAMES)
def package(request: pytest.FixtureRequest) -> Distribution:
    return distribution(request.param)


def description(package: Distribution) -> str:
    """The README as a package index shows it."""
    metadata = package.metadata
    return str(metadata.get_payload() or metadata["Description"])


def relative(page: str) -> list[str]:
    """Where links and pictures lead that have no host, which are broken on a package index."""
    return re.findall(r"\]\(((?!https://)[^)]*)\)", page)


def test_licences_links_and_descriptions_stand_alone(package: Distribution) -> None:
    assert package.metadata["License-Expression"] == "MIT"
    assert package.read_text("licenses/LICENSE") == LICENSE
    urls = package.metadata.get_all("Project-URL") or []
    assert urls
    assert all(re.fullmatch(r"\w+, https://\S+", url) for url in urls)
    assert package.metadata["Requires-Python"] == ">=3.10"
    page = description(package)
    assert page.startswith(f"# {package.name}\n")
    assert relative(page) == []
    assert not re.search("blue|orange", page), "a caption without its picture"


def versions_in(path: str, pattern: str) -> list[str]:
    """Pythons that a file of the repository lists in one place."""
    [found] = re.findall(pattern, (ROOT / path).read_text("utf-8"), re.MULTILINE)
    return re.findall(r"\d\.\d+", found)


def test_every_python_is_listed_and_relative_links_are_noticed() -> None:
    """Negative control: the README of the repository has both, and paths stay in words."""
    classifiers = distribution("opendp-bayes").metadata.get_all("Classifier") or []
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert len(promised) > 4
    assert versions_in("Makefile", r"^PYTHONS := (.*)$") == promised
    assert versions_in(".github/workflows/ci.yml", r"^ +python: \[(.*)\]$") == promised
    assert versions_in(".ci/run", r"^for version in (.*); do$") == promised[::-1]
    with pytest.raises(ValueError, match="not enough values"):  # the negative control
        versions_in("Makefile", r"^NO_SUCH_LIST := (.*)$")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert {"docs/images/penguins.png", "docs/tutorial.md"} <= set(relative(readme))
    assert "Tutorial (`docs/tutorial.md`): a survey" in description(distribution("opendp-bayes"))
    paths = re.findall(r" \(`([\w./]+)`\)", description(distribution("opendp-bayes")))
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).is_file()] == []


CITATION = Path(__file__).parent.parent / "CITATION.cff"
