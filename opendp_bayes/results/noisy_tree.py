"""Releases of the levels of OpenDP's b-ary tree, from its noisy counts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_numbers, as_scale, as_size
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.merging import neighbours
from opendp_bayes.release_format.promise import Promise
from opendp_bayes.results.counts_from_elsewhere import Named, as_drawn, as_labels, warn_of_clamped
from opendp_bayes.results.release import Release


def noisy_tree(
    counts: ArrayLike,
    column: str,
    categories: Sequence[Value],
    *,
    branching: int,
    mechanism: Named,
    scale: float,
    size: int | None = None,
) -> dict[str, Release]:
    """Noisy counts of OpenDP's `make_b_ary_tree` as releases of its levels by name, which
    `combine(..., records="same")` makes one posterior of.

    Parameters
    ----------
    counts : what was drawn, as the tree has it: the total first, the categories last. What
        `make_consistent_b_ary_tree` made of that has no law of noise any more.
    column : the name of the finest level; that of groups of ten is "age by 10".
    categories : the labels of the leaves in their order, known without the data.
    branching : the `branching_factor` of the tree.
    mechanism : `"laplace_parameters"` or `"gaussian_parameters"`, whose discrete noise every count
        of the tree has.
    scale : the scale as OpenDP has it, in records.
    size : the public number of records; None where it is private.

    A group is named by its first and last category, "18 to 33"; the last level is the total alone.
    Groups that hold no category are left out. Raises `ValueError`/`TypeError` for another number of
    counts than the tree has, and as `noisy_counts` does.

    >>> import opendp_bayes as ob
    >>> noisy = [52, 28, 24, -1, 29, 24]
    >>> levels = ob.research.noisy_tree(
    ...     noisy, "age", [18, 19, 20], branching=2, mechanism="laplace_parameters", scale=1.0
    ... )
    >>> posterior = ob.combine(levels, records="same")
    >>> posterior
    LevelsPosterior(age: 3, age by 2: 2, age by 4: 1 categories)
    >>> posterior["age by 2"].categories, posterior["age by 2"].counts.mean().round(1).tolist()
    (('18 to 19', '20'), [28.3, 23.9])
    """
    if type(column) is not str:
        raise TypeError(f"column={told(column)}: must be the name of the finest level, a str.")
    if type(branching) is not int or branching < 2:
        raise ValueError(
            f"branching={told(branching)}: must be the branching_factor, a whole number of at"
            " least 2."
        )
    labels, widths = as_labels("categories", categories), [1]
    while widths[-1] < len(labels):
        widths.append(widths[-1] * branching)
    given = as_numbers(counts, "counts")
    nodes = [widths[-1] // width for width in widths[:0:-1]]  # some of which have no leaves
    starts = np.cumsum([0, *nodes])
    if given.shape != (starts[-1] + len(labels),):
        raise ValueError(
            f"counts: has shape {given.shape}; must have ({starts[-1] + len(labels)},), one for"
            f" each count of the tree of {len(labels)} categories with branching={branching}, as"
            " drawn and not made consistent."
        )
    noised, drawn = as_drawn(given, mechanism, "discrete", as_scale(scale))
    warn_of_clamped(np.array(drawn[starts[-1] :]), noised, len(labels))
    promise, levels = Promise.none(None if size is None else as_size(size)), {}
    for width, start in zip(widths, starts[::-1].tolist(), strict=True):
        name = column if width == 1 else f"{column} by {width}"
        parts = tuple(labels[at : at + width] for at in range(0, len(labels), width))
        own = labels if width == 1 else tuple(neighbours(labels, width))
        levels[name] = Release(
            drawn[start : start + len(own)],
            own,
            (1.0,) * len(own),
            noised,
            promise,
            parts=parts if width > 1 else (),
        )
    return levels
