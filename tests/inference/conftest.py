"""Let the tests of this folder `import brute_force`, and make releases by hand."""

import sys
from pathlib import Path

import pytest

from opendp_bayes import PrivacyLoss, Release

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def release():
    def make(mechanism, counts, size, prior=None):
        k = len(counts)
        labels = tuple("abcdefghij"[:k])
        return Release(
            tuple(counts),
            labels,
            tuple(prior or (1.0,) * k),
            mechanism,
            size,
            1,
            PrivacyLoss(1.0, 1.0, 1.0),
            "MaxDivergence",
        )

    return make
