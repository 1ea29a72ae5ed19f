"""What an answer can be of, and how it is asked: factors of a covering array, as `factors` has
those of a question.
"""

from typing import get_args

from opendp_bayes.inference.answers.posterior import Among, Interval
from opendp_bayes.mechanisms.laplace_parameters import Total
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.surveys.survey_tables.survey_posterior import Format
from opendp_bayes.unlisted.thresholds import LAWS
from tests.helpers.covering_array import NOTHING, Factors, Rule, exactly, needs, never

RESULTS = ["release", "external", "looks", "groups", "pooled", "survey", "levels", "discovery"]
#: Those of one table.
OF_ONE = RESULTS[:5]
ASKED = [result for result in RESULTS if result != "external"]
#: Mechanisms for a private number of records, and for public ones.
OF_PRIVATE = ["laplace", "floored", "gaussian"]
EXPONENTIAL = ["hellinger", "local", "smooth", "beta", "permute and flip"]
TOTALS = [total for total in get_args(Total) if total != "private"]
OF_PUBLIC = [*TOTALS, "public gaussian", "knorm", *EXPONENTIAL]
#: Answers of a posterior that have methods of their own.
ALSO = {
    "of one": ["__getitem__", "counts", "a count", "records"],
    "of two": ["difference", "compare"],
    "of all": ["quantity", "learned"],
    "in order": ["cumulative", "up to", "quantile", "value", "quantiles"],
}
#: Questions of a survey that have one posterior together.
JOINT = ["chain", "cycle", "alone", "twice"]
LEARNED = ["learned", "ordered"]

LEVELS: dict[str, list[str]] = {
    # --- what it is of
    "result": RESULTS,
    "axes": [NOTHING, "one", "two", "three"],
    "number": ["none", "two", "three", "dozen", "many"],
    "labels": ["text", "whole", "Booleans", "long", "odd"],
    "no values": [NOTHING, "none", "nulls", "unknown", "both", "same"],
    "mechanism": [NOTHING, *OF_PRIVATE, *OF_PUBLIC],
    "records": ["private", "public"],
    "noise": ["narrow", "wide"],
    "shares": ["even", "nearly all unknown"],
    "prior": [NOTHING, "even", "uneven", *LEARNED],
    "asked prior": [NOTHING, "none", "number", "list", *LEARNED, "of records"],
    "looks": [NOTHING, "two", "three"],
    "second look": [NOTHING, "alike", "other"],
    "counts as": [NOTHING, "list", "mapping", "array", "measured", "merged"],
    "measure": [NOTHING, *MEASURES],
    "rows": [NOTHING, "all", "3 records", "1 in a count", "limited", "by a rule"],
    "groups": [NOTHING, "two", "of two columns", "with nulls", "many"],
    "total": [NOTHING, "none", "rest", "sizes"],
    "kappa": [NOTHING, "default", "gamma"],
    "tables": [NOTHING, *JOINT, "with groups", "with values"],
    "tree": [NOTHING, "halves", "merges", "cells", "twice"],
    "law": [NOTHING, *LAWS],
    "rest": [NOTHING, "none", "laplace", "gaussian"],
    "listed": [NOTHING, "none", "some"],
    "counted": [NOTHING, "records", "people"],
    # --- how it is asked
    "then": [NOTHING, "nothing", "merged", "given", "marginal", "conditional", "twice", "by"],
    "also": [NOTHING, *ALSO],
    "before": ["nothing", "posterior", "another level"],
    "level": ["default", "0.9", "0.5"],
    "interval": [NOTHING, *get_args(Interval)],
    "among": [NOTHING, *get_args(Among)],
    "order": ["as listed", "reversed"],
    "values": [NOTHING, "number", "list", "array"],
    "edges": [NOTHING, "none", "list", "array"],
    "draws": [NOTHING, "default", "few"],
    "of": [NOTHING, "probabilities", "counts"],
    "compared with": [NOTHING, "itself", "another"],
    "above": [NOTHING, "default", "low", "high"],
    "seed": ["number", "generator"],
    "size": ["one", "five"],
    "percent": ["no", "yes"],
    "wait": ["no", "yes"],
    "plug in": [NOTHING, "no", "yes"],
    "title": ["none", "some"],
    "ax": ["new", "drawn on"],
    "columns": [NOTHING, "1", "2", "3"],
    "category": [NOTHING, "none", "last"],
    "copies": [NOTHING, "population", "predictive", "20 records"],
    "format": [NOTHING, *get_args(Format)],
}


#: Tables of a survey that have one posterior, and all else that has one.
_WITH_POSTERIOR = [result for result in RESULTS if result not in ("survey", "discovery")]
_OF_POSTERIORS = ["then", "interval", "among", "values", "edges", "draws", "of"]
_OF_POSTERIORS += ["compared with", "above", "also"]
_LISTED = [result for result in RESULTS if result != "discovery"]


def _but(factor: str, *levels: str) -> list[str]:
    return [level for level in LEVELS[factor] if level not in levels]


