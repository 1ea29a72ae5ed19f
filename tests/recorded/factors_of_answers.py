"""What an answer can be of, and how it is asked: factors of a covering array, as `factors` has
those of a question.
"""

from typing import get_args

from opendp_bayes.inference.answers.posterior import Among, Interval
from opendp_bayes.inference.compatible import Records
from opendp_bayes.mechanisms.laplace_parameters import Total
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.surveys.survey_tables.survey_posterior import Format
from opendp_bayes.unlisted.thresholds import LAWS
from tests.helpers.covering_array import NOTHING, Factors, Rule

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
    "of two": ["difference", "ratio", "odds", "compare"],
    "of all": ["odds_ratio", "quantity", "learned"],
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
    "of records": [NOTHING, *get_args(Records)],
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


def _exactly(factor: str, results: list[str]) -> Rule:
    """The factor is one of these results alone."""
    return Rule(lambda result, level: (result in results) == (level != NOTHING), "result", factor)


def _only(factor: str, levels: set[str], results: set[str]) -> Rule:
    """These levels are of these results alone."""
    return Rule(lambda result, level: level not in levels or result in results, "result", factor)


#: Tables of a survey that have one posterior, and all else that has one.
_WITH_POSTERIOR = [result for result in RESULTS if result not in ("survey", "discovery")]
_OF_POSTERIORS = ["then", "interval", "among", "values", "edges", "draws", "of"]
_OF_POSTERIORS += ["compared with", "above", "also"]

RULES = [
    _exactly("axes", OF_ONE),
    _exactly("no values", [result for result in ASKED if result != "discovery"]),
    _exactly("mechanism", [result for result in RESULTS if result != "discovery"]),
    _exactly("prior", OF_ONE),
    _exactly("asked prior", ["release"]),
    *(_exactly(factor, ["looks"]) for factor in ("looks", "of records", "second look")),
    _exactly("counts as", ["external"]),
    *(_exactly(factor, ASKED) for factor in ("measure", "rows")),
    _exactly("kappa", ["pooled"]),
    _exactly("tables", ["survey"]),
    _exactly("tree", ["levels"]),
    *(_exactly(factor, ["discovery"]) for factor in ("law", "rest", "listed", "counted")),
    _exactly("plug in", ["release", "external"]),
    _exactly("columns", ["survey", "levels"]),
    _exactly("category", ["groups"]),
    *(
        Rule(
            lambda result, tables, level: (
                (result in _WITH_POSTERIOR or tables in JOINT) == (level != NOTHING)
            ),
            *("result", "tables", factor),
        )
        for factor in _OF_POSTERIORS
    ),
    *(
        Rule(lambda tables, level: (tables in JOINT) == (level != NOTHING), "tables", factor)
        for factor in ("copies", "format")
    ),
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
    _only("number", {"none"}, {"discovery"}),
    _only("number", {"dozen"}, {*RESULTS} - {"looks", "pooled", "survey"}),
    _only("number", {"many"}, {"release", "external", "levels", "discovery"}),
    _only("axes", {"three"}, {"release", "external", "pooled"}),
    Rule(lambda axes, number: axes != "three" or number in ("two", "three")),
    Rule(lambda labels, number: labels != "Booleans" or number == "two"),
    Rule(lambda result, number: result != "levels" or number != "two"),
    Rule(lambda number, noise: number != "many" or noise == "narrow"),
    Rule(lambda groups, number: groups != "many" or number in ("two", "three")),
    Rule(lambda number, then: number != "many" or then in ("nothing", NOTHING)),
    # --- mechanisms
    Rule(
        lambda mechanism, records, result: (
            (mechanism in OF_PUBLIC) == (records == "public")
            if result != "external"
            else mechanism in OF_PRIVATE
        )
    ),
    Rule(lambda mechanism, number: number != "many" or mechanism in ("laplace", "gaussian", "-")),
    Rule(lambda mechanism, measure: "gaussian" not in mechanism or measure != "MaxDivergence"),
    Rule(lambda mechanism, number: mechanism not in EXPONENTIAL or number in ("two", "three")),
    Rule(lambda mechanism, axes: mechanism not in EXPONENTIAL or axes == "one"),
    _only("mechanism", set(EXPONENTIAL), {"release", "looks"}),
    _only("mechanism", {"floored", "knorm"}, {"release", "external", "looks", "pooled"}),
    _only("mechanism", {"local"}, {"release"}),
    _only("mechanism", {"remainder", "truncated"}, {"release", "looks", "groups"}),
    Rule(lambda total, records: total == NOTHING or (total == "none") == (records == "private")),
    # --- priors
    _only("prior", {"learned"}, {"release", "external", "looks"}),
    _only("prior", {"ordered"}, {"release", "looks"}),
    Rule(lambda prior, mechanism: prior not in LEARNED or mechanism not in EXPONENTIAL),
    Rule(lambda prior, number: prior not in LEARNED or number != "many"),
    Rule(
        lambda asked, mechanism: asked in ("none", NOTHING) or mechanism not in EXPONENTIAL,
        *("asked prior", "mechanism"),
    ),
    Rule(
        lambda asked, records: asked != "of records" or records == "private",
        *("asked prior", "records"),
    ),
    Rule(
        lambda asked, prior: asked in ("none", NOTHING) or prior not in LEARNED,
        *("asked prior", "prior"),
    ),
    Rule(lambda asked, number: asked not in LEARNED or number != "many", "asked prior", "number"),
    Rule(lambda asked, then: then != "by" or asked in ("none", NOTHING), *("asked prior", "then")),
    Rule(
        lambda records, prior: records != "different" or prior not in LEARNED,
        *("of records", "prior"),
    ),
    Rule(lambda records, noise: records != "different" or noise == "narrow", "of records", "noise"),
    Rule(lambda records, number: records != "different" or number == "two", "of records", "number"),
    Rule(
        lambda records, looks, public: (
            (records, looks, public) != ("different", "three", "private")
        ),
        *("of records", "looks", "records"),
    ),
    Rule(lambda law, measure: law == NOTHING or measure.startswith("Approximate")),
    Rule(lambda tables, measure: tables != "with values" or measure.startswith("Approximate")),
    Rule(lambda counts, number: counts != "merged" or number != "two", "counts as", "number"),
    Rule(
        lambda counts, then: counts != "merged" or then not in ("merged", "given"),
        "counts as",
        "then",
    ),
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
    _only("then", {"by"}, {"release", "external"}),
    _only("then", {"marginal", "conditional", "twice"}, {*OF_ONE, "survey"} - {"pooled"}),
    Rule(lambda then, number: then not in ("merged", "given") or number != "two"),
    Rule(lambda also, axes: also != "in order" or axes != "three"),
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
    Rule(lambda counts, axes: counts != "array" or axes != "one", "counts as", "axes"),
    Rule(lambda counts, axes: counts != "merged" or axes == "one", "counts as", "axes"),
    Rule(lambda counts, number: counts != "merged" or number != "two", "counts as", "number"),
    Rule(lambda counts, prior: counts != "measured" or prior == "even", "counts as", "prior"),
    Rule(lambda rows, result: rows != "limited" or result not in ("looks", "survey", "levels")),
]
FACTORS = Factors(LEVELS, RULES)
