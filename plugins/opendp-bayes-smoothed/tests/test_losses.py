"""Smoothed losses: what they promise at most, how they add up, and releases that carry them."""

import json
import math
from fractions import Fraction

import definitions
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_smoothed as obs
from opendp_bayes.mechanisms import registry
from opendp_bayes_smoothed import SampleRelease, SmoothedDP, SmoothedLoss
from opendp_bayes_smoothed.losses import loss_of
from tests.helpers import oracles

PI = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(5, 8), Fraction(3, 8))]
GUARANTEE = SmoothedDP(6, ((0.25, 0.75), (0.625, 0.375)))
PLAIN = loss_of(obs.SamplingHistogram(rate=0.5), GUARANTEE)
NOISY = loss_of(obs.NoisySamplingHistogram(3.0, rate=0.5), GUARANTEE)


def test_a_pure_loss_is_also_one_with_a_delta() -> None:
    """`(e^p - e^ε) / (e^p + 1)`: attained by randomised response, and below nothing possible."""
    for pure in (0.1, 1.0, 5.0):
        p, q = math.exp(pure) / (1 + math.exp(pure)), 1 / (1 + math.exp(pure))
        part = SampleRelease(3, pure_epsilon=pure)
        for epsilon in (0.0, pure / 3, 0.99 * pure):
            attained = obs.divergence([p, q], [q, p], epsilon)
            assert attained <= math.exp(part.log_bound(epsilon)) <= attained * (1 + 1e-11)
        assert part.log_bound(pure) == -math.inf
    assert SampleRelease(3, drawn=0.5).log_bound(2.0) == pytest.approx(math.log(0.5))
    assert SampleRelease(3, pure_epsilon=1e4).log_bound(2.0) == pytest.approx(0.0)


def test_the_smallest_of_what_is_known_is_averaged() -> None:
    """The noised histogram: of every database the smaller of sampling and noise, where its own
    laws are beyond reach.
    """
    size = 600
    wide = SmoothedDP(size, ((0.25, 0.75), (0.625, 0.375)))
    loss = loss_of(obs.NoisySamplingHistogram(1.0, rate=0.5), wide)
    plain = loss_of(obs.SamplingHistogram(rate=0.5), wide)
    bound = math.exp(loss.releases[0].log_bound(0.5))
    assert loss.delta(0.5) <= min(plain.delta(0.5), bound)
    profiles = [obs.database_profile([x, size - x], 0.5, 0.5) for x in range(size + 1)]
    minima = np.minimum(profiles, bound)
    found = obs.smoothed_value(lambda x: minima[x[0]], wide.vertices, size)
    assert loss.delta(0.5) == pytest.approx(found, rel=1e-6)


def test_composition_is_above_the_truth() -> None:
    """Proposition 5: two releases of samples of the same data, by the definition."""
    total = PLAIN + loss_of(obs.SamplingHistogram(rate=0.3), GUARANTEE)
    for epsilon in (0.3, 1.0):
        profiles = {
            x: definitions.profile(
                lambda y: definitions.both(
                    definitions.sampled(y, 3, "without"), definitions.sampled(y, 2, "without")
                ),
                x,
                epsilon,
            )
            for x in oracles.data_sets(6, 2)
        }
        truth = definitions.smoothed(lambda x, t=profiles: t[x], PI, 6)
        assert truth <= Fraction(total.delta(epsilon))
        assert total.delta(epsilon) < 1.0
        assert Fraction(PLAIN.delta(epsilon)) < truth, "the control: one release alone"


