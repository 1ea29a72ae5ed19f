"""What a question can be made of, and the rules by which it is refused: factors of a covering
array.

Levels are taken from the code where it has a list of them. `-` stands where a door has no use for a
factor.
"""

from typing import get_args

from opendp_bayes.mechanisms.laplace_parameters import Total
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.unlisted.thresholds import LAWS
from tests.helpers.covering_array import NOTHING, Factors, Rule

#: Doors to listed categories, with and without groups, to several questions, and to values that
#: nobody listed.
ALONE = ["column", "constructors"]
TABLES = ["joint", "cells"]
GROUPS = ["groups", "group_by", "groups of two", "constructors of groups"]
SEVERAL = ["survey", "levels"]
DISCOVERIES = ["discover", "survey of a discovery"]
LISTED = [*ALONE, *TABLES, *GROUPS, *SEVERAL]
BY_HAND = ["constructors", "constructors of groups"]
WITH_SECOND = [*TABLES, *GROUPS, "survey"]
SHARED = ["survey", "survey of a discovery"]
#: Mechanisms for every number of records, and for public ones.
OF_ANY = [
    "laplace_parameters",
    "gaussian_parameters",
    "floored",
    "value of Laplace",
    "value of Gaussian",
]
OF_PUBLIC = [
    *("knorm_parameters", "hellinger_exponential", "local", "smooth_hellinger_exponential"),
    *("gamma", "permute_and_flip", "value of K-norm"),
    *(f"total={total}" for total in get_args(Total) if total != "private"),
]
EXPONENTIAL = OF_PUBLIC[1:6]

LEVELS: dict[str, list[str]] = {
    "door": [*LISTED, *DISCOVERIES],
    "source": ["DataFrame", "LazyFrame", "Parquet", "Arrow", "DuckDB"],
    "kind": ["Boolean", "Int64", "UInt8", "String", "Enum", "Categorical", "Date"],
    "second": [NOTHING, "Boolean", "Int64", "String", "Enum", "Categorical"],
    "unit": ["1 record", "3 records", "1 change", "2 changes", "1 person", "2 people", "Bounds"],
    "loss": list(MEASURES),
    "split": [NOTHING, "evenly", "by weights", "by query"],
    "ledger": [NOTHING, "none", "of the kind", "of rho"],
    "margin": ["none", "lengths"],
    "records": ["private", "public"],
    "filtered": ["none", "comparison", "logic", "null", "listed"],
    "computed": [
        *("none", "fill_null", "cast", "replace", "replace_strict", "sum", "quotient"),
        *("clip", "select"),
    ],
    "truncated": ["none", "sample", "first", "last", "sorted", "groups"],
    "categories": [NOTHING, "listed", "reversed", "fewer", "Series", "by name", "of the type"],
    "nulls": ["a category", "new", "DROP", "by name", "none"],
    "unknown": [NOTHING, "a category", "new", "DROP", "by name", "none"],
    "of groups": [NOTHING, "none", "a category", "new", "DROP"],
    "prior": [NOTHING, "auto", "number", "list", "mapping", "learned"],
    "ordered": [NOTHING, "no", "yes"],
    "mechanism": [NOTHING, "auto", *OF_ANY, *OF_PUBLIC],
    "accounting": [NOTHING, "exact", "proven"],
    "share": [NOTHING, "equal", "by name", "of questions"],
    "tree": [NOTHING, "branching", "merges", "epsilon", "rho"],
    "law": [NOTHING, "auto", *LAWS, "value"],
    "rest": [NOTHING, "no", "yes"],
    "always": [NOTHING, "none", "some"],
    "guess": [NOTHING, "no", "yes"],
}
#: Columns of these types have no other values than their labels.
_CLOSED = {"Boolean", "Enum"}
_FULL = {"listed", "reversed", "Series", "by name", "of the type"}
#: What is computed of which kinds of the column that is asked for.
_COMPUTED = {
    "fill_null": {"Boolean", "Int64", "UInt8", "String"},
    "cast": {"String", "Enum", "Categorical", "Int64", "Boolean"},
    "replace": {"Boolean", "Int64", "String"},
    "replace_strict": {"Boolean", "Int64", "String"},
    **{step: {"Int64", "UInt8"} for step in ("sum", "quotient", "clip")},
}
PEOPLE = {"1 person", "2 people"}
CHANGES = {"1 change", "2 changes"}


def _exactly(factor: str, doors: list[str]) -> Rule:
    """The factor is one of these doors alone."""
    return Rule(lambda door, level: (door in doors) == (level != NOTHING), "door", factor)


