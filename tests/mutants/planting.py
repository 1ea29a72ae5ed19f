"""Plant the mistakes of a module, one at a time, and keep what its tests came to."""

import hashlib
import random
import time
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

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
        own = [test for test in area["tests"] if test.endswith(f"/test_{Path(path).name}")]
        found.append(Module(path, tuple(dict.fromkeys([*own, *area["tests"]]))))
    return found


def chosen(db: WorkDB, number: int) -> list[WorkItem]:
    """The first `number` mistakes of a module in a random order that is always the same."""
    items = [item for item in db.work_items if item.mutations[0].operator_name in OPERATORS]
    items.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(0).shuffle(items)
    return items[:number] if number else items


def try_area(area: dict[str, Any], number: int, only: str) -> None:
    """Try `number` mistakes of each module of an area, all for 0."""
    copy, patience = Copy(KEPT / f"copy-{area['name']}"), 0.0
    for module in modules(area):
        if only not in module.path:
            continue
        with use_db(str(module.session), WorkDB.Mode.create) as db:
            if not db.num_work_items:
                init([PROJECT / module.path], db, {})
            settled = {job for job, result in db.results if is_settled(module.path, result)}
            items = [item for item in chosen(db, number) if item.job_id not in settled]
            if items and not patience:
                patience = patience_with(copy, module)
            for item in items:
                result = planted(copy, module, item, patience)
                db.set_result(item.job_id, result)
                print("." if result.is_killed else "s", end="", flush=True)
        print(f" {module.path}", flush=True)


def patience_with(copy: Copy, module: Module) -> float:
    """Seconds to wait for the tests of an area, many times those that they take."""
    start = time.monotonic()
    outcome, printed = copy.run(module.tests, 3600.0)
    if outcome != TestOutcome.SURVIVED:
        raise SystemExit(f"{module.path}: its tests fail without any mistake.\n{printed}")
    return 60 + 5 * (time.monotonic() - start)


def planted(copy: Copy, module: Module, item: WorkItem, patience: float) -> WorkResult:
    """What the tests come to with a mistake."""
    (mutation,) = item.mutations
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    place = copy.place / module.path
    with use_mutation(place, operator, mutation.occurrence) as (before, after):
        outcome, printed = copy.run(module.tests, patience)
    lines = unified_diff(before.split("\n"), after.split("\n"), "before", "after", lineterm="")
    diff = "\n".join(lines)
    return WorkResult(WorkerOutcome.NORMAL, printed, outcome, diff)
