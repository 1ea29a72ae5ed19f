"""A document of every kind; `python -m tests.helpers.documents` writes those of a new version."""

import json
from dataclasses import asdict, replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import opendp_bayes as ob
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.release_format.kind_of_text import format_of
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.unlisted import Discovery, GaussianThreshold, LaplaceThreshold, OptimalThreshold
from opendp_bayes_office.report.owner_file import OwnerFile
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Specification
from opendp_bayes_office.report.specification_text import read_owner_file, read_specification
from opendp_bayes_smoothed import SamplingHistogram
from tests.helpers.sources import ROOT

FOLDER = ROOT / "tests/release_format/written_before"
#: In each folder, what the documents said when they were written.
SAID = "said.json"
PURE, BOTH, RHO = "MaxDivergence", "Approximate(MaxDivergence)", "ZeroConcentratedDivergence"
KEPT = "the first row of each person"
PRIVATE = ob.LaplaceParameters(2.0, total="private")
#: Every field of a specification has a value in one of the two.
REPORT = """
title = "Votes and codes"
text = "Answers of 40 invented people."
joint = false
among = "all"
language = "fr"
trim = true
null_values = ["NA", -99]
rows_above = 1
skip_rows = 2
separator = ";"
encoding = "latin-1"
labels = true
sheet = "answers"
[privacy]
unit = "one person"
epsilon = 3.0
delta = 1e-7
guess_size = 40
contributions = 1
identifier = "person"
rows_per_identifier = 1
[columns.vote]
categories = ["yes", "no"]
labels = ["for it", "against it"]
recode = { oui = "yes" }
null_values = ["?"]
nulls = "no"
unknown = "DROP"
[columns.region]
categories = ["n", "s"]
unknown = "s"
[columns.code]
categories = "discover"
always = ["none"]
[[results]]
column = "vote"
title = "Expected vote"
text = "All of them."
prior = [1.0, 2.0]
share = 2.0
mechanism = "laplace_parameters"
ordered = ["vote"]
[[results]]
column = "vote"
by = "region"
pooled = true
[[results]]
column = "code"
rest = 0.2
"""
QUESTION = {
    "title": "Ages",
    "joint": True,
    "privacy": {"rho": 0.5, "size": 60},
    "columns": {"age": {"categories": [1, 2, 3, 4]}},
    "results": [{"column": "age", "merge": 2}, {"column": "age"}],
}
OWNER = """
path = "votes.sav"
separator = ";"
encoding = "latin-1"
trim = true
null_values = ["NA", -99]
skip_rows = 2
labels = true
sheet = "answers"
plugins = ["hamming_exponential"]
epsilon_at_most = 1.0
rho_at_most = 0.5
delta_at_most = 1e-6
[privacy]
unit = "one voter"
contributions = 3
identifier = "voter"
most_rows_per_identifier = 4
[columns.vote]
categories = ["a", "b", "c"]
nulls = "c"
recode = { x = "a" }
null_values = [-1]
[columns.code]
categories = ["none"]
discover = true
[ledger]
path = "votes.ledger"
dataset = "votes"
total = { epsilon = 3.0, delta = 1e-5 }
"""
OWNER_OF_PUBLIC_SIZE = """
path = "ages.csv"
rho_at_most = 0.5
[privacy]
size = 60
[columns.age]
categories = [1, 2, 3, 4]
[ledger]
path = "ages.ledger"
total = { rho = 1.0 }
"""


def release(
    mechanism: ob.Mechanism, size: int | None, drawn: tuple[int, ...], **fields: Any
) -> ob.Release:
    """A release of categories named by letters, with the loss of the mechanism."""
    measure = RHO if isinstance(mechanism, ob.GaussianParameters) else PURE
    promised = {name: fields.pop(name) for name in ("d_in", "truncated", "kept") if name in fields}
    prior = fields.pop("prior", (1.0,) * len(drawn))
    labels = fields.pop("categories", tuple("abcdefghijklmnop"[: len(drawn)]))
    loss = ob.exact_loss(mechanism, size=size, prior=prior, d_in=promised.get("d_in", 1))
    guarantee = ob.PrivacyGuarantee(size, **({"d_in": 1} | promised), loss=loss, measure=measure)
    return ob.Release(drawn, labels, prior, mechanism, guarantee, **fields)


