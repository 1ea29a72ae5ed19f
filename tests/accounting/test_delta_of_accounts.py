"""The δ of an account: added, limited and rounded as ε and ρ are."""

from fractions import Fraction

import pytest

from opendp_bayes.trusted.account import Account, Entry, LedgerError, Loss

UNIT = "contributions: 3"


def account_of(total: Loss, *losses: Loss) -> Account:
    entries = [Entry("2026-01-02T03:04:05Z", "total", total)]
    entries += [Entry("2026-01-02T03:04:05Z", "spent", loss, UNIT) for loss in losses]
    return Account("a", tuple(entries))


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_sums_between_two_floats_are_rounded_to_the_safe_side(kind: str) -> None:
    """To the nearest they would be what was there before the last of them."""
    half, tiny = Fraction(1, 2), Fraction(1, 1 << 60)
    losses = Loss(**{kind: 0.5}, delta=0.5), Loss(**{kind: float(tiny)}, delta=float(tiny))
    account = account_of(Loss(**{kind: 1.0}, delta=0.75), *losses)
    for shown in (account.spent.value, account.spent.delta):
        assert half + tiny <= Fraction(shown) <= half + Fraction(1, 1 << 52)
    for left, limit in ((account.remaining.value, 1), (account.remaining.delta, Fraction(3, 4))):
        assert limit - half - Fraction(1, 1 << 52) <= Fraction(left) <= limit - half - tiny
    for left, (_, shown) in zip((1, half, half - tiny), account.lines(), strict=True):
        assert Fraction(shown.value) <= left


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_the_delta_alone_is_refused_after_it_was_spent(kind: str) -> None:
    """In the second release, and of an ε in an account of ρ too."""
    account = account_of(Loss(**{kind: 9.0}, delta=1e-5), Loss(epsilon=0.5, delta=6e-6))
    account.check(Loss(**{kind: 0.5}, delta=4e-6), UNIT)
    for loss in (Loss(**{kind: 0.5}, delta=5e-6), Loss(epsilon=0.5, delta=5e-6)):
        with pytest.raises(LedgerError, match="exceed what the ledger has"):
            account.check(loss, UNIT)
