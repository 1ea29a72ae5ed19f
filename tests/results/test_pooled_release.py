"""Pooled groups as the analyst sees them: frame, table and picture."""

import numpy as np
import pytest

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.pooled_release import Pooled
from tests.helpers.releases import guarantee

#: Of the release that is pooled.
PROMISE = guarantee(None)


@pytest.mark.parametrize("k", [2, 3])
def test_many_groups_are_estimated_together_as_alone(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(2, 0.1, (400, 1))) * rng.dirichlet(np.full(k, 40), 400)
    drawn = rng.poisson(9.0, (30, k))
    noisy = DrawnCounts.of(drawn, DiscreteLaplace(1.0))
    counts = rng.poisson(drawn + 1, (400, 30, k))
    groups = PooledGroups(tuple(range(30)), tuple(range(k)), noisy, None)
    pooled = Pooled(groups, PROMISE, a, counts, 400.0)
    alone = pooled.to_frame()
    monkeypatch.setattr("opendp_bayes.results.pooled_release._TOGETHER", 0)
    together = pooled.to_frame()
    for name, error in {"mean": 1e-9, "std": 1e-9, "lower": 0.05, "upper": 0.05}.items():
        off = (together[name] - alone[name]) / alone["std"]
        assert off.abs().max() < error