def test_composition_divides_epsilon_well() -> None:
    """No worse than equal halves, nor than all for one; and what is pure adds up."""
    for epsilon in (0.5, 2.0):
        both = (PLAIN + NOISY).delta(epsilon)
        assert both <= PLAIN.delta(epsilon / 2) + NOISY.delta(epsilon / 2) + 1e-15
        assert both >= max(PLAIN.delta(epsilon), NOISY.delta(epsilon))
    twice = NOISY + NOISY
    assert twice.pure_epsilon == 2 * NOISY.pure_epsilon
    assert twice.delta(twice.pure_epsilon) == 0
    assert twice.delta(twice.epsilon(0.05)) <= 0.05
    assert (PLAIN + PLAIN + PLAIN).delta(0.0) == 1 or (PLAIN + PLAIN).delta(0.0) <= 1
    with pytest.raises(ValueError, match=r"losses: are for SmoothedDP\(size=6"):
        PLAIN + loss_of(obs.SamplingHistogram(rate=0.5), SmoothedDP(7, GUARANTEE.vertices))
    with pytest.raises(ValueError, match="at d_in=2; only those"):
        PLAIN + loss_of(obs.SamplingHistogram(rate=0.5), GUARANTEE, d_in=2)
    with pytest.raises(TypeError, match="unsupported operand"):
        PLAIN + 1.0


def test_an_average_is_better_than_its_histogram() -> None:
    guarantee = SmoothedDP(6, ((0.25, 0.25, 0.5), (0.5, 0.25, 0.25)))
    mechanism = obs.SamplingHistogram(rate=0.5)
    histogram = loss_of(mechanism, guarantee)
    average = loss_of(mechanism, guarantee, values=(0.0, 1.0, 2.0))
    assert average.delta(1.0) < 0.9 * histogram.delta(1.0)
    alone = obs.smoothed_average_delta(guarantee.vertices, 6, 0.5, 1.0)
    assert average.delta(1.0) == pytest.approx(alone, rel=1e-9)


def test_other_mechanisms_have_no_smoothed_loss() -> None:
    with pytest.raises(ValueError, match=r"mechanism=.* of this package"):
        loss_of(ob.LaplaceParameters(1.0), GUARANTEE)


def test_losses_refuse_what_is_no_delta() -> None:
    for delta in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"delta=.*: .*greater than 0 and"):
            PLAIN.epsilon(delta)


SIZE = 60


@pytest.fixture
def release() -> obs.SmoothedRelease:
    frame = pl.LazyFrame({"vote": pl.Series(["a"] * 40 + ["b"] * 20, dtype=pl.Enum(["a", "b"]))})
    domain = dp.lazyframe_domain([dp.series_domain("vote", dp.enum_domain(pl.Series(["a", "b"])))])
    posterior = ob.t.make_categorical_counts(
        domain, dp.change_one_distance(), column="vote", size=SIZE, nulls="a"
    ) >> ob.t.then_dirichlet_multinomial(prior=1.0)
    measure = obs.smoothed([[0.8, 0.2], [0.3, 0.7]], size=SIZE)
    return (posterior >> obs.then_noisy_sampling_histogram(measure, 4.0, rate=0.5))(frame)


def test_a_release_prints_both_promises(release: obs.SmoothedRelease) -> None:
    text = str(release)
    for part in (
        "Category  Released count",
        "ε    Smoothed δ",
        "Smoothed differential privacy: on average over data sets of 60 independent records",
        "(0.3, 0.7); (0.8, 0.2)",
        "Differential privacy, whatever the data: ε = ",
        "NoisySamplingHistogram(scale=4, rate=0.5)",
    ):
        assert part in text
    html = release._repr_html_()
    assert "Smoothed δ" in html
    assert "<script" not in html


