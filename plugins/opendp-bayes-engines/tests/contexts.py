"""Contexts over tables, as the tests ask them."""

from typing import Any

import opendp.prelude as dp

from opendp_bayes.queries.question import Question, Variable
from opendp_bayes_engines import EngineContext, EngineQuery, context
from opendp_bayes_engines.opening import table_of
from opendp_bayes_engines.tables import Rows

#: What an error says of a count that failed.
MESSAGE = "engines: counting: counting failed. The cause is withheld"


def made(table: Any, *, shares: int = 1, epsilon: float = 1.0, **unit: Any) -> EngineContext:
    unit, loss = dp.unit_of(**(unit or {"contributions": 1})), dp.loss_of(epsilon=epsilon)
    return context(table, privacy_unit=unit, privacy_loss=loss, split_evenly_over=shares)


def two_shares(table: Any) -> EngineContext:
    return made(table, shares=2)


def counts(query: EngineQuery, table: Any, *variables: tuple[Any, ...]) -> list[int]:
    """The counts before any noise; a variable is `(column, categories, nulls, unknown)`."""
    asked = tuple(Variable(*each) for each in variables)
    chain, _ = query.counts_of(Question(asked, joint=len(asked) > 1))
    counted: list[int] = chain(Rows(table_of(table))).tolist()
    return counted


def values(query: EngineQuery, table: Any, column: str, nulls: Any) -> dict[Any, int]:
    """The numbers of all values before any noise, of which each must have one alone."""
    chain, _ = query.counts_of_values(column, always=[], nulls=nulls)
    numbers: dict[Any, int] = {}
    for batch in chain(Rows(table_of(table))).batches():
        for key, number in batch.rows():
            assert key not in numbers or key == nulls
            numbers[key] = numbers.get(key, 0) + number
    return numbers