def discovery(
    law: Any, loss: ob.PrivacyLoss, kept: str = "", **changed: Any
) -> ob.DiscoveredRelease:
    """A release of towns that nobody listed."""
    given: dict[str, Any] = {"column": "town", "categories": ("none", "Avon", "Bath", "York")}
    given |= {"noisy_counts": (-2, 95, 310, 140), "listed": 1}
    given |= {"discovery": Discovery(law), "noisy_rest": None}
    measure = changed.pop("measure", BOTH)
    given["guarantee"] = ob.PrivacyGuarantee(None, 1, loss, measure, bool(kept), kept)
    return ob.DiscoveredRelease(**given | changed)


def objects() -> dict[str, Any]:
    """What has a JSON of its own, by the name of its file: every mechanism, law and kind."""
    inf = float("inf")
    cells = tuple((one, two) for one in ("x", "y") for two in (1, 2, 3))
    labels: Any = {"categories": ("yes", "no", True), "prior": (1.0, 0.5, 2.0)}
    rest: Any = {"columns": ("vote",), "nulls": ("no",), "unknown": (True,)}
    column = release(PRIVATE, None, (23, -1, 15), **labels, **rest)
    counted: Any = (("n", "s", None), ((13, 1), (0, -4), (7, 20)), ("yes", "no"), (1.0, 0.5))
    of: Any = {"columns": ("vote",), "unknown": (None,), "grouped_by": ("region",)}
    groups = GroupedRelease(*counted, PRIVATE, column.guarantee, **of)
    knorm = ob.KNormParameters(2.0)
    loss = ob.exact_loss(knorm, size=20, prior=[1.0] * 5)
    promise = ob.PrivacyGuarantee(20, 1, loss, PURE)
    counted = ((("a", 1), ("b", None)), ((3, 1), (0, 4)), ("yes", "no"), (1.0, 1.0))
    sized = GroupedRelease(*counted, knorm, promise, rest=12, sizes=(5, 3))
    optimal = discovery(
        OptimalThreshold(1.0, 1e-8, 0.7999),
        ob.PrivacyLoss(1.0, inf, inf, 1e-8),
        discovery=Discovery(OptimalThreshold(1.0, 1e-8, 0.7999), DiscreteLaplace(5.0)),
        noisy_rest=77,
    )
    gaussian = GaussianThreshold(4.0, 60)
    fine = [
        release(PRIVATE, None, drawn, parts=parts, columns=("age",), categories=labels)
        for drawn, labels, parts in (
            ((30, 12), ("young", "old"), ((1, 2), (3, 4))),
            ((19, 9, 8, 6), (1, 2, 3, 4), ()),
        )
    ]
    asked = read_specification(REPORT)
    kept = {"d_in": 1, "truncated": True, "kept": KEPT}
    results = (
        replace(column, guarantee=replace(column.guarantee, truncated=True, measure=BOTH)),
        replace(groups, guarantee=replace(groups.guarantee, truncated=True, measure=BOTH)),
        replace(optimal, column="code", guarantee=replace(optimal.guarantee, truncated=True)),
    )
    of_report = ob.Survey(tuple(result.heading for result in asked.results), results)
    return {
        "one_column": column,
        "joint_table": release(
            ob.GaussianParameters(3.0, total="private"),
            None,
            (9, -1, 5, 13, 0, 2),
            categories=cells,
            axes=("w", "v"),
            learned_prior=True,
            ordered=("v",),
        ),
        "bounded": replace(column, guarantee=replace(column.guarantee, d_in=ob.Distance(6, 12, 2))),
        "discovery_of_bounded": replace(
            optimal, guarantee=replace(optimal.guarantee, d_in=ob.Distance(3, 3, 1))
        ),
        "merged": release(PRIVATE, None, (9, -1), parts=(("c",), ("b", "d")), **kept),
        "public_number": release(ob.KNormParameters(2.0), 12, (3, 4, 5)),
        "floored_noise": release(ob.LaplaceParameters(4.0, noise="floored"), 12, (3, 4, 5)),
        "hellinger": release(HellingerExponential(0.5), 12, (3, 9)),
        "local": release(HellingerExponential(0.5, sensitivity="local"), 12, (3, 9)),
        "flipped": release(PermuteAndFlip(0.5), 12, (3, 4, 5)),
        "smooth": release(SmoothHellingerExponential(2.0, gamma=0.5), 12, (3, 9)),
        "smooth_by_beta": release(SmoothHellingerExponential(2.0, beta=0.5), 12, (3, 9)),
        "groups": groups,
        "groups_with_sizes": sized,
        "discovery": optimal,
        "discovery_by_laplace": discovery(
            LaplaceThreshold(2.0, 40), ob.PrivacyLoss(0.5, inf, inf, 1e-7), people=True, kept=KEPT
        ),
        "discovery_by_gauss": discovery(
            gaussian,
            ob.PrivacyLoss(inf, 2.0, inf, 1e-6),
            measure="Approximate(ZeroConcentratedDivergence)",
            discovery=Discovery(gaussian, DiscreteGaussian(9.0)),
            noisy_rest=15,
        ),
        "survey": ob.Survey(("votes", "by region"), (column, groups)),
        "levels": ob.Survey(("coarse", "fine"), tuple(fine)),
        "report": Report(asked, of_report, {"OpenDP": "0.16.0"}),
        "sample": release(SamplingHistogram(rate=0.5), 12, (2, 4)),
    }


