"""Random cases for `test_end_to_end.py`: a frame, what one unit can change in it, a plan, a budget
and a question; and the true loss between two data sets, by definitions that share no code with the
package.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from scipy.special import gammaln

import opendp_bayes as ob
from tests.helpers.oracles import data_sets, smooth_sensitivities

LABELS = ("a", "b", "c")
#: Frames are small, so that every release of an exponential mechanism can be listed.
LARGEST = 6
#: Draws of K-norm noise that are summed; where there are more, only their ratios are looked at.
_LARGEST_GRID = 2e5
Row = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A privacy unit: what OpenDP is told, and a random step to a data set that it may become."""

    stated: dict[str, Any]
    public_size: bool
    step: Callable[[list[Row], Random], list[Row]]
    rows_kept: int | None = None

    @property
    def truncates(self) -> bool:
        return self.rows_kept is not None


@dataclass(frozen=True)
class Question:
    """What is asked of one column, after a plan."""

    column: str
    plan: Callable[[Any], Any]
    asked: dict[str, Any]

    @property
    def size(self) -> int | None:
        return self.asked.get("size")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The categories and the buckets that the policy adds."""
        extra = [self.asked[name] for name in ("nulls", "unknown") if name in self.asked]
        return tuple(dict.fromkeys([*(self.asked.get("categories") or LABELS), *extra]))

    @property
    def prior(self) -> list[float]:
        prior = self.asked["prior"]
        return prior if isinstance(prior, list) else [prior] * len(self.labels)


@dataclass(frozen=True)
class Case:
    """Questions to one Context, which share its budget."""

    rows: list[Row]
    unit: Unit
    loss: dict[str, float]
    questions: list[Question]


def frame(rows: list[Row]) -> pl.LazyFrame:
    schema = {"enum": pl.Enum(LABELS), "text": pl.String, "number": pl.Int64, "bit": pl.Boolean}
    schema |= {"g": pl.Int64, "id": pl.Int64}
    return pl.LazyFrame(rows, schema=schema)


def random_row(random: Random) -> Row:
    return {
        "enum": random.choice((*LABELS, None)),
        "text": random.choice((*LABELS, None, "z", "A", "")),
        "number": random.choice((0, 1, 2, 7, None)),
        "bit": random.choice((True, False, None)),
        "g": random.randrange(3),
        "id": random.randrange(4),
    }


def changes(number: int) -> Unit:
    def step(rows: list[Row], random: Random) -> list[Row]:
        rows = list(rows)
        for place in random.sample(range(len(rows)), min(number, len(rows))):
            rows[place] = random_row(random)
        return rows

    return Unit({"changes": number}, True, step)


def contributions(number: int) -> Unit:
    def step(rows: list[Row], random: Random) -> list[Row]:
        rows = list(rows)
        for _ in range(number):
            if rows and random.random() < 0.5:
                rows.pop(random.randrange(len(rows)))
            else:
                rows.append(random_row(random))
        return rows

    return Unit({"contributions": number}, False, step)


def bounds(groups: int) -> Unit:
    """At most one row in each of so many groups."""

    def step(rows: list[Row], random: Random) -> list[Row]:
        rows = list(rows)
        for group in random.sample(range(3), groups):
            own = [place for place, row in enumerate(rows) if row["g"] == group]
            if own and random.random() < 0.5:
                rows.pop(random.choice(own))
            else:
                rows.append({**random_row(random), "g": group})
        return rows

    stated = [
        dp.polars.Bound(per_group=5),
        dp.polars.Bound(by=["g"], per_group=1, num_groups=groups),
    ]
    return Unit({"contributions": stated}, False, step)


def people(number: int, kept: int, *, changed: bool) -> Unit:
    """Everything of so many identifiers; where one is `changed`, it has other rows."""

    def step(rows: list[Row], random: Random) -> list[Row]:
        for person in random.sample(range(4), number):
            others = [row for row in rows if row["id"] != person]
            own = [{**random_row(random), "id": person} for _ in range(random.randrange(4))]
            has = len(others) < len(rows)
            rows = others + own if changed or not has else others
        return rows

    kind = "changes" if changed else "contributions"
    return Unit({kind: number, "identifier": "id"}, False, step, kept)


def random_unit(random: Random) -> Unit:
    units = [(changes, random.choice((1, 1, 2, 3))), (changes, 1)]
    units += [(contributions, random.choice((1, 1, 2, 4))), (bounds, random.choice((1, 2, 3)))]
    every = [kind(number) for kind, number in units]
    every.append(people(random.choice((1, 2)), random.choice((1, 2)), changed=False))
    return random.choice([*every, people(1, random.choice((1, 2)), changed=True)])


def random_loss(random: Random) -> dict[str, float]:
    epsilon, rho = math.exp(random.uniform(-3, 1.5)), math.exp(random.uniform(-6, 0.5))
    delta = random.choice((1e-3, 1e-6, 1e-9))
    pure = [{"epsilon": epsilon}, {"rho": rho}]
    return random.choice([*pure, *({**loss, "delta": delta} for loss in pure)])


def random_column(random: Random) -> tuple[str, dict[str, Any]]:
    """A column and the policy that it needs."""
    column = random.choice(("enum", "text", "number", "bit"))
    categories: dict[str, list[Any] | None] = {"enum": None, "text": list(LABELS)}
    categories |= {"number": [0, 1], "bit": [False, True]}
    asked: dict[str, Any] = {}
    if (own := categories[column]) is not None:
        asked["categories"] = own
    known = own or list(LABELS)
    new = {"text": "other", "enum": "other"}.get(column, -9)
    asked["nulls"] = random.choice((known[0], new)) if column != "bit" else known[0]
    if column in ("text", "number"):
        asked["unknown"] = random.choice((known[-1], new))
    return column, asked


def random_case(seed: int, questions: dict[int, int]) -> Case:
    """A case with `questions` for a loss of one number and for one of two."""
    random = Random(seed)
    unit, loss = random_unit(random), random_loss(random)
    rows = [random_row(random) for _ in range(random.randrange(1, LARGEST + 1))]
    asked = [random_question(random, unit, len(rows)) for _ in range(questions[len(loss)])]
    return Case(rows, unit, loss, asked)


def random_question(random: Random, unit: Unit, size: int) -> Question:
    filtered, swapped = random.random() < 0.3, random.random() < 0.3

    def plan(query: Any) -> Any:
        if unit.truncates:  # by a rule that is the same at every run
            query = query.truncate_per_group(unit.rows_kept, keep="first")
        if filtered:
            query = query.filter(pl.col("g") > 0)
        if swapped:
            query = query.with_columns(bit=pl.col("bit").not_())
        return query

    column, asked = random_column(random)
    public = unit.public_size and not filtered
    if public:
        asked["size"] = size
    k = len(Question(column, plan, asked).labels)
    asked["prior"] = random.choice((1.0, 0.5, [0.5, *[1.0] * (k - 1)]))
    return Question(column, plan, asked | random_mechanism(random, public))


def random_mechanism(random: Random, public: bool) -> dict[str, Any]:
    noise = random.choice(("discrete", "floored"))
    if not public:
        named = {"mechanism": "laplace_parameters", "noise": noise, "total": "private"}
        return random.choice([{}, named])
    options: list[dict[str, Any]] = [
        {},
        {"mechanism": "knorm_parameters"},
        {"mechanism": "hellinger_exponential"},
        {"mechanism": "smooth_hellinger_exponential", "gamma": random.choice((0.2, 1.0))},
    ]
    options += [
        {"mechanism": "laplace_parameters", "noise": noise, "total": total}
        for total in ("remainder", "truncated", "bounded")
    ]
    return random.choice(options)


# The true loss between two data sets.
def log_ratios(mechanism: Any, first: Any, second: Any, prior: Any) -> tuple[Any, Any, bool]:
    """Log-probabilities of what can be drawn of two histograms, and whether that is all."""
    if isinstance(mechanism, ob.LaplaceParameters):
        return *_laplace(mechanism, first, second), True
    if isinstance(mechanism, ob.GaussianParameters):
        return _gaussian(mechanism.scale, first, second)
    if isinstance(mechanism, ob.KNormParameters):
        reach = math.ceil(45 * mechanism.scale) + LARGEST
        whole = (2 * reach + 1) ** (len(first) - 1) <= _LARGEST_GRID
        return *_knorm(mechanism, first, second, reach if whole else LARGEST), whole
    return _exponential(mechanism, first, prior), _exponential(mechanism, second, prior), True


def log_sum(logs: Any) -> Any:
    """Of exponentials, over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]


