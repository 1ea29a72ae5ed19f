"""Accounts: what the entries of a ledger add up to."""

from fractions import Fraction
from typing import Any

import pytest

from opendp_bayes.trusted.account import Account, Entry, LedgerError, Loss, State, as_name

UNIT = "contributions: 3"


def total(**loss: float) -> Entry:
    return Entry("2026-01-02T03:04:05Z", "total", Loss(**loss))


def spent(unit: str = UNIT, state: State = "spent", **loss: float) -> Entry:
    return Entry("2025-01-02T03:04:05Z", state, Loss(**loss), unit, "für π")


def account_of(*entries: Entry) -> Account:
    return Account("a", entries)


@pytest.mark.parametrize(
    ("of", "losses", "sums"),
    [
        ({"epsilon": 3.0}, [{"epsilon": 0.1}] * 3, (3 * Fraction(0.1), 0)),
        (
            {"epsilon": 3.0, "delta": 1e-5},
            [{"epsilon": 0.5, "delta": 1e-6}, {"epsilon": 0.25}],
            (Fraction(3, 4), Fraction(1e-6)),
        ),
        ({"rho": 3.0}, [{"rho": 0.1}, {"epsilon": 0.5}], (Fraction(0.1) + Fraction(1, 8), 0)),
        (
            {"rho": 3.0, "delta": 0.5},
            [{"rho": 0.1, "delta": 0.1}, {"epsilon": 2.0, "delta": 0.2}],
            (Fraction(0.1) + 2, Fraction(0.1) + Fraction(0.2)),
        ),
        ({"epsilon": 1e300}, [{"epsilon": 1e300}, {"epsilon": 5e-324}], (None, 0)),
    ],
)
def test_losses_add_up_exactly_and_are_shown_on_the_safe_side(of, losses, sums):
    account = account_of(total(**of), *(spent(**loss) for loss in losses))
    value = Fraction(1e300) + Fraction(5e-324) if sums[0] is None else sums[0]
    assert Fraction(account.spent.value) >= value
    assert Fraction(account.spent.delta) >= sums[1]
    assert account.spent.value <= float(value) * (1 + 2**-52)
    left = max(Fraction(account.total.value) - value, Fraction(0))
    assert Fraction(account.remaining.value) <= left
    assert account.remaining.value >= float(left) * (1 - 2**-52)


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_sums_between_two_floats_are_rounded_to_the_safe_side(kind: str) -> None:
    """To the nearest they would be what was there before the last of them."""
    half, tiny = Fraction(1, 2), Fraction(1, 1 << 60)
    losses = ({kind: 0.5, "delta": 0.5}, {kind: float(tiny), "delta": float(tiny)})
    account = account_of(total(**{kind: 1.0, "delta": 0.75}), *(spent(**loss) for loss in losses))
    for shown in (account.spent.value, account.spent.delta):
        assert half + tiny <= Fraction(shown) <= half + Fraction(1, 1 << 52)
    for left, limit in ((account.remaining.value, 1), (account.remaining.delta, Fraction(3, 4))):
        assert limit - half - Fraction(1, 1 << 52) <= Fraction(left) <= limit - half - tiny
    for left, (_, shown) in zip((1, half, half - tiny), account.lines(), strict=True):
        assert Fraction(shown.value) <= left


@pytest.mark.parametrize(
    ("state", "paid"), [("open", True), ("spent", True), ("failed", True), ("refused", False)]
)
def test_what_is_paid_for(state: State, paid: bool) -> None:
    """A release without an end may have been handed out, and a failure tells something."""
    account = account_of(total(epsilon=1.0), spent(state=state, epsilon=0.75))
    assert account.spent.value == (0.75 if paid else 0.0)
    assert [left.value for _, left in account.lines()] == [1.0, 0.25 if paid else 1.0]
    assert account.failures == (state in ("open", "failed"))
    if paid:
        with pytest.raises(LedgerError, match=r"would exceed .* at most epsilon=0\.25"):
            account.check(Loss(epsilon=0.5), UNIT)
    else:
        account.check(Loss(epsilon=0.5), UNIT)


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_a_release_that_costs_delta_alone_is_paid_for(kind):
    account = account_of(total(**{kind: 1.0}, delta=0.5), spent(**{kind: 0.0}, delta=0.375))
    assert (account.spent.delta, account.remaining.delta) == (0.375, 0.125)
    with pytest.raises(LedgerError, match="would exceed"):
        account.check(Loss(**{kind: 0.0}, delta=0.25), UNIT)


def test_a_release_may_take_all_that_is_left_and_not_the_next_float_more():
    account = account_of(total(epsilon=1.0, delta=0.5), spent(epsilon=0.7))
    left = account.remaining
    account.check(Loss(epsilon=left.value, delta=0.5), UNIT)
    with pytest.raises(LedgerError, match=f"at most epsilon={left.value!r}, delta=0.5"):
        account.check(Loss(epsilon=left.value + 2**-52), UNIT)
    with pytest.raises(LedgerError, match=r"δ = 0\.6, would exceed"):
        account.check(Loss(epsilon=0.1, delta=0.6), UNIT)
    # Ten tenths are more than one, in binary: 0.1 is a little more than a tenth.
    tenths = account_of(total(epsilon=1.0), *[spent(epsilon=0.1)] * 9)
    with pytest.raises(LedgerError, match=r"at most epsilon=0\.09999999999999995"):
        tenths.check(Loss(epsilon=0.1), UNIT)


