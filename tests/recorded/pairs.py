"""Questions in which every two of their features meet: the cases of `pairs.txt`, a line for each.

`python -m tests.recorded.pairs` writes them anew after a change of `factors`.
"""

from collections.abc import Callable
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import opendp.prelude as dp
import polars as pl
from opendp.extras.polars import Bound, Margin

import opendp_bayes as ob
import opendp_bayes_engines as engines
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.trusted.spaces import groups_and_labels
from opendp_bayes.unlisted import Discovery, LaplaceThreshold
from tests.helpers.covering_array import NOTHING, Case, cases_in
from tests.helpers.recorded import Answers
from tests.recorded.asked import answers_of
from tests.recorded.factors import BY_HAND, FACTORS, GROUPS, TABLES

_FOLDER = Path(__file__).parent
_N = 24
#: Of 6 people, whose rows are alike but for their turn.
_PEOPLE = [n // 4 for n in range(_N)]
COLUMNS = {"Boolean": "sick", "Int64": "age", "UInt8": "small", "String": "town"}
COLUMNS |= {"Enum": "grade", "Categorical": "kind", "Date": "day"}
LABELS: dict[str, list[Any]] = {"sick": [True, False], "age": [3, 1, 2], "small": [0, 2, 1]}
LABELS |= {"town": ["x", "y", "z"], "grade": ["low", "mid", "top"], "kind": ["q", "p", "s"]}
LABELS |= {"day": ["2026-01-01", "2026-01-02", "2026-01-03"], "half": [True, False]}


def _column(pattern: list[Any]) -> list[Any]:
    return [pattern[n * 5 % len(pattern)] for n in _PEOPLE]


def _rows() -> pl.DataFrame:
    grades, kinds = _column(["low", "mid", "top", None, "low"]), _column(["p", "q", "r", None, "s"])
    return pl.DataFrame(
        {
            "person": _PEOPLE,
            "turn": [n % 4 for n in range(_N)],
            "half": [n % 3 == 0 for n in _PEOPLE],
            "sick": _column([True, False, None, True, True, False, True]),
            "age": _column([1, 2, 3, None, 9, 3, 1]),
            "small": pl.Series(_column([0, 1, 2, None, 1, 0, 7]), dtype=pl.UInt8),
            "town": _column(["x", "y", "z", None, "w", "x"]),
            "day": _column([date(2026, 1, 1 + n) for n in range(5)] + [None]),
            "grade": pl.Series(grades, dtype=pl.Enum(LABELS["grade"])),
            "kind": pl.Series(kinds, dtype=pl.Categorical),
        }
    )


ROWS = _rows()


def _unit(case: Case) -> Any:
    number, of = int(case["unit"][0]) if case["unit"] != "Bounds" else 0, case["unit"]
    if of == "Bounds":
        return dp.unit_of(contributions=[Bound(by=["town"], per_group=2, num_groups=2)])
    if "change" in of:
        return dp.unit_of(changes=number)
    identifier = {"identifier": "person"} if "pe" in of else {}
    return dp.unit_of(contributions=number, **identifier)


def _loss(case: Case, times: float = 1.0) -> dict[str, float]:
    delta = {"delta": 1e-6 * times} if case["loss"].startswith("Approximate") else {}
    return (
        {"epsilon": 2.0 * times} | delta if _is_of_epsilon(case) else {"rho": 0.4 * times} | delta
    )


def _is_of_epsilon(case: Case) -> bool:
    return MEASURES[case["loss"]] == "epsilon"


def _data(case: Case, folder: Path) -> Any:
    source = case["source"]
    if source == "Parquet":
        ROWS.write_parquet(folder / "rows.parquet")
        return folder / "rows.parquet"
    if source == "DuckDB":
        return duckdb.from_arrow(ROWS.drop("grade", "kind").to_arrow())
    made: Any = {"DataFrame": ROWS, "LazyFrame": ROWS.lazy(), "Arrow": ROWS.to_arrow()}
    return made[source]


def opened(case: Case, folder: Path) -> tuple[Any, Any, Any]:
    """A Context, a query of it, and the account of its ledger, if it has one."""
    ledger = None
    if case["ledger"] != "none":
        of_rho = case["ledger"] == "of rho" or not _is_of_epsilon(case)
        total: dict[str, float] = {"rho": 30.0} if of_rho else {"epsilon": 30.0}
        ledger = ob.Ledger(folder / "book", **total, delta=0.1)
    splits: dict[str, Any] = {"evenly": {"split_evenly_over": 2}}
    splits |= {"by weights": {"split_by_weights": [1.0, 3.0]}, "by query": {}}
    margins = [Margin(by=[], invariant="lengths")] if case["margin"] == "lengths" else None
    make: Any = engines.context if case["source"] == "DuckDB" else ob.context
    context = make(
        _data(case, folder),
        privacy_unit=_unit(case),
        privacy_loss=dp.loss_of(**_loss(case)),
        ledger=ledger,
        **splits[case["split"]],
        **({} if margins is None else {"margins": margins}),
    )
    query = context.query(**(_loss(case, 0.5) if case["split"] == "by query" else {}))
    return context, _limited(case, _computed(case, _filtered(case, query))), ledger


def _filtered(case: Case, query: Any) -> Any:
    if case["source"] == "DuckDB":
        conditions = {"comparison": ("turn", "<", 3), "null": ("town", "is_null", False)}
        conditions |= {"listed": ("age", "is_in", [1, 2, 3])}
        return query.filter(conditions[case["filtered"]]) if case["filtered"] != "none" else query
    conditions: Any = {
        "comparison": pl.col("turn") < 3,
        "logic": (pl.col("half") & (pl.col("turn") != 2)) | pl.col("turn").is_null(),
        "null": pl.col("town").is_not_null(),
        "listed": pl.col("age").replace_strict({1: True, 3: True}, default=False),
    }
    return query.filter(conditions[case["filtered"]]) if case["filtered"] != "none" else query


_FILLED: dict[str, Any] = {"sick": False, "age": 3, "small": 2, "town": "z"}
_REPLACED: dict[str, Any] = {"sick": {True: False}, "age": {9: 2}, "small": {7: 0}}
_REPLACED |= {"town": {"w": "y"}}


def _computed(case: Case, query: Any) -> Any:
    column = COLUMNS[case["kind"]]
    of, types = pl.col(column), {"sick": pl.Int32, "age": pl.Int32}
    makers: dict[str, Callable[[], Any]] = {
        "fill_null": lambda: of.fill_null(_FILLED[column]),
        "cast": lambda: of.cast(types.get(column, pl.String)),
        "replace": lambda: of.replace(_REPLACED[column]),
        "replace_strict": lambda: of.replace_strict(
            {label: LABELS[column][-1 - at] for at, label in enumerate(LABELS[column])},
            default=LABELS[column][0],
            return_dtype=ROWS.schema[column],
        ),
        "sum": lambda: of + 1,
        "quotient": lambda: of % 3,
        "clip": lambda: of.clip(1, 3),
    }
    if case["computed"] in ("none", "select"):
        return query
    computed = makers[case["computed"]]()
    if case["computed"] == "cast" and column == "sick":
        computed = computed.cast(pl.Boolean)
    return query.with_columns(computed)


def _limited(case: Case, query: Any) -> Any:
    makers: dict[str, Callable[[], Any]] = {
        "none": lambda: query,
        "sample": lambda: query.truncate_per_group(2),
        "first": lambda: query.truncate_per_group(3, keep="first"),
        "last": lambda: query.truncate_per_group(1, keep="last"),
        "twice": lambda: query.truncate_per_group(3).truncate_per_group(2, keep="first"),
        "by town": lambda: query.truncate_per_group(1, by=["town"]).truncate_per_group(2),
    }
    limited = makers[case["truncated"]]()
    columns = "person", "turn", "half", *COLUMNS.values()
    return limited.select(*columns) if case["computed"] == "select" else limited


# --- Questions
def _others(case: Case) -> list[str]:
    """The other columns of a table, or those of groups."""
    if case["second"] == NOTHING or case["door"] == "survey":
        return []
    return [COLUMNS[case["second"]], *(["half"] if case["door"] == "groups of two" else [])]


def _categories(case: Case, column: str, others: list[str]) -> Any:
    labels, how = LABELS[column], case["categories"]
    if how == "reversed":
        labels = labels[::-1]
    if how == "fewer":
        labels = labels[:-1]
    if others or how == "by name":
        mapping = {} if how == "of the type" else {column: labels}
        return mapping | {name: LABELS[name][::-1] for name in others}
    if how == "of the type":
        return None
    return pl.Series(labels) if how == "Series" else labels


def _policy(case: Case, policy: str, column: str, others: list[str]) -> Any:
    """Where nulls, or unknown values, are counted, of the column and of others of a table, and of
    groups.
    """
    of = {"a category": LABELS[column][0], "by name": LABELS[column][1], "none": None}
    of |= {"new": policy, "DROP": ob.DROP}
    label, joint = of[case[policy]], case["door"] in TABLES
    labels = {} if label is None else {column: label}
    if joint:
        left_out = [name for name in others if case[policy] != "none" or name != "half"]
        labels |= {name: LABELS[name][0] if label is None else label for name in left_out}
        if case[policy] in ("a category", "by name"):
            place = ("a category", "by name").index(case[policy])
            labels |= {name: LABELS[name][place] for name in others}
        return label if case[policy] in ("new", "DROP") else labels
    of_groups = case["of groups"] if case["door"] in GROUPS else "none"
    if of_groups != "none" and others:
        fates = {"a category": LABELS[others[0]][-1], "new": f"{policy}?", "DROP": ob.DROP}
        labels[others[0]] = fates[of_groups]
        return labels
    return labels or None if case[policy] == "by name" else label


def _cells(case: Case, column: str, other: str) -> dict[str, Any]:
    """Some cells of a joint table, and that of all others."""
    new = ["nulls"] if case["nulls"] == "new" else []
    first = LABELS[column][:-1] if case["categories"] == "fewer" else LABELS[column]
    cells = list(product([*first, *new], [*LABELS[other], *new]))[:-1]
    of = {"a category": cells[0], "by name": cells[-1]}
    labels = dict(zip((column, other), of.get(case["unknown"], ()), strict=False))
    plain = {"new": "none", "DROP": ob.DROP}
    return {"cells": cells, "unknown": plain.get(case["unknown"], labels)}


def arguments(case: Case) -> dict[str, Any]:
    """Those of `posterior`."""
    column, others = COLUMNS[case["kind"]], _others(case)
    joint, found = case["door"] in TABLES, {}
    found["column"] = [column, *others] if joint else column
    if case["door"] in GROUPS:
        found["by"] = others if len(others) > 1 else others[0]
    for name, value in (
        ("categories", _categories(case, column, others)),
        ("nulls", _policy(case, "nulls", column, others)),
        ("unknown", _policy(case, "unknown", column, others)),
    ):
        found |= {} if value is None else {name: value}
    if case["door"] == "cells":
        found |= _cells(case, column, others[0])
    if case["records"] == "public":
        found["size"] = _N
    return found


def _with_prior(case: Case, found: dict[str, Any], query: Any) -> dict[str, Any]:
    prior = case["prior"]
    if prior in ("list", "mapping"):
        found = found | {"prior": _prior(prior, labels_of(query, found))}
    elif prior != "auto":
        found = found | {"prior": 0.5 if prior == "number" else prior}
    if case["ordered"] == "yes":
        column = found["column"]
        found = found | {"ordered": [column if isinstance(column, str) else column[-1]]}
    return found | _mechanism(case)


def _prior(kind: str, labels: list[Any]) -> Any:
    numbers = (np.arange(len(labels)) + 0.5).tolist()
    return numbers if kind == "list" else dict(zip(labels, numbers, strict=True))


def labels_of(query: Any, found: dict[str, Any]) -> list[Any]:
    """The categories of a question, those that are new among them."""
    space = ob.posterior(query, **found, prior=1.0)._bound.space
    groups, labels = groups_and_labels(space.categories)
    return list(labels if groups else space.categories)


_OPTIONS: dict[str, dict[str, Any]] = {
    "floored": {"mechanism": "laplace_parameters", "noise": "floored"},
    "local": {"mechanism": "hellinger_exponential", "sensitivity": "local"},
    "gamma": {"mechanism": "smooth_hellinger_exponential", "gamma": 0.5},
    "value of K-norm": {"mechanism": ob.mechanisms.KNormParameters(200.0)},
    "value of Laplace": {"mechanism": ob.mechanisms.LaplaceParameters(200.0, total="private")},
    "value of Gaussian": {"mechanism": ob.GaussianParameters(400.0, "private")},
}


def _mechanism(case: Case) -> dict[str, Any]:
    named = case["mechanism"]
    if named.startswith("total="):
        return {"mechanism": "laplace_parameters", "total": named.removeprefix("total=")}
    return _OPTIONS.get(named, {"mechanism": named})


def _discovery(case: Case, query: Any) -> Any:
    column = COLUMNS[case["kind"]]
    options: dict[str, Any] = {"rest": 0.2} if case["rest"] == "yes" else {}
    options |= {"always": LABELS[column][1:]} if case["always"] == "some" else {}
    nulls = {"a category": LABELS[column][0], "new": LABELS[column][-1], "DROP": ob.DROP}
    options |= {} if case["nulls"] == "none" else {"nulls": nulls[case["nulls"]]}
    value = Discovery(LaplaceThreshold(200.0, 9000))
    law = value if case["law"] == "value" else case["law"]
    return ob.discover(query, column, mechanism=law, **options)


def _shared(case: Case, questions: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Questions with their shares of the budget."""
    if case["share"] == "of questions":
        first = next(name for name, of in questions.items() if isinstance(of, dict))
        return {**questions, first: questions[first] | {"share": 3.0}}, "equal"
    if case["share"] == "by name":
        return questions, {name: 1.0 + at for at, name in enumerate(questions)}
    return questions, "equal"


def _survey(case: Case, query: Any) -> Any:
    plain = arguments(case)
    alone = _with_prior(case, plain, query)
    other = COLUMNS[case["second"]]
    size = {name: of for name, of in plain.items() if name == "size"}
    second = {"column": other, "categories": LABELS[other], "nulls": LABELS[other][0], **size}
    second |= {"unknown": LABELS[other][-1]}
    labels = labels_of(query, plain)
    merge = {"first": labels[:1], "others": labels[1:]}
    questions = {"alone": alone, "second": second, "merged": plain | {"merge": merge}}
    return ob.survey(query, *_shared(case, questions))


def _levels(case: Case, query: Any) -> Any:
    found = _with_prior(case, arguments(case), query)
    column, labels = found.pop("column"), LABELS[COLUMNS[case["kind"]]]
    found.pop("categories", None)
    if case["categories"] in ("fewer", "reversed"):
        labels = labels[:-1] if case["categories"] == "fewer" else labels[::-1]
    trees: dict[str, Any] = {"branching": {"branching": 2}, "epsilon": {}, "rho": {"budget": "rho"}}
    trees |= {"merges": {"merges": {"two": {"one": labels[:1], "more": labels[1:]}}}}
    many = case["tree"] in ("epsilon", "rho") and column in ("age", "small")
    if many and case["categories"] == "listed":
        labels = [*labels, *range(10, 23 if case["tree"] == "rho" else 62)]
    return ob.survey(query, ob.levels(column, labels, **trees[case["tree"]], **found))


def _of_discovery(case: Case, query: Any) -> Any:
    listed = {"column": "half", "categories": LABELS["half"], "nulls": True}
    return ob.survey(query, *_shared(case, {"listed": listed, "values": _discovery(case, query)}))


def question_of(case: Case, query: Any) -> Any:
    """What is asked."""
    door = case["door"]
    if door == "discover":
        return _discovery(case, query)
    if door == "survey of a discovery":
        return _of_discovery(case, query)
    if door == "survey":
        return _survey(case, query)
    if door == "levels":
        return _levels(case, query)
    return ob.posterior(query, **_with_prior(case, arguments(case), query))


# --- Chains by hand
def _measure(case: Case) -> Any:
    plain = dp.max_divergence() if _is_of_epsilon(case) else dp.zero_concentrated_divergence()
    return dp.approximate(plain) if case["loss"].startswith("Approximate") else plain


_VALUES: dict[str, Any] = {
    "laplace_parameters": lambda public: ob.mechanisms.LaplaceParameters(
        20.0, total="remainder" if public else "private"
    ),
    "floored": lambda public: ob.mechanisms.LaplaceParameters(
        20.0, "floored", "remainder" if public else "private"
    ),
    "gaussian_parameters": lambda public: ob.GaussianParameters(
        20.0, None if public else "private"
    ),
    "knorm_parameters": lambda public: ob.mechanisms.KNormParameters(20.0),
    "hellinger_exponential": lambda public: ob.mechanisms.HellingerExponential(0.5),
    "local": lambda public: ob.mechanisms.HellingerExponential(9.0, "local"),
    "smooth_hellinger_exponential": lambda public: ob.mechanisms.SmoothHellingerExponential(9.0),
    "gamma": lambda public: ob.mechanisms.SmoothHellingerExponential(9.0, gamma=0.5),
    "permute_and_flip": lambda public: ob.mechanisms.PermuteAndFlip(0.5),
}


def chain_of(case: Case) -> Any:
    """A chain of constructors, which has no budget."""
    domain = dp.lazyframe_domain(
        [dp.series_domain(name, _atoms(dtype)) for name, dtype in ROWS.schema.items()]
    )
    metric = dp.change_one_distance() if "change" in case["unit"] else dp.symmetric_distance()
    made = arguments(case)
    public = case["records"] == "public"
    counts = (domain, metric) >> ob.t.then_categorical_counts(**made)
    labels = groups_and_labels(counts.output_domain.descriptor.categories)
    labels = list(labels[1] or counts.output_domain.descriptor.categories)
    prior = 0.5 if case["prior"] == "number" else _prior(case["prior"], labels)
    named = case["mechanism"]
    mechanism = (
        _VALUES[named](public)
        if named in _VALUES
        else ob.mechanisms.LaplaceParameters(20.0, total=named.removeprefix("total="))
        if named.startswith("total=")
        else _OPTIONS[named]["mechanism"]
    )
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=prior)
    delta = {"delta": 1e-4} if case["loss"] == "Approximate(MaxDivergence)" else {}
    measure, accounting = _measure(case), case["accounting"]
    return posterior >> ob.m.then_mechanism(measure, mechanism, accounting=accounting, **delta)


def _atoms(dtype: Any) -> Any:
    if isinstance(dtype, pl.Enum):
        return dp.option_domain(dp.enum_domain(dtype.categories))
    plain = {pl.Categorical: dp.categorical_domain}
    if type(dtype) in plain:
        return dp.option_domain(plain[type(dtype)]())
    kinds = {pl.Boolean: bool, pl.String: "String", pl.UInt8: "u32", pl.Int64: "i64"}
    return dp.option_domain(dp.atom_domain(T=kinds.get(type(dtype), "NaiveDate")))


# --- Cases
def cases(name: str) -> tuple[Case, ...]:
    """Those of a file."""
    return cases_in(_FOLDER / f"{name}.txt")


def asked(number: int, folder: Path) -> Answers:
    """What is stated before and after a release, with noise that is drawn from a seed."""
    return _asked(cases("pairs")[number], number, folder)


def asked_in_vain(number: int, folder: Path) -> Answers:
    """The same of a case that is refused."""
    return _asked(cases("refusals")[number], 0, folder)


def _asked(case: Case, number: int, folder: Path) -> Answers:
    if case["door"] in BY_HAND:
        return _of_chain(case)

    def made() -> tuple[Any, Any, Any]:
        context, query, ledger = opened(case, folder)
        return context, question_of(case, query), ledger

    guess = {"guess_size": 60} if case["guess"] == "yes" else {}
    return answers_of(made, guess, number)


def _of_chain(case: Case) -> Answers:
    chain: list[Any] = []

    def made() -> Any:
        chain.append(chain_of(case))
        return [chain[0].map(int(case["unit"][0]) * n) for n in (1, 2, 3)]

    yield "map", made
    if chain:
        yield "release", lambda: chain[0](ROWS.lazy()).to_json()


if __name__ == "__main__":
    FACTORS.write(_FOLDER / "pairs.txt", _FOLDER / "refusals.txt", "door")
