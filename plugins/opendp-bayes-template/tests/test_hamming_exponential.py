"""The template's mechanism by its installed entry point, and its bound by brute force."""

import sys
from importlib.metadata import distribution
from subprocess import run

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.extend import candidates
from opendp_bayes_research import audit
from tests.helpers.contexts import plain_context


def _brute_force_loss(mechanism: ob.Mechanism, size: int, k: int) -> float:
    """The largest log-likelihood ratio over all neighbouring data sets and all outcomes."""
    data_sets = candidates(size, k)
    log_p = np.array([mechanism.log_pmf(x, 1.0)[1] for x in data_sets])
    neighbours = np.abs(data_sets[:, None] - data_sets).sum(axis=2) == 2
    return float(np.abs(log_p[:, None] - log_p).max(axis=2)[neighbours].max())


@pytest.mark.parametrize(("size", "k"), [(1, 2), (12, 2), (6, 3), (4, 4)])
@pytest.mark.parametrize("scale", [0.3, 2.0, 10.0])
def test_loss_never_exceeds_the_bound(size: int, k: int, scale: float) -> None:
    kind = ob.load_mechanism("hamming_exponential")
    bound = kind(scale).proven_loss(1, size=size, prior=np.ones(k)).epsilon
    assert _brute_force_loss(kind(scale), size, k) <= bound
    # Negative control: the exact loss is between half the bound and the bound, so a scale of 0.4
    # times the stated one is always caught.
    assert _brute_force_loss(kind(0.4 * scale), size, k) > bound


def test_an_audit_passes() -> None:
    """Draws of the mechanism as users get them, against what it claims and the law it states."""
    kind, of = ob.load_mechanism("hamming_exponential"), {"size": 12, "prior": [1.0, 1.0]}
    found = audit(kind(2.0), **of, draws=5000)
    assert found.passed, f"\n{found}"
    # Negative control: the same draws do not pass for a quarter of the loss.
    assert not audit(kind(0.5), **of, epsilon=1.0, draws=5000).passed


def test_installed_package_serves_a_context() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    assert distribution("opendp-bayes-template").version
    assert "hamming_exponential" in ob.available_mechanisms()
    frame = pl.LazyFrame({"vote": pl.Series(["a", "b"] * 50, dtype=pl.Enum(["a", "b"]))})
    context = plain_context(frame, {"changes": 1})
    query = ob.posterior(
        context.query(), "vote", size=100, nulls="a", mechanism="hamming_exponential"
    )
    release = query.release()
    assert release.mechanism.scale == pytest.approx(2.0)
    assert sum(release.counts) == 100
    assert ob.Release.from_json(release.to_json()) == release


def test_nothing_is_loaded_until_it_is_named() -> None:
    code = (
        "import sys, opendp_bayes as ob; ob.available_mechanisms();"
        " assert 'opendp_bayes_template'"
        " not in sys.modules; ob.load_mechanism('hamming_exponential'); assert"
        " 'opendp_bayes_template' in sys.modules"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0


def test_private_size_is_refused() -> None:
    with pytest.raises(ValueError, match="records must be public"):
        ob.load_mechanism("hamming_exponential")(1.0).check(size=None, prior=np.ones(2))
