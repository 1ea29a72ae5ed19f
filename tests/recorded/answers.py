"""Answers in which every two features of what is asked, and of how, meet: the cases of
`answers.txt`, a line for each.

`python -m tests.recorded.answers` writes them anew after a change of `factors_of_answers`.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import Parameter, signature
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.release_format.labels import ByLabel
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.unlisted import Discovery, GaussianThreshold, LaplaceThreshold, OptimalThreshold
from tests.helpers.argument_rows_of_posteriors import Measured
from tests.helpers.covering_array import NOTHING, Case, write
from tests.helpers.every_result import called, methods, plausible, properties, values_of
from tests.helpers.fingerprints import numbers, words
from tests.helpers.recorded import Answers, Rng
from tests.helpers.releases import LOSS, guarantee
from tests.recorded.asked import read_again
from tests.recorded.factors_of_answers import ALSO, EXPONENTIAL, FACTORS, JOINT
from tests.recorded.pairs import cases

_SIZES = {"none": 0, "two": 2, "three": 3, "dozen": 12, "many": 101}
_ODD = ["$a_1$", " b", "", "c\nd", "e\u202ef", "<g> & h", "3", "1.0", "(null)", "é", "i, j", "'"]
OF_COPIES = {"synthetic", "write_synthetic"}
#: Take another package's objects, read what is read again, or are what is asked of.
LEFT_OUT = {"from_json", "json_schema", "release", "pooled"}


# --- What is asked of
def labels_of(case: Case, number: int, axis: int = 0) -> list[Any]:
    """Those of an axis, which are no other axis's."""
    how = case["labels"]
    if how == "Booleans" and number == 2:
        return [True, False]
    if how == "whole":
        return list(range(7 * axis - 1, 7 * axis - 1 + number))
    texts = [f"{chr(97 + 9 * axis + n % 9)}{n // 9 or ''}" for n in range(number)]
    if how == "long":
        return [
            f"{text}: {'a label of many words that is longer than lines, ' * 4}" for text in texts
        ]
    if how == "odd":
        return [_ODD[n % 12] + f"#{n // 12}" * (n > 11) + "'" * axis for n in range(number)]
    return texts


def shape_of(case: Case) -> tuple[int, ...]:
    number = _SIZES[case["number"]]
    if case["axes"] == "two":
        return (11, 11) if number > 12 else (number, 2)
    return (number, 2, 2) if case["axes"] == "three" else (number,)


def mechanism_of(case: Case, name: str) -> Any:
    scale = 25.0 if case["noise"] == "wide" else 2.0
    exponential = ob.mechanisms
    makers: dict[str, Callable[[], Any]] = {
        "laplace": lambda: ob.LaplaceParameters(scale, total="private"),
        "floored": lambda: ob.LaplaceParameters(scale, "floored", "private"),
        "gaussian": lambda: ob.GaussianParameters(scale, "private"),
        "public gaussian": lambda: ob.GaussianParameters(scale),
        "knorm": lambda: ob.KNormParameters(scale),
        "hellinger": lambda: exponential.HellingerExponential(scale / 5),
        "local": lambda: exponential.HellingerExponential(scale / 5, "local"),
        "smooth": lambda: exponential.SmoothHellingerExponential(scale, gamma=1.0),
        "beta": lambda: exponential.SmoothHellingerExponential(scale, beta=0.05),
        "permute and flip": lambda: exponential.PermuteAndFlip(scale / 5),
    }
    return makers[name]() if name in makers else ob.LaplaceParameters(scale, total=name)


def promise_of(case: Case, size: int | None) -> ob.PrivacyGuarantee:
    delta = 1e-6 if case["measure"].startswith("Approximate") else 0.0
    loss = ob.PrivacyLoss(LOSS.epsilon, LOSS.rho, LOSS.range, delta)
    rows: dict[str, dict[str, Any]] = {
        "3 records": {"d_in": 3},
        "1 in a count": {"d_in": ob.Distance.limited(4, largest=1)},
        "limited": {"truncated": True},
        "by a rule": {"truncated": True, "kept": "the first 2 rows of each person"},
    }
    return guarantee(size, loss, measure=case["measure"], **rows.get(case["rows"], {}))


def prior_of(case: Case, k: int) -> tuple[float, ...]:
    return tuple((np.arange(k) / 2 + 0.5).tolist()) if case["prior"] == "uneven" else (1.0,) * k


