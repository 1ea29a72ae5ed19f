"""User input: what is accepted, how it is normalised, and the message for everything else."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    RATES,
    SMALLEST_PRIOR,
    as_between,
    as_choice,
    as_counts,
    as_distance,
    as_positive,
    as_prior,
    as_size,
)


@pytest.mark.parametrize(
    "value", [1, 0.5, 1e-300, 1e300, np.float64(2), np.float32(2), np.int64(3)]
)
def test_as_positive(value: float) -> None:
    result = as_positive(value, "scale")
    assert type(result) is float
    assert result == value


def test_as_between_and_as_choice() -> None:
    assert [as_between(value, "beta", RATES) for value in (*RATES, 1)] == [*RATES, 1.0]
    for value in (RATES[0] / 2, RATES[1] * 2):
        with pytest.raises(ValueError, match=r"beta=.*: .*2\^-40 and 2\^40"):
            as_between(value, "beta", RATES)
    with pytest.raises(TypeError, match="gamma='1': must be a number"):
        as_between("1", "gamma", RATES)
    assert as_choice("a", "noise", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="noise='c': must be one of"):
        as_choice("c", "noise", ("a", "b"))


@pytest.mark.parametrize("value", [1, 10**12, np.int64(7)])
def test_as_size(value: int) -> None:
    assert as_size(value) == value
    assert type(as_size(value)) is int


def test_as_distance_and_as_prior() -> None:
    assert [as_distance(value) for value in (0, 1, np.int32(3))] == [0, 1, 3]
    with pytest.raises(ValueError, match="d_in=-1: must be 0 or"):
        as_distance(-1)
    assert as_prior(0.5, 3).tolist() == [0.5, 0.5, 0.5]
    assert as_prior([1, 2], 2).dtype == np.float64
    with pytest.raises(ValueError, match=r"prior=0\.5: .*each category, .* prior=\[0\.5, 0\.5\]"):
        as_prior(0.5)


@pytest.mark.parametrize(
    "counts", [[1, 2], (1, 2), *(np.array([1, 2], dtype=of) for of in (np.uint8, float, np.int32))]
)
def test_as_counts(counts: object) -> None:
    result = as_counts(counts, 2)
    assert result.tolist() == [1, 2]
    assert result.dtype == np.int64


def test_as_counts_does_not_show_the_data() -> None:
    """Counts are private, so a message must not repeat them."""
    for counts in ([-1, 123456], [0.5, 123456.0], [123456]):
        with pytest.raises((TypeError, ValueError)) as refusal:
            as_counts(counts)
        assert "123456" not in str(refusal.value)


TYPES = [("1", "str"), (True, "bool"), (None, "NoneType")]
SHAPE = r": has shape .*; must have {} entries, one for each category\."
WRONG = [0.0, -1.0, np.inf, np.nan, 2 * LARGEST_CONCENTRATION, SMALLEST_PRIOR / 2]
REFUSED = {
    (as_positive, ValueError, r"scale=.*: .*greater than 0"): [
        *((of, "scale") for of in (0, 0.0, -1, np.inf, -np.inf, np.nan))
    ],
    (as_prior, (TypeError, ValueError), r"prior=.*: "): [
        *((of, 2) for of in ("many", ["a", "b"], [[1], [1, 2]], None, {"a": 1}))
    ],
    (as_prior, TypeError, r"prior=.*: must be numbers without labels, in the order of"): [
        *((of, 2) for of in ({"a": 1, "b": 2}, pd.Series([1.0, 2.0], index=["b", "a"])))
    ],
    (as_prior, ValueError, "prior=.*" + SHAPE.format("at least 2")): [
        *((of, None) for of in ([1.0], [], [[1.0, 1.0]]))
    ],
    (as_prior, ValueError, "prior=.*" + SHAPE.format(2)): [([1, 1, 1], 2)],
    (as_prior, ValueError, "prior=.*" + SHAPE.format(3)): [([1, 1], 3)],
    (as_prior, ValueError, r"^prior=.*: .*from 1e-100 to 1e\+12"): [([1.0, of],) for of in WRONG],
    (as_prior, ValueError, "m_prior=.*: every entry must be"): [
        *(([1.0, of], None, "m_prior") for of in WRONG)
    ],
    (as_counts, ValueError, "counts" + SHAPE.format("at least 2")): [
        *((of, None) for of in ([1], 3, [[1, 2]]))
    ],
    (as_counts, ValueError, "counts" + SHAPE.format(2)): [([1, 2, 3], 2)],
    (as_counts, TypeError, r"counts: has dtype .*; .*whole"): [
        *((of,) for of in ([0.5, 1.0], [True, False], ["1", "2"], [1 + 0j, 2], [np.nan, 1.0]))
    ],
    (as_counts, TypeError, "counts=<list>: .*sequence of whole numbers"): [([[1], [1, 2]],)],
    (as_counts, ValueError, r"counts: .*between 0 and 1e\+12"): [
        *((of,) for of in ([-1, 2], [0, 10**13], [0.0, np.inf], np.array([2**64 - 1, 0], "u8")))
    ],
}
ROWS = [(*key, given) for key, every in REFUSED.items() for given in every]
ROWS += [
    (as_positive, TypeError, rf"scale=.*: must be a number, not {kind}\.", (of, "scale"))
    for of, kind in (*TYPES, (1j, "complex"), ([1], "list"))
]
ROWS += [
    (check, TypeError, rf"=.*: must be a whole number, not {kind}\.", (of,))
    for check in (as_size, as_distance)
    for of, kind in (*TYPES, (1.0, "float"))
]
for of in (0, -1, 10**12 + 1):
    ROWS.append((as_size, ValueError, rf"size={of}: must be between 1 and 1e\+12 records\.", (of,)))
    named = (of, "columns", "pictures")
    ROWS.append((as_size, ValueError, rf"columns={of}: must be .* 1e\+12 pictures\.", named))


@pytest.mark.parametrize(("check", "kind", "message", "given"), ROWS)
def test_what_is_refused(check: Any, kind: Any, message: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(kind, match=message):
        check(*given)
