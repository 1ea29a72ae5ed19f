"""Errors of counts on a tree, against dense least squares."""

from typing import Any

import numpy as np
import pytest

from opendp_bayes.planning.tree_errors import CountTree

#: Cells, and the numbers of neighbours that the levels merge.
TREES = [(2, [1]), (7, [1]), (8, [1, 2, 4]), (13, [1, 3, 9]), (17, [1, 4, 16]), (11, [1, 6])]


def partitions(k: int, widths: list[int]) -> list[Any]:
    return [np.arange(k) // width for width in widths]


def covariance(parts: list[Any], variances: Any) -> Any:
    """Of the cells by least squares, given their sum."""
    k = parts[0].size
    precision = np.zeros((k, k))
    for part, variance in zip(parts, variances, strict=True):
        level = (part[None] == np.unique(part)[:, None]) * 1.0
        precision += level.T @ level / variance
    free = np.linalg.inv(precision)
    of_sum = free.sum(axis=1)
    return free - np.outer(of_sum, of_sum) / of_sum.sum()


def drawn_variances(levels: int) -> Any:
    return np.random.default_rng(levels).uniform(0.1, 9, (3, levels))


def moved(parts: list[Any], variances: Any) -> Any:
    """Negative control: the noise of the finest level 5 % off."""
    return covariance(parts, variances * np.array([1.05] + [1.0] * (len(parts) - 1)))


@pytest.mark.parametrize(("k", "widths"), TREES)
def test_errors_are_those_of_least_squares(k: int, widths: list[int]) -> None:
    parts = partitions(k, widths)
    tree = CountTree.of(parts)
    for variances in drawn_variances(len(widths)):
        exact = covariance(parts, variances)
        for part, found in zip(parts, tree.errors(variances), strict=True):
            level = (part[None] == np.unique(part)[:, None]) * 1.0
            dense = np.diag(level @ exact @ level.T)
            np.testing.assert_allclose(found, dense, rtol=1e-9)
        up_to = np.tril(np.ones((k, k)))
        dense = np.diag(up_to @ exact @ up_to.T)
        found = tree.errors_up_to(variances)
        np.testing.assert_allclose(found, dense, rtol=1e-9, atol=1e-9)
        off = np.diag(up_to @ moved(parts, variances) @ up_to.T)
        assert not np.allclose(found, off, rtol=1e-3)


@pytest.mark.parametrize(("k", "widths"), TREES)
def test_mean_errors_are_those_of_least_squares(k: int, widths: list[int]) -> None:
    parts = partitions(k, widths)
    tree = CountTree.of(parts)
    intervals = [(a, b) for a in range(k) for b in range(a, k)]
    wanted = {
        "cells": np.eye(k),
        "quantiles": np.tril(np.ones((k, k))),
        "ranges": np.array([[a <= at <= b for at in range(k)] for a, b in intervals]) * 1.0,
    }
    for variances in drawn_variances(len(widths)):
        for name, sums in wanted.items():
            dense = np.diag(sums @ covariance(parts, variances) @ sums.T).mean()
            off = np.diag(sums @ moved(parts, variances) @ sums.T).mean()
            found = tree.mean_error(variances, name)  # type: ignore[arg-type]
            assert found == pytest.approx(dense, rel=1e-9)
            assert found != pytest.approx(off, rel=1e-3)


def test_levels_whose_categories_are_in_another_order() -> None:
    """The errors of counts go by their own places, and cells of one part need not be neighbours."""
    rng = np.random.default_rng(5)
    fine = rng.permutation(12)
    middle, coarse = rng.permutation(6)[fine % 6], np.array([1, 0, 1])[fine % 3]
    parts = [fine, middle, coarse]
    variances = np.array([1.0, 4.0, 2.0])
    exact = covariance(parts, variances)
    for part, found in zip(parts, CountTree.of(parts).errors(variances), strict=True):
        level = (part[None] == np.unique(part)[:, None]) * 1.0
        np.testing.assert_allclose(found, np.diag(level @ exact @ level.T), rtol=1e-9)


def test_a_level_without_noise_leaves_no_error() -> None:
    parts = partitions(8, [1, 4])
    cells, halves = CountTree.of(parts).errors(np.array([1.0, 1e-12]))
    np.testing.assert_allclose(halves, 0, atol=1e-11)
    np.testing.assert_allclose(cells, 3 / 4)
