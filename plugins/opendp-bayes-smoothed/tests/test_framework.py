"""The constructors on frames: honest maps, and no way from this measure to one of OpenDP's."""

import ast
import math
import subprocess
import sys
from pathlib import Path

import definitions
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_smoothed as obs
from tests.helpers.contexts import plain_context

SIZE = 100
FRAME = pl.LazyFrame({"vote": pl.Series(["a"] * 70 + ["b"] * 30, dtype=pl.Enum(["a", "b"]))})
CORNERS = [[0.8, 0.2], [0.3, 0.7]]


@pytest.fixture
def posterior() -> dp.Transformation:
    return definitions.posterior_of(SIZE)


def approximate() -> dp.Measure:
    return dp.approximate(dp.max_divergence())


def test_maps_under_opendp_measures(posterior: dp.Transformation) -> None:
    without = posterior >> obs.then_sampling_histogram(approximate(), 0.3)
    assert without.map(0) == (0, 0)
    assert without.map(1) == (0, pytest.approx(0.3))
    assert without.map(1)[1] >= 0.3
    assert without.map(2) == (0, pytest.approx(0.6))
    assert without.map(10) == (math.inf, 1)
    assert sum(without(FRAME).counts) == 30
    replaced = posterior >> obs.then_sampling_histogram(approximate(), 0.3, replacement="with")
    assert replaced.map(2) == (0, pytest.approx(1 - 0.98**30))
    for measure in (
        dp.max_divergence(),
        dp.zero_concentrated_divergence(),
        dp.approximate(dp.zero_concentrated_divergence()),
    ):
        with pytest.raises(ValueError, match="no finite loss without a δ"):
            posterior >> obs.then_sampling_histogram(measure, 0.3)
    noisy = posterior >> obs.then_noisy_sampling_histogram(dp.max_divergence(), 2.0, rate=0.3)
    assert (
        noisy.map(1)
        == obs.NoisySamplingHistogram(2.0, 0.3).proven_loss(1, size=SIZE, prior=None).epsilon
    )
    concentrated = posterior >> obs.then_noisy_sampling_histogram(
        dp.zero_concentrated_divergence(), 2.0, rate=0.3
    )
    assert concentrated.map(1) == pytest.approx(noisy.map(1) ** 2 / 2)


def test_smoothed_map(posterior: dp.Transformation) -> None:
    measure = obs.smoothed(CORNERS, size=SIZE)
    measurement = posterior >> obs.then_sampling_histogram(measure, 0.8)
    assert measurement.output_measure == measure
    loss = measurement.map(1)
    assert loss.guarantee.vertices == ((0.3, 0.7), (0.8, 0.2))
    assert loss.delta(3.0) == obs.smoothed_delta(CORNERS, SIZE, 0.8, 3.0)
    assert loss.delta(3.0) < 0.1 < 0.8, "far below the δ of differential privacy"
    assert loss.delta(loss.epsilon(0.05)) <= 0.05
    nothing = measurement.map(0)
    assert (nothing.delta(0.0), nothing.epsilon(1e-300)) == (0, 0)
    group = measurement.map(2)
    assert group.delta(3.0) == 1, "two of 100 are drawn with a probability of up to 1.6"
    sparse = (posterior >> obs.then_sampling_histogram(measure, 0.1)).map(3)
    assert sparse.delta(3.0) == pytest.approx(0.3), "what differential privacy promises"
    assert sparse.delta(3.0) >= 0.3
    assert (sparse.epsilon(0.31), sparse.epsilon(0.29)) == (0, math.inf)
    release = measurement(FRAME)
    assert sum(release.counts) == 80
    stated = (release.epsilon, release.delta)
    assert stated == (0, 0.8), "what was released states differential privacy"
    assert ob.Release.from_json(release.to_json()) == release


def test_measures_are_compared_by_hulls_and_sizes(posterior: dp.Transformation) -> None:
    measurement = posterior >> obs.then_sampling_histogram(obs.smoothed(CORNERS, size=SIZE), 0.8)
    loss = measurement.map(1)
    assert measurement.check(1, (3.0, loss.delta(3.0)))
    assert not measurement.check(1, (3.0, 0.9 * loss.delta(3.0)))
    assert loss < (3.0, 0.5)
    assert loss > (3.0, 1e-6)
    for budget in (3.0, "x", (1.0,)):
        with pytest.raises(TypeError, match=r"budget=.*: must be a pair"):
            assert loss < budget
    with pytest.raises(TypeError, match="δ='a': must be a number"):
        assert loss > (3.0, "a")
    with pytest.raises(dp.OpenDPException, match=r"ε=-3.0: must be at least 0"):
        measurement.check(1, (-3.0, 0.1))
    measure = obs.smoothed(CORNERS, size=SIZE)
    assert measure == obs.smoothed([*CORNERS, [0.5, 0.5]], size=SIZE)
    others = [
        obs.smoothed(CORNERS, size=SIZE + 1),
        obs.smoothed([*CORNERS, [0.2, 0.8]], size=SIZE),
        obs.smoothed([[0.3, 0.7]], size=SIZE),
    ]
    built_in = dp.max_divergence(), dp.smoothed_max_divergence(), dp.zero_concentrated_divergence()
    for other in [*others, *built_in, approximate()]:
        assert measure != other
    assert measure.descriptor.size == SIZE