def texts() -> dict[str, str]:
    """All documents, by the names of their files."""
    found = {f"{name}.json": one.to_json() for name, one in objects().items()}
    found |= {"report.toml": REPORT, "question.json": json.dumps(QUESTION)}
    found |= {"owner.toml": OWNER, "owner_of_public_size.toml": OWNER_OF_PUBLIC_SIZE}
    return found


_BY_FORMAT = {
    "opendp-bayes release": ob.Release.from_json,
    "opendp-bayes discovery": ob.DiscoveredRelease.from_json,
    "opendp-bayes survey": ob.Survey.from_json,
    "opendp-bayes report": Report.from_json,
}


def read(path: Path) -> Any:
    """What a file holds, by its reader."""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("owner"):
        return read_owner_file(text)
    if path.suffix == ".toml" or path.name.startswith("question"):
        return read_specification(text)
    return _BY_FORMAT[format_of(text)](text)


@singledispatch
def says(read: Any) -> Any:
    """What a document says, as JSON; `estimates` is what follows within an error."""
    raise TypeError(f"{type(read).__name__}: has no line in tests/helpers/documents.py.")


def _stated(release: Any, *names: str) -> dict[str, Any]:
    stated = {name: getattr(release, name) for name in (*names, "size", "d_in", "epsilon", "delta")}
    promised = {name: getattr(release.guarantee, name) for name in ("measure", "relation")}
    return stated | promised | {"loss": asdict(release.loss)}


@says.register
def _(read: ob.Release) -> Any:
    names = (
        "categories",
        "noisy_counts",
        "prior",
        "axes",
        "columns",
        "unknown",
        "parts",
        "ordered",
    )
    mechanism = {"name": read.mechanism.name, **asdict(read.mechanism)}
    # A learned prior takes half a minute, and the posterior of a sample is of the sample alone.
    skipped = read.learned_prior or isinstance(read.mechanism, SamplingHistogram)
    estimates = [] if skipped else [read.posterior.mean(), *read.posterior.interval(0.9)]
    stated = _stated(read, *names, "learned_prior")
    return stated | {"mechanism": mechanism, "estimates": estimates}


@says.register
def _(read: GroupedRelease) -> Any:
    names = ("groups", "noisy_counts", "categories", "prior", "axes", "rest", "sizes", "grouped_by")
    means = [one.posterior.mean() for one in read.values()]
    pooled = [one.mean() for one in read.pooled(ess=2000).values()]
    return _stated(read, *names) | {"estimates": [means, pooled]}


@says.register
def _(read: ob.DiscoveredRelease) -> Any:
    names = ("column", "categories", "noisy_counts", "listed", "people", "threshold", "noisy_rest")
    mean = read.posterior.mean()
    return _stated(read, *names) | {"law": str(read.discovery), "estimates": [mean / 100]}


@says.register
def _(read: ob.Survey) -> Any:
    tables = [one for one in read.values() if isinstance(one, ob.Release)]
    one = read.posterior if len(tables) == len(read) else None
    means = [] if one is None else [one[name].mean() for name in read]
    return {
        "questions": {name: says(of) for name, of in read.items()},
        "loss": asdict(read.loss),
        "estimates": means,
    }


@says.register
def _(read: Report) -> Any:
    return {
        "specification": says(read.specification),
        "releases": list(map(says, read.survey.releases)),
        "software": read.software,
    }


@says.register(Specification)
@says.register(OwnerFile)
def _(read: Any) -> Any:
    return msgspec.to_builtins(read)


def as_json(value: Any) -> Any:
    """A value as JSON reads it back; infinity is null."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=np.ndarray.tolist))


def main() -> None:
    """Write the documents of this version, unless they are there: nobody changes them later."""
    folder = FOLDER / ob.__version__
    written = texts()
    folder.mkdir()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    said = {path.name: as_json(says(read(path))) for path in sorted(folder.iterdir())}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in said.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (folder / SAID).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
