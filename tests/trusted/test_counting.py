"""Frame to counts: values, metrics, maps against all neighbours, `size`, users' plans."""

import random
from itertools import product, repeat

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.queries.categorical_counts import counts_of_frame
from opendp_bayes.queries.question import Question
from tests.helpers.contexts import plain_context
from tests.helpers.neighbours import every_frame, neighbours

SYMMETRIC = dp.symmetric_distance()
CHANGE_ONE = dp.change_one_distance()
BOUNDED = dp.frame_distance(SYMMETRIC)
MO = "FrameDistance<SymmetricDistance>"
Bound = dp.polars.Bound
ABC = pl.Enum(["a", "b", "c"])
POLICY = {"nulls": "none", "unknown": "other"}


def frame_of(values, dtype=ABC):
    return pl.LazyFrame({"x": pl.Series(values, dtype=dtype)})


def domain(dtype=ABC):
    return dp.domain_of(frame_of([], dtype), infer=True)


def counting(metric, dtype=ABC, **arguments):
    return ob.t.make_categorical_counts(
        domain(dtype), metric, column="x", **{**POLICY, **arguments}
    )


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int16, pl.UInt8, pl.UInt16])
def test_small_integers_are_refused_by_opendp_itself(dtype):
    """So nothing of ours has to; `pl.col(...).cast(pl.Int32)` before the Context is the way."""
    with pytest.raises((OpenDPException, ValueError), match=r"concrete type|unrecognized dtype"):
        domain(dtype)


def test_columns_without_nulls_need_no_policy_and_spaces_name_their_categories():
    declared = dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T="bool"))])
    counts = ob.t.make_categorical_counts(declared, SYMMETRIC, column="x", categories=[True, False])
    assert counts(pl.LazyFrame({"x": [True, False, True]})).tolist() == [2, 1]
    assert counts(pl.LazyFrame({"x": [False, None]})).tolist() == [1, 1], (
        "failing would tell that there is a null"
    )
    assert (
        repr(counting(SYMMETRIC).output_domain)
        == "CategoricalCounts(categories=['a', 'b', 'c', 'none', 'other'], size=None,"
        " nulls=['none'], unknown=['other'])"
    )
    assert (
        repr(counting(CHANGE_ONE, size=4).output_domain)
        == "CategoricalCounts(categories=['a', 'b', 'c', 'none', 'other'], size=4,"
        " nulls=['none'], unknown=['other'])"
    )
    assert repr(counting(SYMMETRIC).output_metric) == "CountsDistance(add/remove)"
    assert repr(counting(CHANGE_ONE, size=4).output_metric) == "CountsDistance(change-one)"


def test_count_vectors_and_public_lengths_are_those_of_opendp():
    laplace = counting(SYMMETRIC) >> ob.t.then_count_vector() >> dp.m.then_laplace(scale=2.0)
    assert laplace.map(1) == 0.5
    assert len(laplace(frame_of(["a", None]))) == 5
    assert (
        counting(CHANGE_ONE, size=2) >> ob.t.then_count_vector() >> dp.m.then_laplace(scale=2.0)
    ).map(1) == 1.0
    sized = dp.with_margin(domain(), dp.polars.Margin(by=[], invariant="lengths"))
    with pytest.raises(ValueError, match=r"size=None: .*is public; pass size="):
        ob.t.make_categorical_counts(sized, SYMMETRIC, column="x", **POLICY)
    counts = ob.t.make_categorical_counts(sized, SYMMETRIC, column="x", size=2, **POLICY)
    assert [counts.map(d_in) for d_in in (0, 1, 2, 3, 4)] == [0, 1, 1, 2, 2]


