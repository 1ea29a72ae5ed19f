"""Plans that OpenDP 0.16 accepts, whose values depend on other rows.

Run as a script, in a process of its own because one keeps the codes of categories that it has seen:
without the gate, what they count of a thousand records, or of one more. OpenDP's own prelude would
load scikit-learn, which takes a second.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import polars as pl
from opendp.context import Context, loss_of, unit_of
from opendp.mod import enable_features

from opendp_bayes.queries.categorical_counts import counts_of_frame
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted import stable_plans
from opendp_bayes.trusted.opendp_internals import belongs_to, frame_of, parts_of, plan_of
from opendp_bayes.trusted.plan_validation import check_plan
from opendp_bayes.trusted.plan_values import Rows
from opendp_bayes.trusted.truncation import rule_of

C = pl.col
SCHEMA = {"p": pl.Int64, "x": pl.Float64, "s": pl.String, "i": pl.Int64}
CUT = C("x").cut([1.0])
CATEGORICAL = C("s").cast(pl.Categorical)
B = {"column": "b", "categories": [0, 1], "nulls": 0, "unknown": 0}

#: With what is asked of them and what the gate says.
LEAKS: dict[str, tuple[Callable[[Any], Any], dict[str, Any], str]] = {
    "cut to codes": (
        lambda of: of.with_columns(b=CUT.to_physical()),
        B,
        "with_columns: to_physical reads the codes of a Categorical, .* Use `cast\\(pl.Enum",
    ),
    "cut as integer": (
        lambda of: of.with_columns(b=CUT.cast(pl.Int64)),
        B,
        "with_columns: 'x' is a Categorical, whose codes are read here",
    ),
    "two steps": (
        lambda of: of.with_columns(bin=CUT).select(b=C("bin").cast(pl.Int32)),
        B,
        "select: 'bin' is a Categorical, whose codes are read here",
    ),
    "filter": (
        lambda of: of.filter(CUT.to_physical() == 0).with_columns(b=C("i") * 0),
        B,
        "filter: to_physical reads the codes of a Categorical",
    ),
    "group": (
        lambda of: of.with_columns(g=CUT.to_physical(), b=C("i") * 0),
        B | {"by": "g", "categories": {"b": [0, 1], "g": [0, 1]}},
        "with_columns: to_physical reads the codes of a Categorical",
    ),
    "text as integer": (
        lambda of: of.with_columns(b=CATEGORICAL.cast(pl.Int64)),
        B,
        "with_columns: cast to Categorical makes a Categorical, which has codes which depend on",
    ),
}


def kept_by(query: Any) -> str:
    """The rule in the plan of a query, which need not limit the rows of a privacy unit."""
    domain: Any = parts_of(belongs_to(query)).chain[0]
    return rule_of(check_plan(plan_of(query), frame_of(domain)).limits)


def unchecked(plan: pl.LazyFrame, source: pl.LazyFrame, bounds: Any = ()) -> Rows:
    """In place of `check_plan`: nothing is looked at."""
    return Rows(source)


def counted(frame: Any, plan: Any, arguments: dict[str, Any], unit: Any = None) -> list[int]:
    """The counts of a plan before noise."""
    data = frame if isinstance(frame, pl.LazyFrame) else pl.LazyFrame(frame, schema=SCHEMA)
    of = {"privacy_unit": unit or unit_of(contributions=1), "privacy_loss": loss_of(epsilon=1.0)}
    context = Context.compositor(data=data, split_evenly_over=1, **of)
    transformation = counts_of_frame(plan(context.query()), Question.of(**arguments)).transformation
    counts: list[int] = transformation(data).tolist()
    return counts


def _without_the_gate(which: str) -> dict[str, list[int]]:
    stable_plans.check_plan = unchecked
    enable_features("contrib", "honest-but-curious")
    one = {"p": [9], "x": [2.0], "s": ["b"], "i": [1]} if which == "one more" else {}
    many = {"p": [1] * 1000, "x": [0.5] * 1000, "s": ["a"] * 1000, "i": [0] * 1000}
    frame = {name: one.get(name, []) + many[name] for name in many}
    return {name: counted(frame, plan, asked) for name, (plan, asked, _) in LEAKS.items()}


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(_without_the_gate(sys.argv[1])))
