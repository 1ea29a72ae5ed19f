"""What a query shows before payment: nothing is read or spent, and the release does it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.queries.bound_query import BoundQuery
from tests.helpers.contexts import plain_context
from tests.helpers.sweeps import some_of

ROWS = 240
DATA = pl.DataFrame(
    {"region": ["n", "s", "n", "e"] * (ROWS // 4), "vote": ["yes", "no", "no"] * (ROWS // 3)}
)
VOTES = {"categories": ["yes", "no"], "nulls": "no", "unknown": "other"}
TABLE = {
    "column": ["region", "vote"],
    "categories": {"region": ["n", "s"], "vote": ["yes", "no"]},
    "nulls": {"region": "s", "vote": "no"},
    "unknown": {"region": "elsewhere", "vote": "no"},
}


def context(path: Path, unit="changes", parts=2, **loss):
    return plain_context(pl.scan_parquet(path), {unit: 2}, loss or {"epsilon": 1.0}, parts)


@pytest.fixture
def path(tmp_path):
    DATA.write_parquet(tmp_path / "frame.parquet")
    return tmp_path / "frame.parquet"


def test_nothing_is_read(path):
    """The file of the data is gone before the summary is asked for."""
    whole = context(path)
    query = ob.posterior(whole.query(), "vote", size=ROWS, **VOTES)
    path.unlink()
    assert query.summarize().height == 1
    assert "mechanism=" in repr(query)
    with pytest.raises(RuntimeError):
        query.release()
    assert len(whole.current_privacy_loss()) == 1, "a failure is paid for"


@pytest.mark.parametrize("mechanism", some_of(["knorm_parameters", "laplace_parameters"], 1))
@pytest.mark.slow
def test_the_expected_width_is_that_of_intervals_of_releases(path, mechanism):
    """The mean width over 60 releases of balanced counts, within 10 % of what was expected."""
    whole = context(path, epsilon=0.8)
    query = ob.posterior(whole.query(), size=ROWS, mechanism=mechanism, **TABLE)
    width = query.summarize()["interval_width"].item()
    made = query.resolve()
    fitted = ob.load_mechanism(mechanism)(made.param)
    counts, prior = np.full(6, ROWS // 6), np.ones(6)
    assert query.summarize()["aggregate"].item() == "Posterior of 6 cells"
    widths = []
    for drawn in fitted.draw(counts, prior, 60).tolist():
        guarantee = ob.PrivacyGuarantee(ROWS, 1, ob.PrivacyLoss(1, 1, 1), "MaxDivergence")
        released = ob.Release(tuple(drawn), tuple("abcdef"), (1.0,) * 6, fitted, guarantee)
        lower, upper = released.posterior.interval(0.95)
        widths.append((upper - lower).mean())
    assert np.mean(widths) == pytest.approx(width, rel=0.1)
    assert np.mean(widths) * 1.3 > width > np.mean(widths) / 1.3, "and not of another setting"
    less = ob.posterior(context(path, epsilon=8.0).query(), size=ROWS, mechanism=mechanism, **TABLE)
    assert less.summarize()["interval_width"].item() < 0.9 * width


def test_a_scale_is_searched_for_once_also_with_a_guess(path, monkeypatch):
    query = ob.posterior(context(path, "contributions").query(), "vote", **VOTES)
    assert query.summarize()["interval_width"].item() is None
    few, many = (query.summarize(guess_size=n)["interval_width"].item() for n in (100, 10_000))
    assert few > 5 * many
    public = ob.posterior(context(path).query(), "vote", size=ROWS, **VOTES)
    with pytest.raises(ValueError, match=f"guess_size=100: the number of records, {ROWS}, is pub"):
        public.summarize(100)
    with pytest.raises(ValueError, match="guess_size=0: must be between 1"):
        query.summarize(0)
    searched, search = [], BoundQuery._fitted

    def counting(asked, budget):
        searched.append(budget)
        return search(asked, budget)

    monkeypatch.setattr(BoundQuery, "_fitted", counting)
    query = ob.posterior(context(path).query(), "vote", size=ROWS, **VOTES)
    assert repr(query)
    assert query.summarize()["scale"].item() == query.resolve().param
    assert searched == [0.5]
