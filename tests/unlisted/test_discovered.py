"""Releases of discovered categories: what they say, and what their JSON may say."""

import json
from typing import Any

import numpy as np
import pytest

from opendp_bayes import DiscoveredRelease, PrivacyGuarantee, PrivacyLoss
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted import Discovery, OptimalThreshold

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


def test_the_bound_of_a_hidden_category_is_the_proved_one() -> None:
    hidden = release(noisy_rest=None, discovery=Discovery(OptimalThreshold(1.0, 1e-8))).hidden("X")
    assert hidden.upper(0.95) == 20  # P(hidden | 20) = .0836, P(hidden | 21) = .0308
    with pytest.raises(ValueError, match="label='Bath': is shown"):
        release().hidden("Bath")
    with pytest.raises(ValueError, match="level"):
        hidden.upper(1.0)


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
        ({"noisy_counts": [-99, 25, 310, 40]}, "noisy_counts=.*by the law of the noise"),
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
        ({"format": "opendp-bayes release"}, "must be 'opendp-bayes discovery'"),
        ({"version": 3}, "newer"),
        ({"more": 1}, "more"),
    ],
)
def test_a_meddled_document_is_refused_by_field(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DiscoveredRelease.from_json(meddled(**changed))
