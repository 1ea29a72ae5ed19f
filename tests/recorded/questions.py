"""Questions of random columns, units, losses, steps and options, a fifth of them out of place."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob
import opendp_bayes_engines as engines
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.unlisted import Discovery, LaplaceThreshold
from tests.helpers.recorded import Answers, Rng, one

_N = 360
TOWNS, AGES, GRADES = ["x", "y", "z"], [3, 1, 2, 7], ["low", "mid", "top"]
#: Of 90 people, whose rows are all the same, so that it does not matter which are taken.
_PEOPLE = [n // 4 for n in range(_N)]
_COLUMNS: dict[str, Any] = {
    "person": _PEOPLE,
    "town": [["x", "y", "z", None, "w", "x"][n * n % 6] for n in _PEOPLE],
    "age": [[1, 2, 3, None, 9, 7, 1][n * 5 % 7] for n in _PEOPLE],
    "sick": [[True, False, None][n % 3 if n % 4 else 1] for n in _PEOPLE],
    "day": [date(2026, 1, 1 + n % 5) for n in _PEOPLE],
}
ROWS = pl.DataFrame(_COLUMNS).with_columns(
    grade=pl.Series([GRADES[n % 7 % 3] for n in _PEOPLE], dtype=pl.Enum(GRADES)),
    kind=pl.Series([["p", "q"][n % 11 % 2] for n in _PEOPLE], dtype=pl.Categorical),
)
CATEGORIES: dict[str, Any] = {
    "town": TOWNS,
    "age": AGES,
    "sick": [True, False],
    "grade": GRADES,
    "kind": ["q", "p"],
}


def is_odd(rng: Rng) -> bool:
    return bool(rng.random() < 0.03)


UNITS: list[dict[str, Any]] = [
    {"contributions": 1},
    {"contributions": 3},
    {"changes": 1},
    {"changes": 2},
    {"contributions": 1, "identifier": "person"},
    {"contributions": 2, "identifier": "person"},
]
LOSSES: list[dict[str, float]] = [
    {"epsilon": 2.0},
    {"epsilon": 2.0, "delta": 1e-5},
    {"rho": 0.3},
    {"rho": 0.3, "delta": 1e-5},
]
STEPS: list[Callable[[Any], Any]] = [
    lambda query: query.filter(pl.col("age") > 1),
    lambda query: query.filter((pl.col("town") == "x") | pl.col("sick")),
    lambda query: query.with_columns(pl.col("age").fill_null(2)),
    lambda query: query.with_columns(pl.col("sick").fill_null(False)),
    lambda query: query.with_columns(town=pl.col("grade").cast(pl.String)),
    lambda query: query.with_columns(
        pl.col("age").replace_strict({1: 3, 9: 7}, default=1, return_dtype=pl.Int64)
    ),
    lambda query: query.select("person", "town", "age", "sick", "grade"),
]


def policies(rng: Rng, columns: list[str], categories: dict[str, Any], drop: bool) -> Any:
    """Where nulls, or unknown values, are counted."""
    left_out = [ob.DROP, ob.DROP] if drop or is_odd(rng) else []
    labels = {column: one(rng, [*left_out, *categories[column]]) for column in columns}
    if is_odd(rng):
        return one(rng, ["nowhere", 3.5, {"elsewhere": "x"}])
    return labels if len(columns) > 1 or rng.random() < 0.3 else labels[columns[0]]


def prior_of(rng: Rng, cells: int) -> Any:
    if is_odd(rng):
        return one(rng, [-1.0, "unknown", [1.0] * (cells + 1), np.nan])
    return one(rng, ["auto", 0.5, 1.0, (np.arange(cells) + 0.5).tolist(), "learned", [1.0] * cells])


#: For private and for public numbers of records; the last are of too small a scale.
PRIVATE: list[Any] = [
    *("auto", "auto", "laplace_parameters", "gaussian_parameters"),
    *(ob.LaplaceParameters(40.0, total="private"), ob.GaussianParameters(40.0, total="private")),
    *(ob.LaplaceParameters(40.0, "floored", "private"), ob.LaplaceParameters(0.1, total="private")),
]
PUBLIC: list[Any] = [
    *("auto", "auto", "laplace_parameters", "gaussian_parameters", "knorm_parameters"),
    *("hellinger_exponential", "smooth_hellinger_exponential", "permute_and_flip"),
    *(ob.LaplaceParameters(40.0, noise="floored"), ob.KNormParameters(60.0)),
    *(ob.LaplaceParameters(30.0, total="bounded"), ob.GaussianParameters(30.0)),
    *(ob.mechanisms.PermuteAndFlip(40.0), ob.mechanisms.HellingerExponential(30.0)),
]


def arguments(rng: Rng, names: list[str], size: int | None) -> dict[str, Any]:
    """Those of a question of one or several columns, or of groups."""
    number = int(one(rng, [1, 1, 1, 2, 2, 3]))
    columns = rng.permutation(names)[:number].tolist()
    by = one(rng, [None, None, one(rng, names)])
    by = None if by in columns and not is_odd(rng) else by
    named = [*columns, *([by] if by else [])]
    categories = {name: list(CATEGORIES[name]) for name in named}
    for name in named:
        if rng.random() < 0.2:
            categories[name] = categories[name][::-1]
        if rng.random() < 0.1:
            categories[name] = categories[name][:-1]
    found: dict[str, Any] = {"column": columns[0] if number == 1 else columns}
    found |= {"by": by} if by else {}
    if is_odd(rng):
        categories[named[0]] = one(rng, [[], ["x", "x"], "xyz", ["x", 3]])
    stated = {name: of for name, of in categories.items() if name != "grade" or rng.random() < 0.7}
    if stated and rng.random() < 0.95:
        alone = len(named) == 1 and rng.random() < 0.8
        found["categories"] = stated[named[0]] if alone else stated
    for policy in ("nulls", "unknown"):
        if rng.random() < 0.97:
            found[policy] = policies(rng, named, categories, size is None)
    if rng.random() < 0.2 and "town" in named:
        found["recode"] = {"w": "x"} if len(named) == 1 else {"town": {"w": "x"}}
    cells = int(np.prod([len(categories[name]) for name in columns]))
    if rng.random() < 0.5:
        found["prior"] = prior_of(rng, cells)
    if rng.random() < 0.2:
        found |= {"prior": "learned"} if not is_odd(rng) else {}
        found["ordered"] = ["elsewhere"] if is_odd(rng) else one(rng, [[columns[-1]], []])
    if size is not None or is_odd(rng):
        found["size"] = one(rng, [_N, _N, _N, size, 0]) if is_odd(rng) else size
    found["mechanism"] = one(rng, PRIVATE if (size is None) ^ is_odd(rng) else PUBLIC)
    if rng.random() < 0.05:
        found |= one(
            rng, [{"total": "private"}, {"noise": "floored"}, {"gamma": 1.0}, {"scale": 1}]
        )
    return found


def posterior(rng: Rng, query: Any, names: list[str], size: int | None) -> Any:
    return ob.posterior(query, **arguments(rng, names, size))


def survey(rng: Rng, query: Any, names: list[str], size: int | None) -> Any:
    questions = {f"q{n}": arguments(rng, names, size) for n in range(int(rng.integers(1, 4)))}
    for question in questions.values():
        if rng.random() < 0.5:
            question["share"] = float(rng.integers(1, 4))
        question["mechanism"] = "auto"
    if rng.random() < 0.4:
        of = {"column": "age", "categories": AGES, "unknown": 1, "nulls": ob.DROP}
        merged = {"few": [3, 1], "many": [2, 7]}
        questions |= {"merged": of | {"merge": merged}, "whole": of | {"share": 2.0}}
    return ob.survey(query, questions)


def levels(rng: Rng, query: Any, names: list[str], size: int | None) -> Any:
    merges = one(rng, [None, {"few": {"a": [3, 1], "b": [2, 7]}}])
    how = {"branching": 2} if merges is None else {"merges": merges}
    budget = one(rng, ["epsilon", "rho"])
    of = {"unknown": 1, "nulls": one(rng, [1, ob.DROP])} | ({} if size is None else {"size": size})
    return ob.survey(query, ob.levels("age", AGES, **how, budget=budget, **of))


def discover(rng: Rng, query: Any, names: list[str], size: int | None) -> Any:
    column = one(rng, [name for name in names if name not in ("sick", "grade")] + ["day"])
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        always = CATEGORIES.get(column, ["2026-01-01", "2026-05-01"])[:2]
        options["always"] = one(rng, [["x"], [True]]) if is_odd(rng) else always
    if rng.random() < 0.95:
        nulls = [ob.DROP, *CATEGORIES.get(column, ["2026-01-01"])[:1]]
        options["nulls"] = one(rng, nulls[1:] if size is not None else nulls)
    if rng.random() < 0.3:
        laws = ["laplace_threshold", "gaussian_threshold", "optimal_threshold"]
        options["mechanism"] = one(rng, [*laws, Discovery(LaplaceThreshold(20.0, 300))])
    if rng.random() < 0.4 and isinstance(options.get("mechanism", ""), str):
        options["rest"] = 0.2
    return ob.discover(query, column, **options)


DOORS: list[Callable[[Rng, Any, list[str], int | None], Any]] = [
    posterior, posterior, posterior, survey, survey, levels, discover, discover,
]  # fmt: skip


def entered(entry: Any) -> list[Any]:
    """What is entered of a query but for the time."""
    return [entry.state, str(entry.loss)]


def asked(seed: int, folder: Path) -> Answers:
    """What is stated before and after a release with noise that is drawn from a seed."""
    rng = np.random.default_rng(seed)
    door, of_engine = one(rng, DOORS), rng.random() < 0.25
    unit = one(rng, [of for of in UNITS if door is not discover or "changes" not in of])
    loss = one(rng, [of for of in LOSSES if door is not discover or "delta" in of])
    size = _N if ("changes" in unit) ^ is_odd(rng) else None
    names = [name for name in CATEGORIES if not (of_engine and name in ("grade", "kind"))]
    if is_odd(rng):
        unit = {**unit, "identifier": "nobody"}
    total = {"rho" if "rho" in loss else "epsilon": 9.0}
    book = ob.Ledger(folder / f"{seed}.ledger", **total, delta=0.1)
    query = []

    def opened() -> Any:
        make: Any = engines.context if of_engine else ob.context
        rows = duckdb.from_arrow(ROWS.drop("grade", "kind").to_arrow()) if of_engine else ROWS
        context = make(
            rows.lazy() if isinstance(rows, pl.DataFrame) else rows,
            privacy_unit=dp.unit_of(**unit),
            privacy_loss=dp.loss_of(**loss),
            split_evenly_over=2,
            ledger=book,
        )
        plan = context.query()
        for step in rng.permutation(len(STEPS))[: int(rng.integers(0, 3))]:
            if not of_engine:
                plan = STEPS[step](plan)
        if "identifier" in unit and not is_odd(rng):
            keep = {} if of_engine or rng.random() < 0.7 else {"keep": "first"}
            plan = plan.truncate_per_group(int(one(rng, [1, 2])), **keep)
        found = door(rng, plan, names, size)
        query.append((context, found))
        return found.summarize()

    yield "question", opened
    if not query:
        return
    context, question = query[0]
    yield "map", lambda: [question.resolve().map(n * context.d_in) for n in (1, 2)]
    result: list[Any] = []

    def released() -> Any:
        result.append(question.release())
        return result[0].to_json()

    yield "release", released
    yield "spent", lambda: [context.current_privacy_loss(), *map(entered, book.account.entries)]
    if not result:
        return
    yield "loss", lambda: [result[0].loss, result[0].guarantee if hasattr(result[0], "k") else 0]
    if door is posterior:
        yield "estimates", result[0].to_frame
        if isinstance(result[0], GroupedRelease):
            yield "group", lambda: str(next(iter(result[0].values())))
    yield "printed", lambda: str(result[0])
