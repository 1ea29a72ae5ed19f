"""A mechanism in its public setting: what is validated, and that its law is asked for once."""

from itertools import product
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import SimplexNoise
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted.spaces import PosteriorSpace

PRIOR = (1.0, 0.5, 2.0)


@pytest.fixture
def laws(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Any]]:
    """The scales and numbers of records for which K-norm noise was asked for its law."""
    asked: list[tuple[float, Any]] = []
    law = ob.KNormParameters.law

    def counted(self: ob.KNormParameters, size: Any, prior: Any) -> Any:
        asked.append((self.scale, size))
        return law(self, size, prior)

    monkeypatch.setattr(ob.KNormParameters, "law", counted)
    return asked


def test_a_measurement_asks_for_its_law_once_of_what_is_hashable(laws: list[Any]) -> None:
    space = PosteriorSpace(("a", "b", "c"), 27, PRIOR)
    made = ob.m.make_knorm_parameters(space.domain, space.metric, dp.max_divergence(), 2.71)
    made(np.array(PRIOR) + 9)
    made.map(2)
    assert laws == [(2.71, 27)]

    class Open(ob.LaplaceParameters):
        __hash__ = None

    with pytest.raises(TypeError, match=r"must be hashable; .*@dataclass\(frozen"):
        Setting.of(Open(1.0), 9, PRIOR)


# --- Every mechanism that adds noise, with each of its options, beside the definition
_TOTALS = product(("discrete", "floored"), ("remainder", "truncated", "bounded", "private"))
NOISY = [ob.LaplaceParameters(2.0, *how) for how in _TOTALS]
NOISY += [*(ob.GaussianParameters(2.0, of) for of in (None, "private")), ob.KNormParameters(2.0)]


def moves(k: int, size: int | None) -> list[Any]:
    """How far the counts of neighbours are apart, by one record."""
    one = np.eye(k)
    return list(one) if size is None else [first - other for first in one for other in one]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("size", [None, 9])
@pytest.mark.parametrize("mechanism", NOISY, ids=str)
def test_the_loss_is_that_of_all_counts_that_are_noised(mechanism, size, k):
    try:
        setting = Setting.of(mechanism, size, (1.0,) * k)
    except ValueError:  # it needs a public number
        assert size is None
        return
    law: Any = setting.law
    loss = setting.proven_loss(Distance.of(1))
    if isinstance(law, SimplexNoise):  # whose norm is half of what moves
        most = max(np.abs(move).sum() / 2 for move in moves(k, size))
        assert loss.epsilon == pytest.approx(most / law.scale)
        return
    noised = [move[np.array(law.noised)] for move in moves(k, size)]
    if isinstance(law.noise, DiscreteGaussian):
        squared = max((move**2).sum() for move in noised)
        assert loss.rho == pytest.approx(squared / (2 * law.noise.scale**2))
    else:
        most = max(np.abs(move).sum() for move in noised)
        assert loss.epsilon == pytest.approx(most / law.noise.scale)
        assert loss_of(setting, 1).epsilon == pytest.approx(most / law.noise.scale)
