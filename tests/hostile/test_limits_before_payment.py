"""Every `raise` of the inference, by what it depends on: public ones come before payment."""

import ast
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import opendp_bayes
import opendp_bayes as ob
from opendp_bayes.queries.bound_query import BoundQuery
from opendp_bayes_template import HammingExponential
from tests.helpers.command_line import run
from tests.helpers.contexts import plain_context

PACKAGE = Path(opendp_bayes.__file__).parent
#: Where the files of each part of inference are named from, those of the slices too.
_SURVEYS = "levels", "survey_tables", "joint_posterior.py", "combined_estimate.py"
PARTS = {"inference": PACKAGE / "inference", "unlisted/posterior": PACKAGE / "unlisted"}
PARTS |= {f"surveys/{name}": PACKAGE / "surveys" for name in _SURVEYS}

#: Of what was drawn, which nobody knows before.
DRAWN = """
convolution/number_of_records:_highest
convolution/numbers_and_tilts:numbers_of
convolution/sums:Sums.beside
convolution/numbers_and_tilts:_in_parts
engines:TwoCategories.together
levels/tree_counts:TreeCounts._set
levels/tree:check_sums
likelihood/drawn_counts:check_same_records
likelihood/of_counts:_of_plugin
likelihood/of_counts:_check_sum
survey_tables/noisy_tables:check_tables
"""
#: Of what is asked of a posterior, or given beside releases, long after.
ASKED = """
answers/by_label:positions_of
answers/by_label:grouped_positions
answers/learned_posterior:learned_from
compatible:as_release
compatible:check_given_once
compatible:check_releases
compatible:_check_same_rows
compatible:check_together
answers/by_label:positions_among
answers/by_label:check_others
answers/by_label:place_among
answers/ordered:QuantilePosterior.value
answers/ordered:quantiles_of
answers/posterior:NoiseAwarePosterior.__init__
answers/posterior:NoiseAwarePosterior._in_order
answers/posterior:NoiseAwarePosterior._of_parts
answers/posterior:NoiseAwarePosterior.quantity
answers/posterior:NoiseAwarePosterior.compare
answers/quantities:values_of
combine:combine
convolution/number_of_records:private
levels/levels_posterior:LevelsPosterior.__init__
log_likelihood:LogLikelihood.__init__
log_likelihood:LogLikelihood.of_counts
log_likelihood:LogLikelihood._probabilities
noise_aware:noise_aware_posterior
noise_aware:_with_prior
pooling/pooled_groups:PooledGroups.draws
pooling/pooled_groups:cells_by
pooling/pooled_groups:groups_of_table
combined_estimate:combine_estimates
joint_posterior:survey_posterior
survey_tables/survey_posterior:SurveyPosterior._table
laws/beta_mixture:BetaMixtures._mixed
survey_tables/survey_posterior:SurveyPosterior.write_synthetic
survey_tables/survey_posterior:SurveyPosterior._copies
survey_tables/table_posterior:TableDraws.counted
ways:way_to
"""
#: Of a mechanism of a plugin whose law no reader knows, or that has a likelihood but no number.
PLUGINS = """
likelihood/of_counts:likelihood_of
ways:_check_enumerated
"""


class WithoutLaw(HammingExponential):
    """Has a likelihood, for any number of data sets."""

    def check(self, *, size: int | None, prior: Any) -> None:
        pass

    def log_likelihood(self, released: Any, counts: Any, prior: Any) -> Any:
        return -np.abs(counts - released).sum(axis=1) / 2 / self.scale


#: Of public facts: the number of categories, the budget and further arguments of a query, and the
#: number of records.
OF_ORDER = {"prior": "learned", "ordered": ["c", "d"]}
PUBLIC: dict[str, list[tuple[int, float, dict[str, Any], int | None]]] = {
    "likelihood/drawn_counts:check_envelope": [
        *((2, 1.0, {"prior": 1e-5}, None), (2, 1.0, {"prior": 1e7}, 100)),
        (2, 0.05, {"prior": 0.29}, None),
    ],
    "likelihood/drawn_counts:check_bounds": [
        *((12_000, 1.0, {}, None), (12_000, 1.0, {"prior": 1.0}, None)),
        *((12_000, 1.0, {"prior": 1.0}, 1000), (2, 1e-8, {}, None)),
        (2, 1e-8, {"prior": "learned"}, 1000),
    ],
    "likelihood/drawn_counts:check_drawn": [(2, 1.0, {}, 10**9 + 1)],
    "likelihood/of_counts:_check_scale": [(2, 1e-13, {}, None), (2, 1e-13, {}, 100)],
    "likelihood/of_counts:_tabulated_likelihood": [
        (2, 1.0, {"mechanism": HammingExponential(10.0)}, 60)
    ],
    "ways:Way.check": [(2, 1.0, {"mechanism": WithoutLaw(10.0)}, 110)],
    "likelihood/drawn_counts:check_concentration": [(2, 2e-6, {"prior": 1e5}, None)],
    "answers/learned_posterior:_ordered": [(2, 1.0, OF_ORDER, None)],
}
#: Of the tables of a survey, whose releases have a posterior of their own all the same.
TABLES = """
likelihood/of_counts:noise_of
survey_tables/junction_tree:check_cliques
survey_tables/noisy_tables:_check_not_merged
survey_tables/noisy_tables:_settle
survey_tables/noisy_tables:_look
"""


