"""Let the tests of this folder `import brute_force`, and make releases by hand."""

import sys
from pathlib import Path

import pytest
from releases import promise

from opendp_bayes import Release

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def release():
    def make(mechanism, counts, size, prior=None):
        k = len(counts)
        labels = tuple("abcdefghij"[:k])
        return Release(tuple(counts), labels, tuple(prior or (1.0,) * k), mechanism, promise(size))

    return make
