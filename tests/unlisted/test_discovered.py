"""Releases of discovered categories: what they say, and what their JSON may say."""

import json
from typing import Any

import numpy as np
import pytest

from opendp_bayes import (
    DiscoveredRelease,
    PrivacyGuarantee,
    PrivacyLoss,
    Release,
    combine,
    noise_aware_posterior,
)
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.unlisted import Discovery, GaussianThreshold, OptimalThreshold

pytestmark = pytest.mark.usefixtures("computed_once")

LAW = OptimalThreshold(1.0, 1e-8, 0.7999)
PROMISE = PrivacyGuarantee(
    None, 1, PrivacyLoss(1.0, np.inf, np.inf, 1e-8), "Approximate(MaxDivergence)"
)


def release(**changed: Any) -> DiscoveredRelease:
    given: dict[str, Any] = {"column": "town", "categories": ("none", "Avon", "Bath", "York")}
    given |= {"noisy_counts": (-2, 25, 310, 40), "listed": 1, "guarantee": PROMISE}
    given |= {"discovery": Discovery(LAW, DiscreteLaplace(5.0)), "noisy_rest": 77}
    return DiscoveredRelease(**given | changed)


def test_what_is_listed_stands_first_in_every_array() -> None:
    """The posterior has discovered keys first; a release has the listed ones first."""
    one = release(noisy_counts=(900, 25, 310, 40))
    assert np.abs(one.posterior.mean() - np.array(one.noisy_counts)).max() < 6
    lower, upper = one.posterior.interval(0.95)
    assert np.all(lower <= one.posterior.mean())
    assert np.all(one.posterior.mean() <= upper)
    assert np.argmax(one.among_shown.mean()) == 0
    assert one.among_shown.mean().sum() == pytest.approx(1.0)
    draws = one.posterior.sample(50, random_state=1)
    assert draws.shape == (50, 4)
    assert np.argmax(draws.mean(axis=0)) == 0


def test_shares_of_all_end_with_everything_else() -> None:
    one = release(noisy_counts=(0, 25, 310, 40), noisy_rest=10_000)
    everything = one.among_all
    assert everything is not None
    assert everything.mean().shape == (5,)
    assert np.argmax(everything.mean()) == 4
    assert everything.mean().sum() == pytest.approx(1.0)


def test_without_the_rest_nothing_is_said_of_it() -> None:
    one = release(noisy_rest=None, discovery=Discovery(OptimalThreshold(1.0, 1e-8)))
    assert one.rest is None
    assert one.among_all is None
    assert "was not asked" in str(one)


def test_the_bound_of_a_hidden_category_is_the_proved_one() -> None:
    hidden = release(noisy_rest=None, discovery=Discovery(OptimalThreshold(1.0, 1e-8))).hidden("X")
    assert hidden.upper(0.95) == 20  # P(hidden | 20) = .0836, P(hidden | 21) = .0308
    with pytest.raises(ValueError, match="label='Bath': is shown"):
        release().hidden("Bath")
    with pytest.raises(ValueError, match="level"):
        hidden.upper(1.0)


def test_the_rest_has_its_proved_interval() -> None:
    rest = release().rest
    assert rest is not None
    assert rest.noisy_count == 77
    assert rest.interval(0.95) == (62.0, 92.0)  # t = 15 for ε = .2


@pytest.mark.parametrize("rest", [-9, 0, 9])
def test_everything_else_is_there_whatever_was_drawn_for_it(rest: int) -> None:
    one = DiscoveredRelease.from_json(release(noisy_rest=rest).to_json())
    last = one.estimates().row(-1, named=True)
    assert (last["category"], last["count"]) == (None, max(rest, 0))
    assert f"together: {rest} records" in " ".join(one.sheet(wait=False).notes)


@pytest.mark.parametrize("people", [False, True])
def test_people_are_in_the_rest_once_for_every_category(people: bool) -> None:
    notes = " ".join(release(people=people).sheet(wait=False).notes)
    assert ("together: 77 people, each once for every category" in notes) == people
    assert ("together: 77 records with noise" in notes) != people


