"""A posterior per group: the rows counted in cells of group and category, released at once, and
split into one release for each group.
"""

from collections.abc import Callable, Sequence

from opendp.core import new_function
from opendp.mod import Domain, Function, Metric, Transformation

from opendp_bayes.mechanisms.protocol import noises_every_count
from opendp_bayes.queries.categorical_counts import make_counts
from opendp_bayes.queries.question import Categories, Columns, Policy, Question, Unknown
from opendp_bayes.release_format.data import ReleasedData, Value
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.trusted.boundary import ContractError, descriptor_of, guarded, require_features
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.trusted.spaces import PosteriorSpace, groups_and_labels


def make_grouped_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    by: Columns,
    column: Columns,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Unknown | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
) -> Transformation:
    """Count the records of each category of one column, or of each cell of a joint table, in each
    group of another column or several.

    The output is an int64 array with an entry for every cell, group by group, and where the number
    of records is public a last one for the rows that are in no group. The stability map returns the
    number of records changed, or added and removed, since every row is in one cell
    (`docs/research/proofs.md`, "Groups"). It is followed by `make_dirichlet_multinomial`, a
    mechanism, and `grouped_release`. Where the number of records is private, the mechanism must
    noise every count: `make_laplace_parameters` with `total="private"`.

    Parameters
    ----------
    input_domain : Domain
        A `LazyFrameDomain`.
    input_metric : Metric
        `symmetric_distance()`, `change_one_distance()`, or `frame_distance(symmetric_distance())`
        with Bounds, as after `make_stable_lazyframe`.
    by : Columns
        The column that says which group a record is in, or a list of them, whose groups are tuples;
        Enum, String, Categorical, integer or Boolean. Records of no group are not counted, or where
        the number of records is public in a cell of their own.
    column : Columns
        The column whose categories are counted, of these types too; or a list of them, whose joint
        table is.
    categories : Categories, optional
        The public labels and groups, a mapping from columns to values, or from the tuple of `by` to
        the combinations that exist; None among the values is the group of the nulls. Not needed for
        Enum columns, which carry their own, or Boolean ones.
    size : int, optional
        The number of all records, where it is public: required under `change_one_distance()` (and
        wherever a margin says `invariant="lengths"`), refused otherwise. The numbers of records of
        the groups are private. Where they are public too, state them afterwards:
        `GroupedRelease.with_sizes`.
    nulls, unknown : Policy, Unknown
        Labels under which nulls, and values outside the categories, are counted, for all columns or
        by name: a category, or a new one, which is appended; or `DROP`, which leaves such records
        out where their number is private. Required where they may occur; in `by` such records are
        in no group unless a mapping names one.
    cells : Sequence[Sequence[str or int or bool]], optional
        For a joint table, the tuples of labels that are counted, by default all; `unknown` is the
        cell for the others then, a tuple, or `DROP`.

    Raises
    ------
    ValueError, TypeError
        For a column, key, metric or policy that does not fit.
    """
    require_features("make_grouped_counts")
    question = Question.of(
        column, categories=categories, nulls=nulls, unknown=unknown, size=size, cells=cells, by=by
    )
    return make_counts(input_domain, input_metric, question, "make_grouped_counts")


def grouped_release(input_domain: Domain) -> Function:
    """Split the release of all cells into a `GroupedRelease`, as post-processing. The cell of the
    rows in no group stays in it as `rest` where the number of all records is public.

    Parameters
    ----------
    input_domain : Domain
        The posterior space of the cells, as in `posterior >> then_laplace_parameters(...,
        total="private") >> grouped_release(posterior.output_domain)`.

    Raises
    ------
    ValueError
        For another domain.
    """
    require_features("grouped_release")
    if isinstance(input_domain, ReleasedData):  # what stands after >> is called with a release
        raise ValueError(
            "input_domain: is a release; name the domain before, as in `measurement >>"
            " ob.t.grouped_release(posterior.output_domain)`."
        )
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
            noisy_counts=tuple(
                release.noisy_counts[i * k : (i + 1) * k] for i in range(len(groups))
            ),
            categories=labels,
            prior=release.prior[:k],
            mechanism=mechanism,
            guarantee=release.guarantee,
            axes=space.axes,
            rest=None if space.size is None else release.noisy_counts[-1],
            grouped_by=space.by,
            nulls=space.nulls,
            unknown=space.unknown,
        )

    return split


then_grouped_counts = to_then(make_grouped_counts)