RULES = [
    *exactly(
        "result",
        {"axes": OF_ONE, "prior": OF_ONE, "asked prior": ["release"], "mechanism": _LISTED}
        | {"no values": [result for result in ASKED if result != "discovery"]}
        | {name: ["looks"] for name in ("looks", "second look")}
        | {"counts as": ["external"], "measure": ASKED, "rows": ASKED, "kappa": ["pooled"]}
        | {"tables": ["survey"], "tree": ["levels"], "plug in": ["release", "external"]}
        | {name: ["discovery"] for name in ("law", "rest", "listed", "counted")}
        | {"columns": ["survey", "levels"], "category": ["groups"]},
    ),
    *(
        Rule(
            lambda result, tables, level: (
                (result in _WITH_POSTERIOR or tables in JOINT) == (level != NOTHING)
            ),
            *("result", "tables", factor),
        )
        for factor in _OF_POSTERIORS
    ),
    *exactly("tables", dict.fromkeys(("copies", "format"), JOINT)),
    *(
        Rule(
            lambda result, axes, level: (
                (result == "groups" or (result == "pooled" and axes == "one")) == (level != NOTHING)
            ),
            *("result", "axes", factor),
        )
        for factor in ("groups", "total")
    ),
    # --- sizes
    *needs("number", "none", {"result": ["discovery"]}),
    *never("number", "dozen", {"result": ["looks", "pooled", "survey"]}),
    *needs("number", "many", {"result": ["release", "external", "levels", "discovery"]}),
    *needs("axes", "three", {"result": ["release", "external", "pooled"]}),
    *needs("axes", "three", {"number": ["two", "three"]}),
    *needs("labels", "Booleans", {"number": "two"}),
    *never("result", "levels", {"number": "two"}),
    *needs("number", "many", {"noise": "narrow", "then": ["nothing", NOTHING]}),
    *needs("groups", "many", {"number": ["two", "three"]}),
    # --- mechanisms
    Rule(
        lambda mechanism, records, result: (
            (mechanism in OF_PUBLIC) == (records == "public")
            if result != "external"
            else mechanism in OF_PRIVATE
        )
    ),
    *needs("number", "many", {"mechanism": ["laplace", "gaussian", NOTHING]}),
    Rule(lambda mechanism, measure: "gaussian" not in mechanism or measure != "MaxDivergence"),
    *needs("mechanism", EXPONENTIAL, {"number": ["two", "three"], "axes": "one"}),
    *needs("mechanism", EXPONENTIAL, {"result": ["release", "looks"]}),
    *needs(
        "mechanism", ["floored", "knorm"], {"result": ["release", "external", "looks", "pooled"]}
    ),
    *needs("mechanism", "local", {"result": "release"}),
    *needs("mechanism", ["remainder", "truncated"], {"result": ["release", "looks", "groups"]}),
    Rule(lambda total, records: total == NOTHING or (total == "none") == (records == "private")),
    # --- priors
    *needs("prior", "learned", {"result": ["release", "external", "looks"]}),
    *needs("prior", "ordered", {"result": ["release", "looks"]}),
    *never("prior", LEARNED, {"mechanism": EXPONENTIAL, "number": "many"}),
    *never("asked prior", _but("asked prior", "none", NOTHING), {"mechanism": EXPONENTIAL}),
    *never("asked prior", _but("asked prior", "none", NOTHING), {"prior": LEARNED, "then": "by"}),
    *needs("asked prior", "of records", {"records": "private"}),
    *never("asked prior", LEARNED, {"number": "many"}),
    Rule(lambda law, measure: law == NOTHING or measure.startswith("Approximate")),
    Rule(lambda tables, measure: tables != "with values" or measure.startswith("Approximate")),
    *never("counts as", "merged", {"number": "two", "then": ["merged", "given"]}),
    # --- what follows
    Rule(
        lambda axes, then, result: (
            then not in ("marginal", "conditional", "twice", "by")
            or result == "survey"
            or axes in ("two", "three")
        )
    ),
    Rule(
        lambda result, axes, then: (
            result != "pooled" or axes == "one" or then not in ("merged", "given")
        )
    ),
    *needs("then", "by", {"result": ["release", "external"]}),
    *needs("then", ["marginal", "conditional", "twice"], {"result": [*OF_ONE[:4], "survey"]}),
    *never("then", ["merged", "given"], {"number": "two"}),
    *never("also", "in order", {"axes": "three"}),
    Rule(
        lambda also, axes, then: (
            also != "in order" or axes in ("one", NOTHING) or then not in ("nothing", "by")
        )
    ),
    Rule(lambda also, result, then: also != "in order" or result != "survey" or then != "nothing"),
    Rule(
        lambda also, number, values: (
            also != "in order" or number in ("dozen", "many") or values in (NOTHING, "none")
        ),
        *("also", "number", "no values"),
    ),
    *never("counts as", "array", {"axes": "one"}),
    *needs("counts as", "merged", {"axes": "one"}),
    *needs("counts as", "measured", {"prior": "even"}),
    *never("rows", "limited", {"result": ["looks", "survey", "levels"]}),
]
FACTORS = Factors(LEVELS, RULES)
