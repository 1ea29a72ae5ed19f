"""A posterior per group: stability, laws against every neighbour, Contexts, refusals."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from scipy.special import logsumexp

import opendp_bayes as ob
from tests.helpers.contexts import plain_context
from tests.helpers.neighbours import every_frame, neighbours
from tests.helpers.oracles import discrete_laplace_cell, laplace_law, rejects
from tests.helpers.sweeps import some_of

PURE = dp.max_divergence()
SYMMETRIC, CHANGE_ONE = dp.symmetric_distance(), dp.change_one_distance()
REGION, VOTE = pl.Enum(["north", "south", "east"]), pl.Enum(["yes", "no"])
SCHEMA = {"region": REGION, "vote": VOTE}


def frame_of(rows, schema=SCHEMA):
    return pl.LazyFrame(
        {
            name: pl.Series([row[i] for row in rows], dtype=dtype)
            for i, (name, dtype) in enumerate(schema.items())
        }
    )


def counting(metric=SYMMETRIC, schema=SCHEMA, groups=None, categories=None, **arguments):
    domain = dp.domain_of(frame_of([], schema), infer=True)
    arguments = {"by": "region", "column": "vote", "nulls": "no", **arguments}
    labels = {"vote": categories, arguments["by"]: groups}
    return ob.t.make_categorical_counts(domain, metric, categories=labels, **arguments)


# --- stability and privacy against every neighbour of small frames
KEYS = ["north", "south"]
# The last four are in no group.
ROWS = list(product(["north", "south", "east", None], ["yes", "no"]))
SMALL = every_frame(ROWS, 2)
SCALE = 1.5


@pytest.fixture(scope="module")
def cells():
    """The cells of every frame of up to two records, and last the rows in no group."""
    count = counting(groups=KEYS)
    assert count.output_domain.descriptor.k == 4
    every = {rows: count(frame_of(rows)).tolist() for rows in SMALL}
    return {rows: (*counts, len(rows) - sum(counts)) for rows, counts in every.items()}


@cache
def private_total(counts):
    """Independent noise on every cell, each outcome of 8 or more taken together."""
    pieces = []
    for count in counts[:-1]:
        law = Counter()
        for step in range(-80, 81):
            law[min(max(count + step, 0), 8)] += discrete_laplace_cell(step, SCALE)
        pieces.append(dict(law))
    return pieces


@cache
def public_sizes(counts):
    """What would be private if no change moved a record between groups."""
    return [
        laplace_law(counts[start : start + 2], SCALE, "discrete", "remainder") for start in (0, 2)
    ]


def largest_loss(relation, law, cells, d_in=1):
    """The largest log-ratio of probabilities over all outcomes and neighbours."""
    largest = 0.0
    for pair in neighbours(ROWS, 2, relation, d_in):
        for first, second in (pair, pair[::-1]):
            pieces = zip(law(cells[first]), law(cells[second]), strict=True)
            losses = [
                max(
                    math.log(p / q[outcome]) if q.get(outcome) else math.inf
                    for outcome, p in piece.items()
                    if p
                )
                for piece, q in pieces
            ]
            largest = max(largest, sum(losses))
    return largest


def release_of(metric, size, scale=SCALE, keys=KEYS, measure=PURE):
    counts = counting(metric, groups=keys, size=size)
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
    return posterior >> ob.m.then_laplace_parameters(measure, scale, total="private")


RELATIONS = {"add/remove": (SYMMETRIC, None), "change-one": (CHANGE_ONE, 2)}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d_in", [1, 2])
def test_the_map_holds_for_all_neighbours_and_is_tight(relation, d_in, cells):
    """Under change-one the worst neighbours change two cells, whether of one group or of two."""
    metric, size = RELATIONS[relation]
    count = counting(metric, groups=KEYS, size=size)
    moved = max(
        sum(abs(a - b) for a, b in zip(cells[first], cells[second], strict=True))
        for first, second in neighbours(ROWS, 2, relation, d_in)
    )
    assert moved == count.map(d_in) * (1 if size is None else 2)
    claimed = release_of(metric, size).map(d_in)
    assert claimed == pytest.approx(d_in * (1 if size is None else 2) / SCALE, rel=1e-12)
    assert largest_loss(relation, private_total, cells, d_in) == pytest.approx(claimed, rel=1e-9)


def test_a_change_between_groups_is_not_private_when_each_group_keeps_its_size(cells):
    """The negative control: the search above must catch parallel composition of mechanisms that
    keep the number of records of a group.

    Their loss is 1 / scale as long as no record leaves its group, which is what makes the mistake
    easy.
    """
    stay = neighbours([row for row in ROWS if row[0] == "north"], 2, "change-one")
    pieces = [
        pair
        for a, b in stay
        for pair in zip(public_sizes(cells[a]), public_sizes(cells[b]), strict=True)
    ]
    losses = [abs(math.log(p / q[outcome])) for piece, q in pieces for outcome, p in piece.items()]
    assert max(losses) == pytest.approx(1 / SCALE)
    assert largest_loss("change-one", public_sizes, cells) == math.inf


def test_keys_and_losses_do_not_depend_on_groups():
    """Parallel composition: the loss does not depend on the number of groups. The groups are
    the same where the data hold none of them, and the plan comes first.
    """
    for metric, size in RELATIONS.values():
        of = (["north"], ["north", "south", "east"])
        one, every = (release_of(metric, size, keys=keys).map(1) for keys in of)
        assert one == every
    whole = context(loss=EXACT)
    nobody = ask(whole.query().filter(pl.col("n") > 99)).release()
    some = ask(whole.query().filter(pl.col("n") > 7)).release()
    assert nobody.counts == ((0, 0), (0, 0), (0, 0))
    assert some.counts == ((1, 0), (1, 0), (0, 1))
    assert list(nobody) == list(some)


ORDERS = np.concatenate([np.linspace(1.001, 4, 60), np.geomspace(4, 1e4, 60)])


@cache
def renyi(first, second):
    """Rényi divergences of the orders above between the noised counts of one cell."""
    (p,), (q,) = private_total((first, None)), private_total((second, None))
    outcomes = list(p)
    weights = np.array([p[outcome] for outcome in outcomes])
    ratio = np.log([p[outcome] / q[outcome] for outcome in outcomes])
    return logsumexp((ORDERS[:, None] - 1) * ratio, b=weights, axis=1) / (ORDERS - 1)


def largest_rho(relation, cells, d_in=1):
    """The largest Rényi divergence over its order, added over cells, of all neighbours."""
    pairs = {
        tuple(sorted(zip(cells[a][:-1], cells[b][:-1], strict=True)))
        for pair in neighbours(ROWS, 2, relation, d_in)
        for a, b in (pair, pair[::-1])
    }
    return max(float(np.max(sum(renyi(a, b) for a, b in pair) / ORDERS)) for pair in pairs)


@pytest.mark.parametrize("d_in", [1, 2])
def test_the_concentrated_loss_holds_for_all_neighbours_and_is_tight(d_in, cells):
    """Squares add: two records added may be in one cell; one rises and one falls."""
    zcdp = dp.zero_concentrated_divergence()
    changed, added = (
        release_of(*RELATIONS[relation], measure=zcdp) for relation in ("change-one", "add/remove")
    )
    for relation, measurement in (("change-one", changed), ("add/remove", added)):
        # Both search a grid of orders.
        assert largest_rho(relation, cells, d_in) == pytest.approx(measurement.map(d_in), rel=2e-3)
        assert largest_rho(relation, cells, d_in) <= measurement.map(d_in)
    assert added.map(d_in) < changed.map(d_in) < 0.9 * added.map(2 * d_in), (
        "so that either map would be noticed in place of the other"
    )


# --- the law of a release
def test_releases_follow_the_law_of_independent_noise_on_every_cell():
    rows = [("north", "yes")] * 2 + [("south", "yes"), ("south", "no")] + [("east", "no")] * 3
    measurement = release_of(SYMMETRIC, None)
    frame = frame_of(rows)
    released = [measurement(frame).counts for _ in range(1200)]
    observed = [tuple(min(count, 8) for group in groups for count in group) for groups in released]

    def law(*counts):
        pieces = product(*(piece.items() for piece in private_total(counts)))
        return {tuple(x for x, _ in piece): math.prod(p for _, p in piece) for piece in pieces}

    right = law(2, 0, 1, 1, 3)
    assert not rejects(observed, right)
    # Negative controls: the data of another frame, groups swapped, and one noise for both groups.
    assert rejects(observed, law(1, 1, 1, 1, 3))
    assert rejects([(c, d, a, b) for a, b, c, d in observed], right)
    each = [(a, b, a - 1, b + 1) for (a, b), _ in released]
    assert rejects([tuple(min(max(count, 0), 8) for count in one) for one in each], right)


# --- Contexts
DATA = pl.LazyFrame(
    {
        "region": pl.Series(
            ["north", "north", "south", None, "north", "south", "north", "east", "south", "north"],
            dtype=REGION,
        ),
        "vote": pl.Series(
            ["yes", "no", "yes", "yes", None, "no", "yes", "no", "yes", "yes"], dtype=VOTE
        ),
        "town": ["a", "b", "c", None, "a", "c", "a", "zz", "c", "b"],
        "id": [1, 1, 1, 2, 2, 3, 3, 4, 4, 4],
        "n": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        "share": [0.5] * 10,
    }
)
SIZE = 10
EXACT = {"epsilon": 400.0}  # the noise on 10 records differs from 0 with probability below 1e-20


def context(unit=None, loss=None, **arguments):
    arguments = arguments or {"split_evenly_over": 2}
    return plain_context(
        DATA, unit or {"contributions": 1}, loss or {"epsilon": 1.0}, None, **arguments
    )


def ask(query, column="vote", **arguments):
    return ob.posterior(query, column, by="region", **{"nulls": "no", **arguments})


# --- keys
KEYED = {
    "categories of the Enum": ("region", None, {"north": (3, 2), "south": (2, 1), "east": (0, 1)}),
    "some, in another order": ("region", ["south", "north"], {"south": (2, 1), "north": (3, 2)}),
    "one": ("region", ["east"], {"east": (0, 1)}),
    "a polars Series": ("region", pl.Series(["east"]), {"east": (0, 1)}),
    "numpy": ("region", np.array(["east", "south"]), {"east": (0, 1), "south": (2, 1)}),
    "one absent": ("town", ["c", "no", "a"], {"c": (2, 1), "no": (0, 0), "a": (2, 1)}),
    "integers": ("n", [10, 2, 11], {10: (1, 0), 2: (0, 1), 11: (0, 0)}),
}


@pytest.mark.parametrize("name", KEYED)
def test_every_public_key_has_a_release_and_no_other(name):
    by, keys, expected = KEYED[name]
    query, labels = context(loss=EXACT).query(), {by: keys}
    released = ob.posterior(query, "vote", by=by, nulls="no", categories=labels).release()
    assert {group: one.counts for group, one in released.items()} == expected
    assert list(released) == list(expected)


# --- errors


def test_grouped_queries_other_columns_and_mechanisms_are_refused():
    with pytest.raises(TypeError, match=r"not LazyGroupByQuery.*by `by=\['region'\]`"):
        ob.posterior(context().query().group_by("region"), "vote", nulls="no")
    with pytest.raises(TypeError, match=r"questions\['q'\]: query: .*without `group_by`"):
        ob.survey(context().query().group_by("region"), {"q": {"column": "vote", "nulls": "no"}})
    with pytest.raises(ValueError, match=r"'town' is not among .* by=\['region'\]"):
        ob.posterior(context().query(), "vote", nulls="no", categories={"town": ["a"]})
    with pytest.raises(TypeError, match="unexpected keyword argument 'keys'"):
        counting(keys=["a"])
    posterior = counting(groups=KEYS) >> ob.t.then_dirichlet_multinomial(prior=1.0)
    with pytest.raises(ValueError, match="may be in any group"):
        posterior >> ob.m.then_mechanism(PURE, Some(1.0))
    assert posterior.map(1) == 1


POLICIES = {
    "nulls": ({"nulls": {"town": "-"}}, {"a": (2, 1), "-": (1, 0)}),
    "others": ({"unknown": {"town": "other"}}, {"a": (2, 1), "other": (3, 3)}),
    "others with a group": ({"unknown": {"town": "a"}}, {"a": (5, 4)}),
    "one": ({"nulls": {"town": "-"}, "unknown": {"town": "-"}}, {"a": (2, 1), "-": (4, 3)}),
    "none": ({"nulls": {"town": ob.DROP}, "unknown": {"town": ob.DROP}}, {"a": (2, 1)}),
}


@pytest.mark.parametrize(("size", "name"), some_of(product([None, SIZE], POLICIES), 6))
def test_nulls_and_unknown_values_of_the_groups_column_have_a_group_if_one_is_named(name, size):
    arguments, expected = POLICIES[name]
    labels = {"categories": {"town": ["a"]}, **arguments}
    labels["nulls"] = {"vote": "no", **labels.get("nulls", {})}
    unit = {"contributions": 1} if size is None else {"changes": 1}
    query = context(unit, EXACT).query()
    released = ob.posterior(query, "vote", by="town", size=size, **labels).release()
    assert {group: one.counts for group, one in released.items()} == expected
    if size is not None:
        in_none = size - sum(map(sum, expected.values()))
        assert released.rest == in_none


@dataclass(frozen=True)
class Some:
    """A plugin's mechanism that states no law, for a private number of records."""

    scale: float
    name: ClassVar[str] = "some"

    def check(self, *, size, prior): ...

    def log_pmf(self, counts, prior):
        raise ValueError("no list")

    def sample(self, counts, prior, draws=1):
        return np.tile(counts, (draws, 1))

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        return ob.PrivacyLoss(epsilon=d_in, rho=d_in, range=d_in)


