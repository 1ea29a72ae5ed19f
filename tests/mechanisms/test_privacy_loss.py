"""A loss is a value, which is 0 where nothing changes."""

import dataclasses

import pytest

from opendp_bayes import PrivacyLoss
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS


def test_no_loss_is_none_in_any_measure() -> None:
    assert (NO_LOSS.epsilon, NO_LOSS.range, NO_LOSS.rho, NO_LOSS.delta) == (0, 0, 0, 0)


def test_nothing_can_be_changed_or_added() -> None:
    loss = PrivacyLoss(1.0, 2.0, 0.5)
    assert loss == PrivacyLoss(1.0, 2.0, 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.epsilon = 0.0
    assert not hasattr(loss, "__dict__")