def counts_of(case: Case, rng: Rng, k: int) -> Any:
    few = case["mechanism"] in EXPONENTIAL
    records = 13 if few else 90 + 5 * k
    shares = rng.dirichlet(np.full(k, 2.0))
    if case["shares"] != "even":
        shares = shares * 0.01 + 0.99 * (np.arange(k) == 0)
    return rng.multinomial(records, shares)


def drawn_of(case: Case, name: str, counts: Any) -> tuple[Any, int | None, tuple[int, ...]]:
    """A mechanism, the public number of records, and what was drawn."""
    mechanism = mechanism_of(case, name)
    draw = getattr(mechanism, "draw", mechanism.sample)
    drawn = draw(counts, np.array(prior_of(case, len(counts))))[0].tolist()
    return mechanism, int(counts.sum()) if case["records"] == "public" else None, tuple(drawn)


def without_value(case: Case, values: list[list[Any]]) -> dict[str, Any]:
    """Labels under which nulls, or unknown values, are counted: the last of the first column, and
    the first of the last.
    """
    number, how = len(values), case["no values"]
    first = (values[0][-1], *[None] * (number - 1))
    last = (*[None] * (number - 1), values[-1][0])
    of = {"nulls": {"nulls": first}, "unknown": {"unknown": last}, "same": {"nulls": last}}
    of |= {"both": {"nulls": first, "unknown": last}, "same": {"nulls": last, "unknown": last}}
    return of.get(how, {})


def table(
    case: Case, counts: Any, names: tuple[str, ...], values: list[list[Any]], **more: Any
) -> ob.Release:
    """The release of a table, or of one column."""
    labels = tuple(product(*values)) if len(values) > 1 else tuple(values[0])
    mechanism, size, drawn = drawn_of(case, more.pop("name", case["mechanism"]), counts)
    of: dict[str, Any] = {"columns": names, "axes": names if len(names) > 1 else ()}
    of |= without_value(case, values)
    if case["prior"] in ("learned", "ordered"):
        of |= {"learned_prior": True, "ordered": names[-1:] if case["prior"] == "ordered" else ()}
    prior = prior_of(case, len(labels))
    return ob.Release(drawn, labels, prior, mechanism, promise_of(case, size), **of | more)


def values_asked(case: Case) -> list[list[Any]]:
    return [labels_of(case, number, axis) for axis, number in enumerate(shape_of(case))]


def release(case: Case, rng: Rng, **more: Any) -> ob.Release:
    values = values_asked(case)
    counts = counts_of(case, rng, int(np.prod(shape_of(case))))
    return table(case, counts, tuple("uvw"[: len(values)]), values, **more)


def external(case: Case, rng: Rng) -> Any:
    values = values_asked(case)
    mechanism = "gaussian_parameters" if case["mechanism"] == "gaussian" else "laplace_parameters"
    wide, of = case["noise"] == "wide", {"mechanism": mechanism}
    of["scale"] = 25.0 if wide else 2.0
    if case["mechanism"] == "floored" or (wide and case["mechanism"] == "gaussian"):
        of["noise"] = "floored" if case["mechanism"] == "floored" else "rounded"
    cells = list(product(*values)) if len(values) > 1 else list(values[0])
    counts: Any = counts_of(case, rng, len(cells)) + (0.3 if "noise" in of else 0)
    of["size"] = int(counts.sum()) if case["records"] == "public" else None
    how, names = case["counts as"], "uvw"[: len(values)]
    categories: Any = dict(zip(names, values, strict=True)) if len(values) > 1 else values[0]
    if how == "measured":
        stddev = of.pop("scale") * (2**0.5 if "laplace" in mechanism else 1)
        measured = [Measured(counts, tuple(names), stddev)]
        keys = dict(zip(names, values, strict=True))
        return next(iter(ob.noisy_tables(measured, keys=keys, **of).values()))
    if how == "merged":
        of["merge"] = {"first": cells[:1], "others": cells[1:]}
        counts = np.array([counts[0], counts[1:].sum()])
    if how == "mapping":
        counts = dict(reversed(list(zip(cells, counts.tolist(), strict=True))))
    if how == "array":
        counts = counts.reshape([len(axis) for axis in values])
    k = 2 if how == "merged" else len(cells)
    prior: Any = {"even": 0.7, "uneven": list(prior_of(case, k)), "learned": "learned"}
    return ob.noisy_counts(counts, categories, prior=prior[case["prior"]], **of)


