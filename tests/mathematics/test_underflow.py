"""Underflow of methods that say so is 0, and of no others."""

from functools import cached_property
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mathematics.underflow import UnderflowIsZero

SMALL = np.array([1e-300])


class Plain:
    def called(self) -> float:
        """Its words."""
        return float((SMALL * SMALL)[0])

    @property
    def read(self) -> float:
        """Its words."""
        return self.called()

    @cached_property
    def kept(self) -> float:
        """Its words."""
        return float((SMALL * SMALL)[0])

    def __getitem__(self, key: str) -> float:
        """Its words."""
        return self.called()


class Shielded(UnderflowIsZero, Plain):
    called, read, __getitem__ = Plain.called, Plain.read, Plain.__getitem__

    @cached_property
    def kept(self) -> float:
        """Its words."""
        return float((SMALL * SMALL)[0])


ASKED: dict[str, Any] = {
    "called": lambda one: one.called(),
    "read": lambda one: one.read,
    "kept": lambda one: one.kept,
    "__getitem__": lambda one: one["a"],
}


@pytest.mark.parametrize("name", ASKED)
def test_members_answer_whatever_the_caller_asks_of_numpy(name: str) -> None:
    with np.errstate(all="raise"):
        assert ASKED[name](Shielded()) == 0
        assert ASKED[name](type("Later", (Shielded,), {})()) == 0
        with pytest.raises(FloatingPointError):
            ASKED[name](Plain())
        with pytest.raises(FloatingPointError):
            SMALL * SMALL
    assert getattr(Shielded, name).__doc__ == "Its words."
