"""The numbers behind tables, pictures and frames."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.display.tables import decimals_of, estimates_table, intervals
from opendp_bayes.results.estimates import (
    Estimate,
    estimate_of,
    estimate_or_reason,
    plug_in_estimate,
    says_little,
)
from tests.helpers.releases import changed, guarantee

RELEASE = ob.Release(
    (12, 3, 5), ("a", "b", "c"), (1.0, 0.5, 2.0), ob.LaplaceParameters(2.0), guarantee(20)
)
PAIR = changed(RELEASE, noisy_counts=(12, 8), categories=("a", "b"), prior=(1.0, 1.0))
SLOW = changed(RELEASE, mechanism=ob.mechanisms.HellingerExponential(0.5))
REFUSED = changed(SLOW, size=None)


def test_plug_ins_are_of_the_marginal_betas_and_counts_have_no_decimals() -> None:
    estimate = plug_in_estimate(RELEASE, 0.8)
    betas = [stats.beta(a, 23.5 - a) for a in (13.0, 3.5, 7.0)]
    assert estimate.mean == pytest.approx([beta.mean() for beta in betas])
    assert estimate.std == pytest.approx([beta.std() for beta in betas])
    assert estimate.lower == pytest.approx([beta.ppf(0.1) for beta in betas])
    assert estimate.upper == pytest.approx([beta.ppf(0.9) for beta in betas])
    assert estimate.mean == pytest.approx(RELEASE.plug_in.mean())
    assert decimals_of([90.0, 7.0], [90.0, 7.0]) == 0
    assert decimals_of([90.0, 7.0], [90.0, 12.0]) == decimals_of([7.0], [12.0]) == 1
    assert decimals_of([], []) == 3


@pytest.mark.parametrize("wait", [False, True])
def test_where_the_posterior_is_refused_the_reason_is_given(wait: bool) -> None:
    reason = estimate_or_reason(REFUSED, 0.95, wait=wait)
    assert isinstance(reason, str)
    assert reason.startswith("There is no noise-aware posterior of this release: ")
    with pytest.raises(ValueError, match=r"size|counts"):
        REFUSED.estimates()


PRIVATE, MANY = (ob.LaplaceParameters(scale, total="private") for scale in (2.0, 10.0))


def of_hundreds(k: int):
    """A hundred records of each category, in a number that is private."""
    labels, prior = tuple(range(k)), (1.0,) * k
    return changed(
        RELEASE, noisy_counts=(100,) * k, categories=labels, prior=prior, size=None, mechanism=MANY
    )


MILLION = {
    "noisy_counts": (600_000, 400_000),
    "size": 10**6,
    "mechanism": ob.mechanisms.SmoothHellingerExponential(4.0),
}
WIDE = {"noisy_counts": (10**6,) * 3, "size": 3 * 10**6, "mechanism": ob.LaplaceParameters(1e4)}
QUICK = {
    "two categories": (PAIR, True),
    "two categories, a million records": (changed(PAIR, **MILLION), True),
    "two categories, number private": (changed(PAIR, size=None, mechanism=PRIVATE), True),
    "noise": (RELEASE, True),
    "noise, number private": (changed(RELEASE, size=None, mechanism=PRIVATE), True),
    "K-norm": (changed(RELEASE, mechanism=ob.KNormParameters(2.0)), True),
    "K-norm with a 0": (
        changed(RELEASE, noisy_counts=(15, 0, 5), mechanism=ob.KNormParameters(2.0)),
        True,
    ),
    "wide noise": (changed(RELEASE, **WIDE), True),
    "many categories, number private": (of_hundreds(60), True),
    "a thousand categories": (of_hundreds(1000), False),
    "a list of data sets": (SLOW, False),
    "importance sampling": (changed(SLOW, noisy_counts=(1000, 3000, 2000), size=6000), False),
}


@pytest.mark.parametrize("name", QUICK)
def test_what_is_quick(name: str) -> None:
    release, quick = QUICK[name]
    assert release._is_quick() is quick


def test_a_mechanism_from_a_plugin_is_not_called_without_being_asked_for() -> None:
    class Slow:
        name = "slow"

        def log_pmf(self, counts: np.ndarray, prior: object) -> object:
            raise AssertionError("called")

    release = changed(PAIR, mechanism=Slow())
    assert not release._is_quick()
    assert isinstance(estimate_or_reason(release, 0.95, wait=False), str)


WIDTHS = [(0.3, "0.100 to 0.400"), (0.014, "0.100 to 0.114"), (0.0024, "0.1000 to 0.1024")]


@pytest.mark.parametrize(("width", "shown"), [*WIDTHS, (0.0, "0.100 to 0.100")])
def test_narrow_intervals_are_shown_with_more_decimals(width: float, shown: str) -> None:
    """Though not with so many that the widest, here of 0.02, has more than three digits."""
    lower, upper = [0.1, 0.2], [0.1 + width, 0.22]
    estimates = {"category": ["a", "b"], "mean": lower, "lower": lower, "upper": upper}
    rows = estimates_table(pl.DataFrame(estimates), 0.95).rows
    assert rows[0][2] == shown
    assert len(rows[1][1]) == len(rows[0][1]) == shown.index(" ")
    plug_in = pl.DataFrame({f"plug_in_{name}": estimates[name] for name in ("lower", "upper")})
    both = estimates_table(pl.concat([pl.DataFrame(estimates), plug_in], how="horizontal"), 0.95)
    assert both.rows[0][3] == shown, "the digits of the interval before it"
    assert intervals(lower, lower, 2) == ["0.10 to 0.10", "0.20 to 0.20"]


@pytest.mark.parametrize(
    ("scale", "prior", "is_little"),
    [
        (1e4, (1.0, 0.5, 2.0), True),  # the noise hides 20 records
        (2.0, (1.0, 0.5, 2.0), False),
        (0.01, (1000.0, 500.0, 2000.0), True),  # the prior outweighs 20 records
        (10.0, (1.0, 0.5, 2.0), False),
    ],
)
def test_says_little_where_the_prior_is_hardly_changed(scale, prior, is_little):
    release = changed(RELEASE, mechanism=ob.LaplaceParameters(scale), prior=prior)
    estimate = estimate_of(release.posterior, 0.95)
    before = stats.dirichlet(prior).var() ** 0.5
    assert is_little == bool(np.all(estimate.std > 0.9 * before))
    assert says_little(prior, estimate).tolist() == [is_little]
    two = Estimate(*(np.append(x, 0 * x) for x in estimate))
    assert says_little(prior, two).tolist() == [is_little, False]
