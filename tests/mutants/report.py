"""The table of what planted mistakes came to, `.mutants/report.md`."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tomllib
from cosmic_ray.work_item import MutationSpec, WorkResult

#: Mistakes that change no result, and those that no test notices: the module, the line as it
#: becomes, and the reason.
REASONS = Path(__file__).parent / "equivalent.toml"


@dataclass(frozen=True)
class Tried:
    """What the mistakes planted in one module came to."""

    module: str
    possible: int
    noticed: int
    equivalent: int
    unnoticed: tuple[str, ...]
    changed: bool = False

    @property
    def row(self) -> str:
        judged = self.noticed + len(self.unnoticed)
        return (
            f"| {self.module}{'*' * self.changed} | {self.possible} | {judged + self.equivalent}"
            f" | {self.equivalent} | {self.noticed} | {len(self.unnoticed)} |"
        )


def is_settled(module: str, result: WorkResult) -> bool:
    """Whether a mistake need not be tried again: a test noticed it, or none can."""
    return result.is_killed or (module, _new_line(result.diff or "")) in _reasons("mutant")


def tried(
    module: str, possible: int, results: Iterable[tuple[MutationSpec, WorkResult]], *, changed: bool
) -> Tried:
    """Sort the results of a module, `changed` if the mistakes were planted in an earlier text."""
    noticed, equivalent, unnoticed = 0, 0, []
    for spec, result in results:
        line = _new_line(result.diff or "")
        if result.is_killed:
            noticed += 1
        elif is_settled(module, result):
            equivalent += 1
        else:
            reason = _reasons("unnoticed").get((module, line), "no reason is known")
            operator = spec.operator_name.removeprefix("core/")
            unnoticed.append(f"`{line}` ({operator}): {reason}")
    return Tried(module, possible, noticed, equivalent, tuple(unnoticed), changed)


def written(modules: list[Tried], missing: list[str]) -> str:
    """The report; `missing` are the modules that were not tried."""
    whole = Tried(
        "all of them",
        sum(one.possible for one in modules),
        sum(one.noticed for one in modules),
        sum(one.equivalent for one in modules),
        tuple(line for one in modules for line in one.unnoticed),
    )
    lines = [
        "# Planted mistakes",
        "",
        "A module with an asterisk has changed since.",
        "",
        "| Module | Mistakes | Tried | Change nothing | Noticed | Unnoticed |",
        "|---|--:|--:|--:|--:|--:|",
        *(one.row for one in [*modules, whole]),
        "",
        *(f"- {one.module}: {line}" for one in modules for line in one.unnoticed),
        *(f"- not tried: {module}" for module in missing),
    ]
    return "\n".join(lines) + "\n"


@cache
def _reasons(kind: str) -> dict[tuple[str, str], str]:
    return {
        (entry["module"], entry["line"]): entry["reason"]
        for entry in tomllib.loads(REASONS.read_text()).get(kind, [])
    }


def _new_line(diff: str) -> str:
    """The line that the mistake makes, or the one that it removes."""
    lines = diff.splitlines()[2:]
    for sign in "+-":
        for line in lines:
            if line.startswith(sign) and not line.startswith(sign * 3) and line[1:].strip():
                return line[1:].strip()
    return ""
