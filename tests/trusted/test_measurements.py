"""Posterior to release: maps of every constructor and measure, chaining, and noise."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.accounting.divergences import delta_from_rho
from opendp_bayes.accounting.losses import curve_of, delta_from_bounds, loss_of
from opendp_bayes.mechanisms import HellingerExponential, integer_noise, knorm_parameters
from opendp_bayes.mechanisms.exponential import posterior_exponential as exponential
from opendp_bayes.mechanisms.exponential.posterior_exponential import score_change
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted import measurements, measurements as drawing
from opendp_bayes.trusted.spaces import PosteriorSpace
from tests.helpers.sweeps import slow, some_of

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROX, APPROX_ZCDP = dp.approximate(PURE), dp.approximate(ZCDP)
SIZE = 6
PRIOR = [0.5, 1.0, 2.0]
INPUT = dp.domain_of(pl.LazyFrame({"x": pl.Series([], dtype=pl.Enum(["a", "b", "c"]))}), infer=True)
DATA = pl.LazyFrame(
    {"x": pl.Series(["a", "a", "b", "c", "c", "c"], dtype=pl.Enum(["a", "b", "c"]))}
)


def posterior(size=SIZE, prior=PRIOR):
    metric = dp.symmetric_distance() if size is None else dp.change_one_distance()
    return ob.t.make_categorical_counts(
        INPUT, metric, column="x", size=size, nulls="a"
    ) >> ob.t.then_dirichlet_multinomial(prior=prior)


def laplace(**options):
    return ob.m.then_laplace_parameters, options


def of_law(kind, *arguments, **options):
    return kind(1.5, *arguments, **options), SIZE


HELLINGER, SMOOTH = ob.mechanisms.HellingerExponential, ob.mechanisms.SmoothHellingerExponential
then_hellinger = ob.m.then_hellinger_exponential
then_smooth = ob.m.then_smooth_hellinger_exponential
LAPLACE = ob.LaplaceParameters


# constructor, its options, its mechanism, the number of records
def of_laplace(size, noise="discrete", total="remainder", /, **named):
    return *laplace(**named), LAPLACE(1.5, noise, total), size


CONSTRUCTORS = {
    "laplace": of_laplace(SIZE),
    "laplace bounded": of_laplace(SIZE, "discrete", "bounded", total="bounded"),
    "laplace floored": of_laplace(SIZE, "floored", noise="floored"),
    "laplace private": of_laplace(None, "discrete", "private"),
    "laplace private, public n": of_laplace(SIZE, "discrete", "private", total="private"),
    "laplace private floored": of_laplace(None, "floored", "private", noise="floored"),
    "K-norm": (ob.m.then_knorm_parameters, {}, ob.KNormParameters(1.5), SIZE),
    "permute-and-flip": (ob.m.then_permute_and_flip, {}, ob.mechanisms.PermuteAndFlip(1.5), SIZE),
    "EHD": (then_hellinger, {}, *of_law(HELLINGER)),
    "EHDL": (then_hellinger, {"sensitivity": "local"}, *of_law(HELLINGER, "local")),
    "EHDS": (then_smooth, {}, *of_law(SMOOTH)),
    "EHDS gamma": (then_smooth, {"gamma": 0.2}, *of_law(SMOOTH, gamma=0.2)),
    "beta": (then_smooth, {"beta": 0.1}, *of_law(SMOOTH, beta=0.1)),
}
MEASURES = {
    "pure": (PURE, lambda loss: loss.epsilon),
    "zCDP": (ZCDP, lambda loss: loss.rho),
    "approximate": (APPROX, lambda loss: (loss.epsilon, loss.delta)),
    "approximate zCDP": (APPROX_ZCDP, lambda loss: (loss.rho, 0.0)),
}


@pytest.mark.parametrize(("name", "measure"), some_of(product(CONSTRUCTORS, MEASURES), 26))
def test_privacy_map_is_the_exact_loss_or_the_proven_one(name, measure):
    then, options, mechanism, size = CONSTRUCTORS[name]
    output_measure, expressed = MEASURES[measure]
    by_name = posterior(size) >> then(output_measure, 1.5, **options)
    by_value = posterior(size) >> ob.m.then_mechanism(output_measure, mechanism)
    by_proof = posterior(size) >> ob.m.then_mechanism(
        output_measure, mechanism, accounting="proven"
    )
    assert by_name.output_measure == output_measure
    for d_in in (0, 1, 2, 5):
        loss = ob.exact_loss(mechanism, d_in=d_in, size=size, prior=np.array(PRIOR))
        assert by_name.map(d_in) == by_value.map(d_in) == expressed(loss)
        proven = mechanism.proven_loss(d_in, size=size, prior=np.array(PRIOR))
        assert by_proof.map(d_in) == expressed(proven)
        assert loss.epsilon <= proven.epsilon
        assert loss.rho <= proven.rho
        spent = by_name.map(d_in)
        if isinstance(spent, tuple):
            assert spent[1] == 0.0
        first = spent[0] if isinstance(spent, tuple) else spent
        assert first == 0.0 if d_in == 0 else 0 < first < math.inf
        if name == "EHDL" and d_in:
            assert proven.epsilon == math.inf


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_release_carries_its_model_and_its_loss_and_how_it_was_obtained(name):
    then, options, mechanism, size = CONSTRUCTORS[name]
    released = (posterior(size) >> then(PURE, 1.5, **options))(DATA)
    assert isinstance(released, ob.Release)
    assert released.mechanism == mechanism
    assert (released.categories, released.prior) == (("a", "b", "c"), tuple(PRIOR))
    assert released.size == size
    assert released.loss == ob.exact_loss(mechanism, size=size, prior=PRIOR)
    assert (released.d_in, released.guarantee.measure) == (1, "MaxDivergence")
    assert len(released.counts) == 3
    assert all(type(count) is int and count >= 0 for count in released.counts)
    if isinstance(mechanism, (HELLINGER, ob.mechanisms.PermuteAndFlip, SMOOTH)):
        assert sum(released.counts) == size
    _, _, mechanism, size = CONSTRUCTORS[name]
    domain, metric = posterior(size).output_domain, posterior(size).output_metric
    assert ob.m.make_mechanism(domain, metric, PURE, mechanism).accounting == "exact"
    made = ob.m.make_mechanism(domain, metric, PURE, mechanism, accounting="proven")
    assert made.accounting == "proven"


@pytest.mark.parametrize("delta", [0.0, 1e-3, *slow([1e-9, 0.2])])
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_delta_is_used_and_never_exceeded(name, delta):
    _, _, mechanism, size = CONSTRUCTORS[name]
    epsilon, used = (posterior(size) >> ob.m.then_mechanism(APPROX, mechanism, delta=delta)).map(1)
    profile = ob.privacy_profile(mechanism, size=size, prior=PRIOR)
    # Exponential mechanisms have the loss of ε alone: δ would change its fifth digit.
    adds_noise = mechanism.name in ("laplace_parameters", "knorm_parameters")
    assert used == (delta if adds_noise else 0)
    assert profile(epsilon) <= delta
    assert epsilon <= profile.loss.epsilon
    assert epsilon < profile.loss.epsilon or not used


def test_proven_accounting_uses_delta_by_the_pure_bound():
    laplace = posterior() >> ob.m.then_mechanism(
        APPROX, ob.LaplaceParameters(2.0), delta=0.1, accounting="proven"
    )
    # Randomized response with ε = 1: (1 - exp(ε - 1)) / (1 + exp(-1)) = δ.
    assert laplace.map(1) == (pytest.approx(1 + math.log(1 - 0.1 * (1 + math.exp(-1)))), 0.1)


@pytest.mark.parametrize("accounting", ["exact", "proven"])
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_the_profile_at_every_distance(name, accounting):
    _, _, mechanism, size = CONSTRUCTORS[name]
    found = []
    for d_in in (0, 1, 2, 3):
        arguments = {"size": size, "prior": np.array(PRIOR), "d_in": d_in}
        profile = ob.privacy_profile(mechanism, **arguments)
        setting = Setting.of(mechanism, size, PRIOR)
        proven = loss_of(setting, d_in, accounting="proven")
        curve = curve_of(setting, Distance.of(d_in), accounting)
        for epsilon in (0.0, 0.1, 0.5):
            exact = profile(epsilon)
            bound = min(delta_from_bounds(proven, epsilon), delta_from_rho(proven.rho, epsilon))
            assert curve.delta(epsilon) == (exact if accounting == "exact" else bound)
        found.append(curve.delta(0.0))
    assert found[0] == 0
    if accounting == "exact" or name != "EHDL":  # of which nothing is proved
        assert found[0] < found[1] < found[2] < found[3]


@pytest.mark.parametrize("measure", [dp.renyi_divergence(), dp.user_divergence("mine")])
@pytest.mark.parametrize("name", ["laplace", "EHD", "EHDS"])
def test_unsupported_measures_are_refused_by_name(name, measure):
    then, options, _, size = CONSTRUCTORS[name]
    written = repr(measure).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf"output_measure={written}: must be one of MaxDiv"):
        posterior(size) >> then(measure, 1.0, **options)


POSITIVE, DELTA = "must be finite and greater than 0", "must be at least 0 and below 1"
then_laplace = ob.m.then_laplace_parameters
BAD = [
    (then_laplace(PURE, 0.0), ValueError, f"scale=0.0: {POSITIVE}"),
    (then_hellinger(PURE, -1.0), ValueError, f"scale=-1.0: {POSITIVE}"),
    (then_smooth(PURE, math.nan), ValueError, f"scale=nan: {POSITIVE}"),
    (then_laplace(PURE, math.inf), ValueError, f"scale=inf: {POSITIVE}"),
    (then_laplace(PURE, 1e-300), ValueError, "scale=1e-300: must be between"),
    (then_laplace(PURE, 1e300), ValueError, r"scale=1e\+300: must be between"),
    (then_laplace(PURE, "1"), TypeError, "scale='1': must be a number, not str"),
    (then_laplace(PURE, True), TypeError, "scale=True: must be a number, not bool"),
    (then_laplace(PURE, 1.0, noise="gaussian"), ValueError, "noise='gaussian': .*'floored'"),
    (then_laplace(PURE, 1.0, total="all"), ValueError, "total='all': .*'bounded', 'private'"),
    (then_hellinger(PURE, 1.0, sensitivity="x"), ValueError, "sensitivity='x': .*'local'"),
    (then_hellinger(PURE, 1.0, accounting="?"), ValueError, r"accounting='\?': must be one of"),
    (then_smooth(PURE, 1.0, accounting="?"), ValueError, r"accounting='\?': must be one of"),
    (then_smooth(PURE, 1.0, gamma=0), ValueError, f"gamma=0: {POSITIVE}"),
    (then_smooth(PURE, 1.0, beta=-1), ValueError, f"beta=-1: {POSITIVE}"),
    (then_smooth(PURE, 1.0, gamma=1, beta=1), ValueError, "gamma=1, beta=1: give at most one"),
    (then_smooth(PURE, 1.0, delta=0.1), ValueError, "delta=0.1: must be 0, or below 1 under"),
    (then_smooth(APPROX_ZCDP, 1.0, delta=0.1), ValueError, "delta=0.1: must be 0, or below 1"),
    (then_smooth(APPROX, 1.0, delta=1.0), ValueError, f"delta=1.0: {DELTA}"),
    (then_smooth(APPROX, 1.0, delta=-0.1), ValueError, f"delta=-0.1: {DELTA}"),
    (then_smooth(APPROX, 1.0, delta=math.nan), ValueError, f"delta=nan: {DELTA}"),
    (ob.m.then_mechanism(PURE, "laplace"), TypeError, "mechanism='laplace': must be a mechanism v"),
    (ob.m.then_mechanism(PURE, LAPLACE), TypeError, "must be a mechanism value, such as"),
]


@pytest.mark.parametrize(("then", "error", "message"), BAD)
def test_bad_input_is_refused_at_construction(then, error, message):
    with pytest.raises(error, match=message):
        posterior() >> then


def test_public_sizes_and_registration_are_asked_of_those_that_need_them():
    for then in (ob.m.then_hellinger_exponential, ob.m.then_smooth_hellinger_exponential):
        with pytest.raises(ValueError, match="records must be public"):
            posterior(None) >> then(PURE, 1.0)
    with pytest.raises(ValueError, match=r"total='remainder': .*public number"):
        posterior(None) >> ob.m.then_laplace_parameters(PURE, 1.0, total="remainder")
    make = ob.m.make_laplace_parameters
    with pytest.raises(ValueError, match=r"input_metric=CountsDistance\(add/remove\): .*belongs"):
        make(posterior().output_domain, posterior(None).output_metric, PURE, 1.0)
    assert isinstance(Uniform(1.0), ob.Mechanism)
    measurement = posterior() >> ob.m.then_mechanism(PURE, Uniform(1.0))
    assert measurement.map(10) == 0.0
    assert measurement(DATA).counts == (2, 2, 2)
    assert measurement(DATA).loss.method == "trivial"


def test_compositions_and_casts_of_opendp_take_our_measurements():
    counts = ob.t.make_categorical_counts(
        INPUT, dp.change_one_distance(), column="x", size=SIZE, nulls="a"
    )
    mechanisms = ob.m.then_laplace_parameters, ob.m.then_hellinger_exponential
    parts = [
        counts >> ob.t.then_dirichlet_multinomial(prior=prior) >> then(PURE, 4.0)
        for prior, then in zip((PRIOR, 1.0), mechanisms, strict=True)
    ]
    vector = counts >> ob.t.then_count_vector() >> dp.m.then_laplace(scale=8.0)
    both = dp.c.make_composition([*parts, vector])
    exponential = ob.exact_loss(
        ob.mechanisms.HellingerExponential(4.0), size=SIZE, prior=np.ones(3)
    ).epsilon
    assert both.map(1) == pytest.approx(0.5 + exponential + 0.25, rel=1e-12)
    assert both.map(1) >= 0.75 + exponential
    first, second, third = both(DATA)
    assert isinstance(first, ob.Release)
    assert isinstance(second, ob.Release)
    assert len(third) == 3
    pure = posterior() >> ob.m.then_laplace_parameters(PURE, 4.0)
    assert dp.c.make_approximate(pure).map(1) == (0.5, 0.0)
    assert dp.c.make_pureDP_to_zCDP(pure).map(1) == pytest.approx(0.125)
    assert (posterior() >> ob.m.then_laplace_parameters(ZCDP, 4.0)).map(
        1
    ) < 0.125  # our own account is tighter
    zcdp = dp.c.make_zCDP_to_approxDP(posterior() >> ob.m.then_laplace_parameters(ZCDP, 4.0))
    assert zcdp.map(1).epsilon(delta=1e-6) > 0


# --- what the samplers are given -------------------------------------------------------------
class Spy:
    """Calls the function in its place and keeps the arguments and the results."""

    def __init__(self, monkeypatch, module, name):
        self.function, self.calls, self.results = getattr(module, name), [], []
        monkeypatch.setattr(module, name, self)

    def __call__(self, *arguments):
        self.calls.append(arguments)
        self.results.append(self.function(*arguments))
        return self.results[-1]


COUNTS = (2, 1, 3)  # of DATA


@pytest.mark.parametrize("scale", [1.5, 0.1, 7.3])
@pytest.mark.parametrize(
    ("total", "size", "moved"), [("remainder", SIZE, 2), ("bounded", SIZE, 2), ("private", None, 1)]
)
def test_opendp_s_laplace_noise_has_the_scale_of_the_map(total, size, moved, scale, monkeypatch):
    """What adds the noise has, by OpenDP's own account, the loss that the measurement states."""
    spy = Spy(monkeypatch, drawing, "make_laplace")
    made = posterior(size) >> ob.m.then_laplace_parameters(PURE, scale, total=total)
    made(DATA)
    [(_, _, drawn_with)], [noise] = spy.calls, spy.results
    assert drawn_with == scale == made(DATA).mechanism.scale
    for d_in in (1, 2, 5):
        assert made.map(d_in) == pytest.approx(noise.map(moved * d_in), rel=1e-15)


