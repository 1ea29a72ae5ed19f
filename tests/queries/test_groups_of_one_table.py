"""Groups with a public total: one draw for all cells and the rest, its loss and posteriors."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from tests.helpers import brute_force
from tests.helpers.contexts import plain_context
from tests.helpers.sweeps import some_of

PURE, CHANGE_ONE = dp.max_divergence(), dp.change_one_distance()
REGION, VOTE = pl.Enum(["north", "south", "east"]), pl.Enum(["yes", "no"])
KEYS = ["north", "south"]
ROWS = list(product(["north", "south", "east", None], ["yes", "no"]))
SCALE = 1.5


def frame_of(rows):
    return pl.LazyFrame(list(rows), schema={"region": REGION, "vote": VOTE}, orient="row")


def posterior(size, keys=KEYS):
    domain = dp.domain_of(frame_of([]), infer=True)
    asked = {"by": "region", "categories": {"region": keys}, "column": "vote", "nulls": "no"}
    counts = ob.t.make_categorical_counts(domain, CHANGE_ONE, **asked, size=size)
    return counts >> ob.t.then_dirichlet_multinomial(prior=1.0)


def grouped(size, then, keys=KEYS):
    return posterior(size, keys) >> then


# --- privacy against every neighbour
def cells(rows):
    """The definition: the cells of the two groups, and the rest."""
    counts = np.zeros(5, dtype=int)
    for region, vote in rows:
        counts[4 if region not in KEYS else 2 * KEYS.index(region) + (vote == "no")] += 1
    return counts


def worst_ratio(distance, d_in, scale):
    """The largest log-ratio of K-norm noise around cells of two records' frames `d_in` apart."""
    steps = np.array([z for z in product(range(-4, 5), repeat=5) if sum(z) == 0])
    moves = {
        tuple((cells(second) - cells(first)).tolist())
        for first, second in product(product(ROWS, repeat=2), repeat=2)
        if sum(a != b for a, b in zip(first, second, strict=True)) <= d_in
    }
    return max(float((distance(steps + move) - distance(steps)).max()) / scale for move in moves)


def of_two(mechanism, drawn, loss, size):
    """A release of two groups and the rest."""
    guarantee, pairs = ob.PrivacyGuarantee(size, 1, loss, "MaxDivergence"), (drawn[:2], drawn[2:4])
    of = (("yes", "no"), (1.0, 1.0), mechanism, guarantee)
    return GroupedRelease(("north", "south"), pairs, *of, rest=drawn[4])


def half_norm(steps):
    return np.abs(steps).sum(axis=-1) / 2


@pytest.mark.parametrize("d_in", some_of([1, 2], 1))
def test_one_draw_over_all_cells_costs_what_a_table_costs(d_in):
    """A record that leaves a group moves two cells, as one within a group does."""
    measurement = grouped(2, ob.m.then_knorm_parameters(PURE, SCALE))
    for rows in ([ROWS[0], ROWS[6]], [ROWS[3], ROWS[5]]):
        assert posterior(2)(frame_of(rows)).tolist() == (cells(rows) + 1.0).tolist()
    claimed = measurement.map(d_in)
    assert claimed == pytest.approx(d_in / SCALE, rel=1e-12)
    assert worst_ratio(half_norm, d_in, SCALE) == pytest.approx(claimed)
    # Negative controls: half the noise, and noise on the cells of groups alone.
    assert worst_ratio(half_norm, d_in, SCALE / 2) > 1.9 * claimed

    def without_the_rest(steps):
        """Of a release whose rest carries no noise: it says how many rows are in no group."""
        return np.where(steps[..., 4] == 0, half_norm(steps), 1e9)

    assert worst_ratio(without_the_rest, d_in, SCALE) > 1e8


# --- definitions
def data_sets(released):
    """Counts of all cells and the rest, `(c, k)`, and their posterior probabilities."""
    sets, weights = brute_force.data_sets(released.whole)
    if released.sizes is not None:
        sums = sets[:, :-1].reshape(len(sets), len(released.sizes), -1).sum(axis=2)
        weights = weights * np.all(sums == released.sizes, axis=1)
    return sets, weights / weights.sum()


def cdf_of_group(released, at, values):
    """Of the probability of the first of two categories within a group."""
    sets, weights = data_sets(released)
    first, second = sets[:, 2 * at] + 1.0, sets[:, 2 * at + 1] + 1.0
    return special.betainc(first, second, np.asarray(values)[:, None]) @ weights


def mean_counts(released, at):
    """The expected true counts of a group."""
    sets, weights = data_sets(released)
    return weights @ sets[:, 2 * at : 2 * at + 2]


# --- noise
def context(unit, rows, loss=1.0):
    return plain_context(frame_of(rows), unit, {"epsilon": loss})


# --- posteriors
NOISE = [ob.KNormParameters(1.5), ob.LaplaceParameters(1.0, total="private")]
NOISE.append(ob.LaplaceParameters(1.0))


