"""Every door of a Context and every privacy unit: rows and columns of tables of pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob
import opendp_bayes_engines as engines

#: 120 people, with eight rows each that are all different.
_COLUMNS: dict[str, Any] = {"person": [n // 8 for n in range(960)]}
_COLUMNS |= {"age": [str(1 + n % 8) for n in range(960)]}
ROWS = pl.DataFrame(_COLUMNS | {"town": ["xyz"[n // 8 % 3] for n in range(960)]})
TOWNS, AGES = ["x", "y", "z"], [str(n) for n in range(1, 9)]
TOWN: dict[str, Any] = {"column": "town", "categories": TOWNS, "nulls": "x", "unknown": "y"}
AGE: dict[str, Any] = {"column": "age", "categories": AGES, "nulls": "1", "unknown": "8"}
PAIR: dict[str, Any] = {
    name: {"age": AGE[name], "town": TOWN[name]} for name in ("categories", "nulls", "unknown")
}
GROUPS: dict[str, Any] = {"column": "age", "by": "town", **PAIR}
DISCOVERED: dict[str, Any] = {"column": "age", "nulls": ob.DROP}
LEVELS = ob.levels("age", AGES, nulls="1", unknown="8")

#: What a Context has, in every measure of a ledger; each query asks for a quarter of it.
LOSSES: dict[str, dict[str, float]] = {
    "MaxDivergence": {"epsilon": 4.0},
    "Approximate(MaxDivergence)": {"epsilon": 4.0, "delta": 4e-6},
    "ZeroConcentratedDivergence": {"rho": 0.4},
    "Approximate(ZeroConcentratedDivergence)": {"rho": 0.4, "delta": 4e-6},
}


def discovered(query: Any) -> Any:
    return ob.discover(query, **DISCOVERED)


#: From a query to what is asked of it; those of the second only with a δ.
LISTED: dict[str, Callable[..., Any]] = {
    "posterior": lambda query, **size: ob.posterior(query, **TOWN, **size),
    "joint table": lambda query, **size: ob.posterior(query, ["age", "town"], **PAIR, **size),
    "groups": lambda query, **size: ob.posterior(query, "age", by="town", **PAIR, **size),
    "survey": lambda query, **size: ob.survey(query, {"age": AGE | size, "again": AGE | size}),
    "survey of groups": lambda query, **size: ob.survey(query, {"age": GROUPS | size}),
    "levels": lambda query, **size: ob.survey(
        query, {name: {**of, **size} for name, of in LEVELS.items()}
    ),
}
DISCOVERIES: dict[str, Callable[..., Any]] = {
    "discovery": lambda query: ob.discover(query, **DISCOVERED),
    "discovery with the rest": lambda query: ob.discover(query, **DISCOVERED, rest=0.2),
    "survey that discovers": lambda query: ob.survey(
        query, {"town": TOWN, "age": discovered(query), "again": discovered(query)}
    ),
    "survey that also discovers": lambda query: ob.survey(
        query, {"listed": AGE, "town": TOWN, "age": discovered(query)}
    ),
}
DOORS = {**LISTED, **DISCOVERIES}
#: Doors that tables of engines lack.
NOT_OF_ENGINES = {"levels"}


@dataclass(frozen=True)
class Unit:
    """A privacy unit with the steps of a plan that go with it, and what follows from them.

    Attributes
    ----------
    of : the arguments of `dp.unit_of`.
    plan : the steps.
    d_in, records : the records of one unit, and the values of a discovery that it moves.
    size : the public number of records.
    truncated, kept : as in `PrivacyGuarantee`.
    """

    of: dict[str, Any]
    d_in: int
    plan: Callable[[Any], Any] = lambda query: query
    size: int | None = None
    truncated: bool = False
    kept: str = ""
    discovers: bool = True
    engines: bool = True


def keep(number: int, how: Any = None) -> Callable[[Any], Any]:
    """The step that limits the rows of each person."""
    given = {} if how is None else {"keep": how}
    return lambda query: query.truncate_per_group(number, **given)


_PERSON, FIRST = {"identifier": "person"}, "the first 2 rows of each person"
UNITS: dict[str, Unit] = {
    "one record": Unit({"contributions": 1}, 1),
    "three records": Unit({"contributions": 3}, 3),
    "one changed": Unit({"changes": 1}, 1, size=960, discovers=False),
    "two changed": Unit({"changes": 2}, 2, size=960, discovers=False),
    "two rows of a person": Unit({"contributions": 1, **_PERSON}, 2, keep(2), truncated=True),
    "two rows of two": Unit({"contributions": 2, **_PERSON}, 4, keep(2), truncated=True),
    "first rows of a person": Unit(
        *({"contributions": 1, **_PERSON}, 2, keep(2, "first")),
        truncated=True,
        kept=FIRST,
        engines=False,
    ),
}


@cache
def relation() -> Any:
    """The rows as a table of an engine."""
    return duckdb.from_arrow(ROWS.to_arrow())


def opened(kind: str, unit: Unit, loss: dict[str, float], ledger: Any, **shares: Any) -> Any:
    """A Context on the rows: of a frame, or of a table of an engine."""
    make: Any = ob.context if kind == "polars" else engines.context
    return make(
        ROWS.lazy() if kind == "polars" else relation(),
        privacy_unit=dp.unit_of(**unit.of),
        privacy_loss=dp.loss_of(**loss),
        ledger=ledger,
        **shares,
    )


def releases_of(result: Any) -> list[Any]:
    """Every release that has a loss of its own: those of a survey, or the one."""
    return list(result.values()) if isinstance(result, ob.Survey) else [result]
