"""Levels that were measured twice, by name: their information adds up as a list of counts says."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior

LABELS, MERGED = ("a", "b", "c"), {"ab": ["a", "b"], "c": ["c"]}
LAWS: Any = {"laplace_parameters": DiscreteLaplace, "gaussian_parameters": DiscreteGaussian}
#: Of each look whether it is at the groups, what was drawn, and its noise.
FINE = False, (4, 1, 3), "laplace_parameters", 2.0
AGAIN = False, (7, 0, 2), "gaussian_parameters", 1.5
THIRD = False, (3, 3, 5), "laplace_parameters", 3.0
COARSE = True, (8, 2), "laplace_parameters", 1.0
COARSE_AGAIN = True, (5, 3), "gaussian_parameters", 2.0

CASES = {
    "the finest twice": (FINE, AGAIN, COARSE),
    "the groups twice": (FINE, COARSE, COARSE_AGAIN),
    "both twice": (FINE, AGAIN, COARSE, COARSE_AGAIN),
    "the finest three times": (FINE, AGAIN, THIRD, COARSE),
    "groups first": (COARSE, THIRD, FINE),
}


def release(look: Any, size: int | None) -> ob.Release:
    merged, drawn, noise, scale = look
    kinds: Any = {"merge": MERGED} if merged else {}
    return ob.noisy_counts(list(drawn), LABELS, mechanism=noise, scale=scale, size=size, **kinds)


def combined(looks: Any, size: int | None) -> Any:
    named = {f"look {at}": release(look, size) for at, look in enumerate(looks)}
    return ob.combine_tables(named)


def expected_counts(looks: Any, posterior: Any, size: int | None) -> Any:
    """By listing, with the learned concentrations of the groups and within them."""
    highest = 60 if size is None else size

    def concentration(is_):
        at = next(at for at, one in enumerate(looks) if one[0] is is_)
        return posterior.concentrations[f"look {at}"]

    fine, coarse = concentration(False), concentration(True)
    total = range(highest + 1) if size is None else [size]
    pairs = ((n, *pair) for n in total for pair in itertools.product(range(n + 1), repeat=2))
    rows = np.array([(x, y, n - x - y) for n, x, y in pairs if x + y <= n])
    sums = np.stack([rows[:, 0] + rows[:, 1], rows[:, 2]], axis=1)
    logs = np.zeros(len(rows))
    for merged, drawn, noise, scale in looks:
        counts = sums if merged else rows
        logs += LAWS[noise](scale).log_mass(np.array(drawn) - counts).sum(axis=1)
    for whole, parts, a in ((rows.sum(axis=1), sums, coarse), (sums[:, 0], rows[:, :2], fine)):
        k = parts.shape[1]
        logs += special.gammaln(whole + 1) - special.gammaln(whole + k * a)
        logs += (special.gammaln(parts + a) - special.gammaln(parts + 1)).sum(axis=1)
    weights = np.exp(logs - special.logsumexp(logs))
    mean = weights @ rows
    return mean, np.sqrt(weights @ (rows - mean) ** 2)


@pytest.mark.parametrize("size", [9, None], ids=["public", "private"])
@pytest.mark.parametrize("case", CASES)
def test_looks_at_one_level_add_their_information(case: str, size: int | None) -> None:
    looks = CASES[case]
    posterior = combined(looks, size)
    assert isinstance(posterior, LevelsPosterior)
    mean, std = expected_counts(looks, posterior, size)
    for at, look in enumerate(looks):
        if not look[0]:
            counts = posterior[f"look {at}"].counts
            assert counts.mean() == pytest.approx(mean, abs=1e-4)
            assert counts.std() == pytest.approx(std, abs=1e-4)


def test_looks_are_told_from_others_by_what_they_counted_alone() -> None:
    """Negative control. Which combine could not tell from their names: their counts are far
    apart.
    """
    posterior = combined(CASES["the finest twice"], None)
    mean, _ = expected_counts((FINE, COARSE), posterior, None)
    assert np.abs(posterior["look 0"].counts.mean() - mean).max() > 0.05
    assert isinstance(ob.combine_tables(survey_of((606, 207, 188))), LevelsPosterior)
    with pytest.raises(ValueError, match=r"tables\['first'\], tables\['second'\]: have the same"):
        ob.combine_tables(survey_of((310, 285, 410)))
    few = survey_of((310, 285, 410))
    del few["first"]
    with pytest.raises(ValueError, match=r"tables\['second'\], tables\['has said'\]: have"):
        ob.combine_tables(few)
    cells = [("n", "x"), ("n", "y"), ("s", "z")]
    table = ob.Release(
        (11, 4, 9), tuple(cells), (1.0,) * 3, ob.LaplaceParameters(1.0, total="private"),
        ob.PrivacyGuarantee(None, 1, ob.PrivacyLoss(1.0, 0.5, 2.0), "MaxDivergence"),
        axes=("region", "district"),
    )  # fmt: skip
    region = ob.noisy_counts([14, 8], ["n", "s"], mechanism="laplace_parameters", scale=1.0)
    again = ob.noisy_counts([9, 16], ["s", "n"], mechanism="laplace_parameters", scale=1.0)
    once = ob.combine_tables({"cells": table, "region": region})
    twice = ob.combine_tables({"cells": table, "region": region, "again": again})
    assert isinstance(twice, LevelsPosterior)
    assert twice["again"].mean() == pytest.approx(twice["region"].mean()[::-1])
    assert (twice["region"].counts.std() < once["region"].counts.std()).all()


def survey_of(second: tuple[int, ...]) -> dict[str, ob.Release]:
    """Two tables of the same labels, and what the first merges."""
    labels, merge = ["agree", "neither", "disagree"], {"said": ["agree", "disagree"]}
    merge["neither"] = ["neither"]
    drawn: Any = {"mechanism": "laplace_parameters", "scale": 2.0}
    return {
        "first": ob.noisy_counts([610, 205, 190], labels, **drawn),
        "second": ob.noisy_counts(list(second), labels, **drawn),
        "has said": ob.noisy_counts([798, 203], labels, merge=merge, **drawn),
    }


def test_noise_alone_is_not_taken_for_another_column() -> None:
    """In 300 trees of 3 to 30 categories, whose noise is Laplace, Gaussian, wide or narrow."""
    from opendp_bayes.surveys.levels.tree import check_sums

    rng = np.random.default_rng(0)
    for _ in range(300):
        k = int(rng.integers(3, 31))
        true, labels = rng.integers(0, 50, k), list(range(k))
        merge = {"low": labels[: k // 2], "high": labels[k // 2 :]}
        both = np.array([true[: k // 2].sum(), true[k // 2 :].sum()])
        named, parts = {}, {}
        for name in ("fine", "again", "groups"):
            noise = ("laplace_parameters", "gaussian_parameters")[int(rng.integers(2))]
            scale, counts = float(10 ** rng.uniform(-0.5, 2)), both if name == "groups" else true
            drawn = counts + LAWS[noise](scale).simulate(counts.shape, rng)
            kinds: Any = {"merge": merge} if name == "groups" else {}
            named[name] = ob.noisy_counts(
                drawn.tolist(), labels, mechanism=noise, scale=scale, **kinds
            )
            parts[name] = np.arange(k) >= k // 2 if name == "groups" else np.arange(k)
        check_sums(named, {name: part.astype(int) for name, part in parts.items()})
