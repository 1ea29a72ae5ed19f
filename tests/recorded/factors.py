"""What a question can be made of, and the rules by which it is refused: factors of a covering
array.

Levels are taken from the code where it has a list of them. `-` stands where a door has no use for a
factor.
"""

from typing import get_args

from opendp_bayes.mechanisms.laplace_parameters import Total
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.unlisted.thresholds import LAWS
from tests.helpers.covering_array import NOTHING, Factors, Rule, exactly, needs, never

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
    "truncated": ["none", "sample", "first", "last", "twice", "by town"],
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
_CLOSED = ["Boolean", "Enum"]
_FULL = ["listed", "reversed", "Series", "by name", "of the type"]
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


#: Doors that have a Context, and those of several releases.
_OF_CONTEXTS = [door for door in LEVELS["door"] if door not in BY_HAND]
_LABELLED = ["Enum", "Categorical"]

RULES = [
    *exactly(
        "door",
        {"second": WITH_SECOND, "of groups": GROUPS, "accounting": BY_HAND, "share": SHARED}
        | {"tree": ["levels"], "split": _OF_CONTEXTS, "ledger": _OF_CONTEXTS}
        | dict.fromkeys(("categories", "unknown", "mechanism", "prior"), LISTED)
        | {"ordered": [door for door in LISTED if door not in BY_HAND]}
        | dict.fromkeys(("law", "rest", "always"), DISCOVERIES)
        | {"guess": [door for door in _OF_CONTEXTS if door != "discover"]},
    ),
    Rule(lambda kind, second: kind != second),
    *needs("kind", "Date", {"door": DISCOVERIES}),
    # --- sources
    *needs("door", BY_HAND, {"source": "LazyFrame"}),
    *needs("source", "DuckDB", {"margin": "none"}, refused=True),
    *needs("source", "DuckDB", {"computed": "none", "truncated": ["none", "sample"]}),
    *never("source", "DuckDB", {"door": "group_by", "filtered": "logic", "unit": "Bounds"}),
    *never("source", "DuckDB", {"kind": _LABELLED, "second": _LABELLED}),
    # --- units and steps
    Rule(
        lambda records, unit, margin, filtered: (
            (records == "public")
            == ((unit in CHANGES and filtered == "none") or margin == "lengths")
        )
    ),
    *never("records", "public", {"computed": "select"}),
    Rule(
        lambda unit, filtered, computed: (
            unit not in CHANGES or filtered != "none" or computed != "select"
        )
    ),
    *needs("door", DISCOVERIES, {"records": "private"}, refused=True),
    *never("door", BY_HAND, {"unit": [*PEOPLE, "Bounds"]}),
    *needs("door", BY_HAND, dict.fromkeys(("filtered", "computed", "truncated", "margin"), "none")),
    Rule(lambda unit, truncated: (unit in PEOPLE) == (truncated != "none"), refused=True),
    *needs("margin", "lengths", {"unit": ["1 record", "3 records"], "filtered": "none"}),
    *never("margin", "lengths", {"door": DISCOVERIES}),
    Rule(lambda computed, kind: kind in _COMPUTED.get(computed, {kind})),
    # A plan computes no column anew that a Bound names.
    Rule(
        lambda unit, kind, computed: (
            (unit, kind) != ("Bounds", "String") or computed in ("none", "select")
        )
    ),
    # --- labels
    *needs("categories", "of the type", {"kind": _CLOSED}, refused=True),
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
    *never("categories", "of the type", {"door": "levels"}),
    *never("categories", "fewer", {"kind": "Boolean"}),
    *needs("nulls", "none", {"computed": ["fill_null", "replace_strict"]}, refused=True),
    *never("nulls", "none", {"source": "DuckDB"}),
    *never("nulls", "by name", {"door": DISCOVERIES}),
    *needs("unknown", "none", {"kind": _CLOSED, "categories": _FULL}, refused=True),
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
    *never("unknown", "none", {"door": "cells"}),
    *needs("nulls", "DROP", {"records": "private"}, refused=True),
    *needs("unknown", "DROP", {"records": "private"}, refused=True),
    # --- priors and mechanisms
    *never("prior", "learned", {"door": GROUPS}, refused=True),
    *never("prior", ["auto", "learned"], {"door": BY_HAND}),
    *never("prior", ["list", "mapping"], {"door": "levels"}),
    *needs("ordered", "yes", {"prior": ["auto", "learned"]}, refused=True),
    *never("ordered", "yes", {"door": GROUPS}, refused=True),
    *needs("mechanism", OF_PUBLIC, {"records": "public"}, refused=True),
    *needs("mechanism", EXPONENTIAL, {"door": ALONE}),
    *never("mechanism", EXPONENTIAL, {"prior": "learned", "ordered": "yes"}, refused=True),
    *never("mechanism", "auto", {"door": BY_HAND}),
    Rule(
        lambda mechanism, loss: "aussian" not in mechanism or loss != "MaxDivergence", refused=True
    ),
    *never("accounting", "proven", {"mechanism": "local"}),
    *needs("mechanism", "local", {"door": "constructors"}),
    # --- several questions, and values that nobody listed
    *never("tree", "merges", {"kind": "Boolean"}),
    *never("tree", "merges", {"categories": "fewer"}, refused=True),
    *needs(
        "law",
        ["optimal_threshold", "laplace_threshold", "value"],
        {"loss": "Approximate(MaxDivergence)"},
        refused=True,
    ),
    Rule(
        lambda door, loss: door not in DISCOVERIES or loss.startswith("Approximate"), refused=True
    ),
    Rule(
        lambda door, kind, source: (
            door not in DISCOVERIES or kind not in _LABELLED or source != "DuckDB"
        )
    ),
    *never("law", "value", {"rest": "yes"}, refused=True),
    *needs("guess", "yes", {"records": "private"}, refused=True),
]
FACTORS = Factors(LEVELS, RULES)