REMAINDER = {"mechanism": "laplace_parameters", "total": "remainder"}


BOUNDED = {"mechanism": ob.LaplaceParameters(1.0, total="bounded")}


PRIVATE_SIZES = "a record may be in any group"


BAD = [
    ("town", {}, ValueError, r"\['town'\]=None: .* Pass .* Where a margin"),
    ("share", {"categories": {"share": [0.5]}}, TypeError, "by='share': has type Float64; must"),
    ("town", {"categories": {"town": []}}, ValueError, r"\]=\[\]: must name at least one group"),
    ("town", {"categories": {"town": ["a", None]}}, TypeError, "None does not fit .* by nulls="),
    ("town", {"categories": {"town": "a"}}, TypeError, r"\['town'\]='a': must be a sequence"),
    ("n", {"categories": {"n": ["1"]}}, TypeError, r"\['n'\]=\['1'\]: '1' does not fit .* Int64"),
    ("region", {"categories": {"region": ["west"]}}, ValueError, "'west' is not in the Enum"),
    ("town", {"categories": {"town": ["a", "a"]}}, ValueError, r"\['a', 'a'\]: must not repeat"),
    ("region", {"prior": [1.0] * 3}, ValueError, r"prior=.*has shape \(3,\); must have 2 entries"),
    ("region", {"size": 10}, ValueError, "size=10: the number of records is private here"),
    ("region", {"nulls": None}, ValueError, "nulls=None: column 'vote' may hold nulls"),
    ("region", {"mechanism": "hellinger_exponential"}, ValueError, PRIVATE_SIZES),
    ("region", {"mechanism": ob.KNormParameters(1.0)}, ValueError, f"KNorm.*{PRIVATE_SIZES}"),
    ("region", REMAINDER, ValueError, f"total='remainder'.*{PRIVATE_SIZES}"),
    ("region", BOUNDED, ValueError, f"total='bounded'.*{PRIVATE_SIZES}"),
    ("region", {"mechanism": ob.LaplaceParameters(1.0)}, ValueError, f"total=.*{PRIVATE_SIZES}"),
    ("region", {"mechanism": 3}, TypeError, "mechanism=3: must be 'auto'"),
    ("region", {"gamma": 0.1}, TypeError, r"gamma=0\.1: is .* nor an option"),
    ("region", {"keys": ["a"]}, TypeError, r"keys=\['a'\]: is neither an argument"),
    ("region", {"merge": 2}, TypeError, r"merge=2: .* of ob\.survey\. .* budget\.$"),
    ("region", {"categories": {"town": ["a"]}}, ValueError, "'town' is not among the columns"),
]


@pytest.mark.parametrize(("by", "arguments", "error", "message"), BAD)
def test_bad_arguments_are_refused_when_the_query_is_made(by, arguments, error, message):
    with pytest.raises(error, match=message):
        ob.posterior(context().query(), "vote", by=by, **{"nulls": "no", **arguments})
