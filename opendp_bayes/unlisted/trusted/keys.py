"""Count the records, or the people, of every value that a column has, with no list of the values.

What is counted holds values that nobody may see. It is handed from here to `discovery` alone, in
batches that are dropped as they are read.
"""

import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import polars as pl
from opendp.metrics import frame_distance, symmetric_distance, user_distance
from opendp.mod import ChangeOneIdDistance, Domain, Metric, Transformation
from opendp.transformations import make_user_transformation

from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.boundary import guarded, guarded_map
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.budget import identifier_of
from opendp_bayes.trusted.counting import counted_distance
from opendp_bayes.trusted.kinds import Kind, column_named, kind_of
from opendp_bayes.trusted.scanned_frames import collected, on_disk, require_file
from opendp_bayes.trusted.spaces import UserSpace
from opendp_bayes.trusted.stable_plans import StablePlan
from opendp_bayes.trusted.truncation import RowLimit, require_order

#: Beyond so many values, about, they are counted in parts, by a hash with a key.
MOST_AT_ONCE = 10_000_000
_PARTS = 64
#: Days from 1970-01-01 of the years 1 to 9999.
_USUAL_DAYS = (-719_162, 2_932_896)
_WIDE = (pl.UInt64, pl.Int128)
#: Columns of a batch.
KEY, NUMBER = "key", "number"
_PERSON = "person"


@dataclass(frozen=True)
class KeysSpace(UserSpace):
    """Numbers of records, or of people, of every value of a column that occurs.

    A distance says how far the numbers of all values move, in any directions.

    Attributes
    ----------
    column : str
        Its name.
    kind : Kind
        Of its values.
    listed : tuple[str or int or bool, ...]
        Values that are shown whatever their number; those that nulls are counted under among them.
    people : bool
        Whether people are counted, rather than records.
    """

    column: str
    kind: Kind
    listed: tuple[Value, ...]
    people: bool

    @property
    def identifier(self) -> str:
        return (
            f"DiscoveredCounts(column={self.column!r}, kind={self.kind},"
            f" listed={list(self.listed)!r}, people={self.people})"
        )

    @property
    def metric(self) -> Metric:
        return user_distance("DiscoveredDistance", None)

    def is_member(self, value: Any) -> bool:
        return isinstance(value, CountedKeys)


class CountedKeys:
    """Numbers of every value that occurs, in batches: frames with the columns `KEY` and `NUMBER`,
    each value in one row of one batch. It shows nothing of them.
    """

    def __init__(self, batches: Callable[[], Iterator[pl.DataFrame]]) -> None:
        self._batches = batches

    def batches(self) -> Iterator[pl.DataFrame]:
        """Count, and give one batch after the other."""
        return self._batches()

    def __reduce__(self) -> Any:
        raise TypeError("counts of values that nobody may see are not copied.")


#: From data to the counts.
Count = Callable[[Any], CountedKeys]


@dataclass(frozen=True)
class Keys:
    """A column whose values are counted, and the value that nulls are counted under.

    Attributes
    ----------
    column, kind : str, Kind
        As in `KeysSpace`.
    listed : tuple[str or int or bool, ...]
        As in `KeysSpace`.
    nulls : str or int or bool or None
        The value under which nulls are counted, one of `listed`; None where they are left out.
    person : str or None
        The column by which people are told apart; None where records are counted.
    """

    column: str
    kind: Kind
    listed: tuple[Value, ...] = ()
    nulls: Value | None = None
    person: str | None = None

    @property
    def space(self) -> KeysSpace:
        """The space of the counts."""
        return KeysSpace(self.column, self.kind, self.listed, self.person is not None)


#: The limits of a frame of which nothing is said: every reading may keep other rows.
_UNKNOWN = (RowLimit(1, "drawn", ()),)


def counted_in_frames(keys: Keys, limits: Sequence[RowLimit] = _UNKNOWN) -> Count:
    """The function from a frame to its counts, which are made when batches are asked for.

    It raises `ContractError` where the file of the frame is gone, or it has no fixed order and rows
    are kept by that.
    """

    def count(frame: pl.LazyFrame) -> CountedKeys:
        require_file(frame)
        require_order(frame, limits)
        # As in `cells.counted`: no session decides which rows of an identifier are kept.
        pl.set_random_seed(secrets.randbits(64))
        values = _values(frame, keys)
        if limits:  # of which every reading may keep others
            values = collected(values).lazy()
        return CountedKeys(lambda: counted_in_parts(values))

    return count


def _values(frame: pl.LazyFrame, keys: Keys) -> pl.LazyFrame:
    """A row for each record, or each person who has the value: the value, without nulls."""
    value = column_named(keys.column)
    key = _comparable(value, frame.collect_schema()[keys.column])
    if keys.nulls is not None:
        key = key.fill_null(pl.lit(keys.nulls))
    columns = {KEY: key}
    if keys.person is not None:
        columns[_PERSON] = column_named(keys.person)
    rows = frame.select(**columns).filter(pl.col(KEY).is_not_null())
    return rows if keys.person is None else rows.unique()