@pytest.mark.parametrize("scale", [1.5, 0.1, 7.3])
def test_opendp_s_noisy_max_has_the_scale_of_the_map(scale, monkeypatch):
    spy = Spy(monkeypatch, drawing, "make_noisy_max")
    made = posterior() >> ob.m.then_permute_and_flip(PURE, scale, accounting="proven")
    made(DATA)
    [(_, _, measure, drawn_with)] = spy.calls
    assert (measure, drawn_with) == (PURE, scale)
    scores = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    noisy_max = scores >> dp.m.then_noisy_max(PURE, drawn_with)
    for d_in in (1, 2, 5):
        by_opendp = noisy_max.map(score_change(d_in, size=SIZE, prior=np.array(PRIOR)))
        assert made.map(d_in) == pytest.approx(by_opendp, rel=1e-14)


SENSITIVITIES = {
    "EHD": lambda: 1.0,
    "EHDL": lambda: ob.mechanisms.local_sensitivity(COUNTS, PRIOR),
    "EHDS": lambda: ob.mechanisms.smooth_sensitivity(COUNTS, PRIOR, gamma=1.0),
    "EHDS gamma": lambda: ob.mechanisms.smooth_sensitivity(COUNTS, PRIOR, gamma=0.2),
    "beta": lambda: ob.mechanisms.smooth_sensitivity(COUNTS, PRIOR, beta=0.1),
}