def looks(case: Case, rng: Rng) -> Any:
    other = {"private": "gaussian", "public": "public gaussian"}[case["records"]]
    if case["measure"] == "MaxDivergence":
        other = {"private": "floored", "public": "knorm"}[case["records"]]
    rngs = [np.random.default_rng(7) for _ in range(2 if case["looks"] == "two" else 3)]
    name = other if case["second look"] == "other" else case["mechanism"]
    releases = [release(case, rngs[0]), *(release(case, rng, name=name) for rng in rngs[1:])]
    return ob.combine(releases, draws_may_agree=True)


def groups(case: Case, rng: Rng) -> Any:
    names: tuple[Any, ...] = {
        "two": ("n", "s"),
        "of two columns": tuple(product("ns", (True, False))),
        "with nulls": ("n", None, "s"),
        "many": tuple(range(25)),
    }[case["groups"]]
    values = values_asked(case)
    labels = tuple(product(*values)) if len(values) > 1 else tuple(values[0])
    k, cells = len(labels), len(names) * len(labels)
    mechanism, size, drawn = drawn_of(case, case["mechanism"], counts_of(case, rng, cells + 1))
    rows = tuple(drawn[start : start + k] for start in range(0, cells, k))
    columns = tuple("uvw"[: len(values)])
    of: dict[str, Any] = {"columns": columns, "axes": columns if len(columns) > 1 else ()}
    of |= {"grouped_by": ("g", "h") if case["groups"] == "of two columns" else ("g",)}
    of |= without_value(case, values) | ({} if size is None else {"rest": drawn[-1]})
    found = GroupedRelease(
        names, rows, labels, prior_of(case, k), mechanism, promise_of(case, size), **of
    )
    if case["total"] == "sizes":
        return found.with_sizes({name: 3 + at for at, name in reversed([*enumerate(names)])})
    return found


def pooled(case: Case, rng: Rng) -> Any:
    of: dict[str, Any] = {"ess": 20}
    if case["kappa"] == "gamma":
        of["kappa_prior"] = stats.gamma(2, scale=10)
    if case["axes"] == "one":
        found = groups(case, rng)
        return found.pooled(m_prior=prior_of(case, len(found.categories)), **of)
    shape = shape_of(case)
    k = shape[1] if len(shape) == 2 else 2
    by = "u" if len(shape) == 2 else ["u", "w"]
    return release(case, rng).pooled(by, m_prior=prior_of(case, k), **of)


def survey(case: Case, rng: Rng) -> ob.Survey:
    values = labels_of(case, _SIZES[case["number"]])
    tables = {"chain": ("xy", "zy"), "cycle": ("xy", "yz", "xz"), "alone": ("x", "y")}
    tables |= {"twice": ("xy", "xy", "yz"), "with groups": ("xy",), "with values": ("x",)}
    found = {
        f"{at} {names}": table(
            *(case, counts_of(case, rng, len(values) ** len(names)), tuple(names)),
            [values] * len(names),
        )
        for at, names in enumerate(tables[case["tables"]])
    }
    more: dict[str, Any] = {"with groups": groups, "with values": discovery}
    if case["tables"] in more:
        axes = {
            "axes": "one",
            "prior": "even",
            "total": "none" if case["records"] == "private" else "rest",
        }
        of = {"groups": "two", "law": "optimal_threshold", "rest": "laplace", "listed": "some"}
        found["more"] = more[case["tables"]](case | axes | of | {"counted": "records"}, rng)
    return ob.Survey(tuple(found), tuple(found.values()))


