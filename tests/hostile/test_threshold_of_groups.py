"""OpenDP's group-by keeps the δ of its threshold; its vectors do not (OpenDP issue 2922)."""

import math

import opendp.prelude as dp
import polars as pl
import pytest

from tests.helpers.contexts import plain_context
from tests.helpers.sources import ROOT
from tests.helpers.sweeps import slow

KEYS = [str(number) for number in range(30_000)]
#: Keys of one record are released independently: six standard deviations above their expected
#: number have a chance below 1e-8.
FAR = 6


def released(loss: dict[str, float]) -> tuple[float, int]:
    """The stated δ of a count by key, and how many keys of one record are in the release."""
    context = plain_context(pl.LazyFrame({"k": KEYS}), loss=loss)
    query = context.query().group_by("k").agg(dp.len())
    return query.resolve().map(1)[1], query.release().collect().height


def exceeds(delta: float, number: int) -> bool:
    """True if more keys were released than a chance of δ for each explains."""
    expected = delta * len(KEYS)
    return number > expected + FAR * math.sqrt(expected)


LOSSES = [{"epsilon": 1.0, "delta": 0.01}, {"rho": 0.05, "delta": 0.05}]
MORE = [{"epsilon": 0.5, "delta": 0.05}, {"epsilon": 2.0, "delta": 0.003}]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", [*LOSSES, *slow(MORE)], ids=str)
def test_a_group_by_of_a_context_releases_no_more_keys_than_its_delta(loss):
    delta, number = released(loss)
    assert 0 < delta <= loss["delta"]
    assert not exceeds(delta, number)
    assert number > 0.5 * delta * len(KEYS), "and the stated δ is about what it takes"


def test_the_measurement_on_vectors_is_noticed_and_the_page_says_so() -> None:
    """Negative control: at scale 1 and threshold 5 it states .0049, and .0136 are released."""
    counted = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
    measurement = counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
    assert exceeds(measurement.map(1)[1], len(measurement(KEYS)))
    page = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if "issues/2922" in line)
    assert "The group-by of a Context is not affected" in row
