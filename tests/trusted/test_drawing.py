"""The sampler of a measurement, many draws at a time: the law that is accounted for."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.measurements import measured_sampler
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted.boundary import ContractError
from opendp_bayes.trusted.measurements import drawer
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

PRIOR = np.array([1.0, 0.5, 2.0])
COUNTS = (1, 2, 3)
DRAWS = 8000


LAPLACE = (), ("floored",), ("discrete", "bounded"), ("floored", "truncated")
MECHANISMS = [ob.LaplaceParameters(1.0, *how) for how in LAPLACE]
MECHANISMS += [ob.KNormParameters(1.0), ob.mechanisms.HellingerExponential(0.3)]
MECHANISMS.append(ob.mechanisms.PermuteAndFlip(0.3))


@pytest.mark.parametrize("mechanism", some_of(MECHANISMS, 4), ids=repr)
def test_the_law_is_the_mechanism_s(mechanism: Any) -> None:
    """Rejected where the scale is off by 30 %."""
    sample = measured_sampler(mechanism, size=6, prior=PRIOR)
    drawn = sample(COUNTS, PRIOR, DRAWS)
    assert drawn.shape == (DRAWS, 3)
    observed: Counter[Any] = Counter(map(tuple, drawn.tolist()))
    assert not oracles.rejects(observed, oracles.law_of(mechanism, COUNTS, tuple(PRIOR)))
    for factor in (0.7, 1.3):
        wrong = type(mechanism)(**{**vars(mechanism), "scale": factor * mechanism.scale})
        assert oracles.rejects(observed, oracles.law_of(wrong, COUNTS, tuple(PRIOR)))


def test_draws_of_another_package_s_noise_may_be_negative() -> None:
    """Where it states its law and projects what it draws; a refusal would depend on the data."""

    class Doubled(ob.LaplaceParameters):
        def project(self, drawn: Any, size: int | None) -> Any:
            return 2 * np.maximum(drawn, 0)

    draw = drawer(Setting.of(Doubled(5.0, total="private"), None, PRIOR))
    assert draw(np.array([0, 40, 0]), 200).min() < 0
    sample = measured_sampler(Doubled(5.0, total="private"), size=None, prior=PRIOR)
    assert sample([0, 40, 0], PRIOR, 200).min() == 0


def test_a_sampler_may_return_counts_of_zero() -> None:
    class Empty(ob.LaplaceParameters):
        def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
            return np.tile([0, 6, 0], (size, 1))

    draw = drawer(Setting.of(Empty(1.0), 6, PRIOR))
    assert draw(np.array(COUNTS), 2).tolist() == [[0, 6, 0]] * 2


def test_noise_of_any_scale_is_cut_off_where_sums_of_it_are_numbers_still() -> None:
    """One draw of fifty is there."""
    for total, size in (("remainder", 6), ("private", None)):
        mechanism = ob.LaplaceParameters(2.0**60, total=total)
        drawn = drawer(Setting.of(mechanism, size, PRIOR))(np.array(COUNTS), 2000)
        assert np.abs(drawn[:, :2]).max() == 2**62


def test_draws_of_another_package_are_its_own_whatever_law_it_states() -> None:
    """What is accounted for is what it proves of them."""

    class Own(ob.LaplaceParameters):
        law = ob.LaplaceParameters.law

        def draw(self, counts: Any, prior: Any, draws: int) -> Any:
            return np.tile(counts, (draws, 1))

    draw = drawer(Setting.of(Own(5.0, total="private"), None, PRIOR))
    assert draw(np.array(COUNTS), 20).tolist() == [list(COUNTS)] * 20


def test_a_sampler_that_returns_something_else_is_refused() -> None:
    class Broken(ob.LaplaceParameters):
        def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
            return np.full((size, 3), -1)

    draw = drawer(Setting.of(Broken(1.0), 6, PRIOR))
    with pytest.raises(ContractError, match=r"integers, of shape \(draws, k\)"):
        draw(np.array(COUNTS), 2)