def levels(case: Case, rng: Rng) -> ob.Survey:
    values = labels_of(case, min(_SIZES[case["number"]], 30))
    k, plain = len(values), {"nulls": (), "unknown": ()}
    if case["tree"] == "cells":  # all but the last
        cells = list(product(values, labels_of(case, 2, 1)))[:-1]
        counts = counts_of(case, rng, 2 * k - 1)
        both = {"axes": ("v", "w"), "columns": ("v", "w"), **plain}
        fine = table(case, counts, ("v",), [cells], **both)
        coarse = table(case, np.append(counts, 0).reshape(k, 2).sum(axis=1), ("v",), [values])
    else:
        counts, cut = counts_of(case, rng, k), k // 2 if case["tree"] == "halves" else 1
        merged = np.array([counts[:cut].sum(), counts[cut:].sum()])
        fine = table(case, counts, ("v",), [values])
        parts = tuple(values[:cut]), tuple(values[cut:])
        coarse = table(case, merged, ("v",), [["m", "n"]], parts=parts, **plain)
    found = {"fine": fine, "coarse": coarse}
    if case["tree"] == "twice":
        found["again"] = table(case, counts, ("v",), [values])
    return ob.Survey(tuple(found), tuple(found.values()))


def discovery(case: Case, rng: Rng) -> Any:
    scale = 9.0 if case["noise"] == "wide" else 2.0
    noise = {"none": None, "laplace": DiscreteLaplace(scale), "gaussian": DiscreteGaussian(scale)}
    laws: dict[str, Callable[[], Any]] = {
        "optimal_threshold": lambda: OptimalThreshold(1 / scale, 1e-6, 1 / scale),
        "laplace_threshold": lambda: LaplaceThreshold(scale, 40),
        "gaussian_threshold": lambda: GaussianThreshold(scale, 30),
    }
    law, labels = laws[case["law"]](), labels_of(case, _SIZES[case["number"]])
    listed = min(2, len(labels)) if case["listed"] == "some" else 0
    labels[listed:] = sorted(labels[listed:])
    many = 0.002 if case["shares"] != "even" else 0.05
    drawn = [
        *rng.integers(-3, 4, listed),
        *(law.threshold + rng.geometric(many, len(labels) - listed)),
    ]
    rest = noise[case["rest"]]
    sums = None if rest is None else int(rng.integers(-5, 500))
    return ob.DiscoveredRelease(
        *("v", tuple(labels), tuple(map(int, drawn)), listed, Discovery(law, rest), sums),
        *(promise_of(case, None), case["counted"] == "people"),
    )


MAKERS: dict[str, Callable[[Case, Rng], Any]] = {
    "release": release, "external": external, "looks": looks, "groups": groups, "pooled": pooled,
    "survey": survey, "levels": levels, "discovery": discovery,
}  # fmt: skip


def posterior_of(case: Case, result: Any) -> Any:
    """The posterior that answers, and what follows from it."""
    of, then = result, case["then"]
    if case["result"] == "release":
        of = _asked_of(case, result)
    elif case["result"] == "external":
        of = result.posterior
    elif case["result"] in ("groups", "pooled"):
        of = list(result.values())[-1]
        of = of.posterior if case["result"] == "groups" else of
    elif case["result"] == "survey":
        of = result.posterior.marginal("y", "x")
    elif case["result"] == "levels":
        of = result.posterior[list(result)[case["order"] == "reversed" and then == "nothing"]]
    if then in ("merged", "given"):
        labels = list(of.categories)
        turned = labels[:0:-1] if case["order"] == "reversed" else labels[1:]
        return of.given(turned) if then == "given" else of.merged({"both": tuple(turned[-2:])})
    if then == "by":
        axis = result.axes[-1 if case["order"] == "reversed" else 0]
        return list(result.by(axis).values())[-1].posterior
    if then == "nothing":
        return of
    first, *others = of.axes
    value = {others[-1]: values_of(of, others[-1])[-1]}
    if then == "marginal":
        return of.marginal(*others[::-1], *([first] if len(others) > 1 else []))
    if then == "conditional":
        return of.conditional(first, **value)
    if len(others) > 1:
        return of.marginal(others[-1], first).conditional(first, **value)
    return of.conditional(first, **value).given(values_of(of, first)[::-1])


def _asked_of(case: Case, of: ob.Release) -> Any:
    options: dict[str, Any] = {
        "number": {"prior": 2.0},
        "list": {"prior": (np.arange(of.k) / 3 + 0.7).tolist()},
        "learned": {"prior": "learned"},
        "ordered": {"prior": "learned", "ordered": list(of.columns[:1])},
        "of records": {"records_prior": stats.poisson(max(1, sum(of.noisy_counts)))},
    }
    asked = options.get(case["asked prior"])
    return of.posterior if asked is None else ob.noise_aware_posterior(of, **asked, ess=400)