# --- metrics
IDENTIFIER = pl.col("x")
UNORDERED = "must be symmetric_distance"
UNLIMITED = "a person may own any number of records"
OF_IDENTIFIERS = dp.symmetric_id_distance(IDENTIFIER)
REFUSED = {
    "InsertDeleteDistance": (dp.insert_delete_distance(), UNORDERED),
    "HammingDistance": (dp.hamming_distance(), UNORDERED),
    "DiscreteDistance": (dp.discrete_distance(), UNORDERED),
    "L1Distance": (dp.l1_distance(T="i64"), UNORDERED),
    "L2Distance": (dp.l2_distance(T="f64"), UNORDERED),
    "AbsoluteDistance": (dp.absolute_distance(T="i64"), UNORDERED),
    "SymmetricIdDistance": (OF_IDENTIFIERS, UNLIMITED),
    "ChangeOneIdDistance": (dp.change_one_id_distance(IDENTIFIER), UNLIMITED),
    "FrameDistance.SymmetricIdDistance": (dp.frame_distance(OF_IDENTIFIERS), UNLIMITED),
    "FrameDistance.InsertDeleteDistance": (
        dp.frame_distance(dp.insert_delete_distance()),
        UNORDERED,
    ),
    "anything": (dp.user_distance("anything"), UNORDERED),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("size", [None, 3])
def test_metrics_outside_the_whitelist_are_refused_by_name(name, size):
    metric, reason = REFUSED[name]
    with pytest.raises(ValueError, match=rf"input_metric={name.replace('.', '.*')}.*{reason}"):
        counting(metric, size=size)


# --- stability maps
@pytest.mark.parametrize("d_in", [0, 1, 2, 7, 1000])
def test_plain_metrics_keep_the_distance(d_in):
    assert counting(SYMMETRIC).map(d_in) == d_in
    assert counting(CHANGE_ONE, size=5).map(d_in) == d_in


X2 = Bound(by=["x"], per_group=2, num_groups=3)
OF_X = [Bound(["x"], per_group=2), Bound([pl.col("x")], num_groups=3), Bound(["y"], num_groups=1)]
ONES = [Bound(by=["x"], per_group=1), Bound(by=["y"], num_groups=1), Bound(per_group=5)]
BOUNDS = {
    "no grouping": ([Bound(per_group=3)], 3),
    "no grouping, groups stated": ([Bound(per_group=3, num_groups=4)], 3),
    "nobody": ([Bound(per_group=0)], 0),
    "own column": ([X2], 6),
    "another column": ([Bound(by=["y"], per_group=2, num_groups=5)], 10),
    "the product is smaller": ([Bound(per_group=7), X2], 6),
    "the product is larger": ([X2, Bound(per_group=5)], 5),
    "of three": ([Bound(per_group=9), X2, Bound(by=["y"], per_group=4, num_groups=1)], 4),
    "one grouping in two bounds": (OF_X, 6),
    "the smallest of each": ([Bound(["x"], 2, 9), Bound(["x"], 5, 3)], 6),
    "other orders": ([Bound(["x", "y"], per_group=2), Bound(["y", "x"], num_groups=2)], 4),
    "None beside a number": (ONES, 5),
}
UNUSABLE = {
    "nothing": [],
    "no number of groups": [Bound(by=["x"], per_group=2)],
    "of different groupings": [Bound(by=["x"], per_group=2), Bound(by=["y"], num_groups=2)],
    "no number per group": [Bound(by=["x"], num_groups=2), Bound(num_groups=1)],
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_give_the_smallest_number_they_prove(name):
    bounds, records = BOUNDS[name]
    assert counting(BOUNDED).map(bounds) == records
    assert (counting(BOUNDED) >> ob.t.then_count_vector()).map(bounds) == records


@pytest.mark.parametrize("name", UNUSABLE)
def test_bounds_that_prove_nothing_are_an_error(name):
    with pytest.raises(
        OpenDPException, match=r"no Bound limits .* Bound\(by=\[\], per_group=\.\.\.\)"
    ):
        counting(BOUNDED).map(UNUSABLE[name])


def test_change_one_after_a_plan_is_halved_while_the_length_is_public():
    """OpenDP restates it as one removed and one added, the length as a margin."""
    identity = dp.t.make_stable_lazyframe(domain(), CHANGE_ONE, frame_of([]), MO=MO)
    counts = identity >> ob.t.then_categorical_counts(column="x", size=4, **POLICY)
    assert identity.map(1) == [Bound(by=[], per_group=2)]
    assert [counts.map(d_in) for d_in in (0, 1, 2, 5)] == [0, 1, 2, 5]
    assert repr(counts.output_metric) == "CountsDistance(change-one)"
    plan = frame_of([]).filter(pl.col("x") != "b")
    filtered = dp.t.make_stable_lazyframe(domain(), CHANGE_ONE, plan, MO=MO)
    counts = filtered >> ob.t.then_categorical_counts(column="x", **POLICY)
    assert [counts.map(d_in) for d_in in (0, 1, 2, 5)] == [0, 2, 4, 10]
    assert repr(counts.output_metric) == "CountsDistance(add/remove)"


# --- stability maps against every neighbour of small frames
VALUES = ["a", "b", None, "zz"]
SMALL = every_frame(VALUES, 3)


@pytest.fixture(scope="module")
def vectors():
    """Of every frame of up to three records: two categories, a null, an unknown value."""
    vector = counting(SYMMETRIC, pl.String, categories=["a", "b"]) >> ob.t.then_count_vector()
    return {rows: np.array(vector(frame_of(rows, pl.String))) for rows in SMALL}


def violations(pairs, vectors, claimed):
    """The pairs of frames whose count vectors are further apart, in L1, than a map claims."""
    return [pair for pair in pairs if np.abs(vectors[pair[0]] - vectors[pair[1]]).sum() > claimed]


RELATIONS = {"add/remove": (SYMMETRIC, None, 1), "change-one": (CHANGE_ONE, 3, 2)}


@pytest.mark.parametrize(("relation", "d_in"), [*product(RELATIONS, [1, 2]), ("change-one", 3)])
def test_the_map_holds_for_all_neighbours_and_is_tight(vectors, relation, d_in):
    metric, size, moved = RELATIONS[relation]
    pairs = neighbours(VALUES, 3, relation, d_in)
    counts = counting(metric, size=size)
    claimed = (counts >> ob.t.then_count_vector()).map(d_in)
    assert claimed == moved * counts.map(d_in) == moved * d_in
    assert not violations(pairs, vectors, claimed)
    assert violations(pairs, vectors, claimed - 1), "a map that claims less must be caught"


# --- the number of records
SIZES = {
    "change-one needs one": (CHANGE_ONE, None, ValueError, "size=None: .*is public; pass size="),
    "add/remove refuses one": (SYMMETRIC, 5, ValueError, "size=5: the number of records is"),
    "bounds refuse one": (BOUNDED, 5, ValueError, "size=5: the number of records is private here"),
    "zero": (CHANGE_ONE, 0, ValueError, "size=0: must be between 1 and"),
    "negative": (CHANGE_ONE, -4, ValueError, "size=-4: must be between 1 and"),
    "too large": (CHANGE_ONE, 10**13, ValueError, "size=10000000000000: must be between 1 and"),
    "fraction": (CHANGE_ONE, 4.0, TypeError, "size=4.0: must be a whole number, not float"),
    "bool": (CHANGE_ONE, True, TypeError, "size=True: must be a whole number, not bool"),
}


@pytest.mark.parametrize("name", SIZES)
def test_rules_for_size(name):
    metric, size, kind, message = SIZES[name]
    with pytest.raises(kind, match=message):
        counting(metric, size=size)


@pytest.mark.parametrize("rows", [[], ["a"], ["a"] * 3])
def test_a_wrong_size_fails_with_a_public_message(rows):
    with pytest.raises(OpenDPException, match=r"records is not size=2, .*declared"):
        counting(CHANGE_ONE, size=2)(frame_of(rows))


@pytest.mark.parametrize("known", [{"invariant": "keys"}, {"max_length": 9}, {"max_groups": 1}])
def test_a_margin_without_lengths_leaves_the_number_of_records_private(known):
    margin = dp.with_margin(domain(), dp.polars.Margin(by=[], **known))
    with pytest.raises(ValueError, match=r"size=2: .*records is private"):
        ob.t.make_categorical_counts(margin, SYMMETRIC, column="x", size=2, **POLICY)


# --- other arguments
def test_other_bad_input():
    with pytest.raises(ValueError, match=r"column='y': .*not a column .* 1"):
        ob.t.make_categorical_counts(domain(), SYMMETRIC, column="y", **POLICY)
    with pytest.raises(
        TypeError, match=r"input_domain=AtomDomain\(T=i32\): must be a LazyFrameDomain"
    ):
        ob.t.make_categorical_counts(dp.atom_domain(T="i32"), SYMMETRIC, column="x", **POLICY)
    with pytest.raises(ValueError, match="output of make_categorical_counts"):
        ob.t.make_count_vector(domain(), SYMMETRIC)
    with pytest.raises(ValueError, match=r"metric .*belongs to the input domain"):
        ob.t.make_count_vector(
            counting(SYMMETRIC).output_domain, counting(CHANGE_ONE, size=1).output_metric
        )


# --- any question, against its definition for one record after the other
_TEXT, _NUMBERS = ["a", "b", "c", "NA"], [0, 1, 2, -1]
#: By column its type, its values, and labels that none of them has.
COLUMNS = {
    "s": (pl.String, _TEXT, ["none", "rest"]),
    "e": (pl.Enum(_TEXT[::-1]), _TEXT, ["none", "rest"]),
    "c": (pl.Categorical, _TEXT, ["none", "rest"]),
    "t": (pl.Boolean, [True, False], ["none", "rest"]),
    "i": (pl.Int32, _NUMBERS, [7, 8]),
    "u": (pl.UInt64, [0, 1, 2, 2**64 - 1], [7, -1]),
}


class Policy:
    """Where the values of a column are counted, drawn among all that may be asked for."""

    def __init__(self, column, draws, is_dropped):
        self.dtype, self.values, new = COLUMNS[column]
        few = draws.randint(1, len(self.values))
        self.listed = draws.sample(
            [of for of in self.values if of != 2**64 - 1] + [3] * (column in "iu"), few
        )
        drop = [ob.DROP] if is_dropped else []
        self.nulls = draws.choice([*drop, *new, *self.listed, *self.values[3:]])
        self.nulls = new[0] if self.nulls == 2**64 - 1 else self.nulls
        self.unknown = draws.choice([*drop, *new, *self.listed, self.nulls])
        if column == "t" and len(self.listed) == 2:
            self.unknown = None
        self.labels = [*self.listed]
        for label in (self.nulls, self.unknown):
            if label is not None and label is not ob.DROP and label not in self.labels:
                self.labels.append(label)

    def label(self, value):
        if value is None:
            return self.nulls
        return value if value in self.listed or value == self.nulls else self.unknown


@pytest.mark.parametrize("seed", range(4))
def test_any_question_counts_each_record_where_it_says(seed):
    """Of columns of any type, their cells, groups and merged cells, of a public number or not."""
    draws = random.Random(seed)
    for _ in range(30):
        names = draws.sample(list(COLUMNS), draws.choice([1, 1, 2, 3]))
        by = names[1:] if draws.random() < 0.4 else []
        columns, is_public = names[:1] if by else names, draws.random() < 0.4
        of = {name: Policy(name, draws, not is_public or name in by) for name in names}
        rows = [
            (person, *(draws.choice([*COLUMNS[name][1], None]) for name in COLUMNS))
            for person in range(12)
            for _ in range(3)
        ]
        types = {"who": pl.Int64} | {name: dtype for name, (dtype, *_) in COLUMNS.items()}
        frame = pl.DataFrame(rows, types, orient="row").lazy()
        unit = draws.choice([{"contributions": 1}, {"contributions": 1, "identifier": "who"}])
        query = plain_context(frame, {"changes": 1} if is_public else unit).query()
        records = [dict(zip(types, row, strict=True)) for row in rows]
        if "identifier" in unit and not is_public:
            query = query.truncate_per_group(2, keep="last").filter(pl.col("who") < 9)
            records = [row for at, row in enumerate(records) if at % 3 and row["who"] < 9]

        keys = [tuple(of[name].label(row[name]) for name in (*by, *columns)) for row in records]
        cells = list(product(*(of[name].labels for name in (*by, *columns))))
        if any(len(of[name].labels) < 2 for name in columns):
            continue
        wanted = [sum(map(same, keys, repeat(cell))) for cell in cells]
        if by and is_public:
            wanted.append(len(records) - sum(wanted))
        merge = None
        if not by and draws.random() < 0.3:
            halves = cells[::2], cells[1::2]
            merge = dict(zip("xy", (list(map(named, half)) for half in halves), strict=True))
            wanted = [sum(wanted[::2]), sum(wanted[1::2])]
        question = {
            argument: {name: getattr(of[name], field) for name in names}
            if len(names) > 1
            else getattr(of[names[0]], field)
            for argument, field in (
                ("categories", "listed"),
                ("nulls", "nulls"),
                ("unknown", "unknown"),
            )
        }
        question = Question.of(
            columns if len(columns) > 1 else columns[0],
            by=by or None,
            merge=merge,
            size=len(records) if is_public else None,
            **question,
        )
        found = counts_of_frame(query, question).transformation(frame).tolist()
        assert found == wanted, question


def same(one, other):
    """True if keys are the same, of which 1 is not True."""
    return repr(one) == repr(other)


def named(cell):
    return cell if len(cell) > 1 else cell[0]


# --- users' plans
DATA = pl.LazyFrame(
    {"s": ["a", "b", None, "zz", "a"], "i": [1, 2, 3, None, 1], "id": [1, 1, 2, 2, 3]}
)
AB = pl.Enum(["a", "b"])
TEXT = {"column": "s", "categories": ["a", "b"], **POLICY}
AS_ENUM, FILLED = pl.col("s").cast(AB, strict=False), pl.col("s").fill_null("a")
PARTS, LARGE = ["low", "middle", "high"], pl.col("i") > 1
IN_PARTS = pl.col("i").cut([1, 2], labels=PARTS)
OF_PARTS = {"column": "bin", "categories": PARTS, **POLICY}
OF_LARGE = {"column": "large", "categories": [False, True], "nulls": "none"}
PLANS = {
    "identity": (lambda of: of, TEXT, [2, 1, 1, 1]),
    "filter": (lambda of: of.filter(pl.col("id") < 3), TEXT, [1, 1, 1, 1]),
    "select": (lambda of: of.select("s"), TEXT, [2, 1, 1, 1]),
    "cast": (lambda of: of.with_columns(AS_ENUM), {"column": "s", "nulls": "none"}, [2, 1, 2]),
    "fill": (lambda of: of.with_columns(FILLED), TEXT | {"nulls": None}, [3, 1, 1]),
    "both": (lambda of: of.with_columns(AS_ENUM.fill_null("a")), {"column": "s"}, [4, 1]),
    "condition": (lambda of: of.with_columns(large=LARGE), OF_LARGE, [2, 2, 1]),
    "bins": (lambda of: of.with_columns(bin=IN_PARTS), OF_PARTS, [2, 1, 1, 1, 0]),
}


@pytest.mark.parametrize("name", PLANS)
def test_counts_after_a_plan(name):
    plan, arguments, expected = PLANS[name]
    space = dp.domain_of(DATA, infer=True), SYMMETRIC
    stable = dp.t.make_stable_lazyframe(*space, plan(DATA.clear()), MO=MO)
    counts = stable >> ob.t.then_categorical_counts(**arguments)
    assert counts(DATA).tolist() == expected
    assert counts(DATA).sum() == plan(DATA).collect().height
    assert counts.map(3) == 3
