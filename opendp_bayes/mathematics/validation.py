"""Checks of user input, shared by the mathematics and the mechanisms. Every message names the
argument, its value and the constraint.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.mathematics.telling import told

#: Above this a float prior plus integer counts could lose the counts, which must be recoverable
#: exactly from a concentration.
LARGEST_CONCENTRATION = 1e12
#: The most bytes that one query may need, and the most results: what is released, estimated and
#: shown in about a minute (`docs/limits.md`). They are the same on every machine.
MOST_BYTES, MOST_RESULTS = 2_000_000_000, 200
#: What a cell needs in a release with its estimates, and a category in the posterior of one table.
BYTES_OF_CELL, BYTES_OF_CATEGORY = 20_000, 200_000
#: Below this the square of a ratio of concentrations could leave the float range.
SMALLEST_PRIOR = 1e-100
#: Scales outside this range mean no privacy or no information, and their samples would leave the
#: range of machine numbers.
SCALES = (2.0**-40, 2.0**60)
#: Range of the smoothness parameters gamma and beta.
RATES = (2.0**-40, 2.0**40)

T = TypeVar("T")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def as_positive(value: Any, argument: str) -> float:
    """Return `value` as a finite float above zero, or raise `ValueError`/`TypeError` naming it."""
    return _number(
        value, argument, lambda number: 0 < number < math.inf, "finite and greater than 0"
    )


def as_between(value: Any, argument: str, limits: tuple[float, float]) -> float:
    """Return `value` as a number between two powers of 2."""
    number, (least, most) = as_positive(value, argument), limits
    constraint = f"between 2^{math.log2(least):.0f} and 2^{math.log2(most):.0f}"
    return _checked(number, value, argument, least <= number <= most, constraint)


def as_scale(value: Any) -> float:
    """Return `value` as the scale of a mechanism."""
    return as_between(value, "scale", SCALES)


def as_level(value: Any, such_as: str = "0.95", argument: str = "level") -> float:
    """Return `value` as a probability between 0 and 1, that of an interval unless said."""
    return _number(
        value, argument, lambda number: 0 < number < 1, f"between 0 and 1, such as {such_as}"
    )


#: A seed, what is drawn with, or None for other draws at each call.
RandomState = int | np.random.Generator | None


def as_size(value: Any, argument: str = "size", of: str = "records") -> int:
    """Return `value` as an integer number of records, or of what `of` says, at least 1."""
    size = _as_integer(value, argument)
    return _checked(
        size,
        value,
        argument,
        1 <= size <= LARGEST_CONCENTRATION,
        f"between 1 and {LARGEST_CONCENTRATION:.0e} {of}",
    )


def as_distance(value: Any) -> int:
    """Return `d_in` as a non-negative integer distance between data sets."""
    distance = _as_integer(value, "d_in")
    return _checked(distance, value, "d_in", distance >= 0, "0 or greater")


def as_number(value: Any, argument: str) -> float:
    """Return `value` as a float that is not nan."""
    return _number(value, argument, lambda number: not math.isnan(number), "a number, not nan")


def as_loss(value: Any, argument: str) -> float:
    """Return `value` as a finite loss, which may be 0."""
    return _number(value, argument, lambda number: 0 <= number < math.inf, "at least 0 and finite")


def as_delta(value: Any) -> float:
    """Return `value` as the δ of a loss, at least 0 and below 1."""
    return _number(value, "delta", lambda number: 0 <= number < 1, "at least 0 and below 1")


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator as it is, that of a seed, a whole number from 0 on, or for None a new
    one.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is not None and _as_integer(random_state, "random_state") < 0:
        raise ValueError(
            f"random_state={told(random_state)}: must be at least 0, or None for another at each"
            " call."
        )
    return np.random.default_rng(random_state)


def as_flag(value: Any, argument: str) -> bool:
    """Return `value` if it is True or False."""
    is_flag = isinstance(value, (bool, np.bool_))
    return bool(_checked(value, value, argument, is_flag, "True or False", TypeError))


def as_text(value: Any, argument: str) -> str:
    """Return `value` if it is text."""
    return _checked(value, value, argument, isinstance(value, str), "text, a str", TypeError)


def as_names(value: Any, argument: str) -> list[str]:
    """Return one name, a sequence of them, or the keys of a mapping, as a list."""
    names = [value] if isinstance(value, str) else value
    names = list(names) if isinstance(names, (Sequence, Mapping)) else [names]
    are_names = all(isinstance(text, str) for text in names)
    return _checked(
        names, value, argument, are_names, "a name, a str, or a list of names", TypeError
    )


def as_numbers(value: ArrayLike, argument: str) -> Floats:
    """Return `value` as an array of floats, of its own shape; `TypeError` for what holds others."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO" or np.any(array == None):  # noqa: E711
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{argument}={told(value)}: must be a number or a sequence of numbers."
        ) from None