@pytest.mark.slow
def test_the_posterior_of_a_group_is_calibrated():
    """Over data sets drawn from the prior, 90 % intervals of a group cover the true probability in
    90 % of them, give or take 5 standard errors (further with probability 6e-7). Negative control:
    those that take the released counts for the data do not.
    """
    trials = 300
    rng = np.random.default_rng(5)
    n, covered, plug_in = 60, 0, 0
    mechanism = ob.KNormParameters(4.0)
    for _ in range(trials):
        theta = rng.dirichlet(np.ones(5))
        counts = rng.multinomial(n, theta)
        drawn = tuple(mechanism.draw(counts, np.ones(5))[0].tolist())
        released = of_two(mechanism, drawn, ob.PrivacyLoss(0.25, 0.1, 0.5), n)
        lower, upper = released["north"].posterior["yes"].interval(0.9)
        true = theta[0] / theta[:2].sum()
        covered += lower <= true <= upper
        ends = released["north"].plug_in.interval(0.9)
        plug_in += ends[0] <= true <= ends[1]
    allowed = 5 * math.sqrt(0.09 / trials)
    assert abs(covered / trials - 0.9) < allowed
    assert trials < 300 or abs(plug_in / trials - 0.9) > allowed


# --- public sizes of groups
SIZES = {"north": 2, "south": 3}


def drawn_by(mechanism):
    """A release of seven rows, two of them in no group; what it drew fits no sizes."""
    loss = ob.exact_loss(mechanism, size=7, prior=[1.0] * 5)
    return of_two(mechanism, (2, -1, 1, 3, 2), loss, 7)


@pytest.mark.parametrize("mechanism", [*NOISE, ob.GaussianParameters(2.0)], ids=str)
def test_posteriors_with_public_sizes_are_the_conditionals_of_all_tables(mechanism):
    """Negative control: without the sizes they are others."""
    before = drawn_by(mechanism)
    released = before.with_sizes(SIZES)
    assert before.with_sizes(dict(reversed(SIZES.items()))) == released, "by group, not by order"
    values = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
    for at, (one, unsized) in enumerate(zip(released.values(), before.values(), strict=True)):
        right = cdf_of_group(released, at, values)
        assert one.posterior.cdf(values)[:, 0] == pytest.approx(right, abs=1e-3)
        means = mean_counts(released, at)
        assert one.posterior.counts.mean() == pytest.approx(means, abs=2e-3)
        assert np.abs(unsized.posterior.cdf(values)[:, 0] - right).max() > 0.01
        assert one.posterior.records.mean() == pytest.approx(2 + at)
        if mechanism.name != "laplace_parameters":
            assert sum(one.counts) == 2 + at
    again = ob.Release.from_json(released.to_json())
    assert again == released
    assert again["south"].posterior.mean() == pytest.approx(released["south"].posterior.mean())


def test_sizes_that_are_refused():
    released = drawn_by(ob.KNormParameters(1.5))
    with pytest.raises(ValueError, match=r"sizes=\{'north': 2\}: .*mapping .* 'south'"):
        released.with_sizes({"north": 2})
    with pytest.raises(ValueError, match=r"sizes=\(2, 6\): .* at most 7"):
        released.with_sizes({"north": 2, "south": 6})
    assert released.with_sizes({"north": 2, "south": 5}).sizes == (2, 5), "none is in no group"
    exponential = replace(
        drawn_by(ob.mechanisms.HellingerExponential(0.4)), noisy_counts=((2, 0), (1, 2))
    )
    with pytest.raises(ValueError, match=r"on the counts only, .*KNormParameters"):
        exponential.with_sizes(SIZES)
    with pytest.raises(ValueError, match=r"group_size=3: .*noise on the counts"):
        ob.noise_aware_posterior(replace(exponential["south"], group_size=3))
    private = context({"contributions": 1}, ROWS).query()
    released = ob.posterior(
        private, "vote", by="region", categories={"region": KEYS}, nulls="no"
    ).release()
    with pytest.raises(ValueError, match="all records, which must be public"):
        released.with_sizes(SIZES)


@pytest.mark.parametrize("unit", [{"contributions": 1}, {"changes": 1}])
def test_keys_and_sizes_that_opendp_reads_for_nothing(unit):
    """A margin of public sizes makes OpenDP release them and the keys exactly, for nothing."""
    rows = ROWS * 20
    margin = dp.polars.Margin(by=["region"], invariant="lengths")
    private = plain_context(frame_of(rows), unit, parts=None, margins=[margin])
    lengths = private.query(epsilon=0.0).group_by("region").agg(dp.len(signed=True))
    sizes = dict(lengths.release().collect().filter(pl.col("region").is_not_null()).iter_rows())
    assert sizes == Counter(region for region, _ in rows if region is not None)
    query = private.query(epsilon=1.0)
    asked = {
        "by": "region",
        "categories": {"region": sorted(sizes)},
        "size": len(rows),
        "nulls": "no",
    }
    released = ob.posterior(query, "vote", **asked).release()
    assert list(released.with_sizes(sizes)) == sorted(sizes)
    assert private.current_privacy_loss() == pytest.approx(released.epsilon, rel=1e-12)


