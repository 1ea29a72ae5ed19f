"""Few cases in which every two levels of two factors meet, where the rules let them."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

#: The level of a factor that a case has no use for.
NOTHING = "-"
Case = dict[str, str]
Level = tuple[str, str]
Pair = tuple[Level, Level]


class Rule:
    """What must hold of the levels of some factors, which are the names of its parameters unless
    they are given; and whether a case that breaks it is `refused`, or is none.
    """

    def __init__(self, holds: Callable[..., bool], *factors: str, refused: bool = False) -> None:
        self.holds, self.refused = holds, refused
        self.factors = factors or tuple(inspect.signature(holds).parameters)


def needs(
    factor: str, levels: Any, others: dict[str, Any], refused: bool = False, *, met: bool = True
) -> list[Rule]:
    """Where a factor has one of some levels, each other one has one of those here, or none of them
    if they are not `met`; one level may stand for a list of it.
    """
    some, rules = [levels] if isinstance(levels, str) else levels, []
    for other, of in others.items():
        own = [of] if isinstance(of, str) else of
        holds = partial(lambda own, one, two: one not in some or (two in own) is met, own)
        rules.append(Rule(holds, factor, other, refused=refused))
    return rules


never = partial(needs, met=False)


def exactly(factor: str, others: dict[str, list[str]]) -> list[Rule]:
    """Each other factor is of these levels of the first alone."""
    return [
        Rule(lambda one, two, of=of: (one in of) == (two != NOTHING), factor, other)
        for other, of in others.items()
    ]


def pairs_of(case: Case) -> Iterator[Pair]:
    """Every two levels that a case has, of those that it has a use for."""
    return combinations([(name, level) for name, level in case.items() if level != NOTHING], 2)


@cache
def cases_in(path: Path) -> tuple[Case, ...]:
    """The cases of a file, a line for each."""
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    return tuple(dict(zip(head, row, strict=True)) for row in rows)


def write(path: Path, cases: list[Case]) -> None:
    """Write cases to a file, a line for each."""
    lines = [list(cases[0]), *(list(case.values()) for case in cases)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))


@dataclass(frozen=True)
class Factors:
    """The factors of cases, the levels of each, and the rules that a case must keep."""

    levels: dict[str, list[str]]
    rules: list[Rule]

    def pairs(self) -> list[Pair]:
        """Every two levels of two factors, whether or not the rules let them meet."""
        return [
            ((one, first), (other, second))
            for one, other in combinations(self.levels, 2)
            for first in self.levels[one]
            for second in self.levels[other]
            if NOTHING not in (first, second)
        ]

    @cached_property
    def _kept(self) -> list[tuple[tuple[str, ...], frozenset[tuple[str, ...]]]]:
        """Of each rule the factors, and the levels of them that keep it."""
        return [
            (
                rule.factors,
                frozenset(
                    levels
                    for levels in product(*(self.levels[name] for name in rule.factors))
                    if rule.holds(*levels)
                ),
            )
            for rule in self.rules
        ]

    @cached_property
    def _of_factor(self) -> dict[str, list[int]]:
        return {
            name: [at for at, (factors, _) in enumerate(self._kept) if name in factors]
            for name in self.levels
        }

    def _narrowed(self, left: dict[str, list[str]], changed: list[str]) -> bool:
        """Leave out levels that no rule lets stand; False where a factor has none left."""
        while changed:
            for at in self._of_factor[changed.pop()]:
                factors, kept = self._kept[at]
                possible = [
                    levels
                    for levels in product(*(left[name] for name in factors))
                    if levels in kept
                ]
                for place, name in enumerate(factors):
                    stands = {levels[place] for levels in possible}
                    if len(stands) < len(left[name]):
                        left[name] = [level for level in left[name] if level in stands]
                        changed.append(name)
                    if not stands:
                        return False
        return True

    def completed(self, part: Case, worth: Callable[[Case, Level], float]) -> Case | None:
        """A case that keeps the rules, of which a part is given, with a level of the highest worth
        for one factor after the other; None where there is none.
        """
        left = {name: [part[name]] if name in part else of for name, of in self.levels.items()}
        return self._searched(left, list(self.levels), worth)

    def _searched(
        self, left: dict[str, list[str]], changed: list[str], worth: Callable[[Case, Level], float]
    ) -> Case | None:
        left = dict(left)
        if not self._narrowed(left, changed):
            return None
        decided = {name: levels[0] for name, levels in left.items() if len(levels) == 1}
        if len(decided) == len(left):
            return decided
        open_factors = [name for name in left if name not in decided]
        name = max(open_factors, key=lambda of: len(left[of]))
        for level in sorted(left[name], key=lambda of: -worth(decided, (name, of))):
            found = self._searched({**left, name: [level]}, [name], worth)
            if found is not None:
                return {factor: found[factor] for factor in self.levels}
        return None

    def breaking(self, factor: str, seed: int = 1) -> list[Case]:
        """For each rule whose breach is refused, and each level of a factor, a case that breaks
        this rule alone, if there is one.
        """
        cases, rng = [], Random(seed)
        for place, rule in enumerate(self.rules):
            if rule.refused:
                broken = Rule(lambda *levels, of=rule: not of.holds(*levels), *rule.factors)
                others = [*self.rules[:place], broken, *self.rules[place + 1 :]]
                factors = Factors(self.levels, others)
                for level in self.levels[factor]:
                    case = factors.completed(
                        {factor: level}, lambda _, of: rng.random() - (of[1] == NOTHING)
                    )
                    cases += [] if case is None else [case]
        return cases

    def write(self, covering: Path, refusals: Path, factor: str) -> None:
        """Write the cases of `covering` and of `breaking` to files anew."""
        write(covering, self.covering()[0])
        write(refusals, self.breaking(factor))

    def covering(self, seed: int = 1, tried: int = 12) -> tuple[list[Case], list[Pair]]:
        """Cases in which all pairs are that the rules let meet, and the pairs that they do not. Of
        so many beginnings that are `tried`, each case is the one that covers most.
        """
        rng, missing = Random(seed), dict.fromkeys(self.pairs())
        cases: list[Case] = []
        impossible: list[Pair] = []
        place = {name: at for at, name in enumerate(self.levels)}

        def worth(part: Case, level: Level) -> float:
            mine = place[level[0]]
            new = sum(
                ((of, level) if place[of[0]] < mine else (level, of)) in missing
                for of in part.items()
            )
            return new - 1000 * (level[1] == NOTHING) + rng.random()

        while missing:
            some = [next(iter(missing)), *rng.sample(list(missing), min(tried, len(missing)))]
            found = {pair: self.completed(dict(pair), worth) for pair in some}
            for pair, case in found.items():
                if case is None:
                    impossible.append(pair)
                    del missing[pair]
            possible = [case for case in found.values() if case is not None]
            if possible:
                covered = [
                    [pair for pair in pairs_of(case) if pair in missing] for case in possible
                ]
                best = max(range(len(possible)), key=lambda at: len(covered[at]))
                cases.append(possible[best])
                for pair in covered[best]:
                    del missing[pair]
        return cases, impossible
