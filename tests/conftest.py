"""Fixtures for more than one folder of tests."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def pictures() -> Iterator[None]:
    """Draw into memory, and close every picture afterwards."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def coarse_errors() -> Iterator[None]:
    """Expected errors from a thirtieth of the draws, within two per cent instead of 0.3, for
    modules that use the choice among mechanisms and do not measure it.
    """
    from opendp_bayes.planning import automatic, release_law

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_law, "_LARGEST_LAW", 1 << 12)
        patch.setattr(release_law, "_LARGEST_NOISE", 1 << 12)
        patch.setattr(release_law, "_SIMULATED", 1 << 12)
        patch.setattr(release_law, "_FEWEST_DRAWS", 1 << 10)
        automatic._score.cache_clear()
        yield
    automatic._score.cache_clear()