# --- How it is asked
def usual(
    case: Case, of: Any, name: str, another: Callable[[], Any]
) -> dict[str, Callable[[], Any]]:
    """Arguments by name, as the case asks; None where the method's own default is taken."""
    labels = getattr(of, "categories", ())
    labels = list(labels) if isinstance(labels, tuple) else []
    turned = labels[::-1] if case["order"] == "reversed" else labels
    ends = np.cumsum(np.arange(len(labels) - len(getattr(of, "unordered", ())) + 1) / 2)
    of_copies, copies = name in OF_COPIES, case["copies"]
    values: dict[str, Any] = {
        "number": 0.3,
        "list": [0.1, 0.5],
        "array": np.array([[0.2, 3], [9, 0.4]]),
    }
    options: dict[str, Callable[[], Any]] = {
        "random_state": lambda: 1 if case["seed"] == "number" else np.random.default_rng(1),
        "size": lambda: 1 if case["size"] == "one" else 5,
        "level": lambda: {"0.9": 0.9, "0.5": 0.5}.get(case["level"]),
        "kind": lambda: (
            copies.replace("20 records", "predictive") if of_copies else case["interval"]
        ),
        "among": lambda: case["among"],
        "values": lambda: values.get(case["values"]),
        "of": lambda: case["of"],
        "edges": lambda: {"list": ends.tolist(), "array": ends - 3.0}.get(case["edges"]),
        "draws": lambda: 40 if case["draws"] == "few" else None,
        "event": lambda: lambda theta: theta[0] > theta[-1] + 0.1,
        "above": lambda: {"low": 0.2, "high": 0.6}.get(case["above"]),
        "other": lambda: another() if case["compared with"] == "another" else of,
        "percent": lambda: case["percent"] == "yes",
        "wait": lambda: case["wait"] == "yes",
        "plug_in": lambda: case["plug in"] == "yes",
        "levels": lambda: [0.6, 0.2] if case["order"] == "reversed" else [0.2, 0.6, 0.5],
        "title": lambda: None if case["title"] == "none" else "A $title_",
        "ax": lambda: None if case["ax"] == "new" else Figure().subplots(),
        "columns": lambda: int(case["columns"].replace(NOTHING, "2")),
        "records": lambda: (20 if copies == "20 records" else None) if of_copies else 30,
        "format": lambda: case["format"],
        "copies": lambda: 2,
    }
    if name == "by":
        options["columns"] = lambda: of.axes[-1:] if case["order"] == "reversed" else of.axes[:1]
    if turned:
        options |= {"label": lambda: turned[0], "first": lambda: turned[0]}
        options |= {"second": lambda: turned[-1], "categories": lambda: turned[:2]}
        options |= {"groups": lambda: {"g": tuple(turned[: len(turned) - 1])}}
        options |= {"function": lambda: lambda p: 2 * p[turned[0]] - p[turned[-1]]}
        options |= {"category": lambda: turned[0] if case["category"] == "last" else None}
    return options


#: Parameters that have the name of another.
_OTHERS = {("quantity", "label"), ("hidden", "label")}
_OTHERS |= {("__getitem__", "label")}


def called_as_asked(
    case: Case, of: Any, name: str, folder: Path, another: Callable[[], Any]
) -> Any:
    """The answer of a method, perhaps after one of another level."""
    options, arguments = usual(case, of, name, another), {}
    for key, parameter in signature(getattr(of, name)).parameters.items():
        if key in options and (name, key) not in _OTHERS:
            value = options[key]()
        else:
            value = plausible(of, name, key, lambda: folder / name)
        if value is None or (isinstance(value, str) and value == NOTHING):
            if parameter.default is not Parameter.empty:
                continue
            value = {"level": 0.5, "values": 0.3}.get(key)
        arguments[key] = value
    if case["before"] == "another level" and {"level"} & arguments.keys() and name != "plot":
        called(of, name, arguments | {"level": 0.8})
    return called(of, name, arguments)


def also_of(how: str, of: Any, call: Callable[[str], Any]) -> Any:
    """An answer of a posterior that has methods of its own."""
    if how == "a count":
        return of.counts[of.categories[-1]]
    if how in ("up to", "learned"):
        quantities = of.learned if how == "learned" else of.cumulative()
        return next(iter(quantities.values()), quantities)
    if how == "value":
        return call("quantile").value
    return call(how) if callable(getattr(of, how)) else getattr(of, how)


