"""It is said, from what was drawn alone, that nearly all records are none of the categories."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.unmapped_records import CERTAINTY, SHARE, share_of, unmatched_in
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.release import GroupedRelease, Release

LOSS = PrivacyLoss(2.0, 2.0, 2.0)
LOOK = "check the spelling, capitals and spaces of the categories"
PRIVATE = LaplaceParameters(1.0, total="private")
OTHER = {"columns": ("vote",), "unknown": ("other",)}


def release(
    drawn: Sequence[int],
    categories: Sequence[Any] = ("yes", "no", "other"),
    size: int | None = None,
    mechanism: Any = PRIVATE,
    **others: Any,
) -> Release:
    guarantee = PrivacyGuarantee(size, 1, LOSS, "MaxDivergence")
    prior = (1.0,) * len(categories)
    return Release(tuple(drawn), tuple(categories), prior, mechanism, guarantee, **others)


def exact(first: int, second: int, scale: float) -> float:
    """The probability of more than `SHARE` given noisy counts, by the definition."""
    counts = np.arange(0, 400)
    noise = [np.exp(-np.abs(drawn - counts) / scale) for drawn in (first, second)]
    weights = np.outer(*noise)
    above = counts[:, None] > SHARE * (counts[:, None] + counts[None, :])
    return float(weights[above].sum() / weights.sum())


@pytest.mark.parametrize("size", [60, None])
@pytest.mark.parametrize("drawn", [(60, 0), (75, -3), (90, -20)])
def test_a_share_is_at_most_1_whatever_was_drawn(drawn: tuple[int, int], size: int | None) -> None:
    noisy = DrawnCounts.of([*drawn], DiscreteLaplace(2.0))
    share = share_of(noisy, np.array([0]), size)
    assert share is not None
    assert SHARE <= share <= 1


@pytest.mark.parametrize("scale", [1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_it_is_said_where_the_exact_posterior_says_so(scale: float) -> None:
    told = []
    for first, second in product(range(-5, 120, 5), range(-20, 21, 2)):
        noisy = DrawnCounts.of([first, second], DiscreteLaplace(scale))
        found = share_of(noisy, np.array([0]), None) is not None
        told.append((found, exact(first, second, scale)))
    assert min(probability for found, probability in told if found) >= CERTAINTY
    assert max(probability for found, probability in told if not found) <= 0.9999
    assert {found for found, _ in told} == {True, False}


def test_matching_records_and_those_in_no_group_are_told() -> None:
    rng = np.random.default_rng(1)
    counts, wrong = np.array([60, 50, 890]), 0  # a share of .89
    for _ in range(2000):
        up, down = rng.geometric(1 - np.exp(-1 / 4), (2, 3))
        noisy = DrawnCounts.of(counts + up - down, DiscreteLaplace(4.0))
        wrong += share_of(noisy, np.array([2]), None) is not None
    assert wrong / 2000 <= 0.07  # 1 - CERTAINTY, at the edge, and four standard errors
    dropped = {"columns": ("vote",), "unknown": (None,)}
    (said,) = unmatched_in([release((1, -1), ("yes", "no"), **dropped)])
    assert said == (
        f"All counts together are 0, which may be noise alone: if you expect more records,"
        f" {LOOK} of vote."
    )
    assert list(unmatched_in([release((9, -1), ("yes", "no"), **dropped)])) == []
    guarantee = PrivacyGuarantee(500, 1, LOSS, "MaxDivergence")
    groups = GroupedRelease(
        ("n", "s"),
        ((1, 0), (2, 1)),
        ("yes", "no"),
        (1.0, 1.0),
        KNormParameters(1.0),
        guarantee,
        rest=496,
        grouped_by=("region",),
    )
    said = f"About 99 % of the records are in no group: {LOOK} of region."
    assert list(unmatched_in([*groups.values()], groups.grouped_by)) == [said]


@pytest.mark.parametrize(
    ("size", "mechanism"),
    [
        (None, PRIVATE),
        (None, GaussianParameters(2.0, total="private")),
        (500, KNormParameters(1.0)),
        (500, LaplaceParameters(1.0)),
        (500, GaussianParameters(2.0)),
    ],
    ids=str,
)
def test_a_column_whose_categories_are_misspelt_is_named(size: int | None, mechanism: Any) -> None:
    made = release((2, 3, 495), size=size, mechanism=mechanism, **OTHER)
    said = f"About 99 % of the records of vote are none of yes, no: {LOOK}."
    assert list(unmatched_in([made])) == [said]
    assert all(said in made.sheet(wait=wait).notes for wait in (False, True))


def test_a_public_number_of_records_tells_of_many_categories() -> None:
    """Their noise together hides how few records they have, but not how many the others have."""
    counts = [*range(-6, 7), 990]
    for size, number in ((None, 0), (990, 1)):
        mechanism = LaplaceParameters(20.0, total="private" if size is None else "bounded")
        made = release(counts, [*"abcdefghijklm", "other"], size, mechanism, **OTHER)
        assert len(list(unmatched_in([made]))) == number