def as_prior(prior: ArrayLike, k: int | None = None, argument: str = "prior") -> Floats:
    """Return `prior` as a float array of shape `(k,)`; a scalar is broadcast when `k` is known.

    Raises
    ------
    ValueError
        For a wrong length, fewer than two categories where `k` is not known, or an entry that is
        not positive and finite.
    TypeError
        For what has labels, as a Series of pandas has: it goes by its order.
    """
    if hasattr(prior, "keys"):
        raise TypeError(
            f"{argument}={told(prior)}: must be numbers without labels, in the order of the"
            " categories, as to_numpy() has those of a Series."
        )
    array = as_numbers(prior, argument)
    if array.ndim == 0:
        if k is None:
            raise ValueError(
                f"{argument}={told(prior)}: must have one entry for each category, as in"
                f" {argument}=[{told(prior)}, {told(prior)}]; one number does not say how many"
                " there are."
            )
        array = np.full(k, array)
    if array.ndim != 1 or (array.size < 2 if k is None else array.size != k):
        wanted = "at least 2" if k is None else str(k)
        raise ValueError(
            f"{argument}={told(prior)}: has shape {array.shape}; must have {wanted} entries, one"
            " for each category."
        )
    if not (np.all(array >= SMALLEST_PRIOR) and np.all(array <= LARGEST_CONCENTRATION)):
        raise ValueError(
            f"{argument}={told(prior)}: every entry must be greater than 0, from"
            f" {SMALLEST_PRIOR:.0e} to {LARGEST_CONCENTRATION:.0e}."
        )
    return array


def as_counts(counts: ArrayLike, k: int | None = None) -> Integers:
    """Return `counts` as an int64 array of shape `(k,)` of non-negative whole numbers."""
    try:
        array = np.asarray(counts)
    except (TypeError, ValueError):
        raise TypeError(f"counts={told(counts)}: must be a sequence of whole numbers.") from None
    if array.ndim != 1 or array.size < 2 or (k is not None and array.size != k):
        wanted = "at least 2" if k is None else str(k)
        raise ValueError(
            f"counts: has shape {array.shape}; must have {wanted} entries, one for each category."
        )
    if array.dtype.kind not in "iu" and not (
        array.dtype.kind == "f" and np.all(array == np.rint(array))
    ):
        raise TypeError(f"counts: has dtype {array.dtype}; must hold whole numbers.")
    if not (np.all(array >= 0) and np.all(array <= LARGEST_CONCENTRATION)):
        raise ValueError(f"counts: every entry must be between 0 and {LARGEST_CONCENTRATION:.0e}.")
    return array.astype(np.int64)


def as_choice(value: Any, argument: str, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of `choices`, otherwise raise `ValueError` listing them."""
    allowed = f"one of {', '.join(map(repr, choices))}"
    return _checked(value, value, argument, value in choices, allowed)


def _checked(
    result: T,
    value: Any,
    argument: str,
    fits: bool,
    constraint: str,
    error: type[Exception] = ValueError,
) -> T:
    """Return what `value` stands for, if it fits a constraint."""
    if not fits:
        raise error(f"{argument}={told(value)}: must be {constraint}.")
    return result


def _number(value: Any, argument: str, fits: Callable[[float], bool], constraint: str) -> float:
    """Return `value` as a float, if it is a number that fits a constraint."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{argument}={told(value)}: must be a number, not {type(value).__name__}.")
    return _checked(float(value), value, argument, fits(float(value)), constraint)


def _as_integer(value: Any, argument: str) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{argument}={told(value)}: must be a whole number, not bool.")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{argument}={told(value)}: must be a whole number, not {type(value).__name__}."
        ) from None


def check_cells(what: str, number: int, size: int = BYTES_OF_CELL) -> None:
    """Raise `ValueError` where so many categories or cells, of `size` bytes each, need more memory
    than one query may take.
    """
    if number * size > MOST_BYTES:
        raise ValueError(
            f"{what}: would be {number} categories or cells, of all groups and results, which need"
            f" about {number * size / 1e9:.3g} GB, more than the {MOST_BYTES / 1e9:g} GB that one"
            f" query may take; must be at most {MOST_BYTES // size}, and"
            f" {MOST_BYTES // BYTES_OF_CATEGORY} in one table. Merge some, or ask for them in"
            " several queries."
        )