@pytest.mark.parametrize("name", SENSITIVITIES)
def test_the_sampler_has_the_width_of_the_map(name, monkeypatch):
    """The data, the prior and the width of the law that is accounted for, to the last bit."""
    spy = Spy(monkeypatch, exponential, "HellingerSampler")
    (posterior() >> ob.m.then_mechanism(PURE, CONSTRUCTORS[name][2]))(DATA)
    [(counts, prior, width)] = spy.calls
    assert (tuple(counts), prior.tolist()) == (COUNTS, PRIOR)
    assert width == 1.5 * SENSITIVITIES[name]()


def test_k_norm_and_floored_noise_have_the_scale_of_the_map(monkeypatch):
    knorm = Spy(monkeypatch, knorm_parameters, "knorm_noise")
    floored = Spy(monkeypatch, integer_noise, "floored_laplaces")
    drawn = {"K-norm": (knorm, [(3, 0.1, 1)]), "laplace floored": (floored, [(0.1, 2)])}
    for name, (spy, asked) in drawn.items():
        then, options, _, size = CONSTRUCTORS[name]
        made = posterior(size) >> then(PURE, 0.1, **options)
        made(DATA)
        assert spy.calls == asked
        assert made.map(1) == (20.0 if name == "laplace floored" else 10.0)


