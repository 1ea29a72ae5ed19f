"""One small result of every kind that users hold, and what its members are called with."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from operator import itemgetter
from typing import Any

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.combined_estimate import combine_estimates
from opendp_bayes.unlisted.thresholds import Discovery, OptimalThreshold
from tests.helpers.releases import PRIVATE, guarantee, release


def table(names: str, drawn: tuple[int, ...]) -> Any:
    """Of variables of two values, and z of three."""
    cells = tuple(product(*("abc" if name == "z" else "ab" for name in names)))
    return release(drawn, cells, axes=tuple(names), columns=tuple(names))


@cache
def results() -> dict[str, Any]:
    """By what each is called."""
    return made_anew()


def made_anew() -> dict[str, Any]:
    """The same, of which nothing was computed yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few draws and wide noise
        return _made()


def _made() -> dict[str, Any]:
    one, joint = release((6, 3, 9), ("a", "b", "c")), table("xy", (9, 1, 2, 3))
    of_groups = ("n", "s"), ((9, 1), (2, 3)), ("a", "b"), (1.0, 1.0)
    groups = GroupedRelease(*of_groups, PRIVATE, guarantee(None))
    sized = GroupedRelease(*of_groups, ob.LaplaceParameters(1.0), guarantee(20), rest=5)
    survey = ob.Survey(("xy", "yz"), (joint, table("yz", (9, 1, 2, 3, 2, 2))))
    fine = release((6, 3, 9), ("a", "b", "c"), columns=("v",))
    parts = ("a", "b"), ("c",)
    coarse = release((10, 8), ("ab", "c"), parts=parts, columns=("v",))
    nested = ob.Survey(("fine", "coarse"), (fine, coarse)).posterior
    loss = ob.PrivacyLoss(2.0, 3.0, 3.0, 1e-6)
    law = Discovery(OptimalThreshold(1.0, 1e-6, 0.5), DiscreteLaplace(2.0))
    promise = ob.PrivacyGuarantee(None, 1, loss, "Approximate(MaxDivergence)")
    shown = ob.DiscoveredRelease("v", ("a", "b"), (40, 30), 0, law, 9, promise)
    posterior, whole = one.posterior, survey.posterior
    listed = release((3, 5), ("a", "b"), ob.mechanisms.HellingerExponential(0.5), 8)
    quantiles = posterior.quantiles([0.3, 0.5], edges=[0, 1, 2, 3])
    pooled = groups.pooled(ess=20)
    found = {"release": one, "joint": joint, "groups": groups, "sized": sized, "survey": survey}
    found |= {"shown": shown, "rest": shown.rest, "hidden": shown.hidden("q")}
    found |= {"of categories": shown.posterior, "posterior": posterior}
    found |= {"listed": listed.posterior, "joint posterior": joint.posterior}
    found |= {"learned": ob.noise_aware_posterior(one, prior="learned", ordered=["v"])}
    found |= {"counts": posterior.counts, "records": posterior.records, "category": posterior["a"]}
    found |= {"difference": posterior.difference("a", "b")}
    found |= {"function": posterior.quantity(itemgetter("a"))}
    found |= {"quantities": posterior.cumulative(), "comparison": posterior.compare(posterior)}
    found |= {"quantile": quantiles[0.5], "quantiles": quantiles, "guarantee": one.guarantee}
    found |= {"survey posterior": whole, "table posterior": whole.marginal("x", "y")}
    found |= {"differences": whole.marginal("x").compare(whole.marginal("y"))}
    found |= {"levels": nested, "level": nested["fine"], "pooled": pooled, "of pooled": pooled["n"]}
    estimates = combine_estimates([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], kind="population")
    profile = ob.privacy_profile(ob.LaplaceParameters(1.0), size=9, prior=[1.0, 1.0])
    return found | {"estimates": estimates, "profile": profile}


#: Take what was checked when it was made, and are for this package alone.
INTERNAL = {"of", "unordered_values"}


def methods(result: Any) -> Iterator[tuple[str, inspect.Signature]]:
    """Public methods of this package, with their parameters."""
    for name in dir(type(result)):
        static = inspect.getattr_static(type(result), name)
        function = getattr(static, "__func__", static)
        public = not name.startswith("_") or name in ("__getitem__", "__call__")
        if not public or name in INTERNAL or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("opendp_bayes"):
            yield name, inspect.signature(getattr(result, name))


