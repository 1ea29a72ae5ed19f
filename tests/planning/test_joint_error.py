"""Errors of tables that are estimated together, against dense least squares."""

import math
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.joint_error import JointTables, noise_variance

LEVELS = {"a": 2, "b": 3, "c": 4}
SURVEYS = [
    ["ab"],
    ["ab", "bc"],
    ["ab", "ab"],
    ["abc", "b"],
    ["a", "b", "c"],
    ["ab", "bc", "ac", "a"],
]


def margin_matrix(scope: Any) -> Any:
    """From the cells of all variables to those of a table."""
    names = sorted(LEVELS)
    shape = [LEVELS[v] for v in names]
    places = np.indices(shape).reshape(len(shape), -1)
    kept = [names.index(v) for v in sorted(scope)]
    cells = np.ravel_multi_index(places[kept], [shape[at] for at in kept])
    found = np.zeros((cells.max() + 1, places.shape[1]))
    found[cells, np.arange(cells.size)] = 1
    return found


def least_squares(scopes: Any, variances: Any) -> list[float]:
    """Traces of the covariances of the tables' cells, together as parts of alone."""

    def trace(of: Any, matrices: Any, own: Any) -> float:
        precision = sum(m.T @ m / v for m, v in zip(matrices, own, strict=True))
        total = np.ones((1, precision.shape[0]))
        precision = precision + 1e9 * total.T @ total  # the number of records is known
        return float(np.trace(of @ np.linalg.pinv(precision, rcond=1e-13, hermitian=True) @ of.T))

    matrices = [margin_matrix(scope) for scope in scopes]
    return [
        math.sqrt(trace(of, matrices, variances) / trace(of, [of], [variance]))
        for of, variance in zip(matrices, variances, strict=True)
    ]


@pytest.mark.parametrize("tables", SURVEYS, ids="-".join)
def test_ratios_are_those_of_least_squares(tables: list[str]) -> None:
    rng = np.random.default_rng(len(tables))
    found = JointTables({str(at): frozenset(one) for at, one in enumerate(tables)}, LEVELS)
    for variances in (np.ones(len(tables)), rng.uniform(0.1, 9, len(tables))):
        exact = least_squares(tables, variances)
        np.testing.assert_allclose(found.ratios(variances), exact, rtol=1e-3)


def test_tables_that_share_nothing_help_nobody() -> None:
    apart = JointTables({"one": frozenset("a"), "other": frozenset("b")}, LEVELS)
    np.testing.assert_allclose(apart.ratios(np.array([1.0, 4.0])), 1)
    np.testing.assert_allclose(apart.others_without(np.array([1.0, 4.0])), 1)
    alone = JointTables({"one": frozenset("a")}, LEVELS)
    np.testing.assert_allclose(alone.others_without(np.ones(1)), 1)
    # Two equal looks: each halves the variance of the other.
    twice = JointTables(dict.fromkeys("xy", frozenset("ab")), LEVELS)
    np.testing.assert_allclose(twice.ratios(np.ones(2)), math.sqrt(0.5))
    np.testing.assert_allclose(twice.others_without(np.ones(2)), math.sqrt(2))


def test_a_variable_of_one_label_has_no_error() -> None:
    one = JointTables({"x": frozenset("x")}, {"x": 1})
    np.testing.assert_allclose(one.ratios(np.ones(1)), 1)


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [
        (ob.LaplaceParameters(7.0, total="private"), None),
        (ob.GaussianParameters(7.0), 900),
        (ob.KNormParameters(7.0), 900),
    ],
)
def test_the_variance_is_that_of_draws(mechanism: Any, size: int | None) -> None:
    counts = np.array([300, 300, 300])
    found = noise_variance(Setting.of(mechanism, size, np.ones(3)))
    drawn = np.array(mechanism.draw(counts, np.ones(3), 4000)) - counts
    assert found is not None
    ratio = drawn[:, :2].var() / found
    # K-norm noise on three counts has a sum of 0 and 5/12 of the variance. 5 deviations of what the
    # draws have are 15 % of that, and 9 % of the others.
    low, high = (0.354, 0.479) if isinstance(mechanism, ob.KNormParameters) else (0.91, 1.09)
    assert low < ratio < high
    exponential = Setting.of(ob.mechanisms.HellingerExponential(1.0), 900, np.ones(3))
    assert noise_variance(exponential) is None