# --- the law of OpenDP's noise against ours
FALSE_ALARM = 1e-6  # of one chi-square test of a correct sampler
SMALLEST_CELL = 10  # expected count; rarer outcomes are pooled into one cell


def statistic(observed, log_p):
    """Pearson's chi-square with the rarer cells pooled, and its threshold."""
    draws = observed.sum()
    expected = draws * np.exp(log_p)
    rare = expected < SMALLEST_CELL
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], max(draws - expected[~rare].sum(), 1e-9))
    if expected[-1] < SMALLEST_CELL:  # even together they are too few for the approximation
        observed, expected = observed[:-1], expected[:-1]
    return ((observed - expected) ** 2 / expected).sum(), stats.chi2.isf(
        FALSE_ALARM, expected.size - 1
    )


def observed(measurement, concentration, candidates, draws):
    index = {tuple(row): i for i, row in enumerate(candidates.tolist())}
    found = [index[measurement(concentration).counts] for _ in range(draws)]
    return np.bincount(found, minlength=len(index))


LAWS = {
    "remainder": (ob.LaplaceParameters(1.0), [1, 2, 3], 2000, (0.7, 1.3)),
    "bounded": (ob.LaplaceParameters(1.0, total="bounded"), [0, 5, 1], 2000, (0.7, 1.3)),
    "noisy max": (ob.mechanisms.PermuteAndFlip(0.2), [1, 2, 3], 600, (0.5, 2.0)),
}


