"""Noisy counts that another program has drawn, as releases."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_choice,
    as_numbers,
    as_prior,
    as_scale,
)
from opendp_bayes.mechanisms.gaussian_parameters import GaussianParameters
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import distinct, in_order, plain
from opendp_bayes.release_format.merging import merged_parts, merged_places
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.release import Release

#: The mechanisms by name whose noise others draw.
Named = Literal["laplace_parameters", "gaussian_parameters"]
#: Noise of whole numbers, and of numbers with a fraction by what it becomes.
Noise = Literal["discrete", "floored", "rounded"]
#: Below this scale rounded Gaussian noise is not nearly discrete Gaussian.
_SMALLEST_ROUNDED = 1.0
#: Larger numbers are no counts, and their sums would not fit machine integers.
_LARGEST = 2.0**53
#: Counts are taken for clamped whose zeros are less probable than `exp(_UNLIKELY)`, 1e-6.
_UNLIKELY = -13.8


def noisy_counts(
    counts: ArrayLike | Mapping[Any, float],
    categories: Sequence[Label] | Mapping[str, Sequence[Value]],
    *,
    mechanism: Named,
    scale: float,
    noise: Noise = "discrete",
    size: int | None = None,
    prior: ArrayLike | Literal["learned"] = 1.0,
    merge: Mapping[Value, Sequence[Label]] | None = None,
) -> Release:
    """Noisy counts that another program has drawn as a release, which has a posterior, and which
    `combine` and `noise_aware_posterior` accept.

    No privacy is promised by it: what drew the counts knows its loss, and this does not
    (`PrivacyGuarantee.none`).

    The `floor` of Laplace noise on floats has an exact law of its own. Rounded Gaussian noise is
    taken for discrete Gaussian noise with a variance larger by 1/12; the law of either then differs
    from the other's by less than 1e-3 in any cumulative probability.

    Refuses fractions where the noise has none, their absence where it has, and Gaussian noise on
    floats of a scale below 1. Warns where counts look clamped at 0.

    Parameters
    ----------
    counts : array_like or Mapping[Any, float]
        A number for each category, in the order of `categories`; for a table an array with an axis
        for each column, or its cells in C order. A mapping from category to count, or from a tuple
        of values, has no order to mistake, and a Series of pandas goes by its index in like manner.
        Negative ones are as welcome as others: do not clamp, round or scale what was drawn; of
        polars' `dp.len` ask `signed=True`.
    categories : Sequence[str or int or bool or tuple] or Mapping[str, Sequence[str or int or bool]]
        The labels, all that were counted, and known without the data. For a table of several
        columns, a mapping from each to its labels.
    mechanism : Named
        `"laplace_parameters"` or `"gaussian_parameters"`, the mechanism whose noise was drawn,
        independently for each count.
    scale : float
        The scale as OpenDP has it, in records: b of Laplace noise, whose standard deviation is `b
        √2`, and the standard deviation of Gaussian noise.
    noise : Noise, default "discrete"
        `"discrete"`, which OpenDP adds to integers; or where it was added to floats, `"floored"`
        for Laplace noise, a value of `LaplaceParameters` too, and `"rounded"` for Gaussian.
    size : int, optional
        The public number of records, all of which are in the categories; None where it is private.
    prior : array_like or {"learned"}, default 1.0
        Concentration of the prior, one number or one for each category; or `"learned"`.
    merge : Mapping[str or int or bool, Sequence[str or int or bool or tuple]], optional
        Where merged categories were counted, a mapping from the label of each to the `categories`
        in it, every one once; `counts` are in its order then. With the counts of other levels it
        has one posterior, by `combine_tables({...})`; a noisy total, `{"all": [...]}` of every
        category, has one with them only.

    Raises
    ------
    ValueError, TypeError
        For counts that do not fit the categories or are no finite numbers.

    Examples
    --------
    >>> import opendp_bayes as ob
    >>> release = ob.noisy_counts(
    ...     [52, -1, 49],
    ...     ["yes", "unsure", "no"],
    ...     mechanism="laplace_parameters",
    ...     scale=2.0,
    ...     size=100,
    ... )
    >>> release.posterior.mean().round(2).tolist()
    [0.51, 0.02, 0.48]
    """
    axes, labels, shape = _cells(categories)
    parts: tuple[tuple[Label, ...], ...] = ()
    if merge is not None:
        merged_places(merge, labels)
        parts, axes, labels, shape = merged_parts(merge), (), tuple(merge), (len(merge),)
    numbers = _in_order(counts, labels, shape)
    parameters, draws = as_drawn(numbers, mechanism, noise, as_scale(scale))
    warn_of_clamped(np.array(draws), parameters, len(labels))
    learned = isinstance(prior, str) and bool(as_choice(prior, "prior", ("learned",)))
    concentration = as_prior(1.0 if learned else prior, len(labels))
    return Release(
        noisy_counts=draws,
        categories=labels,
        prior=tuple(concentration.tolist()),
        mechanism=parameters,
        guarantee=PrivacyGuarantee.none(size),
        axes=axes,
        learned_prior=learned,
        parts=parts,
    )


def _cells(
    categories: Sequence[Label] | Mapping[str, Sequence[Value]],
) -> tuple[tuple[str, ...], tuple[Label, ...], tuple[int, ...]]:
    """The axes, the labels of the cells and the shape of a table, or of one column."""
    if isinstance(categories, Mapping):
        columns = {column: as_labels(column, values) for column, values in categories.items()}
        shape = tuple(map(len, columns.values()))
        return tuple(columns), tuple(product(*columns.values())), shape
    labels = as_labels("categories", categories)
    return (), labels, (len(labels),)


def as_labels(column: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Different labels of one column, with a name for nulls."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{column}={told(values)}: must be a list of labels, or a mapping to them.")
    labels = tuple("(null)" if label is None else plain(label) for label in values)
    are_labels = all(isinstance(label, (str, bool, int)) for label in labels)
    if not are_labels or len(labels) < 2 or len(distinct(labels)) < len(labels):
        raise ValueError(
            f"{column}={told(values)}: must be at least 2 different labels, each a str, bool or"
            " int."
        )
    return labels


def _in_order(counts: Any, labels: tuple[Label, ...], shape: tuple[int, ...]) -> Floats:
    """Numbers in the order of the labels; errors for what are none, or not one for each."""
    if hasattr(counts, "keys"):  # a mapping, or what pandas has, which is labelled too
        values = in_order(dict(counts.items()), labels)
        if values is None or len(values) < len(counts):  # a Series may have a label twice
            raise ValueError(
                f"counts={told(counts)}: must have a number for each of the {len(labels)}"
                " categories and for nothing else. A category that is absent was left out for"
                " its count, which is not a count of 0: count known categories. Of a frame of"
                " pandas give counts.stack()."
            )
        counts = values
    array = as_numbers(counts, "counts")
    if array.shape not in (shape, (len(labels),)):
        raise ValueError(
            f"counts: has shape {array.shape}; must have {shape}, a number for each category."
            " OpenDP's make_count_by_categories adds one for all other values unless"
            " null_category=False; it needs a label too."
        )
    return array.ravel()


def as_drawn(
    counts: Floats, mechanism: Named, noise: Noise, scale: float
) -> tuple[Mechanism, tuple[int, ...]]:
    """The mechanism with the law of the noise, and whole numbers as if it had drawn them.

    Raises
    ------
    ValueError
        For counts that such noise does not draw, or that are too large for any.
    """
    as_choice(mechanism, "mechanism", get_args(Named))
    on_floats: Noise = "floored" if mechanism == LaplaceParameters.name else "rounded"
    as_choice(noise, "noise", ("discrete", on_floats))
    if not np.all(np.isfinite(counts)) or np.any(np.abs(counts) > _LARGEST):
        raise ValueError(
            f"counts={told(counts.tolist())}: must be finite, and at most 2^53 in size."
        )
    discrete, whole = noise == "discrete", bool(np.all(counts == np.rint(counts)))
    if discrete != whole:
        raise ValueError(
            f"counts: {'are all whole' if whole else 'have fractions'}, which noise={noise!r} does"
            f" not draw; must be whole of noise='discrete' on integers, and of noise={on_floats!r}"
            " on floats as they were before rounding. Counts that were scaled or averaged are no"
            " noisy counts."
        )
    if noise != "rounded" and mechanism == LaplaceParameters.name:
        parameters = LaplaceParameters(scale, noise=noise, total="private")
        return parameters, tuple(map(int, np.floor(counts)))
    if not discrete and scale < _SMALLEST_ROUNDED:
        raise ValueError(
            f"scale={scale!r}: must be at least {_SMALLEST_ROUNDED:g} for noise='rounded', whose"
            " law is not nearly discrete Gaussian below."
        )
    width = scale if discrete else math.sqrt(scale**2 + 1 / 12)
    return GaussianParameters(width, total="private"), tuple(map(int, np.rint(counts)))


def warn_of_clamped(noisy_counts: Integers, mechanism: Mechanism, k: int) -> None:
    """Warn where so many counts are 0 and none is negative, as noise hardly draws them."""
    noise = cast(AdditiveNoise, Setting(mechanism, None, (1.0,) * k).law).noise
    zeros = int(np.count_nonzero(noisy_counts == 0))
    log_share = float(noise.log_mass(0) - noise.log_at_most(0))  # of 0 among what is at most 0
    if noisy_counts.min() >= 0 and zeros * log_share < _UNLIKELY:
        warn(
            f"counts: {zeros} are 0 and none is negative, which noise of scale"
            f" {mechanism.scale:g} hardly draws: were they clamped? Then small counts are taken for"
            " larger ones. OpenDP's dp.len() clamps unless it is given signed=True."
        )
