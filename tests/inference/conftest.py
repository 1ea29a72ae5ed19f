"""Make releases by hand."""

import pytest

from opendp_bayes import Release
from tests.helpers.releases import guarantee


@pytest.fixture
def release():
    def make(mechanism, counts, size, prior=None):
        k = len(counts)
        labels = tuple("abcdefghij"[:k])
        return Release(
            tuple(counts), labels, tuple(prior or (1.0,) * k), mechanism, guarantee(size)
        )

    return make
