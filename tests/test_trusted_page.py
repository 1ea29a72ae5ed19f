"""The page of what must be right is what its generator makes, and names only what is there."""

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers import trusted_page
from tests.helpers.sources import ROOT
from tests.helpers.trusted_page import Fact, Room, heading_of, is_defined, rooms, statements, verbs

ROOMS = rooms()
TITLES = [room.title for room in ROOMS]
FACTS = [fact for room in ROOMS for fact in room.files.values()]
#: Folders of which every file is on the page.
FOUR = ("mathematics", "samplers", "mechanisms", "accounting")
FOLDERS = {f"opendp_bayes/{room}{part}" for room in FOUR for part in ("", "/exponential")}
FOLDERS |= {"opendp_bayes/trusted", "opendp_bayes/unlisted/trusted"}
FOLDERS |= {"plugins/opendp-bayes-engines/opendp_bayes_engines"}
FOLDERS |= {"plugins/opendp-bayes-office/opendp_bayes_office/files"}
#: Words of a sentence at most.
LONGEST = 35


def imported(source: str) -> set[str]:
    """The modules of the package that a module imports, as paths from the project."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        module = str(node.module) if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, ast.ImportFrom) and re.match(r"opendp_bayes(_office)?\.", module):
            path = module.replace(".", "/")
            if path.startswith("opendp_bayes_office"):
                path = f"plugins/opendp-bayes-office/{path}"
            within = {f"{path}/{name.name}.py" for name in node.names}
            door = f"{path}/__init__.py"
            own = door if (ROOT / door).is_file() else f"{path}.py"
            found |= {each for each in within if (ROOT / each).is_file()} or {own}
    return found


def long_sentences(text: str) -> list[str]:
    return [one for one in re.split(r"(?<=[.:;?])\s", text) if len(one.split()) > LONGEST]


def test_the_page_is_what_the_generator_makes_of_every_file_proof_and_test() -> None:
    found = trusted_page.PAGE.read_text(encoding="utf-8")
    assert found == trusted_page.page(), "run python -m tests.helpers.trusted_page"
    assert {room.folder for room in ROOMS if not room.only} == FOLDERS
    for room in ROOMS:
        assert (room.unlisted, room.absent) == (set(), set()), room.title
    listed = {f"{room.folder}/{name}.py" for room in ROOMS for name in (*room.files, "__init__")}
    for room in ROOMS:
        if "opendp-bayes-engines" not in room.folder:  # which goes by the door for plugins
            for name, source in room.sources.items():
                assert imported(source) <= listed, f"{room.folder}/{name}.py"
    assert all(heading_of(fact.proof) for fact in FACTS)
    assert [test for fact in FACTS for test in fact.tests if not is_defined(test)] == []
    assert [one["door"] for one in verbs() if not is_defined(one["door"])] == []


@pytest.mark.parametrize("room", ROOMS, ids=TITLES)
def test_rooms_are_within_their_ceilings_and_modules_have_docstrings(room: Room) -> None:
    assert room.statements <= room.ceiling <= 1.1 * room.statements
    for path in sorted((ROOT / room.folder).glob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.name


def test_the_doors_of_the_rooms_do_nothing_and_sentences_are_short() -> None:
    """Files named `__init__` are not listed, and hold names alone."""
    for room in ROOMS:
        source = (ROOT / room.folder / "__init__.py").read_text(encoding="utf-8")
        assert statements(re.sub(r"^__all__ = \[.*?\]", "", source, flags=re.DOTALL | re.M)) == 0
    texts = [fact.does for fact in FACTS] + [room.about for room in ROOMS]
    texts += [one["does"] for one in verbs()]
    prose = trusted_page._INTRODUCTION.replace("\n- ", "\n\n").split("\n\n")
    texts += [part for part in prose if not part.startswith(("|", "#"))]
    assert [long for text in texts for long in long_sentences(text)] == []


# --- What the page says of the exponential rooms
def exponential_files_that_run(run: Callable[[], Any]) -> set[str]:
    """Files of the rooms named `exponential` of which a function is called."""
    found = set()

    def seen(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "exponential/" in (name := frame.f_code.co_filename):
            found.add("/".join(Path(name).parts[-3:]))

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found


def released(mechanism: Any, unit: Any, loss: Any, **size: int) -> Callable[[], Any]:
    """The release of a mechanism, from the opening of its Context on."""
    votes = pl.LazyFrame({"vote": ["yes", "no", "?"] * 13})

    def run() -> Any:
        context = ob.context(votes, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
        question = {"categories": ["yes", "no"], "nulls": "?", "unknown": "?", **size}
        return ob.posterior(context.query(), "vote", mechanism=mechanism, **question).release()

    return run


CHANGES = dp.unit_of(changes=2)
ADDED = dp.unit_of(contributions=2)
EPSILON, RHO = dp.loss_of(epsilon=1.25), dp.loss_of(rho=0.35)
BOTH = dp.loss_of(epsilon=1.25, delta=1e-7)


@pytest.mark.parametrize(
    ("mechanism", "unit", "loss", "size"),
    [
        ("laplace_parameters", ADDED, EPSILON, {}),
        ("laplace_parameters", CHANGES, RHO, {"size": 39}),
        ("laplace_parameters", CHANGES, BOTH, {"size": 39}),
        ("knorm_parameters", CHANGES, EPSILON, {"size": 39}),
        ("knorm_parameters", CHANGES, BOTH, {"size": 39}),
        ("gaussian_parameters", ADDED, RHO, {}),
        ("gaussian_parameters", CHANGES, BOTH, {"size": 39}),
        (ob.LaplaceParameters(9.0, noise="floored", total="private"), ADDED, EPSILON, {}),
    ],
)
def test_noise_on_the_counts_needs_no_exponential_room(mechanism, unit, loss, size):
    assert exponential_files_that_run(released(mechanism, unit, loss, **size)) == set()


def test_an_exponential_mechanism_needs_each() -> None:
    """Negative control."""
    ran = exponential_files_that_run(
        released("smooth_hellinger_exponential", CHANGES, EPSILON, size=39)
    )
    assert {path.partition("/exponential/")[0] for path in ran} == set(FOUR)


# --- Negative controls of the page


def test_what_is_missing_and_what_is_not_there_is_noticed(tmp_path: Path) -> None:
    room = ROOMS[0]
    names = list(room.files)
    fewer = replace(room, files={name: room.files[name] for name in names[1:]})
    assert fewer.unlisted == {names[0]}
    more = replace(room, files={**room.files, "no_such_file": Fact("", "", "")})
    assert (more.unlisted, more.absent) == (set(), {"no_such_file"})
    grown = replace(room, ceiling=room.statements - 1)
    assert grown.statements > grown.ceiling
    assert "opendp_bayes/display/renderings.py" in imported(
        "from opendp_bayes.display import renderings"
    )
    assert long_sentences("word " * LONGEST + "word.") != []
    for link in ("proofs.md#no-such-heading", "no_such_page.md#counts", "proofs.md"):
        with pytest.raises(ValueError, match="leads to no heading"):
            heading_of(link)
    with pytest.raises(ValueError, match="leads to no heading"):
        heading_of("../reports.md#echo-false")  # a comment in a block of code
    assert heading_of("proofs.md#the-samplers-error") == "The sampler's error"
    (tmp_path / "test_x.py").write_text("def test_it(): ...\n", encoding="utf-8")
    assert is_defined("test_x.py::test_it", tmp_path)
    assert not is_defined("test_x.py::test_that", tmp_path)
    assert not is_defined("test_y.py::test_it", tmp_path)
