"""Plant the mistakes of a module, one at a time, and keep what its tests came to."""

import hashlib
import random
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutants.covering import Covered
from tests.mutants.harmless import Places
from tests.mutants.report import is_settled
from tests.mutants.running import PROJECT, Copy

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


_SEED = 1
#: So many of each module were planted before the sessions that are kept, and tests written for
#: them: they come last, that the others speak of mistakes for which no test was written.
_KNOWN = 26
#: Seconds, of the processor, of the tests that are run with one mistake; their own if it is more.
PATIENCE = 10.0


@dataclass(frozen=True)
class Module:
    """A module to mutate."""

    path: str

    @property
    def session(self) -> Path:
        """The record of what was tried with this text."""
        return KEPT / f"{self._name}-{_digest([self.path])}.sqlite"

    @property
    def latest(self) -> Path | None:
        """The same, or else the last one of another text."""
        if self.session.exists():
            return self.session
        others = KEPT.glob(f"{self._name}-*.sqlite")
        return max(others, key=lambda place: place.stat().st_mtime, default=None)

    @property
    def _name(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".")


def chosen(db: WorkDB, number: int, source: str) -> list[WorkItem]:
    """The first `number` mistakes of a module in a random order that is always the same, 0 for all
    but those at places of this text where none matters.
    """
    items = [item for item in db.work_items if item.mutations[0].operator_name in OPERATORS]
    items.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(_SEED).shuffle(items)
    items = items[_KNOWN:] + items[:_KNOWN]
    places = Places(source)
    specified = [(item, item.mutations[0]) for item in items]
    matter = [item for item, at in specified if (at.start_pos, at.end_pos) not in places]
    return matter[:number] if number else matter


def recorded(area: dict[str, Any]) -> dict[str, Path]:
    """Where it is kept which tests of each file run which lines of an area, for these texts."""
    names = {file: _digest([*area["modules"], file]) for file in area["tests"]}
    return {file: KEPT / f"{area['name']}-{name}.json" for file, name in names.items()}


@cache
def _copy() -> Copy:
    return Copy(KEPT / f"copy-{current_process().name}")


def try_area(area: dict[str, Any], number: int, only: str) -> None:
    """Try `number` mistakes of each module of an area, all for 0."""
    kept = recorded(area)
    new = {file: path.with_suffix(".new") for file, path in kept.items() if not path.exists()}
    if new:
        _copy().record(area["modules"], new)
    for file, path in new.items():  # from now on it is trusted, also by a run after this one
        path.rename(kept[file])
    covered = Covered.read(kept.values())
    for module in map(Module, area["modules"]):
        if only not in module.path:
            continue
        with use_db(str(module.session), WorkDB.Mode.create) as db:
            if not db.num_work_items:
                init([PROJECT / module.path], db, {})
            settled = {job for job, result in db.results if is_settled(module.path, result)}
            for item in chosen(db, number, (PROJECT / module.path).read_text()):
                if item.job_id not in settled:
                    result = planted(_copy(), module, item, covered)
                    db.set_result(item.job_id, result)
                    print("." if result.is_killed else "s", end="", flush=True)
        print(f" {module.path}", flush=True)


def planted(copy: Copy, module: Module, item: WorkItem, covered: Covered) -> WorkResult:
    """What the tests that meet a mistake come to with it. One that none meets goes unnoticed."""
    (mutation,) = item.mutations
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    source = (PROJECT / module.path).read_text()
    tests = covered.tests(module.path, source, mutation.start_pos[0], PATIENCE)
    with use_mutation(copy.place / module.path, operator, mutation.occurrence) as (before, after):
        outcome, printed = TestOutcome.SURVIVED, "no test runs this line"
        if tests:
            outcome, printed = copy.run(tests, covered.seconds)
    lines = unified_diff(before.split("\n"), after.split("\n"), "before", "after", lineterm="")
    diff = "\n".join(lines)
    return WorkResult(WorkerOutcome.NORMAL, printed, outcome, diff)


def _digest(paths: list[str]) -> str:
    texts = b"\0".join((PROJECT / path).read_bytes() for path in paths)
    return hashlib.sha256(texts).hexdigest()[:16]
