"""The table of what planted mistakes came to: `docs/research/mutants.md`."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import tomllib
from cosmic_ray.work_item import MutationSpec, WorkResult
from scipy.stats import beta

from tests.mutants.harmless import LEFT_OUT
from tests.mutants.still_there import is_still_there

_HERE = Path(__file__).parent
#: Mistakes that change no result, and those that no test notices: the module, the line as it
#: becomes, and the reason.
REASONS = _HERE / "equivalent.toml"
#: Mistakes that no test noticed when they were first planted, by module; null where that was not
#: kept.
FIRST = _HERE / "first.json"
_ROUNDS = _HERE / "rounds.toml"
_LONG_CODE = 90

_PAGE = """\
# Planted mistakes

What contributors ask of the tests: that they notice a mistake. `make mutants` plants mistakes in
the code that privacy and inference rest on, one at a time, with
[cosmic-ray](https://cosmic-ray.readthedocs.io): an exchanged operator or comparison, a number one
larger or smaller, a negated condition, an empty loop, a missing decorator. `tests/mutants/` says
which tests belong to a module. They are run once with coverage and once more as they are, after
they were collected. Each mistake is then made in a process that is forked from there. It meets the
tests that run its line, the quick ones first, until one fails or they come to {patience:.0f}
seconds. What they leave unnoticed, and an import runs too, they meet again with the mistake in
place from the start. A mistake takes about half a second. A run that is stopped goes on where it
was; what no test noticed is tried again in the next, and everything in a module that has changed.

`make mutants NUMBER=10` tries ten of each module, the same ten in every run, `NUMBER=0` all.

Nothing is planted where no mistake changes what a caller gets:

{left_out}

## This is a sample

{tried} of the {possible} mistakes in {modules} modules were tried, of each module a few at random
and all where it has no more. {equivalent} change nothing and are not counted. The tests notice
{noticed} of the other {judged}, {score}.

That is after tests were written for those that went unnoticed, so it says nothing of the mistakes
that were not tried. Of these speaks what the tests noticed that were written without knowing the
sample: {first} of {of_first}, {first_score}. In brackets is the interval that holds, with
probability 0.95, the probability that a mistake of these kinds is noticed, in a module drawn at
random. Where the table has a dash that was not kept. Of a single module a few mistakes say little.
A module with an asterisk has changed since.

{note}

All tests that are run are among those of `make test`, which takes about four minutes on two cores.
Those that belong to one module, all of them, take at most {seconds:.0f} seconds of the processor.

{missing}
| Sample | Change something | Noticed at first | Noticed then |
|---|--:|--:|--:|
{rounds}

| Module | Mistakes | Tried | Change nothing | Noticed at first | Now | Unnoticed | At first | Now |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
"""


@dataclass(frozen=True)
class Tried:
    """What the mistakes planted in one module came to."""

    module: str
    possible: int
    noticed: int
    at_first: int | None
    equivalent: tuple[tuple[str, str], ...]
    unnoticed: tuple[tuple[str, str], ...]
    changed: bool = False

    @property
    def judged(self) -> int:
        return self.noticed + len(self.unnoticed)

    @property
    def number(self) -> int:
        return self.judged + len(self.equivalent)

    @property
    def row(self) -> str:
        module = self.module.removeprefix("plugins/opendp-bayes-smoothed/")
        at_first = "–" if self.at_first is None else self.at_first
        before = "–" if self.at_first is None else self._share_of(self.at_first)
        return (
            f"| `{module}`{'*' * self.changed} | {self.possible} | {self.number}"
            f" | {len(self.equivalent)}"
            f" | {at_first} | {self.noticed} | {len(self.unnoticed)} | {before} | {self.score} |"
        )

    @property
    def score(self) -> str:
        """The share noticed of those that change something."""
        return self._share_of(self.noticed)

    def _share_of(self, noticed: int) -> str:
        return f"{noticed / self.judged:.0%}" if self.judged else ""


def is_settled(module: str, result: WorkResult) -> bool:
    """Whether a mistake need not be tried again: a test noticed it, or none can."""
    return result.is_killed or (module, _new_line(result.diff or "")) in _reasons("mutant")


def remember(module: str, results: Iterable[tuple[MutationSpec, WorkResult]]) -> None:
    """Keep which mistakes no test noticed when they were first planted."""
    known = _first()
    before = known.get(module, [])
    missed = {_shown(spec, result) for spec, result in results if not result.is_killed}
    if missed and before is not None:
        known[module] = sorted({*before, *missed})
        new = FIRST.with_suffix(".new")  # whoever stops the run leaves the one or the other
        new.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
        new.replace(FIRST)


def tried(
    module: str,
    possible: int,
    results: Iterable[tuple[MutationSpec, WorkResult]],
    *,
    changed: bool,
) -> Tried:
    """Sort the results of a module, `changed` if the mistakes were planted in an earlier text."""
    nothing, reasons, first = _reasons("mutant"), _reasons("unnoticed"), _first().get(module, [])
    noticed, seen, equivalent, unnoticed = 0, 0, [], []
    for spec, result in results:
        line, shown = _new_line(result.diff or ""), _shown(spec, result)
        if not result.is_killed and (module, line) in nothing:
            equivalent.append((shown, nothing[module, line]))
            continue
        seen += shown not in (first or [])
        if result.is_killed:
            noticed += 1
        else:
            unnoticed.append((shown, reasons.get((module, line), "no reason is known")))
    at_first = None if first is None else seen
    return Tried(module, possible, noticed, at_first, tuple(equivalent), tuple(unnoticed), changed)


def written(found: list[Tried], missing: list[str], patience: float, seconds: float) -> str:
    """The page; `missing` are the modules that were not tried, `seconds` what the tests of one take
    at most.
    """
    whole = Tried(
        "all of them",
        sum(each.possible for each in found),
        sum(each.noticed for each in found),
        sum(each.at_first or 0 for each in found),
        tuple(pair for each in found for pair in each.equivalent),
        tuple(pair for each in found for pair in each.unnoticed),
    )
    of_first = sum(each.judged for each in found if each.at_first is not None)
    rounds = tomllib.loads(_ROUNDS.read_text())
    page = _PAGE.format(
        patience=patience,
        seconds=seconds,
        tried=whole.number,
        possible=whole.possible,
        modules=len(found),
        equivalent=len(whole.equivalent),
        judged=whole.judged,
        first=whole.at_first,
        of_first=of_first,
        first_score=_share(whole.at_first or 0, of_first),
        left_out="\n".join(f"- {each};" for each in LEFT_OUT).removesuffix(";") + ".",
        noticed=whole.noticed,
        score=whole.score,
        missing=f"Not in this sample: {', '.join(f'`{each}`' for each in missing)}.\n"
        if missing
        else "",
        note=_wrapped(rounds["note"]),
        rounds="\n".join(_round(each) for each in rounds["round"]),
    )
    rows = [each.row for each in found] + [whole.row.replace("`", "")]
    lists = [
        *_listed("Change nothing", [(e.module, p) for e in found for p in e.equivalent]),
        *_listed("Unnoticed", [(e.module, p) for e in found for p in e.unnoticed]),
    ]
    return page + "\n".join([*rows, *lists]) + "\n"


def _share(noticed: int, judged: int) -> str:
    """The share, with an interval for all mistakes."""
    if not judged:
        return ""
    low, high = beta.interval(0.95, noticed + 0.5, judged - noticed + 0.5)
    return f"{noticed / judged:.0%} ({low:.0%} to {high:.0%})"


def _round(each: dict[str, Any]) -> str:
    after = each.get("after", "–")
    return f"| {each['name']} | {each['judged']} | {each['before']} | {after} |"


def _first() -> dict[str, list[str] | None]:
    return json.loads(FIRST.read_text()) if FIRST.exists() else {}


def _reasons(kind: str) -> dict[tuple[str, str], str]:
    return {
        (entry["module"], entry["line"]): entry["reason"]
        for entry in tomllib.loads(REASONS.read_text()).get(kind, [])
    }


def _listed(title: str, entries: list[tuple[str, tuple[str, str]]]) -> list[str]:
    entries = [each for each in entries if is_still_there(each[0], each[1][0])]
    if not entries:
        return []
    lines = ["", f"## {title}", "", "Mistakes in lines that are still in the code.", ""]
    for module, (line, reason) in entries:
        lines.append(_wrapped(f"- `{Path(module).name}`: `{line}`: {reason}", "  "))
    return lines


def _wrapped(text: str, indent: str = "") -> str:
    """Lines of at most 100 columns, as on every page; only long code is broken, and no line of it
    begins as an item of a list does.
    """

    def held_together(code: re.Match[str]) -> str:
        kept = " (?=[^a-z(])" if len(code[0]) > _LONG_CODE else " "
        return re.sub(kept, "\0", code[0])

    held = re.sub("`.*?`", held_together, text)
    lines = fill(
        held, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def _shown(spec: MutationSpec, result: WorkResult) -> str:
    return f"{_new_line(result.diff or '')}  # {spec.operator_name.removeprefix('core/')}"


def _new_line(diff: str) -> str:
    """The line that the mistake makes, or the one that it removes."""
    lines = diff.splitlines()[2:]
    for sign in "+-":
        for line in lines:
            if line.startswith(sign) and not line.startswith(sign * 3) and line[1:].strip():
                return line[1:].strip()
    return ""