_LOSS = PrivacyLoss(np.inf, 0.0325, np.inf, 1e-8), "Approximate(ZeroConcentratedDivergence)"
_KEPT = PrivacyGuarantee(None, 1, *_LOSS, truncated=True, kept="the first 2 rows of each id")
_GAUSSIAN = Discovery(GaussianThreshold(4.0, 25), DiscreteGaussian(20.0))


@pytest.mark.parametrize(
    "one",
    [
        release(),
        release(listed=0, categories=(1, 2, 30, 400), noisy_counts=(25, 26, 27, 28)),
        release(categories=(), noisy_counts=(), listed=0),
        release(noisy_rest=None, discovery=Discovery(OptimalThreshold(1.0, 1e-8)), people=True),
        release(discovery=_GAUSSIAN, guarantee=_KEPT),
    ],
)
def test_json_comes_back_as_it_was(one: DiscoveredRelease) -> None:
    text = one.to_json()
    again = DiscoveredRelease.from_json(text)
    assert again == one
    assert again.to_json() == text
    assert json.loads(text)["labels"] == "drawn"
    assert DiscoveredRelease.from_json(text.encode()) == one


def meddled(**changed: Any) -> str:
    return json.dumps(json.loads(release().to_json()) | changed)


def law(**changed: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(release().to_json())["law"]
    return found | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"noisy_counts": [-2, 25, 310]}, "noisy_counts=.*must be 4 integers"),
        ({"noisy_counts": [-2, 18, 310, 40]}, "must be at least the threshold"),
        ({"listed": 5}, "noisy_counts=.*of which"),
        ({"categories": ["none", "Avon", "Avon", "York"]}, "must be all different"),
        ({"categories": ["none", "Avon", "Bath", 3]}, "of one type"),
        ({"categories": ["none", "York", "Bath", "Avon"]}, "must be sorted"),
        ({"rest": None}, "rest=None"),
        ({"rest_noise": None}, "rest=77"),
        ({"measure": "MaxDivergence"}, "measure='MaxDivergence'"),
        ({"law": law(threshold=18)}, "threshold or weights"),
        ({"law": law(weights=["1"])}, "threshold or weights"),
        ({"law": law(name="laplace")}, "law.name='laplace'"),
        ({"law": law(parameters={"epsilon": 1.0})}, "law: optimal_threshold does not accept"),
        (
            {"law": law(parameters={"epsilon": 1.0, "delta": 2.0, "decay": 0.7999})},
            "law: optimal_threshold does not accept",
        ),
        ({"labels": "public"}, "labels"),
        ({"format": "opendp-bayes release"}, "Release.from_json"),
        ({"version": 3}, "newer"),
        ({"more": 1}, "more"),
    ],
)
def test_a_meddled_document_is_refused_by_field(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DiscoveredRelease.from_json(meddled(**changed))


def test_another_reader_names_this_one() -> None:
    with pytest.raises(ValueError, match=r"DiscoveredRelease\.from_json"):
        Release.from_json(release().to_json())


def test_schema_describes_what_is_written() -> None:
    schema = DiscoveredRelease.json_schema()
    properties = schema["$defs"]["DiscoveredDocument"]["properties"]
    assert set(json.loads(release().to_json())) <= set(properties)


def test_table_picture_and_sheet_say_the_same() -> None:
    one = release()
    table = one.to_frame()
    assert table["category"].to_list() == ["none", "Avon", "Bath", "York"]
    assert table["listed"].to_list() == [True, False, False, False]
    axes = one.plot(title="Towns")
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["Bath", "York", "Avon", "none", "and everything else"]
    assert "Share" in axes.get_xlabel()
    text = str(one)
    assert "Everything else together: 77 records with noise, 95 % interval 62 to 92." in text
    assert "Listed, and shown whatever their count: 'none'." in text
    assert "at least 19" in text
    assert one.counts == (0, 25, 310, 40)
    assert one.threshold == 19


def test_releases_of_discovered_categories_are_not_combined() -> None:
    said = "must be a Release, not DiscoveredRelease"
    releases: list[Any] = [release(), release()]
    with pytest.raises(TypeError, match=said):
        combine(releases, records="same")
    with pytest.raises(TypeError, match=said):
        noise_aware_posterior(releases[0])
