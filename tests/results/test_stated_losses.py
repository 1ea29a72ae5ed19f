"""Documents whose stated loss is less than their mechanism loses, against closed forms, and honest
ones, which are read.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opendp_bayes import (
    GaussianParameters,
    KNormParameters,
    LaplaceParameters,
    PrivacyLoss,
    Promise,
    Release,
    Survey,
    exact_loss,
    privacy_profile,
)
from opendp_bayes.accounting.profile import feasible_loss
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.results.release import GroupedRelease

PRIOR = (0.5, 1.0, 2.0)
PRIVATE = LaplaceParameters(20.0, total="private")
IMAGES = Path(__file__).parents[2] / "docs" / "images"
#: Mechanism, public number of records, distance; the ε and the ρ that it has at that distance, by
#: the closed forms of its noise, or None where they are of no closed form.
CASES = {
    "Laplace": (LaplaceParameters(20.0, total="bounded"), 12, 1, 2 / 20, None),
    "Laplace, private, 3 records": (PRIVATE, None, 3, 3 / 20, None),
    "Laplace, more than all": (LaplaceParameters(20.0, total="bounded"), 12, 50, 24 / 20, None),
    "K-norm": (KNormParameters(20.0), 12, 1, 1 / 20, None),
    "K-norm, 2 records": (KNormParameters(20.0), 12, 2, 2 / 20, None),
    "Gaussian": (GaussianParameters(20.0), 12, 1, math.inf, 2 / 2 / 400),
    "Gaussian, 3 records": (GaussianParameters(20.0, total="private"), None, 3, math.inf, 9 / 800),
}


def document(mechanism, size, d_in, loss, measure="MaxDivergence"):
    promise = Promise(size, d_in, loss, measure)
    return Release((7, 3, 2), ("a", "b", "c"), PRIOR, mechanism, promise).to_json()


def changed(text, **bounds):
    found = json.loads(text)
    found["loss"].update(bounds)
    return json.dumps(found)


@pytest.mark.parametrize("name", CASES)
def test_noise_cannot_lose_less_than_its_closed_form(name):
    mechanism, size, d_in, epsilon, rho = CASES[name]
    loss = exact_loss(mechanism, size=size, prior=PRIOR, d_in=d_in)
    text = document(mechanism, size, d_in, loss)
    assert Release.from_json(text).loss == loss
    with pytest.raises(ValueError, match=r"loss\.epsilon=1e-06: cannot be, because"):
        Release.from_json(changed(text, epsilon=1e-6))
    if math.isfinite(epsilon):
        for bound, least in (("epsilon", epsilon), ("range", 2 * epsilon)):
            assert Release.from_json(changed(text, **{bound: 1.01 * least}))
            with pytest.raises(ValueError, match=rf"loss\.{bound}=.*cannot be"):
                Release.from_json(changed(text, **{bound: 0.99 * least}))
    if rho is not None:
        assert loss.rho == pytest.approx(rho)
    with pytest.raises(ValueError, match=r"loss\.rho=1e-09: cannot be"):
        Release.from_json(changed(text, rho=1e-9))
    if rho is not None:
        with pytest.raises(ValueError, match=r"loss\.rho=.*cannot be"):
            Release.from_json(changed(text, rho=0.99 * rho))


@pytest.mark.parametrize("d_in", [1, 2, 3, 9])
@pytest.mark.parametrize("noise", [LaplaceParameters, KNormParameters])
def test_rho_of_noise_is_that_of_the_distance(noise, d_in):
    """Against the sum that a Rényi divergence of order 2 is, which is below ρ times the order."""
    mechanism = noise(5.0)
    text = document(mechanism, 12, d_in, exact_loss(mechanism, size=12, prior=PRIOR, d_in=d_in))
    honest = json.loads(text)["loss"]["rho"]
    if noise is LaplaceParameters:  # on two counts, moved by all records
        at = np.arange(-400, 401)
        logs = -np.abs(at) / 5 - np.log(np.exp(-np.abs(at) / 5).sum())
        moved = -np.abs(at - d_in) / 5 - np.log(np.exp(-np.abs(at) / 5).sum())
        assert 2 * np.log(np.exp(2 * logs - moved).sum()) / 2 <= honest
    assert Release.from_json(text).loss.rho == honest
    with pytest.raises(ValueError, match=r"loss\.rho=.*cannot be"):
        Release.from_json(changed(text, rho=0.99 * honest))


@pytest.mark.parametrize(
    "mechanism",
    [
        HellingerExponential(0.3),
        HellingerExponential(0.3, sensitivity="local"),
        SmoothHellingerExponential(0.7, gamma=0.4),
        PermuteAndFlip(0.4),
    ],
)
@pytest.mark.parametrize("d_in", [1, 2])
def test_what_is_computed_for_every_pair_is_a_bound(mechanism, d_in):
    loss = exact_loss(mechanism, size=12, prior=PRIOR, d_in=d_in)
    one = exact_loss(mechanism, size=12, prior=PRIOR)
    text = document(mechanism, 12, d_in, loss)
    assert Release.from_json(text).loss == loss
    for bound in ("epsilon", "range"):
        least = getattr(one, bound)
        with pytest.raises(ValueError, match=rf"loss\.{bound}=.*cannot be"):
            Release.from_json(changed(text, **{bound: 0.99 * least}))


@pytest.mark.parametrize(("d_in", "size"), [(1, 12), (2, 12), (3, None)])
@pytest.mark.parametrize("noise", [LaplaceParameters, GaussianParameters])
def test_epsilon_and_delta_go_together(d_in, size, noise):
    mechanism = noise(9.0, total="private")
    delta = 1e-3 if noise is GaussianParameters else 0.02
    loss = feasible_loss(Setting.of(mechanism, size, PRIOR), d_in=d_in, delta=delta)
    assert loss.delta == delta
    text = document(mechanism, size, d_in, loss, "Approximate(MaxDivergence)")
    assert Release.from_json(text).loss == loss
    profile = privacy_profile(mechanism, size=size, prior=PRIOR, d_in=d_in)
    less = 0.98 * loss.epsilon
    assert profile(less) > delta
    for bounds in ({"epsilon": less}, {"delta": 0.95 * delta}):
        with pytest.raises(ValueError, match=r"loss\.delta=.*cannot be"):
            Release.from_json(changed(text, **bounds))


def test_groups_and_surveys():
    """The noise of all groups and of the rest is one draw; a survey says which release it is."""
    mechanism = KNormParameters(20.0)
    loss = exact_loss(mechanism, size=15, prior=[1.0] * 7)
    promise = Promise(15, 1, loss, "MaxDivergence")
    shown = ((3, 1, 2), (4, 2, 1))
    grouped = GroupedRelease(
        ("g", "h"), shown, ("a", "b", "c"), (1.0,) * 3, mechanism, promise, rest=2
    )
    text = grouped.to_json()
    assert Release.from_json(text) == grouped
    own = exact_loss(PRIVATE, size=None, prior=[1.0] * 6)
    promised = replace(promise, size=None, loss=own)
    private = replace(grouped, rest=None, mechanism=PRIVATE, promise=promised)
    assert Release.from_json(private.to_json()) == private
    for made in (grouped, private):
        with pytest.raises(ValueError, match=r"loss\.epsilon=1e-06: cannot be"):
            Release.from_json(changed(made.to_json(), epsilon=1e-6))
    loss = exact_loss(mechanism, size=15, prior=[1.0] * 3)
    own = replace(promise, loss=loss)
    one = Release((7, 3, 5), ("a", "b", "c"), (1.0,) * 3, mechanism, own)
    survey = json.loads(Survey(("first", "second"), (one, grouped)).to_json())
    survey["releases"]["second"]["loss"]["epsilon"] = 1e-6
    with pytest.raises(ValueError, match=r"releases\['second'\]: loss\.epsilon=1e-06: cannot be"):
        Survey.from_json(json.dumps(survey))


def test_what_cannot_be_computed_is_read():
    """Larger losses, and too many probabilities to compare in an instant."""
    many = Promise(3000, 1, PrivacyLoss(1e-6, 1e-6, 1e-6), "MaxDivergence")
    far = Release((2995, 3, 2), ("a", "b", "c"), PRIOR, HellingerExponential(0.02), many)
    assert Release.from_json(far.to_json()).epsilon == 1e-6
    infinite = PrivacyLoss(math.inf, math.inf, math.inf)
    read: ReleasedData = Release.from_json(document(KNormParameters(20.0), 12, 1, infinite))
    assert math.isinf(read.epsilon)


@pytest.mark.parametrize("path", sorted(IMAGES.glob("*.json")), ids=lambda path: path.stem)
def test_releases_of_the_pages_are_read(path):
    text = path.read_text()
    assert Release.from_json(text).epsilon > 0
    with pytest.raises(ValueError, match="cannot be"):
        Release.from_json(changed(text, epsilon=1e-6, range=2e-6))


@pytest.mark.parametrize("seed", range(40))
def test_honest_releases_are_read_whatever_their_setting(seed):
    rng = np.random.default_rng(seed)
    k, size = int(rng.integers(2, 5)), int(rng.integers(1, 12))
    scale = float(np.exp(rng.uniform(np.log(0.2), np.log(50))))
    mechanism = [
        LaplaceParameters(scale),
        LaplaceParameters(scale, noise="floored", total="bounded"),
        LaplaceParameters(scale, total="private"),
        KNormParameters(scale),
        GaussianParameters(scale),
        HellingerExponential(scale / 10),
        SmoothHellingerExponential(scale / 10, gamma=0.5),
        PermuteAndFlip(scale / 10),
    ][seed % 8]
    prior = tuple(np.exp(rng.uniform(-3, 3, k)).tolist())
    d_in, delta = int(rng.integers(1, 5)), float(rng.choice([0.0, 1e-6, 0.01]))
    private = getattr(mechanism, "total", None) == "private" and rng.random() < 0.5
    size = None if private else size
    drawn = rng.multinomial(size or 9, np.ones(k) / k)
    for accounting in ("exact", "proven"):
        loss = feasible_loss(
            Setting.of(mechanism, size, prior), d_in=d_in, delta=delta, accounting=accounting
        )
        promise = Promise(size, d_in, loss, "Approximate(MaxDivergence)")
        made = Release(tuple(drawn.tolist()), tuple(range(k)), prior, mechanism, promise)
        assert Release.from_json(made.to_json()) == made