@pytest.mark.parametrize("name", ["remainder", "noisy max", *slow(["bounded"])])
def test_what_opendp_draws_has_the_law_of_log_pmf(name):
    """A scale of Laplace noise that is off by 30 % would be missed with probability below 1e-12."""
    mechanism, counts, draws, factors = LAWS[name]
    measurement = ob.m.make_mechanism(*posterior(prior=1.0).output_space, PURE, mechanism)
    candidates, log_p = mechanism.log_pmf(counts, 1.0)
    drawn = observed(measurement, np.array(counts) + 1.0, candidates, draws)
    value, threshold = statistic(drawn, log_p)
    assert value <= threshold
    for factor in factors:  # negative control
        wrong = replace(mechanism, scale=factor * mechanism.scale)
        value, threshold = statistic(drawn, wrong.log_pmf(counts, 1.0)[1])
        assert value > threshold


# --- mechanisms of others
@dataclass(frozen=True)
class Uniform:
    """Ignores the data: every count is the same."""

    scale: float
    name: ClassVar[str] = "uniform"

    def check(self, *, size, prior):
        if prior.size > 3:
            raise ValueError("uniform: at most 3 categories.")

    def log_pmf(self, counts, prior):
        return np.full((1, len(prior)), 2), np.zeros(1)

    def sample(self, counts, prior, draws=1):
        return np.full((draws, len(prior)), 2)

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        return ob.PrivacyLoss(epsilon=0.0, rho=0.0, range=0.0, method="trivial")


