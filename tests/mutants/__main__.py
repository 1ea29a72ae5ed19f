"""Plant mistakes in the code, one at a time, and see which ones no test catches.

`make mutants` runs this; cosmic-ray makes the mistakes. `targets.toml` says what is mutated and
which tests belong to it, `equivalent.toml` which mistakes change no result, with the reason. What
was tried is kept in `.mutants/`: a run that is stopped goes on where it was, and what no test
noticed is tried again in the next. The result is a table, `docs/mutants.md`.
"""

import argparse
import hashlib
import os
import random
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib
from attrs import evolve
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem

from tests.mutants.report import is_settled, tried, written

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / ".mutants"
#: Mistakes that somebody makes. Other exchanges of operators fail at once, also in annotations.
OPERATORS = {
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in (
        "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Mod_Mul", "Pow_Mul",
        "LShift_RShift", "RShift_LShift",
    )),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in (
        "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE",
        "GtE_Gt", "GtE_Lt", "Is_IsNot", "IsNot_Is",
    )),
    "core/ReplaceUnaryOperator_Delete_USub", "core/ReplaceUnaryOperator_Delete_Not", "core/AddNot",
    "core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd", "core/ReplaceBreakWithContinue", "core/NumberReplacer",
    "core/RemoveDecorator", "core/ZeroIterationForLoop",
}  # fmt: skip
#: Seconds after which tests that a mistake has sent into an endless loop are stopped.
PATIENCE = 600.0


@dataclass(frozen=True)
class Module:
    """A module to mutate, and its tests: those of the same name first, then those of its area."""

    path: str
    tests: tuple[str, ...]

    @property
    def session(self) -> Path:
        """The record of what was tried with this text."""
        text = hashlib.sha256((PROJECT / self.path).read_bytes()).hexdigest()[:16]
        return KEPT / f"{self.path.removesuffix('.py').replace('/', '.')}-{text}.sqlite"


def modules(area: dict[str, Any]) -> list[Module]:
    """The modules of an area of `targets.toml`."""
    found = []
    for path in area["modules"]:
        parts = Path(path)
        own = [
            str(file.relative_to(PROJECT))
            for test in area["tests"]
            for file in (PROJECT / test).rglob(f"test_{parts.stem}.py")
        ]
        found.append(Module(path, tuple(dict.fromkeys([*own, *area["tests"]]))))
    return found


def copied(name: str) -> Path:
    """A copy of the files that git knows, in which mistakes can be planted."""
    place = KEPT / f"copy-{name}"
    shutil.rmtree(place, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    for file in filter(None, listed.stdout.split("\0")):
        if (PROJECT / file).is_file():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / file, place / file)
    return place


def chosen(db: WorkDB, number: int) -> list[WorkItem]:
    """The first `number` mistakes of a module in a random order that is always the same."""
    items = [item for item in db.work_items if item.mutations[0].operator_name in OPERATORS]
    items.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(0).shuffle(items)
    return items[:number] if number else items


def try_area(area: dict[str, Any], number: int, only: str) -> None:
    """Try `number` mistakes of each module of an area, all for 0."""
    place = copied(area["name"])
    paths = os.pathsep.join(map(str, [place, *sorted(place.glob("plugins/*"))]))
    python = f"env -C {shlex.quote(str(place))} PYTHONPATH={shlex.quote(paths)} {sys.executable}"
    for module in modules(area):
        if only not in module.path:
            continue
        tests = shlex.join(["-m", "pytest", "-qx", "-p", "no:cacheprovider", *module.tests])
        with use_db(str(module.session), WorkDB.Mode.create) as db:
            if not db.num_work_items:
                init([PROJECT / module.path], db, {})
            settled = {job for job, result in db.results if is_settled(module.path, result)}
            items = [item for item in chosen(db, number) if item.job_id not in settled]
            if items and run_tests(f"{python} {tests}", PATIENCE)[0] != TestOutcome.SURVIVED:
                raise SystemExit(f"{module.path}: its tests fail without any mistake.")
            for item in items:
                planted = [
                    evolve(mutation, module_path=place / module.path) for mutation in item.mutations
                ]
                result = mutate_and_test(planted, f"{python} {tests}", PATIENCE)
                db.set_result(item.job_id, result)
                print("." if result.is_killed else "s", end="", flush=True)
        print(f" {module.path}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="make mutants")
    parser.add_argument("--number", type=int, default=0, help="mistakes of each module; 0: all")
    parser.add_argument("--only", default="", help="part of the path of the modules to try")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", action="store_true", help="write the table, try nothing")
    arguments = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    areas = tomllib.loads((Path(__file__).parent / "targets.toml").read_text())["area"]
    if not arguments.report:
        with ThreadPoolExecutor(arguments.processes) as pool:
            for result in [
                pool.submit(try_area, area, arguments.number, arguments.only) for area in areas
            ]:
                result.result()
    found = []
    for area in areas:
        for module in modules(area):
            if module.session.exists():
                with use_db(str(module.session), WorkDB.Mode.open) as db:
                    items = {item.job_id: item.mutations[0] for item in chosen(db, 0)}
                    results = [(items[job], result) for job, result in db.results if job in items]
                    found.append(tried(module.path, len(items), results))
    (PROJECT / "docs/mutants.md").write_text(written(found))


if __name__ == "__main__":
    main()