def raises(tree: ast.AST, name: str = "") -> Iterator[str]:
    """The functions in which something is raised."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from raises(node, f"{name}.{node.name}".lstrip("."))
        elif isinstance(node, ast.Raise):
            yield name
        else:
            yield from raises(node, name)


def test_every_refusal_of_the_inference_is_listed() -> None:
    found = {
        f"{path.relative_to(root).with_suffix('').as_posix()}:{name}"
        for part, root in PARTS.items()
        for path in ([*(PACKAGE / part).rglob("*.py")] or [PACKAGE / part])
        for name in raises(ast.parse(path.read_text(encoding="utf-8")))
    }
    listed = [*PUBLIC, *(" ".join([DRAWN, ASKED, PLUGINS, TABLES])).split()]
    assert len(listed) == len(set(listed))
    assert found == set(listed)


def context_of(budget: float, size: int | None) -> Any:
    frame = pl.LazyFrame({"c": ["c0"] * 10, "by": ["n"] * 10})
    unit = "contributions" if size is None else "changes"
    return plain_context(frame, {unit: 1}, {"epsilon": budget})


def asked(context: Any, number: int, size: int | None, **arguments: Any) -> Any:
    labels = [f"c{i}" for i in range(number)]
    others = {"nulls": "m", "unknown": "o", "categories": labels, "size": size}
    return ob.posterior(context.query(), "c", **(others | arguments))


def refused_by(release: Callable[[], Any]) -> tuple[str, str]:
    """The function of the inference that refuses a release, and the message."""
    with pytest.raises((TypeError, ValueError)) as caught:
        release()
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    if frames[-1].f_code.co_name in {"too_uncertain", "check_cells"}:
        frames.pop()
    path = Path(frames[-1].f_code.co_filename)
    where = path.relative_to(PACKAGE / "inference").with_suffix("").as_posix()
    return f"{where}:{frames[-1].f_code.co_name}", str(caught.value)


CASES = [(name, *case) for name, cases in PUBLIC.items() for case in cases]


@pytest.mark.parametrize(("name", "number", "budget", "arguments", "size"), CASES)
def test_what_public_facts_decide_is_refused_before_it_is_paid(
    name: str, number: int, budget: float, arguments: dict[str, Any], size: int | None
) -> None:
    context = context_of(budget, size)
    if name == "answers/learned_posterior:_ordered":  # a query refuses it by itself, even before
        with pytest.raises(ValueError, match="ordered"):
            asked(context, number, size, **arguments)
        return
    query = asked(context, number, size, **arguments)
    found, message = refused_by(query.release)
    assert found.split(":") == [name.split(":")[0], name.split(":")[1].split(".")[-1]]
    with pytest.raises((TypeError, ValueError)) as shown:
        query.summarize()
    assert str(shown.value) == message
    assert message in repr(query)
    assert context.remaining_privacy_loss() == [budget]
    if budget >= 1.0 and size is None:
        assert asked(context, 2, size).release().counts  # nothing was spent


def test_without_the_check_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake put back: the release is made, and has no posterior."""
    monkeypatch.setattr(BoundQuery, "settled", BoundQuery._fitted)
    context = context_of(1.0, None)
    made = asked(context, 12_000, None).release()
    with pytest.raises(ValueError, match="categories: would be 12002"):
        made.posterior.mean()
    assert context.remaining_privacy_loss() == []