RULES = [
    _exactly("second", WITH_SECOND),
    _exactly("split", [door for door in LEVELS["door"] if door not in BY_HAND]),
    _exactly("ledger", [door for door in LEVELS["door"] if door not in BY_HAND]),
    *(_exactly(factor, LISTED) for factor in ("categories", "unknown", "mechanism")),
    *(_exactly(factor, LISTED) for factor in ("prior",)),
    _exactly("of groups", GROUPS),
    _exactly("ordered", [door for door in LISTED if door not in BY_HAND]),
    _exactly("accounting", BY_HAND),
    _exactly("share", SHARED),
    _exactly("tree", ["levels"]),
    *(_exactly(factor, DISCOVERIES) for factor in ("law", "rest", "always")),
    _exactly("guess", [door for door in LEVELS["door"] if door not in (*BY_HAND, "discover")]),
    Rule(lambda kind, second: kind != second),
    Rule(lambda kind, door: kind != "Date" or door in DISCOVERIES),
    # --- sources
    Rule(lambda source, door: door not in BY_HAND or source == "LazyFrame"),
    Rule(lambda source, door: source != "DuckDB" or door != "group_by"),
    Rule(lambda source, margin: source != "DuckDB" or margin == "none", refused=True),
    Rule(lambda source, computed: source != "DuckDB" or computed == "none"),
    Rule(lambda source, filtered: source != "DuckDB" or filtered != "logic"),
    Rule(lambda source, truncated: source != "DuckDB" or truncated in ("none", "sample")),
    Rule(lambda source, unit: source != "DuckDB" or unit != "Bounds"),
    Rule(lambda source, kind: source != "DuckDB" or kind not in ("Enum", "Categorical")),
    Rule(lambda source, second: source != "DuckDB" or second not in ("Enum", "Categorical")),
    # --- units and steps
    Rule(
        lambda records, unit, margin, filtered: (
            (records == "public")
            == ((unit in CHANGES and filtered == "none") or margin == "lengths")
        )
    ),
    Rule(lambda records, computed: records == "private" or computed != "select"),
    Rule(
        lambda unit, filtered, computed: (
            unit not in CHANGES or filtered != "none" or computed != "select"
        )
    ),
    Rule(lambda door, records: door not in DISCOVERIES or records == "private", refused=True),
    Rule(lambda door, unit: door not in BY_HAND or unit not in {*PEOPLE, "Bounds"}),
    *(
        Rule(lambda door, level: door not in BY_HAND or level == "none", "door", step)
        for step in ("filtered", "computed", "truncated", "margin")
    ),
    Rule(lambda unit, truncated: (unit in PEOPLE) == (truncated != "none"), refused=True),
    Rule(lambda unit, margin: margin == "none" or unit in ("1 record", "3 records")),
    Rule(lambda margin, filtered: margin == "none" or filtered == "none"),
    Rule(lambda margin, door: margin == "none" or door not in DISCOVERIES),
    Rule(lambda computed, kind: kind in _COMPUTED.get(computed, {kind})),
    # --- labels
    Rule(lambda categories, kind: categories != "of the type" or kind in _CLOSED, refused=True),
    Rule(
        lambda categories, source, kind: (
            categories != "of the type" or source != "Arrow" or kind == "Boolean"
        )
    ),
    Rule(
        lambda categories, kind, computed: (
            categories != "of the type" or kind == "Boolean" or computed in ("none", "select")
        )
    ),
    Rule(lambda categories, door: categories != "of the type" or door != "levels"),
    Rule(lambda categories, kind: categories != "fewer" or kind != "Boolean"),
    Rule(
        lambda nulls, computed: nulls != "none" or computed in ("fill_null", "replace_strict"),
        refused=True,
    ),
    Rule(lambda nulls, source: nulls != "none" or source != "DuckDB"),
    Rule(lambda nulls, door: nulls != "by name" or door not in DISCOVERIES),
    Rule(lambda unknown, kind: unknown != "none" or kind in _CLOSED, refused=True),
    Rule(lambda unknown, categories: unknown != "none" or categories in _FULL, refused=True),
    Rule(
        lambda unknown, kind, source: (
            unknown != "none" or kind != "Enum" or source not in ("Arrow", "DuckDB")
        )
    ),
    Rule(
        lambda unknown, kind, computed: (
            unknown != "none" or kind != "Enum" or computed in ("none", "select")
        )
    ),
    Rule(lambda unknown, door: unknown != "none" or door != "cells"),
    *(
        Rule(
            lambda level, records: level != "DROP" or records == "private",
            policy,
            "records",
            refused=True,
        )
        for policy in ("nulls", "unknown")
    ),
    # --- priors and mechanisms
    Rule(lambda prior, door: prior != "learned" or door not in GROUPS, refused=True),
    Rule(lambda prior, door: prior not in ("auto", "learned") or door not in BY_HAND),
    Rule(lambda prior, door: prior not in ("list", "mapping") or door != "levels"),
    Rule(lambda ordered, prior: ordered != "yes" or prior in ("auto", "learned"), refused=True),
    Rule(lambda ordered, door: ordered != "yes" or door not in GROUPS, refused=True),
    Rule(
        lambda mechanism, records: mechanism not in OF_PUBLIC or records == "public", refused=True
    ),
    Rule(lambda mechanism, door: mechanism not in EXPONENTIAL or door in ALONE),
    Rule(lambda mechanism, prior: mechanism not in EXPONENTIAL or prior != "learned", refused=True),
    Rule(lambda mechanism, ordered: mechanism not in EXPONENTIAL or ordered != "yes", refused=True),
    Rule(lambda mechanism, door: mechanism != "auto" or door not in BY_HAND),
    Rule(
        lambda mechanism, loss: "aussian" not in mechanism or loss != "MaxDivergence", refused=True
    ),
    Rule(lambda accounting, mechanism: accounting != "proven" or mechanism != "local"),
    Rule(lambda door, mechanism: mechanism != "local" or door == "constructors"),
    # --- several questions, and values that nobody listed
    Rule(lambda tree, kind: tree != "merges" or kind != "Boolean"),
    Rule(lambda tree, categories: tree != "merges" or categories != "fewer", refused=True),
    Rule(
        lambda law, loss: (
            law not in ("optimal_threshold", "laplace_threshold", "value")
            or loss == "Approximate(MaxDivergence)"
        ),
        refused=True,
    ),
    Rule(
        lambda door, loss: door not in DISCOVERIES or loss.startswith("Approximate"), refused=True
    ),
    Rule(
        lambda door, kind, source: (
            door not in DISCOVERIES or kind not in ("Enum", "Categorical") or source != "DuckDB"
        )
    ),
    Rule(lambda law, rest: law != "value" or rest != "yes", refused=True),
    Rule(lambda guess, records: guess != "yes" or records == "private", refused=True),
]
FACTORS = Factors(LEVELS, RULES)