def _laplace(mechanism: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """By counts that differ, and each by its sign at far draws: two tails and between."""
    noised = slice(None, -1 if mechanism.total in ("remainder", "truncated") else None)
    logs = (np.zeros(1), np.zeros(1))
    for a, b in zip(first[noised], second[noised], strict=True):
        if a != b:
            draws = np.arange(min(a, b) - 2, max(a, b) + 3)
            own = [_laplace_cells(mechanism, draws - centre) for centre in (a, b)]
            logs = tuple(
                (log[:, None] + cells[None]).ravel() for log, cells in zip(logs, own, strict=True)
            )
    return logs


def _gaussian(scale: float, first: Any, second: Any) -> tuple[Any, Any, bool]:
    """By counts that differ; draws beyond 9 deviations, below 1e-18, can only lower a loss."""
    moved = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    reach = math.ceil(9 * scale) + LARGEST
    if (2 * reach + LARGEST) ** len(moved) > 10 * _LARGEST_GRID:
        return np.zeros(1), np.zeros(1), False
    logs = np.zeros(1), np.zeros(1)
    for a, b in moved:
        draws = np.arange(min(a, b) - reach, max(a, b) + reach + 1)
        own = [-((draws - centre) ** 2) / (2 * scale**2) for centre in (a, b)]
        own = [cells - log_sum(cells) for cells in own]
        logs = tuple(
            (log[:, None] + cells[None]).ravel() for log, cells in zip(logs, own, strict=True)
        )
    return *logs, True


def _laplace_cells(mechanism: Any, steps: Any) -> Any:
    """Log-probabilities of noise at consecutive steps, the first and the last with all beyond."""
    scale = mechanism.scale
    away = (
        np.abs(steps) if mechanism.noise == "discrete" else np.where(steps < 0, -steps - 1, steps)
    )
    top = -np.expm1(-1 / scale)
    whole = 2 / (1 + math.exp(-1 / scale)) if mechanism.noise == "discrete" else 1.0
    logs = -away / scale + math.log(top / 2 * whole)
    # The tail from a step on is a geometric series.
    logs[[0, -1]] -= math.log(top)
    return logs


def _knorm(mechanism: Any, first: Any, second: Any, reach: int) -> tuple[Any, Any]:
    """Draws with the sum of the data set, to `reach` steps from the first; the ratio depends on
    where a draw lies between the two data sets, so farther ones add no other.
    """
    k = len(first)
    grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * (k - 1)), axis=-1)
    near = first[:-1] + grid.reshape(-1, k - 1)
    draws = np.column_stack([near, sum(first) - near.sum(axis=1)])
    return tuple(
        -np.abs(draws - centre).sum(axis=1) / 2 / mechanism.scale for centre in (first, second)
    )


def _exponential(mechanism: Any, counts: Any, prior: Any) -> Any:
    sets, distance, smooth = _table(sum(counts), tuple(prior), getattr(mechanism, "gamma", None))
    place = sets.index(tuple(counts))
    logs = -distance[place] / (mechanism.scale * smooth[place])
    return logs - log_sum(logs)


@lru_cache(maxsize=256)
def _table(size: int, prior: tuple[float, ...], gamma: float | None) -> tuple[Any, Any, Any]:
    """All data sets, their Hellinger distances, and their smooth sensitivities (1 without γ)."""
    sets = data_sets(size, len(prior))
    laws = np.array(sets) + np.array(prior)
    # -ln BC: the totals of all laws are the same, and cancel.
    own, between = gammaln(laws), gammaln((laws[:, None] + laws) / 2)
    divergence = ((own[:, None] + own) / 2 - between).sum(axis=2)
    distance = np.sqrt(-np.expm1(-np.maximum(divergence, 0.0)))
    smooth = np.ones(len(sets)) if gamma is None else smooth_sensitivities(size, prior, gamma=gamma)
    return sets, distance, smooth