def test_groups_are_one_table_and_questions_of_surveys_are_named() -> None:
    """300 groups of 40 categories are alone where their number is private."""
    groups = {
        "categories": {"c": [f"c{i}" for i in range(40)], "by": [f"g{i}" for i in range(300)]}
    }
    policies = {"nulls": {"c": "c0"}, "unknown": {"c": "c0"}, "by": "by"}
    context = context_of(1.0, 1000)
    found, message = refused_by(asked(context, 2, 1000, **groups, **policies).release)
    assert found == "likelihood/drawn_counts:check_bounds"
    assert "categories: would be 12001" in message
    assert context.remaining_privacy_loss() == [1.0]
    assert len(asked(context_of(1.0, None), 2, None, **groups, **policies).release()) == 300
    context = context_of(1.0, None)
    many = {"column": "c", "categories": [f"c{i}" for i in range(12_000)]}
    policies = {"nulls": "m", "unknown": "o"}
    few = {"column": "by", "categories": ["n", "s"], **policies}
    query = ob.survey(context.query(), {"few": few, "many": {**many, **policies}})
    for of in (query.release, query.summarize):
        with pytest.raises(ValueError, match=r"questions\['many'\]: categories: would be 12002"):
            of()
    assert "questions['many']: categories: would be 12002" in repr(query)
    assert context.remaining_privacy_loss() == [1.0]


TOGETHER: dict[str, tuple[dict[str, Any], str]] = {
    "noise_of": ({"mechanism": "hellinger_exponential"}, "needs noise on the counts"),
    "_settle": ({"unknown": "others"}, "has the labels"),
    "_check_not_merged": (
        {"merge": {"all": ["a", "b"], "rest": ["o"]}, "unknown": "o", "nulls": "a"},
        "merges categories",
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_posterior_together_is_asked_for_and_does_not_refuse_the_releases(name: str) -> None:
    changed, message = TOGETHER[name]
    size = 60 if "mechanism" in changed else None
    frame = pl.LazyFrame({"one": ["a"] * 60, "two": ["b"] * 60})
    unit = "contributions" if size is None else "changes"
    context = plain_context(frame, {unit: 1}, {"epsilon": 2.0})
    own = {"categories": ["a", "b"], "nulls": "a", "unknown": "o", "size": size}
    labels = {"one": ["a", "b"], "two": ["a", "b"]}
    both = {"column": ["one", "two"], "categories": labels}
    both |= {"nulls": "a", "unknown": "o", "size": size}
    if name == "_check_not_merged":  # of this table the merged one would be a level
        both = {"column": "two", **own}
    questions = {"one": {"column": "one", **own, **changed}, "both": both}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unknown values are in different places
        query = ob.survey(context.query(), questions)
    with pytest.raises(ValueError, match=message):
        query.check_joint()
    made = query.release()
    with pytest.raises(ValueError, match=message):
        made.posterior  # noqa: B018
    assert made["both"].posterior.mean().sum() == pytest.approx(1, abs=1e-4)


def test_groups_and_shares_without_a_posterior_are_refused() -> None:
    context = context_of(1.0, None)
    policies = {"nulls": {"c": "c0"}, "unknown": {"c": "c0"}}
    groups = {"column": "c", "by": "by", "categories": {"c": ["c0", "c1"], "by": ["n"]}}
    query = ob.survey(context.query(), {"groups": {**groups, **policies}})
    with pytest.raises(ValueError, match=r"questions\['groups'\]: is of groups"):
        query.check_joint()
    types = {"c": pl.Enum(["c0", "c1"]), "by": pl.Enum(["n", "e", "s"])}
    context = plain_context(
        pl.LazyFrame({"c": ["c0"] * 944, "by": ["n"] * 944}, schema=types), {"changes": 1}
    )
    own = {"size": 944, "mechanism": "laplace_parameters"}
    nulls = {"c": "c0", "by": "n"}
    table = {"column": ["c", "by"], "nulls": nulls, **own}
    other = {"column": "by", "nulls": "n", **own}
    query = ob.survey(context.query(), {"table": table, "other": {**other, "share": 1e-7}})
    with pytest.raises(ValueError, match=r"questions\['other'\]: "):
        query.release()
    assert context.current_privacy_loss() == []


def test_the_command_refuses_before_it_reads_records(tmp_path: Path) -> None:
    data, ledger = tmp_path / "c.csv", tmp_path / "c.ledger"
    data.write_text("c\n" + "c0\n" * 10)
    labels = ",".join(f"c{i}" for i in range(12_000))
    command = ["release", str(data), "--column", "c", "--categories", labels, "--epsilon", "1"]
    message = run(*command, code=2)
    assert "would be 12001" in message
    assert not ledger.exists()
