"""Fixtures for more than one folder of tests."""

import math
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="module")
def short_chains() -> Iterator[None]:
    """Learned priors, pooled groups and posteriors of surveys from a tenth of the sweeps, taken for
    enough, for modules that show and save what chains find and do not measure it.
    """
    from opendp_bayes.inference import noise_aware
    from opendp_bayes.inference.learned import learned_counts
    from opendp_bayes.inference.pooling import pooled_draws
    from opendp_bayes.inference.survey_tables import consistent_draws, survey_posterior
    from opendp_bayes.results import pooled_release

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned_counts, "_DROPPED", 20)
        patch.setattr(learned_counts, "_RUNS", ((math.inf, 80, 0),))
        for name, value in {"_FIRST_RUN": 16, "_GROWTHS": 2, "_MET": math.inf}.items():
            patch.setattr(pooled_draws, name, value)
        patch.setattr(pooled_release, "_FEWEST_EFFECTIVE", 0)
        patch.setattr(pooled_release, "_LARGEST_R_HAT", math.inf)
        for name, value in {"_FIRST_RUN": 8, "_DOUBLINGS": 3, "MET": math.inf}.items():
            patch.setattr(consistent_draws, name, value)
        for module in (learned_counts, noise_aware):
            patch.setattr(module, "LARGEST_R_HAT", math.inf)
            patch.setattr(module, "FEWEST_EFFECTIVE", 1)
        for module in (consistent_draws, survey_posterior):
            patch.setattr(module, "SETTLED_R_HAT", math.inf)
            patch.setattr(module, "SETTLED_EFFECTIVE", 1)
        yield


@pytest.fixture
def _plain_terminal(
    coarse_errors: None, short_chains: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same output wherever the tests run, in which no error and no chain is measured."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def sixty_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `votes.csv`: 40 votes for a and 20 for b, half in each town."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'aab'[i % 3]},{'xy'[i % 2]}" for i in range(60)]
    Path("votes.csv").write_text("\n".join(["vote,town", *rows, ""]))
    return tmp_path
