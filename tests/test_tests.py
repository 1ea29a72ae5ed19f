"""A module's tests are found by name or by CONTRIBUTING.md; they ask little of a message."""

import ast
import re
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

from tests.helpers.sources import ROOT
from tests.helpers.sweeps import pairs_of

TESTS = ROOT / "tests"
PLUGINS = {name: ROOT / "plugins" / f"opendp-bayes-{name}" for name in ("office", "research")}
MODULES = {
    prefix + path.relative_to(package).with_suffix("").as_posix()
    for prefix, package in (
        ("", ROOT / "opendp_bayes"),
        *((f"{name}/", path / f"opendp_bayes_{name}") for name, path in PLUGINS.items()),
    )
    for path in package.rglob("*.py")
    if not path.stem.startswith("__")
}
_ROW = re.compile(r"^\| (`[\w/`, ]+`) \| (.+) \| `([\w/.]+)` \|$", re.MULTILINE)
_NAME = re.compile(r"`([\w/]+)`")


def listed(page: str) -> dict[str, str]:
    """Modules, and folders of which every module is meant, with the place of their tests."""
    found = {}
    for folders, names, place in _ROW.findall(page):
        for folder in _NAME.findall(folders):
            modules = [f"{folder}/{name}" for name in _NAME.findall(names)]
            found |= dict.fromkeys(modules or [folder], place)
    return found


LISTED = listed((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def place_of(path: str) -> Path:
    """A file of tests, of which those of a plugin are beside it."""
    name, _, inside = path.partition("/")
    return PLUGINS[name] / "tests" / inside if name in PLUGINS else TESTS / path


def by_name(module: str) -> bool:
    """Whether the tests of a module are where its name says."""
    *rooms, name = module.split("/")
    room = rooms[: 2 if module.partition("/")[0] in PLUGINS else 1]
    return place_of("/".join([*room, f"test_{name}.py"])).exists()


def in_the_list(module: str) -> bool:
    """Whether a line names the module, or a folder that it is in."""
    folders = module.split("/")
    return any("/".join(folders[:end]) in LISTED for end in range(1, len(folders) + 1))


def test_the_tests_of_every_module_are_found_and_every_line_is_needed() -> None:
    """Negative control."""
    assert len(MODULES) > 100
    assert [one for one in sorted(MODULES) if not by_name(one) and not in_the_list(one)] == []
    for module, place in LISTED.items():
        assert place_of(place).exists(), place
        if module in MODULES:
            assert not by_name(module), module
        else:
            assert [one for one in MODULES if one.startswith(f"{module}/")], module
    assert len(LISTED) > 20
    assert not by_name("samplers/no_such_sampler")
    assert not in_the_list("samplers/no_such_sampler")
    assert not in_the_list("samplers")
    assert by_name("research/papers")
    assert by_name("samplers/uniform")
    assert by_name("office/files/tables")
    assert not by_name("files/tables")
    assert in_the_list("surveys/levels/of_any_name")
    page = "| `a`, `b/c` | every module | `d` |\n| `e` | `f`, `g` | `e/test_h.py` |"
    assert listed(page) == {"a": "d", "b/c": "d", "e/f": "e/test_h.py", "e/g": "e/test_h.py"}


#: Words of a pattern, one after the other. A message may be reworded: a test asks for the argument
#: and for the words of the constraint or the remedy. Sentences are matter of the tests of pages.
_LONGEST = 6


def long_patterns(text: str) -> Iterator[str]:
    """Patterns of `match=` that hold more of a sentence than what was wrong."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg == "match":
            pattern = getattr(node.value, "value", None) or ""  # a name's are not read
            if max(len(run.split()) for run in pattern.split(".*")) > _LONGEST:
                yield pattern


def test_no_test_asks_for_a_sentence_and_pairs_are_in_the_usual_tests() -> None:
    files = [*TESTS.rglob("*.py"), *(ROOT / "plugins").rglob("test_*.py")]
    assert len(files) > 300
    assert [of for path in files for of in long_patterns(path.read_text(encoding="utf-8"))] == []
    # Negative control.
    short = "pytest.raises(ValueError, match='scale=0: .*greater than 0')"
    long = "pytest.raises(ValueError, match='scale=0: must be finite and greater than 0')"
    assert list(long_patterns(f"{short}\n{long}")) == ["scale=0: must be finite and greater than 0"]
    every = [case for case in product("abc", range(2), "xyz") if case[:2] != ("a", 0)]
    quick = [tuple(case.values) for case in pairs_of(every) if not case.marks]
    assert {tuple(case.values) for case in pairs_of(every)} == set(every)
    for first, second in combinations(range(3), 2):
        pairs, wanted = ({(of[first], of[second]) for of in some} for some in (quick, every))
        assert pairs == wanted
    assert len(quick) < len(every)


def test_every_quick_test_is_there() -> None:
    quick = (ROOT / "tests/quick.txt").read_text(encoding="utf-8").split()
    assert [path for path in quick if not (ROOT / path).exists()] == []
    assert len(quick) > 5