def properties(result: Any) -> Iterator[str]:
    """Names of what is computed when it is read."""
    for name in dir(type(result)):
        static = inspect.getattr_static(type(result), name)
        if not name.startswith("_") and (isinstance(static, property) or hasattr(static, "func")):
            yield name


def called(result: Any, method: str, arguments: dict[str, Any]) -> Any:
    """The result of a call; what `*names` and `**values` take is a list and a mapping."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    function, skipped = getattr(result, method), False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in arguments:
            skipped = True
            continue
        value = arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= value
        elif parameter.kind is parameter.KEYWORD_ONLY or skipped:
            named[parameter.name] = value
        else:
            positional.append(value)
    return function(*positional, **named)


PLAUSIBLE: dict[str, Any] = {"level": 0.9, "levels": [0.2, 0.6], "values": [0.1, 0.5]}
PLAUSIBLE |= {"above": 0.2, "draws": 40, "number": 20, "records": 20, "copies": 2, "ess": 20}
PLAUSIBLE |= {"size": 5, "random_state": 1, "among": "answered", "of": "probabilities"}
PLAUSIBLE |= {"by": ["x"], "decimals": 3, "percent": True, "columns": 2, "title": "t"}
PLAUSIBLE |= {"format": "csv", "edges": None, "ax": None, "plug_in": True, "wait": True}
PLAUSIBLE |= {"m_prior": 1.0, "kappa_prior": None}
PLAUSIBLE |= {"delta": 1e-6, "epsilon": 0.5}


def values_of(result: Any, variable: str) -> list[Any]:
    """Those of a variable of a table or of a survey; of what has none, two."""
    categories = getattr(result, "categories", ())
    if isinstance(categories, Mapping):
        return list(categories[variable])
    axes = getattr(result, "axes", ())
    if variable not in axes or not isinstance(categories[0], tuple):
        return ["a", "b"]
    return distinct(cell[axes.index(variable)] for cell in categories)


def plausible(result: Any, method: str, parameter: str, folder: Callable[[], Any]) -> Any:
    """An argument that a method accepts, if any are; `KeyError` for a parameter of a new name."""
    names = list(getattr(result, "variables", None) or getattr(result, "axes", None) or ["x"])
    categories = getattr(result, "categories", ())
    labels = list(categories) if isinstance(categories, tuple) and categories else ["a", "b"]
    special: dict[tuple[str, str], Callable[[], Any]] = {
        ("__getitem__", "label"): lambda: next(iter(getattr(result, "keys", lambda: labels)())),
        ("__getitem__", "key"): lambda: next(iter(result)),
        ("__getitem__", "question"): lambda: next(iter(result)),
        ("with_sizes", "sizes"): lambda: {group: 2 + at for at, group in enumerate(result)},
        ("hidden", "label"): lambda: "q",
        ("interval", "kind"): lambda: "eti",
        ("summary", "kind"): lambda: "hdi",
        ("quantity", "label"): lambda: "q",
        ("by", "columns"): lambda: list(getattr(result, "grouped_by", names[:1])),
        ("from_json", "text"): lambda: result.to_json(),
    }
    usual: dict[str, Callable[[], Any]] = {
        "kind": lambda: "predictive",
        "label": lambda: labels[0],
        "category": lambda: labels[0],
        "first": lambda: labels[0],
        "second": lambda: labels[-1],
        "categories": lambda: labels[:2],
        "groups": lambda: {"g": labels[: len(labels) - 1]},
        "other": lambda: result,
        "event": lambda: lambda theta: theta[0] > 0.5,
        "function": lambda: lambda p: next(iter(p.values())),
        "variables": lambda: names[:1],
        "given": lambda: {names[-1]: values_of(result, names[-1])[0]},
        "sets": lambda: [names[:1]],
        "folder": folder,
    }
    if (method, parameter) in special:
        return special[method, parameter]()
    return usual[parameter]() if parameter in usual else PLAUSIBLE[parameter]
