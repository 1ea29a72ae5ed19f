"""User input: what is accepted, how it is normalised, and the message for everything else."""

import numpy as np
import pytest

from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    RATES,
    SCALES,
    SMALLEST_PRIOR,
    as_between,
    as_choice,
    as_counts,
    as_distance,
    as_positive,
    as_prior,
    as_scale,
    as_size,
)


@pytest.mark.parametrize(
    "value", [1, 0.5, 1e-300, 1e300, np.float64(2), np.float32(2), np.int64(3)]
)
def test_as_positive(value: float) -> None:
    result = as_positive(value, "scale")
    assert type(result) is float
    assert result == value


@pytest.mark.parametrize("value", [0, 0.0, -1, np.inf, -np.inf, np.nan])
def test_as_positive_refuses_values(value: float) -> None:
    with pytest.raises(ValueError, match=r"scale=.*: .*greater than 0"):
        as_positive(value, "scale")


@pytest.mark.parametrize(
    ("value", "kind"),
    [("1", "str"), (True, "bool"), (None, "NoneType"), (1j, "complex"), ([1], "list")],
)
def test_as_positive_refuses_types(value: object, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"scale=.*: must be a number, not {kind}\."):
        as_positive(value, "scale")


def test_as_scale() -> None:
    assert [as_scale(value) for value in (*SCALES, 1)] == [*SCALES, 1.0]
    for value in (SCALES[0] / 2, SCALES[1] * 2, 1e-300, 1e300):
        with pytest.raises(ValueError, match=r"scale=.*: must be between .* 2\^60"):
            as_scale(value)
    with pytest.raises(ValueError, match=r"scale=-1: .*greater than 0"):
        as_scale(-1)


def test_as_between() -> None:
    assert [as_between(value, "beta", RATES) for value in (*RATES, 1)] == [*RATES, 1.0]
    for value in (RATES[0] / 2, RATES[1] * 2):
        with pytest.raises(ValueError, match=r"beta=.*: .*2\^-40 and 2\^40"):
            as_between(value, "beta", RATES)
    with pytest.raises(TypeError, match="gamma='1': must be a number"):
        as_between("1", "gamma", RATES)


@pytest.mark.parametrize("value", [1, 10**12, np.int64(7)])
def test_as_size(value: int) -> None:
    assert as_size(value) == value
    assert type(as_size(value)) is int


@pytest.mark.parametrize("value", [0, -1, 10**12 + 1])
def test_as_size_refuses_values(value: int) -> None:
    with pytest.raises(ValueError, match=rf"size={value}: must be between 1 and 1e\+12 records\."):
        as_size(value)
    with pytest.raises(ValueError, match=rf"columns={value}: must be .* 1e\+12 pictures\."):
        as_size(value, "columns", "pictures")


@pytest.mark.parametrize("check", [as_size, as_distance])
@pytest.mark.parametrize(
    ("value", "kind"), [(1.0, "float"), ("1", "str"), (None, "NoneType"), (True, "bool")]
)
def test_whole_numbers_refuse_types(check: object, value: object, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"=.*: must be a whole number, not {kind}\."):
        check(value)


def test_as_distance() -> None:
    assert [as_distance(value) for value in (0, 1, np.int32(3))] == [0, 1, 3]
    with pytest.raises(ValueError, match="d_in=-1: must be 0 or"):
        as_distance(-1)


def test_as_prior_broadcasts_a_scalar_only_where_k_is_known() -> None:
    assert as_prior(0.5, 3).tolist() == [0.5, 0.5, 0.5]
    assert as_prior([1, 2], 2).dtype == np.float64
    with pytest.raises(ValueError, match=r"prior=0\.5: .*each category, .* prior=\[0\.5, 0\.5\]"):
        as_prior(0.5)


@pytest.mark.parametrize("prior", ["many", ["a", "b"], [[1], [1, 2]], None, {"a": 1}])
def test_as_prior_refuses_types(prior: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"prior=.*: "):
        as_prior(prior, 2)


@pytest.mark.parametrize(
    ("prior", "k", "wanted"),
    [
        *((prior, None, "at least 2") for prior in ([1.0], [], [[1.0, 1.0]])),
        *(([1, 1, 1], 2, "2"), ([1, 1], 3, "3")),
    ],
)
def test_as_prior_refuses_shapes(prior: object, k: int | None, wanted: str) -> None:
    with pytest.raises(
        ValueError,
        match=rf"prior=.*: has shape .*; must have {wanted} entries, one for each category\.",
    ):
        as_prior(prior, k)


@pytest.mark.parametrize(
    "entry", [0.0, -1.0, np.inf, np.nan, 2 * LARGEST_CONCENTRATION, SMALLEST_PRIOR / 2]
)
def test_as_prior_refuses_entries(entry: float) -> None:
    with pytest.raises(ValueError, match=r"prior=.*: .*from 1e-100 to 1e\+12"):
        as_prior([1.0, entry])
    with pytest.raises(ValueError, match=r"m_prior=.*: every entry must be"):
        as_prior([1.0, entry], name="m_prior")


@pytest.mark.parametrize(
    "counts", [[1, 2], (1, 2), *(np.array([1, 2], dtype=of) for of in (np.uint8, float, np.int32))]
)
def test_as_counts(counts: object) -> None:
    result = as_counts(counts, 2)
    assert result.tolist() == [1, 2]
    assert result.dtype == np.int64


@pytest.mark.parametrize(
    ("counts", "k", "wanted"),
    [*((of, None, "at least 2") for of in ([1], 3, [[1, 2]])), ([1, 2, 3], 2, "2")],
)
def test_as_counts_refuses_shapes(counts: object, k: int | None, wanted: str) -> None:
    with pytest.raises(
        ValueError,
        match=rf"counts: has shape .*; must have {wanted} entries, one for each category\.",
    ):
        as_counts(counts, k)


@pytest.mark.parametrize(
    "counts", [[0.5, 1.0], [True, False], ["1", "2"], [1 + 0j, 2], [np.nan, 1.0]]
)
def test_as_counts_refuses_types(counts: object) -> None:
    with pytest.raises(TypeError, match=r"counts: has dtype .*; .*whole"):
        as_counts(counts)


def test_as_counts_refuses_what_is_no_array() -> None:
    with pytest.raises(TypeError, match=r"counts=<list>: .*sequence of whole numbers"):
        as_counts([[1], [1, 2]])


@pytest.mark.parametrize(
    "counts", [[-1, 2], [0, 10**13], [0.0, np.inf], np.array([2**64 - 1, 0], dtype=np.uint64)]
)
def test_as_counts_refuses_entries(counts: object) -> None:
    with pytest.raises(ValueError, match=r"counts: .*between 0 and 1e\+12"):
        as_counts(counts)


def test_as_counts_does_not_show_the_data() -> None:
    """Counts are private, so a message must not repeat them."""
    for counts in ([-1, 123456], [0.5, 123456.0], [123456]):
        with pytest.raises((TypeError, ValueError)) as refusal:
            as_counts(counts)
        assert "123456" not in str(refusal.value)


def test_as_choice() -> None:
    assert as_choice("a", "noise", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="noise='c': must be one of"):
        as_choice("c", "noise", ("a", "b"))