def test_priors_that_differ_and_sizes_that_fall_stay_with_what_they_are_of():
    """Of the categories by name, the same in every group; 1 for the rows in none."""
    rows = [("north", "yes")] * 5 + [("south", "no")] * 2 + [("east", "no")] * 2
    query = context({"changes": 1}, rows, 1000.0).query()
    prior = {"no": 3.0, "yes": 0.5}
    asked = {
        "by": "region",
        "categories": {"region": KEYS},
        "size": len(rows),
        "nulls": "no",
        "prior": prior,
    }
    released = ob.posterior(query, "vote", mechanism="knorm_parameters", **asked).release()
    assert (released.prior, released.whole.prior) == ((0.5, 3.0), (0.5, 3.0, 0.5, 3.0, 1.0))
    assert released.counts == ((5, 0), (0, 2))
    sized = released.with_sizes({"south": 2, "north": 5})
    for group, (yes, no) in (("north", (5.5, 3.0)), ("south", (0.5, 5.0))):
        one = sized[group]
        assert one.group_size == sum(one.counts) == one.posterior.records.mean()
        assert one.posterior.mean() == pytest.approx([yes / (yes + no), no / (yes + no)])
        assert released[group].posterior.mean() == pytest.approx(one.posterior.mean(), abs=1e-3)
    again = ob.Release.from_json(sized.to_json())
    assert [one.group_size for one in again.values()] == [5, 2]


def ratio_of_noise(k, scale, laplace_scale):
    """The standard deviation of one entry of K-norm noise on k counts over that of discrete Laplace
    noise, from their definitions: the first by the shells of the lattice of zero sums.

    Of a shell of norm d, `E[z_1²]` is that of the difference of two counts: with probability
    proportional to their numbers, p entries are raised and q lowered, and d units are shared among
    them.
    """
    second_moment, total = 0.0, 0.0
    for d in range(1, int(60 * scale)):
        for p in range(1, k):
            for q in range(1, k - p + 1):
                ways = special.comb(k, p) * special.comb(k - p, q)
                ways *= special.comb(d - 1, p - 1) * special.comb(d - 1, q - 1)
                weight = ways * np.exp(-d / scale)
                total += weight
                second_moment += weight * (_squares(d, p) + _squares(d, q)) / k
    total += 1.0
    ratio = np.exp(-1 / laplace_scale)
    return np.sqrt(second_moment / total) / np.sqrt(2 * ratio / (1 - ratio) ** 2)


def _squares(d, parts):
    """The expected sum of the squares of a composition of d into so many positive parts."""
    if parts == 1:
        return d * d
    sizes = np.arange(1, d - parts + 2)
    ways = special.comb(d - sizes - 1, parts - 2)
    return parts * float((ways * sizes**2).sum() / ways.sum()) if ways.sum() else 0.0


def test_the_noise_of_a_cell_is_less_than_that_of_noise_on_every_count():
    """At ε = 1 and 7 cells: the standard deviation of 21 000 numbers, so within 4 % with
    probability above 0.999. K-norm noise is noise of the same law on every count, given that it
    sums to 0: with two cells that is half, with many nearly all of it.
    """
    rows = ROWS * 40
    labels = {"categories": {"region": ["north", "south", "east"]}, "nulls": "no"}
    query = context({"changes": 1}, rows).query()
    released = ob.posterior(query, "vote", by="region", size=len(rows), **labels).release()
    assert released.epsilon <= 1.0
    assert released.mechanism == ob.KNormParameters(1.0)
    before = ob.LaplaceParameters(2.0, total="private")
    assert ob.exact_loss(before, size=len(rows), prior=np.ones(7)).epsilon == pytest.approx(1.0)
    truth = np.array([40] * 6 + [80])
    both = (released.mechanism, before)
    spread = [np.std(mechanism.draw(truth, np.ones(7), 3000) - truth) for mechanism in both]
    assert spread[0] / spread[1] == pytest.approx(ratio_of_noise(7, 1.0, 2.0), rel=0.06)
    assert spread[0] < 0.9 * spread[1]
    assert ratio_of_noise(2, 1.0, 2.0) < 0.49
    assert ratio_of_noise(21, 1.0, 2.0) > 0.9


@pytest.mark.parametrize(
    "mechanism", some_of([*NOISE, ob.mechanisms.HellingerExponential(0.4)], 1), ids=str
)
def test_the_posterior_of_a_group_is_the_conditional_of_that_of_the_table(mechanism):
    released = grouped(7, ob.m.then_mechanism(PURE, mechanism))(frame_of(ROWS[:7]))
    values = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
    for at, one in enumerate(released.values()):
        right = cdf_of_group(released, at, values)
        found = one.posterior
        assert found.categories == ("yes", "no")
        assert found.cdf(values)[:, 0] == pytest.approx(right, abs=1e-3)
        assert found.counts.mean() == pytest.approx(mean_counts(released, at), abs=2e-3)
        again = ob.noise_aware_posterior(one)
        assert again.mean() == pytest.approx(found.mean(), abs=1e-6)
    assert released["north"].posterior.releases == (released["north"],)
