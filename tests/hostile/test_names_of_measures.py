"""Measures have names of our own, whatever a version of OpenDP calls them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.measures import measure_debug
from opendp.mod import Measure

import opendp_bayes as ob
import opendp_bayes_smoothed as obs
from opendp_bayes.display.wording import in_words, stated_loss
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.trusted.budget import as_entry, name_of, unit_in_words
from tests.helpers.contexts import plain_context
from tests.helpers.releases import guarantee

LOSSES: dict[str, dict[str, float]] = {
    "MaxDivergence": {"epsilon": 1.0},
    "ZeroConcentratedDivergence": {"rho": 0.5},
    "Approximate(MaxDivergence)": {"epsilon": 1.0, "delta": 1e-7},
    "Approximate(ZeroConcentratedDivergence)": {"rho": 0.5, "delta": 1e-7},
}
#: As OpenDP's own proposal renames them.
RENAMED = {"ZeroConcentratedDivergence": "zCDP"}
RENAMED |= {"Approximate(MaxDivergence)": "ApproxDP", "MaxDivergence": "PureDP"}


@pytest.fixture
def _renamed() -> Iterator[None]:
    """OpenDP with other names for its measures."""

    def renamed(measure: Any) -> str:
        text = measure_debug(measure)
        for old, new in RENAMED.items():
            text = text.replace(old, new)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "__str__", renamed)
        patch.setattr(Measure, "__repr__", renamed)
        assert repr(dp.zero_concentrated_divergence()) == "zCDP", "the control"
        yield


def released(loss: dict[str, float]) -> ob.Release:
    context = plain_context(
        pl.LazyFrame({"v": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))}), loss=loss
    )
    release: ob.Release = ob.posterior(context.query(), "v", nulls="a").release()
    return release


@pytest.mark.usefixtures("_renamed")
@pytest.mark.parametrize("name", LOSSES)
def test_a_release_under_other_names_says_the_same(name: str) -> None:
    release = released(LOSSES[name])
    assert release.guarantee.measure == name
    assert json.loads(release.to_json())["measure"] == name
    assert ob.Release.from_json(release.to_json()) == release
    symbol = "ρ" if "rho" in LOSSES[name] else "ε"
    assert stated_loss(release.guarantee).startswith(f"{symbol} = ")
    assert f"{symbol} = " in in_words(ob.Survey(("v",), (release,)).releases[0].guarantee)


@pytest.mark.usefixtures("_renamed")
def test_constructors_ledgers_and_the_plugin_do_not_look_at_names() -> None:
    assert name_of(dp.smoothed_max_divergence()) == name_of(dp.renyi_divergence()) == ""
    assert as_entry(dp.zero_concentrated_divergence(), 0.5).rho == 0.5
    assert as_entry(dp.approximate(dp.max_divergence()), (0.5, 1e-6)).delta == 1e-6
    with pytest.raises(ValueError, match=r"a ledger adds .* not in SmoothedPureDP"):
        as_entry(dp.smoothed_max_divergence(), 0.5)
    assert unit_in_words(*dp.unit_of(contributions=2)) == "contributions: 2"
    domain = dp.lazyframe_domain([dp.series_domain("v", dp.enum_domain(pl.Series(["a", "b"])))])
    posterior = ob.t.make_categorical_counts(
        domain, dp.change_one_distance(), column="v", size=20, nulls="a"
    ) >> ob.t.then_dirichlet_multinomial(prior=1.0)
    measure = obs.smoothed([[0.5, 0.5]], size=20)
    assert (posterior >> obs.then_sampling_histogram(measure, 0.5)).map(1).delta(1.0) < 0.5
    for other in (dp.renyi_divergence(), dp.smoothed_max_divergence()):
        with pytest.raises(ValueError, match="one of PureDP, zCDP"):
            ob.m.make_mechanism(*posterior.output_space, other, ob.LaplaceParameters(1.0))


def test_every_measure_of_the_table_is_one_of_opendp_and_its_name_stays() -> None:
    """Documents are read for years: these names are in those that were written."""
    assert set(MEASURES) == set(LOSSES)
    pure, concentrated = dp.max_divergence(), dp.zero_concentrated_divergence()
    made = {"MaxDivergence": pure, "ZeroConcentratedDivergence": concentrated}
    made |= {f"Approximate({name})": dp.approximate(of) for name, of in made.items()}
    assert {name: name_of(measure) for name, measure in made.items()} == {n: n for n in MEASURES}


def test_a_document_of_before_is_read_and_names_in_texts_are_noticed() -> None:
    """A measure that is not in the table states ε, which every release has a bound for.
    Negative control: what was done before, with the next names.
    """
    for name, loss in LOSSES.items():
        release = released(loss)
        written = replace(release, guarantee=replace(release.guarantee, measure=name))
        again = ob.Release.from_json(written.to_json())
        assert stated_loss(again.guarantee).startswith("ρ" if "rho" in loss else "ε")
    other = guarantee(None, measure="NewMeasure")
    assert stated_loss(other) == "ε = 1"
    assert "ZeroConcentrated" not in "zCDP"
    assert not guarantee(None, measure="zCDP").is_concentrated
    assert guarantee(None, measure="ZeroConcentratedDivergence").is_concentrated
