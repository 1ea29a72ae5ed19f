"""Records that are left out: counts, stability over neighbours, and where that is refused."""

from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.queries.cells_of import cells_of
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.cells import counted
from tests.helpers.contexts import plain_context
from tests.helpers.kinds import kinds_in

SCHEMA = {"vote": pl.String, "town": pl.Boolean}
VOTES = ("a", "b", "zz", None)


def counts(question: Question, rows: list[tuple[object, object]]) -> np.ndarray:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").lazy()
    cells = cells_of(question, kinds_in(frame), None)
    return counted([cells], frame, frame.collect_schema(), ())[0]


def context(**unit: int) -> dp.Context:
    rows = list(product(VOTES, (True, False))) * 5
    return plain_context(
        pl.DataFrame(rows, schema=SCHEMA, orient="row").lazy(), unit, {"epsilon": 1000.0}
    )


def test_no_name_of_a_category_is_taken_and_one_category_is_refused() -> None:
    question = Question.of("vote", categories=["a", "DROP"], nulls="DROP", unknown=ob.DROP)
    assert counts(question, [(None, True), ("DROP", True), ("zz", True)]).tolist() == [0, 2]
    query = context(changes=1).query()
    with pytest.raises(ValueError, match=r"leaves records out.* public, size=40"):
        ob.posterior(query, "vote", categories=["a", "b"], size=40, nulls=ob.DROP, unknown="b")
    question = Question.of("vote", categories=["a"], nulls=ob.DROP, unknown=ob.DROP)
    with pytest.raises(ValueError, match="at least two categories, those for"):
        counts(question, [])


@pytest.mark.parametrize("text", ["DROP", "drop"])
@pytest.mark.parametrize("policy", ["nulls", "unknown"])
def test_the_text_of_its_name_is_refused(policy: str, text: str) -> None:
    query = context(contributions=1).query()
    policies = {"nulls": "b", "unknown": "b", policy: text}
    message = (
        rf"{policy}='{text}': would be a new category.* or {policy}=ob\.DROP to leave them out"
    )
    with pytest.raises(ValueError, match=message):
        ob.posterior(query, "vote", categories=["a", "b"], **policies)