def test_the_posterior_of_a_sample_is_its_plug_in(posterior: dp.Transformation) -> None:
    """Summed over all data sets, as the page says; negative control: drawn with replacement."""
    sample = (posterior >> obs.then_sampling_histogram(approximate(), 0.3))(FRAME)
    assert sample.posterior.mean()[0] == pytest.approx(sample.plug_in.mean(), abs=1e-9)
    assert sample.posterior.std()[0] == pytest.approx(sample.plug_in.std(), rel=1e-6)
    repeated = posterior >> obs.then_sampling_histogram(approximate(), 0.3, replacement="with")
    wider = repeated(FRAME)
    assert wider.posterior.std()[0] > 1.05 * wider.plug_in.std()


def test_nothing_converts_the_smoothed_measure(posterior: dp.Transformation) -> None:
    """Every combinator that changes measures refuses it; `make_approximate` keeps its name."""
    measure = obs.smoothed(CORNERS, size=SIZE)
    measurement = posterior >> obs.then_sampling_histogram(measure, 0.8)
    conversions = [
        dp.c.make_pureDP_to_zCDP,
        dp.c.make_zCDP_to_approxDP,
        dp.c.make_fixed_approxDP_to_approxDP,
        lambda m: dp.c.make_fix_delta(m, 1e-6),
        lambda m: dp.c.make_composition([m, m]),
        lambda m: dp.c.make_population_amplification(m, 10**6),
        lambda m: dp.c.make_select_private_candidate(m, 0.5),
    ]
    for convert in conversions:
        with pytest.raises((dp.OpenDPException, ValueError, TypeError)):
            convert(measurement)
    # Negative control: the same calls take a measurement of the right kind.
    honest = posterior >> obs.then_sampling_histogram(approximate(), 0.8)
    assert dp.c.make_composition([honest]).map(1) == (0, pytest.approx(0.8))
    wrapped = dp.c.make_approximate(measurement)
    assert wrapped.output_measure != approximate()
    assert "SmoothedDP" in str(wrapped.output_measure)
    for conversion in conversions:
        with pytest.raises((dp.OpenDPException, ValueError, TypeError)):
            conversion(wrapped)
    with pytest.raises((dp.OpenDPException, ValueError, TypeError)):
        dp.c.make_composition([measurement, honest])


def test_a_context_and_the_core_refuse_the_smoothed_measure(posterior: dp.Transformation) -> None:
    measurement = posterior >> obs.then_sampling_histogram(obs.smoothed(CORNERS, size=SIZE), 0.8)
    with pytest.raises((dp.OpenDPException, ValueError, TypeError)):
        plain_context(FRAME, {"changes": 1}, {"epsilon": 10.0})(measurement)
    with pytest.raises(ValueError, match=r"output_measure=SmoothedDP.* one of MaxDivergence"):
        ob.m.make_mechanism(
            *posterior.output_space, obs.smoothed(CORNERS, size=SIZE), obs.SamplingHistogram()
        )


def test_features_are_asked_for_and_only_public_modules_are_used() -> None:
    """What the page on extending says of a plugin; negative control: an import from within."""
    dp.disable_features("honest-but-curious")
    with pytest.raises(ValueError, match="smoothed builds on components"):
        obs.smoothed(CORNERS, size=SIZE)
    assert set(obs.__all__) <= set(dir(obs))
    assert all(getattr(obs, name) is not None for name in obs.__all__)
    with pytest.raises(AttributeError, match="opendp_bayes_smoothed' has no attribute 'smooth'"):
        obs.smooth  # noqa: B018
    public = {"opendp_bayes", "opendp_bayes.extend", "opendp_bayes.extend.framework"}

    def used(text: str) -> set[str]:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        return {node.module or "" for node in nodes} - public

    folder = Path(obs.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    assert len(texts) > 10
    assert not {name for text in texts for name in used(text) if name.startswith("opendp_bayes.")}
    assert used("from opendp_bayes.mathematics.simplex import ranks") - public


def test_the_mathematics_loads_neither_opendp_nor_polars() -> None:
    code = (
        "import sys, opendp_bayes_smoothed as obs; obs.database_profile([3, 4], 0.5, 1.0);"
        " obs.smoothed_delta([[0.5, 0.5]], 5, 0.5, 1.0); obs.SamplingHistogram(rate=0.5).sample([3,"
        " 4], 1.0); assert not {'opendp', 'polars'} &"
        " set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_handed_out_changes_the_smoothed_map(posterior: dp.Transformation) -> None:
    measure = obs.smoothed(CORNERS, size=SIZE)
    measurement = posterior >> obs.then_sampling_histogram(measure, 0.1)
    loss = measurement.map(1)
    delta = loss.delta(0.5)
    for guarantee in (measure.descriptor, loss.guarantee):
        object.__setattr__(guarantee, "vertices", ((0.5, 0.5),))
    assert loss.delta(0.5) != delta, "the control: a value in hand does change"
    assert measurement.map(1).delta(0.5) == delta
