"""The δ of an account: added, limited, rounded and lost to a torn line as ε and ρ are."""

from fractions import Fraction

import pytest

from opendp_bayes.trusted.account import (
    Account,
    Entry,
    LedgerError,
    Loss,
    accounts_of,
    line_of,
)

UNIT = "contributions: 3"


def account_of(total: Loss, *losses: Loss, after: bytes = b"") -> Account:
    entries = [Entry(1, "2026-01-02T03:04:05Z", "a", total=total)]
    entries += [Entry(1, "2026-01-02T03:04:05Z", "a", spent=loss, unit=UNIT) for loss in losses]
    return accounts_of(b"".join(map(line_of, entries)) + after)["a"]


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
    for left, (_, shown) in zip((1, half, half - tiny), account.entries, strict=True):
        assert Fraction(shown.value) <= left


def test_a_torn_line_leaves_no_delta_either() -> None:
    torn = b'{"ledger":1,"at":"2026-'
    total, loss = Loss(epsilon=2.0, delta=1e-5), Loss(epsilon=0.5, delta=1e-6)
    account = account_of(total, loss, after=torn)
    assert (account.remaining.value, account.remaining.delta) == (0.0, 0.0)
    assert (account.spent.value, account.spent.delta) == (2.0, 1e-5)
    raised = Entry(1, "2026-01-02T03:04:05Z", "a", total=Loss(epsilon=3.0, delta=1e-5))
    account = account_of(total, loss, after=torn + b"\n" + line_of(raised))
    assert (account.remaining.value, account.remaining.delta) == (1.0, 0.0)
    account.check(Loss(epsilon=1.0), UNIT)
    with pytest.raises(LedgerError, match="would exceed what the ledger has left"):
        account.check(Loss(epsilon=0.5, delta=1e-9), UNIT)


def test_a_torn_line_gives_back_nothing_of_what_was_spent_beyond_the_total() -> None:
    """Of either part, where a total was lowered below what had been spent."""
    total, loss = Loss(epsilon=2.0, delta=1e-5), Loss(epsilon=1.5, delta=8e-6)
    lower = Entry(1, "2026-01-02T03:04:05Z", "a", total=Loss(epsilon=1.0, delta=1e-6))
    account = account_of(total, loss, after=line_of(lower) + b'{"ledger":1')
    assert (account.spent.value, account.spent.delta) == (1.5, 8e-6)


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_the_delta_alone_is_refused_after_it_was_spent(kind: str) -> None:
    """In the second release, and of an ε in an account of ρ too."""
    account = account_of(Loss(**{kind: 9.0}, delta=1e-5), Loss(epsilon=0.5, delta=6e-6))
    account.check(Loss(**{kind: 0.5}, delta=4e-6), UNIT)
    for loss in (Loss(**{kind: 0.5}, delta=5e-6), Loss(epsilon=0.5, delta=5e-6)):
        with pytest.raises(LedgerError, match="would exceed what the ledger has left"):
            account.check(loss, UNIT)