@pytest.mark.parametrize("loss", [Loss(epsilon=0.5, delta=0.3), Loss(rho=0.5, delta=0.3)])
@pytest.mark.parametrize("of", ["epsilon", "rho"])
def test_each_part_of_a_loss_is_limited_in_either_kind_of_ledger(of: str, loss: Loss) -> None:
    if (of, loss.kind) == ("epsilon", "rho"):
        return
    account = account_of(total(**{of: 9.0, "delta": 0.5}), spent(**{of: 0.5, "delta": 0.2}))
    account.check(loss, UNIT)
    for part in ({"delta": 0.4}, {loss.kind: 9.0}):
        with pytest.raises(LedgerError, match="exceed what the ledger has left"):
            account.check(Loss(**{loss.kind: loss.value, "delta": loss.delta} | part), UNIT)


@pytest.mark.parametrize("spends", [False, True])
@pytest.mark.parametrize("delta", [{}, {"delta": 0.5}])
@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_no_part_of_a_loss_may_be_more_than_is_left_of_it(kind: str, delta: Any, spends: bool):
    """Of a total without a δ none is left, and none may be spent."""
    entries = [spent(**{kind: 0.25, **dict.fromkeys(delta, 0.125)})] * spends
    account = account_of(total(**{kind: 1.0, **delta}), *entries)
    value, left = account.remaining.value, account.remaining.delta
    account.check(Loss(**{kind: value, "delta": left}), UNIT)
    for part in ({"delta": left + 1e-9}, {kind: value + 1e-9}):
        with pytest.raises(LedgerError, match="exceed what the ledger has left"):
            account.check(Loss(**{kind: value / 2, "delta": left / 2, **part}), UNIT)


@pytest.mark.parametrize("part", ["value", "delta"])
@pytest.mark.parametrize("of", ["epsilon", "rho"])
def test_nothing_is_left_where_either_part_of_the_total_is_below_what_was_spent(of, part):
    """Not even for a loss that has none of that part."""
    before = {of: 9.0, "delta": 0.5}
    lowered = before | {of if part == "value" else part: 0.1}
    account = account_of(total(**before), spent(**{of: 0.5, "delta": 0.2}), total(**lowered))
    for delta in (0.0, 1e-3):
        with pytest.raises(LedgerError, match="exceed what the ledger has left"):
            account.check(Loss(**{of: 1e-3, "delta": delta}), UNIT)


def test_refuses_what_cannot_be_added_to_the_last_total():
    account = account_of(total(epsilon=1.0), spent(epsilon=0.1))
    with pytest.raises(LedgerError, match=r"ρ = 0\.1 cannot .* 'a' in epsilon"):
        account.check(Loss(rho=0.1), UNIT)
    for loss in (Loss(epsilon=float("inf")), Loss(epsilon=float("nan")), Loss(epsilon=-1.0)):
        with pytest.raises(LedgerError, match="cannot be added"):
            account.check(loss, UNIT)
    with pytest.raises(LedgerError, match="the privacy unit contributions: 3, and"):
        account.check(Loss(epsilon=0.1), "changes: 3")
    account.check(Loss(epsilon=0.1), UNIT)
    account = account_of(total(epsilon=1.0), spent(epsilon=0.5), total(epsilon=0.25))
    assert (account.total.epsilon, account.spent.epsilon) == (0.25, 0.5)
    assert str(account.remaining) == "ε = 0"  # not -0
    assert [left.value for _, left in account.lines()] == [1.0, 0.5, 0.0]
    with pytest.raises(LedgerError, match="only a higher total helps"):
        account.check(Loss(epsilon=1e-9), UNIT)
    first = Entry("2026-01-02T03:04:05Z", "total", Loss(epsilon=1.0), UNIT)
    account = account_of(first, total(epsilon=2.0))
    assert (account.unit, account.total.value) == (UNIT, 2.0)
    account.check(Loss(epsilon=2.0), UNIT)
    with pytest.raises(LedgerError, match="one for changes: 3 cannot"):
        account.check(Loss(epsilon=0.1), "changes: 3")


@pytest.mark.parametrize("number", [-0.0, -1e-300, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["epsilon", "rho", "delta"])
def test_no_loss_is_negative_or_endless(number: float, field: str) -> None:
    assert not Loss(**{"epsilon": 1.0, field: number}).is_sound
    assert not Loss(**{field: number}).is_sound
    assert not Loss(epsilon=1.0, rho=1.0).is_sound
    assert not Loss(epsilon=1.0, delta=1.0).is_sound
    assert Loss(epsilon=0.0, delta=0.0).is_sound


def test_names_are_one_line_and_without_losses_everything_is_left():
    assert as_name("Bevölkerung 2026", "dataset") == "Bevölkerung 2026"
    for name in ("", "a\nb", "x" * 201, "\x00"):
        with pytest.raises(ValueError, match=r"dataset=.*: must be one line"):
            as_name(name, "dataset")
    with pytest.raises(TypeError, match="note=3: must be text"):
        as_name(3, "note")
    account = account_of(total(rho=0.5))
    assert (account.spent.rho, account.remaining.rho, account.unit) == (0.0, 0.5, None)
