"""What a report says in sentences: notes, methods and the promise."""

import math
import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column
from opendp_bayes_office.report.specification_text import read_specification
from opendp_bayes_office.report.statements import (
    guarantee,
    methods,
    named,
    naming,
    notes,
    prior_of,
    total,
)

TEXT = """
title = "Votes"
[privacy]
epsilon = 1.0
[columns.vote]
categories = ["a", "b"]
[columns.town]
categories = [1, 2]
labels = ["North", "South"]
[[results]]
column = "vote"
"""
BY = 'column = "vote"\nby = "town"'
TABLE = 'column = ["vote", "town"]'


VOTES, TOWNS = ["a", "b", "other"], [1, 2, "other"]
DROPPED = {'["a", "b"]': '["a", "b"]\nunknown = "DROP"'}


def noted(text: str) -> list[str]:
    specification = read_specification(text)
    result = specification.results[0]
    of_vote = VOTES if specification.columns["vote"].categories else VOTES[:2]
    categories: Any = of_vote if len(result.columns) == 1 else list(product(of_vote, TOWNS))
    return list(notes(specification, result, categories))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            [
                "Records without a value are left out; those with a value that is no category are"
                " counted as “no listed value”."
            ],
        ),
        (DROPPED, ["Records without a value or with one that is no category are left out."]),
        ({**DROPPED, "epsilon = 1.0": "epsilon = 1.0\nsize = 9"}, []),
        (
            {'["a", "b"]': '["a", "no listed VALUE"]'},
            [
                "Records without a value are left out; those with a value that is no category are"
                " counted as “(no listed value)”."
            ],
        ),
        (
            {'["a", "b"]': '["a", "b"]\nnulls = "a"\nunknown = "a"'},
            ["Records without a value or with one that is no category are counted as “a”."],
        ),
        (
            {'["a", "b"]': '["a", "b"]\nunknown = "other"'},
            [
                "Records without a value are left out; those with a value that is no category are"
                " counted as “other”."
            ],
        ),
        ({'categories = ["a", "b"]': ""}, ["Records without a value are left out."]),
        ({'categories = ["a", "b"]': "", "epsilon = 1.0": "epsilon = 1.0\nsize = 9"}, []),
        (
            {'column = "vote"': BY, '"South"]': '"South"]\nnulls = 2', **DROPPED},
            [
                "Records without a value of vote or with one that is no category are left out;"
                " those without a value of town are counted as “South”; those with a value of town"
                " that is no category are in no group."
            ],
        ),
        (
            {
                'column = "vote"': BY,
                "epsilon = 1.0": "epsilon = 1.0\nsize = 9",
                '["a", "b"]': '["a", "b"]\nnulls = "b"\nunknown = "b"',
            },
            [
                "Records without a value of vote or with one that is no category are counted as"
                " “b”; those without a value of town or with one that is no category are in no"
                " group."
            ],
        ),
        (
            {'column = "vote"': TABLE, **DROPPED, '"South"]': '"South"]\nunknown = "DROP"'},
            [
                "Records without a value of vote or town or with one that is no category are left"
                " out."
            ],
        ),
        (
            {'column = "vote"': TABLE, **DROPPED},
            [
                "Records without a value of vote or town or with a value of vote that is no"
                " category are left out; those with a value of town that is no category are counted"
                " as “no listed value”."
            ],
        ),
        (
            {
                "epsilon = 1.0": 'epsilon = 1.0\nidentifier = "id"\nrows_per_identifier = 1',
                'categories = ["a", "b"]': "",
            },
            [
                "Records without a value are left out.",
                "At most 1 record of each id is counted: the results are about the records kept,"
                " not about all.",
            ],
        ),
    ],
)
def test_the_notes_say_where_every_record_is_counted(
    changes: dict[str, str], expected: list[str]
) -> None:
    text = TEXT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert noted(text) == expected


def release(mechanism: Any, prior: tuple[float, float] = (1.0, 1.0), **losses: Any) -> ob.Release:
    size = losses.pop("size", None)
    loss = replace(ob.PrivacyLoss(epsilon=0.5, rho=0.125, range=1.0), **losses)
    promised = ob.PrivacyGuarantee(size, 1, loss, "MaxDivergence")
    return ob.Release((3, -1), ("a", "b"), prior, mechanism, promised)


NOISE = ob.LaplaceParameters(scale=2.0, total="private")


def report(text: str, *releases: Any) -> Report:
    return Report(read_specification(text), releases, {"opendp-bayes": "1.2"})