def test_what_would_ignore_the_data_is_not_released():
    """Its own check is asked, at the release: OpenDP searches for a scale among many."""

    class Mute(Uniform):
        def check_informative(self, *, size, prior):
            raise ValueError(f"scale={self.scale}: says nothing of {size} records.")

    measurement = posterior() >> ob.m.then_mechanism(PURE, Mute(2.0))
    assert measurement.map(1) == 0.0
    with pytest.raises(dp.OpenDPException, match=rf"scale=2\.0: says nothing of {SIZE} records"):
        measurement(DATA)


@pytest.mark.parametrize(
    ("has_a_hash", "message"),
    [(True, "be a frozen dataclass"), (False, r"must be hashable; .*@dataclass\(frozen=True")],
)
def test_a_mechanism_that_can_change_is_refused(has_a_hash, message):
    """The map and the sampler must see the same parameters."""

    @dataclass(unsafe_hash=has_a_hash)
    class Thawed:
        scale: float
        name: ClassVar[str] = "thawed"
        check, log_pmf, sample = Uniform.check, Uniform.log_pmf, Uniform.sample
        proven_loss = Uniform.proven_loss

    with pytest.raises(TypeError, match=message):
        ob.m.make_mechanism(*posterior().output_space, PURE, Thawed(1.0))


NO_COUNTS = *map(np.array, ([[-1, 3]], [[1.5, 2.0]], [[1, 2, 3]], [1, 2])), [[1, 2]], None


@pytest.mark.parametrize("sample", NO_COUNTS)
def test_what_a_plugin_samples_is_checked_inside_the_callback(sample):
    @dataclass(frozen=True)
    class Careless(ob.LaplaceParameters):
        name = "careless"

        def sample(self, counts, prior, draws=1):
            return sample

    space = PosteriorSpace(("a", "b"), 3, (1.0, 1.0))
    make = ob.m.make_mechanism
    measurement = make(space.domain, space.metric, dp.max_divergence(), Careless(1.0))
    with pytest.raises(OpenDPException, match=r"machine integers, .*draws"):
        measurement(np.array([2.0, 3.0]))


def test_delta_is_stated_at_distances_where_it_no_longer_helps():
    mechanism = ob.KNormParameters(2.0**-40)
    made = posterior() >> ob.m.then_mechanism(APPROX, mechanism, delta=0.999999)
    (_, unit_delta), (_, further_delta) = made.map(1), made.map(2)
    assert unit_delta == further_delta == 0.999999
    assert ob.exact_loss(mechanism, size=SIZE, prior=PRIOR, d_in=2).delta == 0


def test_an_epsilon_with_delta_does_not_fall_by_the_tolerance_of_its_search(monkeypatch):
    """As it did at distances beyond the number of records, and the measurement was refused."""
    known = loss_of

    def falling(setting, d_in, **named):
        loss = known(setting, d_in, **named)
        return replace(loss, epsilon=np.nextafter(loss.epsilon, 0)) if d_in.records > SIZE else loss

    monkeypatch.setattr(measurements, "loss_of", falling)
    mechanism = ob.mechanisms.SmoothHellingerExponential(4.0)
    made = posterior() >> ob.m.then_mechanism(APPROX, mechanism, delta=1e-3)
    at_size = made.map(SIZE)
    assert made.map(SIZE + 1) == made.map(64) == at_size
    assert at_size[0] == ob.exact_loss(mechanism, size=SIZE, prior=PRIOR, d_in=SIZE).epsilon


@pytest.mark.parametrize(
    ("size", "prior"), [(11, (1e-3, 1e3)), (12, (1e-3, 1e-3)), (9, (1.0, 1.0))]
)
def test_an_epsilon_with_delta_never_falls_with_the_distance(size, prior):
    """Also between distances whose δ is of other pairs, where a search begins elsewhere."""
    domain = dp.vector_domain(dp.atom_domain(T=bool), size=size)
    labels = {"categories": [True, False], "size": size}
    counts = ob.t.make_categorical_counts(domain, dp.hamming_distance(), **labels)
    mechanism = HellingerExponential(scale=0.5)
    measurement = (
        counts
        >> ob.t.then_dirichlet_multinomial(prior=list(prior))
        >> ob.m.then_mechanism(dp.approximate(dp.max_divergence()), mechanism, delta=0.3)
    )
    found = [measurement.map(d_in)[0] for d_in in range(14)]
    assert found == sorted(found)