def shown(answer: Any) -> Any:
    """An answer with all its words, the types of its columns, and each way in which it is shown."""
    if isinstance(answer, str):
        return [answer, "_".join(["words", *words(answer)])]
    if isinstance(answer, (Axes, Figure)):
        drawn = numbers(answer)
        plt.close("all")
        return drawn
    if isinstance(answer, Sheet):
        texts = [answer.text(width) for width in (100, 40)]
        return [*map(shown, texts), shown(answer._repr_html_())]
    if isinstance(answer, Path):
        read = pl.read_csv if answer.suffix == ".csv" else pl.read_parquet
        return [answer.name, shown(read(answer))]
    if isinstance(answer, pl.DataFrame):
        return [str(answer.schema).replace(" ", ""), answer]
    if type(answer) is ByLabel:
        facts = attrgetter("axes", "columns", "nulls", "unknown", "ordered", "learned_prior")
        return [shown([repr(key), repr(of), *map(str, facts(of))]) for key, of in answer.items()]
    return [shown(one) for one in answer] if type(answer) is list else answer


def displayed(of: Any) -> Any:
    """What a prompt and a notebook show."""
    texts = [str(of), repr(of)]
    return shown([*texts, *([of._repr_html_()] if hasattr(of, "_repr_html_") else [])])


def asked(number: int, folder: Path) -> Answers:
    """What is asked of a case."""
    return answers_of(cases("answers")[number], number, folder)


def answers_of(case: Case, number: int, folder: Path) -> Answers:
    """What is shown first; each method and each property of a result, of its posterior and of an
    answer of that.
    """
    maker, parts = MAKERS[case["result"]], {}

    def made(part: str, make: Callable[[], Any]) -> Any:
        parts[part] = make()
        return displayed(parts[part])

    @cache
    def another() -> Any:
        return posterior_of(case, maker(case, np.random.default_rng(number + 1000)))

    def call(of: Any, name: str) -> Any:
        return called_as_asked(
            case, of, name, folder, another if of is parts.get("then") else lambda: of
        )

    yield "made", partial(made, "", lambda: maker(case, np.random.default_rng(number)))
    if not parts:
        return
    result = parts[""]
    if hasattr(result, "sheet"):
        yield "sheet at once", lambda: shown(call(result, "sheet"))
    if case["before"] == "posterior" and hasattr(result, "has_posterior"):
        yield "then displayed", lambda: [str(result.posterior), displayed(result)]
    for part, make in parts_of(case, result).items():
        yield part, partial(made, part, make)
    if "then" in parts:
        of = parts["then"]
        for how in ALSO[case["also"]]:  # which no other case asks of this posterior
            yield how, partial(made, how, partial(also_of, how, of, partial(call, of)))
    for part, of in parts.items():
        for name, _ in methods(of):
            apart = LEFT_OUT if part != "then" else {*LEFT_OUT, *chain(*ALSO.values())}
            if name not in apart and not (isinstance(of, Mapping) and not of):
                yield f"{part} {name}", lambda of=of, name=name: shown(call(of, name))
        for name in properties(of):
            if name != "posterior":
                yield f"{part} {name}", lambda of=of, name=name: shown(getattr(of, name))
        if hasattr(of, "from_json"):
            yield f"{part} again", partial(_again, of)


def parts_of(case: Case, result: Any) -> dict[str, Callable[[], Any]]:
    """What else is asked of a result."""
    parts: dict[str, Callable[[], Any]] = {}
    if case["then"] != NOTHING:
        parts["then"] = lambda: posterior_of(case, result)
    if case["result"] == "groups":
        parts["group"] = lambda: list(result.values())[-1]
    if case["result"] == "levels" or case["tables"] in JOINT:
        parts["whole"] = lambda: result.posterior
    if case["result"] == "discovery":
        parts |= {name: partial(getattr, result, name) for name in ("among_all", "among_shown")}
        parts |= {"counts": lambda: result.posterior, "hidden": lambda: result.hidden("other")}
        parts |= {"rest": lambda: result.rest} if result.rest else {}
    return parts


def _again(of: Any) -> Any:
    again, facts = read_again(of)
    return [*facts, shown(repr(again))]


if __name__ == "__main__":
    write(Path(__file__).with_suffix(".txt"), FACTORS.covering(tried=60)[0])