def test_the_methods_of_one_result() -> None:
    dropped = TEXT.replace('["a", "b"]', '["a", "b"]\nunknown = "DROP"')
    assert methods(report(dropped, release(NOISE)), 0.95) == (
        "Category probabilities were released under differential privacy with opendp-bayes 1.2."
        " The privacy unit is one record: data sets that differ by 1 record added or removed are"
        " neighbours. The number of records is private. The result has a privacy loss of at most"
        " ε = 0.5; bounds are certified and rounded up. The mechanism was discrete Laplace noise on"
        " the counts, of scale 2. Estimates are means and equal-tailed 95 % credible intervals of"
        " the posterior given the released values, which takes the randomness of the release into"
        " account. The prior was Dirichlet with concentration 1 per category. Records without a"
        " value or with one that is no category are left out."
    )


def test_the_methods_say_of_which_result_they_speak() -> None:
    text = TEXT + '[[results]]\ncolumn = "town"\ntitle = "Town"\n'
    text = text.replace('"South"]', '"South"]\nnulls = 1\nunknown = 2')
    said = methods(report(text, release(NOISE), release(NOISE, (1.0, 2.0))), 0.95)
    assert "All results together have a privacy loss of at most ε = 1;" in said
    assert "noise on the counts, of scale 2. " in said
    assert "concentration 1 per category for “vote”; (1, 2) for “Town”. In “vote”, records" in said
    assert "In “Town”, records without a value are counted as “North”; those with" in said
    assert "This result" not in said
    wider = replace(NOISE, scale=4.0)
    said = methods(report(text, release(NOISE), release(wider)), 0.95)
    assert "noise on the counts, of scale 2 for “vote”; 4 for “Town”. " in said
    smooth = ob.mechanisms.SmoothHellingerExponential(scale=4.0)
    said = methods(report(text, release(NOISE), release(smooth)), 0.95)
    assert "; SmoothHellingerExponential(gamma=1), of scale 4, for “Town”. " in said


def test_a_learned_prior_is_said() -> None:
    learned, plain = replace(release(NOISE), learned_prior=True), release(NOISE)
    assert prior_of(learned) == "learned from the release"
    assert "account. The prior was learned from the release. " in methods(
        report(TEXT, learned), 0.95
    )
    both = TEXT + '[[results]]\ncolumn = "town"\ntitle = "Town"\n'
    said = methods(report(both, learned, plain), 0.95)
    assert "learned from the release for “vote”; Dirichlet with concentration 1 per" in said


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (ob.LaplaceParameters(scale=1.0, noise="floored"), "floored Laplace noise on the counts"),
        (ob.GaussianParameters(scale=1.0), "discrete Gaussian noise on the counts"),
        (ob.KNormParameters(scale=1.0), "K-norm noise on the counts"),
        (
            ob.mechanisms.HellingerExponential(scale=1.0),
            "the exponential mechanism on the Hellinger distance",
        ),
        (ob.mechanisms.PermuteAndFlip(scale=1.0), "permute-and-flip on the Hellinger distance"),
    ],
)
def test_mechanisms_have_plain_names(mechanism: Any, name: str) -> None:
    said = methods(report(TEXT, release(mechanism, size=9)), 0.95)
    assert f"The mechanism was {name}" in said


def promised(privacy: str, **losses: Any) -> str:
    """The box of the promise, as text."""
    html = rendered(report(TEXT.replace("epsilon = 1.0", privacy), release(NOISE, **losses)))
    box = html[html.index('<div class="promise">') :].partition("</div>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<.*?>", "", box.replace("<sup>", "^")))


def test_the_promise_is_that_of_its_neighbours() -> None:
    private = promised('epsilon = 1.0\nunit = "one answer"')
    assert "If one answer had been left out, the probability of each result would change" in private
    assert "for all data sets that differ by 1 record added or removed." in private
    assert "The privacy loss is at most ε = 0.5, for" in private, "of one result, not of all"
    assert private.startswith(" These results limit what anyone can learn about one answer. They")
    public = report(
        TEXT.replace("epsilon = 1.0", "epsilon = 1.0\nsize = 9").replace(
            '["a", "b"]', '["a", "b"]\nnulls = "a"\nunknown = "a"'
        ),
        release(replace(NOISE, total="remainder"), size=9),
    )
    assert guarantee(public)["otherwise"] == "different"
    assert guarantee(public)["change"] == "1 record changed"