def _comparable(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A column in a type that holds every label. A date outside the years 1 to 9999, of which
    polars makes no text or stops, is the number of its days from 1970-01-01, as in "2932897 days".
    """
    if dtype == pl.Date:
        days = value.cast(pl.Int32)
        usual = pl.when(days.is_between(*_USUAL_DAYS)).then(value).cast(pl.String)
        return usual.fill_null(pl.concat_str(days.cast(pl.String), pl.lit(" days")))
    if dtype.is_integer():  # a label may be below 0, and beyond the type
        return value.cast(pl.Int128 if dtype in _WIDE else pl.Int64)
    return value if dtype == pl.Boolean else value.cast(pl.String)


def counted_in_parts(values: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The number of rows of each value of the column `KEY`, which are counted in parts where they
    are many. Every reading of a frame may give other rows, so that it is counted in one, or written
    to a file of ours first.
    """
    about = collected(values.select(pl.col(KEY).approx_n_unique())).item()
    if about <= MOST_AT_ONCE:
        yield _counted(values)
        return
    part_of_key = pl.col(KEY).hash(*(secrets.randbits(63) for _ in range(4))) % _PARTS
    with on_disk(values) as scan:
        for part_number in range(_PARTS):
            yield _counted(scan.filter(part_of_key == part_number))


def _counted(values: pl.LazyFrame) -> pl.DataFrame:
    return collected(values.group_by(KEY).len(NUMBER))


#: Batches of another's counts, which may hold what ends with them.
Batches = Generator[pl.DataFrame, None, None]


def normal_batches(batches: Batches, keys: Keys) -> Iterator[pl.DataFrame]:
    """Batches of another's counts, whose keys may be dates, and null where nulls are: as text, and
    under their label or left out.

    Raises
    ------
    TypeError
        For keys of another kind.
    """
    with closing(batches):
        for batch in batches:
            dtype = batch.schema[KEY]
            kind = "text" if dtype == pl.Date else kind_of(dtype).kind
            if kind != keys.kind:
                raise TypeError("keys are of another kind than their column")
            key = _comparable(pl.col(KEY), dtype)
            key = key if keys.nulls is None else key.fill_null(pl.lit(keys.nulls))
            yield batch.select(key, NUMBER).drop_nulls(KEY)


def make_counts_of_keys(
    domain: Domain,
    metric: Metric,
    keys: Keys,
    count: Count,
    made_by: str,
    *,
    is_kept: bool = False,
    plan: Transformation | None = None,
) -> Transformation:
    """The transformation from data to the counts of all values of a column
    (`docs/research/proofs.md`, "Distances of counts").

    Parameters
    ----------
    domain, metric : Domain, Metric
        Of what is counted.
    keys, count : Keys, Count
        What is counted, and how.
    made_by : str
        The name that messages give.
    is_kept : bool, default False
        Whether the column is what it was where Bounds name it.
    plan : Transformation, optional
        Where people are counted, the transformation before, with which what is made begins. Its
        distance is of identifiers.

    Raises
    ------
    ValueError
        For a metric that does not bound a number of records, and where people are counted without
        such a plan.
    """
    bounds_of = counted_distance(domain, metric)
    # A changed record leaves one value and comes to another.
    factor = 1 if metric in (symmetric_distance(), frame_distance(symmetric_distance())) else 2
    # A key that no Bound has stands for a column that was computed anew.
    column = keys.column if is_kept else b""

    def distance(bounds: Bounds) -> int | Distance:
        values = 1 if keys.person is not None or keys.nulls is None else 2  # in one count
        largest = min(values * bounds.per_group(frozenset((column,))), bounds.records)
        return Distance.limited(factor * bounds.records, largest).stated

    if keys.person is None:
        return _counting(
            (domain, metric), keys, count, lambda d_in: distance(bounds_of(d_in)), made_by
        )
    person, before = keys.person, plan
    if before is None or identifier_of(before.input_metric) is None:
        raise ValueError(
            "plan: must begin with data whose privacy unit is an identifier, by which people are"
            " counted."
        )

    def of_people(d_in: Any) -> int | Distance:
        people = people_of_unit(before.input_metric, d_in)
        return distance(bounds_of(before.map(d_in)).of_people(column, person, people))

    return _counting(before.input_space, keys, lambda data: count(before(data)), of_people, made_by)


def _counting(
    space: tuple[Domain, Metric],
    keys: Keys,
    count: Count,
    stability_map: Callable[[Any], int | Distance],
    made_by: str,
) -> Transformation:
    counted = keys.space
    return make_user_transformation(
        *space,
        counted.domain,
        counted.metric,
        guarded(count, f"{made_by}: counting"),
        guarded_map(stability_map, made_by),
    )


def counts_in_plan(gate: StablePlan, keys: Keys, made_by: str) -> Transformation:
    """Chain a plan and the counts of all values of a column, of people where the privacy unit is a
    number of them.
    """
    count, is_kept = counted_in_frames(keys, gate.limits), keys.column not in gate.computed
    counts = make_counts_of_keys(
        *gate.stable.output_space, keys, count, made_by, is_kept=is_kept, plan=gate.stable
    )
    return counts if keys.person is not None else gate.stable >> counts


def person_of(gate: StablePlan) -> str | None:
    """The column of identifiers, where the privacy unit has one that the plan leaves as it is;
    otherwise None.
    """
    identifier = identifier_of(gate.stable.input_metric)
    if identifier is None or not identifier.meta.is_column():
        return None
    column = str(identifier.meta.output_name())
    is_kept = column in gate.plan.collect_schema() and column not in gate.computed
    return column if is_kept else None


def people_of_unit(metric: Metric, d_in: Any) -> int:
    """The number of identifiers that come and go where neighbours are at a distance of identifiers:
    two for each that is exchanged.
    """
    exchanged = isinstance(getattr(metric, "inner_metric", metric), ChangeOneIdDistance)
    return Bounds.of(d_in).records * (2 if exchanged else 1)
