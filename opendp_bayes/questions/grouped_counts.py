"""A posterior per group: the rows counted in cells of group and category, released at once, and
split into one release for each group.
"""

from collections.abc import Callable, Sequence

from opendp.core import new_function
from opendp.mod import Domain, Function, Metric, Transformation

from opendp_bayes.mechanisms.protocol import noises_every_count
from opendp_bayes.questions.categorical_counts import make_counts
from opendp_bayes.questions.question import Categories, Columns, Policy, Question
from opendp_bayes.release_format.data import Key, ReleasedData, Value
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.trusted.boundary import (
    ContractError,
    descriptor_of,
    guarded,
    require_features,
    to_then,
)
from opendp_bayes.trusted.spaces import PosteriorSpace, groups_and_labels


def make_grouped_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    by: Columns,
    keys: Sequence[Key] | None = None,
    column: Columns,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
    elsewhere: Sequence[Value] | None = None,
) -> Transformation:
    """Count the records of each category of one column, or of each cell of a joint table, in each
    group of another column or several.

    Parameters
    ----------
    input_domain : a `LazyFrameDomain`.
    input_metric : `symmetric_distance()`, `change_one_distance()`, or
        `frame_distance(symmetric_distance())` with Bounds; `make_stable_lazyframe` gives the latter
        after a plan, after truncation by identifier included.
    by : the column that says which group a record is in, or a list of them; Enum, String,
        Categorical, integer or Boolean.
    keys : the public groups, as values of `by`, tuples where that is a list. None among the values
        makes the nulls a group too, the last if there is one such column. Not needed for Enum
        columns, which carry their own. Rows with any other value are in no group: they are counted
        in a cell of their own, which no grouped release contains.
    column : the column whose categories are counted: Enum, String, Categorical, integer or Boolean.
        A list of them asks for their joint table, whose labels are tuples with one value of each
        column, the last column changing fastest.
    categories : the public labels, in the order of the counts. Not needed for an Enum column, which
        carries its own, or a Boolean one. For a joint table, a mapping from columns to their
        labels.
    size : the number of all records, where it is public: required under `change_one_distance()`
        (and wherever a margin says `invariant="lengths"`), refused otherwise. The numbers of
        records of the groups are private. Where they are public too, state them afterwards:
        `GroupedRelease.with_sizes`.
    nulls : label of the category in which nulls are counted: one of the categories, or a new one,
        which is appended. Required if the column is nullable.
    unknown : label of the category in which values outside the categories are counted, in like
        manner. Required unless the column's type excludes them. For a joint table, `nulls` and
        `unknown` are a label for every column, or a mapping from columns to labels. `DROP` leaves
        such records out, where their number is private.
    cells : for a joint table, the cells that are counted, as tuples of labels, in the order of the
        counts; by default every combination of labels. Leave out only combinations that are
        publicly known to be impossible.
    elsewhere : the cell in which the records of all other combinations are counted: one of `cells`,
        or a new one, which is appended. Required if `cells` leaves any combination out, since a
        record may be there all the same.

    The output is an int64 array with an entry for every cell, group by group, and a last one for
    the rows that are in no group. The stability map returns the number of records changed, or added
    and removed, since every row is in one cell (`docs/proofs.md`, "Groups"). It is followed by
    `make_dirichlet_multinomial`, a mechanism, and `grouped_release`. Where the number of records is
    private, the mechanism must noise every count: `make_laplace_parameters` with `total="private"`.

    Raises `ValueError`/`TypeError` for a column, key, metric or policy that does not fit.
    """
    require_features("make_grouped_counts")
    question = Question.of(
        column,
        categories=categories,
        nulls=nulls,
        unknown=unknown,
        size=size,
        cells=cells,
        elsewhere=elsewhere,
        by=(by,) if isinstance(by, str) or not isinstance(by, Sequence) else tuple(by),
        keys=keys,
    )
    return make_counts(input_domain, input_metric, question, "make_grouped_counts")


def grouped_release(input_domain: Domain) -> Function:
    """Split the release of all cells into a `GroupedRelease`, as post-processing. The cell of the
    rows in no group stays in it as `rest` where the number of all records is public.

    Parameters
    ----------
    input_domain : the posterior space of the cells, as in `posterior >>
        then_laplace_parameters(..., total="private") >> grouped_release(posterior.output_domain)`.

    Raises `ValueError` for another domain.
    """
    require_features("grouped_release")
    space = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial after make_grouped_counts"
    )
    if not groups_and_labels(space.categories)[0]:
        raise ValueError(
            f"input_domain={input_domain}: has no groups; must be the output of"
            " make_dirichlet_multinomial after make_grouped_counts."
        )
    return new_function(guarded(split_of(space), "grouped_release"), TO="ExtrinsicObject")


def split_of(space: PosteriorSpace) -> Callable[[ReleasedData], GroupedRelease]:
    """The function from the draws of all cells to the releases of the groups."""
    groups, labels = groups_and_labels(space.categories)
    k = len(labels)

    def split(release: ReleasedData) -> GroupedRelease:
        mechanism = release.mechanism
        if space.size is None and not noises_every_count(mechanism):
            raise ContractError(
                "the release of the cells must be by a mechanism that noises every count, such as"
                " LaplaceParameters with total='private'."
            )
        return GroupedRelease(
            groups=groups,
            drawn=tuple(release.drawn[i * k : (i + 1) * k] for i in range(len(groups))),
            categories=labels,
            prior=release.prior[:k],
            mechanism=mechanism,
            promise=release.promise,
            axes=space.axes,
            rest=None if space.size is None else release.drawn[-1],
        )

    return split


then_grouped_counts = to_then(make_grouped_counts)