def test_the_promise_says_what_each_loss_is() -> None:
    pure = promised("epsilon = 1.0")
    assert "at most e^ε = 1.649 times that in the other." in pure  # e^0.5 = 1.6487...
    assert "plus δ" not in pure
    assert "plus δ." in promised("epsilon = 1.0\ndelta = 1e-6", delta=1e-6)
    concentrated = promised("rho = 1.0")
    assert "probability in one case is at most e^ε times that in the other, plus δ," in concentrated
    assert "of every order α &gt; 1 between the two cases is at most ρ α." in concentrated
    assert "Rényi" not in pure
    implied = 0.125 + 2 * math.sqrt(0.125 * math.log(1e6))
    (shown,) = re.findall(r"with ε = ([\d.]+) and δ = 1e-06", concentrated)
    assert implied <= float(shown) <= implied + 1e-3
    approximate = promised("rho = 1.0\ndelta = 1e-6", delta=1e-6)
    assert "but for events of probability at most δ = 1e-06." in approximate
    assert "and δ = 2e-06. The smaller ρ" in approximate


def test_a_factor_that_says_nothing_is_left_out() -> None:
    assert "at most e^ε times" in promised("epsilon = 1.0", epsilon=20000.0)


def test_a_category_of_its_own_is_called_what_it_is() -> None:
    made = replace(
        release(NOISE), drawn=(3, 4, 5), categories=("a", "b", "other"), prior=(1.0,) * 3
    )
    page = rendered(report(TEXT, made))
    assert "no listed value" in page
    assert ">other<" not in page
    named = TEXT.replace('["a", "b"]', '["a", "b"]\nunknown = "other"')
    assert "no listed value" not in rendered(report(named, made))


def test_an_other_of_the_type_keeps_its_name() -> None:
    made = replace(
        release(NOISE), drawn=(3, 4, 5), categories=("a", "b", "other"), prior=(1.0,) * 3
    )
    page = rendered(report(TEXT.replace('categories = ["a", "b"]', ""), made))
    assert "no listed value" not in page
    assert ">other<" in page


def of_two(privacy: str, first: dict[str, float], second: dict[str, float]) -> Report:
    """A report of two results whose losses differ."""
    text = TEXT.replace("epsilon = 1.0", privacy) + '[[results]]\ncolumn = "town"\n'
    return report(text, release(NOISE, **first), release(NOISE, **second))


def test_the_promise_of_two_results_is_that_of_both_together() -> None:
    """Their sums everywhere, under every budget; that of the second alone is larger."""
    pure = of_two("epsilon = 1.0", {"epsilon": 0.25}, {"epsilon": 0.5})
    assert guarantee(pure)["loss"] == "ε = 0.75"
    assert math.exp(0.75) <= float(guarantee(pure)["factor"]) <= math.exp(0.75) + 1e-3
    assert total(pure.releases)["epsilon"] == "0.75"
    both = of_two("rho = 1.0", {"rho": 0.25}, {"rho": 0.5})
    assert guarantee(both)["loss"] == "ρ = 0.75"
    implied = 0.75 + 2 * math.sqrt(0.75 * math.log(1e6))
    assert implied <= float(guarantee(both)["epsilon"]) <= implied + 1e-2
    assert guarantee(both)["delta"] == "1e-06"
    assert total(both.releases)["rho"] == "0.75"
    assert "a privacy loss of at most ρ = 0.75; bounds" in methods(both, 0.95)
    box = rendered(both)
    assert "ρ = 0.75" in box[box.index('<div class="promise">') :].partition("</div>")[0]
    shared = of_two("rho = 1.0\ndelta = 1e-5", {"rho": 0.25, "delta": 1e-6}, {"delta": 3e-6})
    assert guarantee(shared)["loss"] == "ρ = 0.375, δ = 4e-06"
    assert guarantee(shared)["delta"] == "5e-06", "and the 1e-06 of the ε that ρ implies"


def test_neighbours_and_priors_are_said_as_they_are() -> None:
    """A unit of three records, and a prior that begins and ends alike."""
    plain = release(NOISE)
    three = plain.with_guarantee(replace(plain.guarantee, d_in=3))
    assert guarantee(report(TEXT, three))["change"] == "3 records added or removed"
    prior = replace(plain, drawn=(3, -1, 2), categories=("a", "b", "c"), prior=(1.0, 2.0, 1.0))
    assert prior_of(prior) == "(1, 2, 1)"


def test_labels_belong_to_the_categories_beside_them() -> None:
    column = Column(categories=["z", "a", "m"], labels=["Zed", "Ay", "Em"])
    assert [named(column, value) for value in ("a", "m", "z")] == ["Ay", "Em", "Zed"]


def test_labels_that_are_merged_are_named_already() -> None:
    """Those of a column may be other categories of it."""
    text = TEXT.replace('["a", "b"]', '["a", "b", "c"]\nlabels = ["b", "c", "a"]')
    names = []
    for merge in ("", "merge = 2"):
        specification = read_specification(f"{text}\n{merge}")
        column = naming(specification.columns["vote"], specification.results[0])
        names.append([named(column, value) for value in ("a", "b", "c")])
    assert names == [["b", "c", "a"], ["a", "b", "c"]]