def test_a_release_is_read_back(
    release: obs.SmoothedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_known", {})  # nobody has asked for the mechanism before
    text = release.to_json(epsilons=(0.1, 1.0))
    document = json.loads(text)
    assert document["statement"][0] == {"epsilon": 0.1, "smoothed_delta": release.loss.delta(0.1)}
    found = obs.SmoothedRelease.from_json(text)
    assert found == release
    assert found.loss == release.loss


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": "another"}, "its format is 'another'"),
        ({"version": 2}, "text: is no opendp-bayes-smoothed release"),
        ({"records": 61}, r"61 records of 2 .* 60 of 2"),
        ({"distributions": [[0.2, 0.3, 0.5]]}, "describes 60 records of 3 categories"),
        ({"distributions": [[0.5, 0.6]]}, "every row must hold probabilities"),
        ({"statement": [{"epsilon": 0.1, "smoothed_delta": 1e-9}]}, "states a smoothed δ of 1e-09"),
        ({"release": {}}, "text: is no"),
    ],
)
def test_a_document_is_checked(change: dict, match: str, release: obs.SmoothedRelease) -> None:
    document = json.loads(release.to_json()) | change
    with pytest.raises(ValueError, match=match):
        obs.SmoothedRelease.from_json(json.dumps(document))
    with pytest.raises(ValueError, match="text: is no"):
        obs.SmoothedRelease.from_json("{}")


def test_a_loss_of_no_change_promises_everything() -> None:
    none = loss_of(obs.SamplingHistogram(rate=0.5), GUARANTEE, d_in=0)
    assert (none.pure_epsilon, none.delta(0.0), none.epsilon(1e-9)) == (0, 0, 0)
    assert isinstance(none, SmoothedLoss)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_the_loss_is_that_of_how_the_sample_is_drawn(epsilon: float) -> None:
    """Of the histogram, and of an average that tells it; the two ways are far from each other."""
    rows = [list(map(float, row)) for row in PI]
    expected = {
        how: obs.smoothed_delta(rows, 6, 0.5, epsilon, replacement=how)
        for how in ("without", "with")
    }
    assert expected["without"] != pytest.approx(expected["with"], rel=1e-2)
    for how, delta in expected.items():
        mechanism = obs.SamplingHistogram(rate=0.5, replacement=how)
        assert loss_of(mechanism, GUARANTEE).delta(epsilon) == pytest.approx(delta, rel=1e-9)
        average = loss_of(mechanism, GUARANTEE, values=(0.0, 1.0))
        assert average.delta(epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("how", ["without", "with"])
def test_an_average_that_tells_less_loses_less(how: str) -> None:
    """Of three categories of which two count the same: the loss of two, however they are drawn."""
    rows = ((0.125, 0.125, 0.75), (0.5, 0.125, 0.375))
    mechanism = obs.SamplingHistogram(rate=0.5, replacement=how)
    average = loss_of(mechanism, SmoothedDP(6, rows), values=(0.0, 0.0, 1.0))
    plain = loss_of(mechanism, SmoothedDP(6, rows))
    for epsilon in (0.0, 0.4):
        merged = loss_of(mechanism, GUARANTEE).delta(epsilon)
        assert average.delta(epsilon) == pytest.approx(merged, rel=1e-6)
        assert average.delta(epsilon) < 0.99 * plain.delta(epsilon)


def test_more_records_lose_what_differential_privacy_says() -> None:
    """Of each way to draw; the probability that one of two is drawn, and of three."""
    for d_in in (2, 3):
        without = loss_of(obs.SamplingHistogram(rate=0.3), GUARANTEE, d_in=d_in)
        assert without.delta(0.0) == pytest.approx(min(1.0, d_in * 2 / 6))
        twice = obs.SamplingHistogram(rate=0.3, replacement="with")
        again = loss_of(twice, GUARANTEE, d_in=d_in)
        assert again.delta(0.0) == pytest.approx(1 - (1 - d_in / 6) ** 2)
        noisy = obs.NoisySamplingHistogram(3.0, rate=0.3)
        pure = noisy.proven_loss(d_in, size=6, prior=np.ones(2)).epsilon
        loss = loss_of(noisy, GUARANTEE, d_in=d_in)
        assert (loss.d_in, loss.pure_epsilon) == (d_in, pure)
        assert loss.delta(0.0) == pytest.approx(min(math.tanh(pure / 2), d_in * 2 / 6), rel=1e-9)
