"""Accounts: what the lines of a ledger add up to, whole, cut off, and damaged."""

from fractions import Fraction

import pytest

from opendp_bayes.trusted.account import (
    Account,
    Entry,
    LedgerError,
    Loss,
    accounts_of,
    as_name,
    line_of,
)

UNIT = "contributions: 3"


def total(dataset: str = "a", **loss: float) -> Entry:
    return Entry(1, "2026-01-02T03:04:05Z", dataset, total=Loss(**loss))


def spent(dataset: str = "a", unit: str = UNIT, **loss: float) -> Entry:
    return Entry(1, "2025-01-02T03:04:05Z", dataset, spent=Loss(**loss), unit=unit, note="für π")


def text_of(*entries: Entry) -> bytes:
    return b"".join(map(line_of, entries))


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
    ],
)
def test_losses_add_up_exactly_and_are_shown_rounded_to_the_safe_side(of, losses, sums):
    entries = [total(**of), *(spent(**loss) for loss in losses)]
    account = accounts_of(text_of(*entries))["a"]
    for shown, left, limit, exact in zip(
        (account.spent.value, account.spent.delta),
        (account.remaining.value, account.remaining.delta),
        (account.total.value, account.total.delta),
        sums,
        strict=True,
    ):
        assert exact <= Fraction(shown) <= exact * (1 + Fraction(1, 2**52))
        assert (Fraction(limit) - exact) * (1 - Fraction(1, 2**52)) <= left
        assert left <= Fraction(limit) - exact
    assert [left.value for _, left in account.entries] == sorted(
        (left.value for _, left in account.entries), reverse=True
    )


def test_a_release_may_take_all_that_is_left_and_not_the_next_float_more():
    account = accounts_of(text_of(total(epsilon=1.0, delta=0.5), spent(epsilon=0.3)))["a"]
    left = account.remaining
    account.check(left, UNIT)
    above = Fraction(1) - Fraction(0.3)
    assert Fraction(left.value) <= above
    with pytest.raises(LedgerError, match=r"would exceed .* ask for at most epsilon=0\.7, delta="):
        account.check(Loss(epsilon=left.value + 2**-52), UNIT)
    with pytest.raises(LedgerError, match=r"this release, of ε = 0\.1, δ = 0\.6, would exceed"):
        account.check(Loss(epsilon=0.1, delta=0.6), UNIT)
    # Ten tenths are more than one, in binary: 0.1 is a little more than a tenth.
    tenths = accounts_of(text_of(total(epsilon=1.0), *[spent(epsilon=0.1)] * 9))["a"]
    with pytest.raises(LedgerError, match=r"at most epsilon=0\.09999999999999995"):
        tenths.check(Loss(epsilon=0.1), UNIT)


def test_refuses_what_cannot_be_added():
    account = accounts_of(text_of(total(epsilon=1.0), spent(epsilon=0.1)))["a"]
    with pytest.raises(LedgerError, match=r"a loss of ρ = 0\.1 cannot .* keeps 'a' in epsilon"):
        account.check(Loss(rho=0.1), UNIT)
    for loss in (Loss(epsilon=float("inf")), Loss(epsilon=float("nan")), Loss(epsilon=-1.0)):
        with pytest.raises(LedgerError, match="cannot be added"):
            account.check(loss, UNIT)
    with pytest.raises(LedgerError, match="are for 3 records added or removed, and one"):
        account.check(Loss(epsilon=0.1), "changes: 3")
    account.check(Loss(epsilon=0.1), UNIT)


def test_the_last_total_counts_whatever_the_clock_says():
    entries = [total(epsilon=1.0), spent(epsilon=0.5), total(epsilon=0.25), spent("b", epsilon=0)]
    with pytest.raises(LedgerError, match="line 4: is about 'b', which has no total"):
        accounts_of(text_of(*entries))
    account = accounts_of(text_of(*entries[:3]))["a"]
    assert (account.total.epsilon, account.spent.epsilon) == (0.25, 0.5)
    assert str(account.remaining) == "ε = 0"  # not -0
    with pytest.raises(LedgerError, match="and nothing is left: only a larger total"):
        account.check(Loss(epsilon=1e-9), UNIT)


def test_data_sets_have_accounts_of_their_own():
    accounts = accounts_of(
        text_of(total(epsilon=1.0), total("b", rho=2.0), spent("b", "changes: 1", rho=0.5))
    )
    assert list(accounts) == ["a", "b"]
    assert (accounts["a"].spent.value, accounts["b"].spent.value) == (0.0, 0.5)
    assert (accounts["a"].unit, accounts["b"].unit) == (None, "changes: 1")


def test_a_line_cut_off_anywhere_counts_at_least_what_it_said():
    """The release of a line cut off was not handed out, unless the disk lost what it had
    confirmed; so it counts, and as it cannot be read it counts as all that was left.
    """
    kept = text_of(total(epsilon=2.0), total("b", epsilon=3.0), spent(epsilon=0.5))
    last = line_of(spent(epsilon=0.25))
    cut_off = 0
    for length in range(1, len(last)):
        for torn in (last[:length], last[:length] + b"\0" * 9, b"\0" * length):
            after = kept + torn
            accounts = accounts_of(after)
            if accounts["a"].entries[-1][0] is None:
                cut_off += 1
                assert accounts["a"].remaining.value == accounts["b"].remaining.value == 0.0
            else:  # nothing but the line feed is missing
                assert accounts["a"].spent.value == 0.75
            # A higher total makes room, for as much as it is higher.
            raised = accounts_of(after + b"\n" + text_of(total(epsilon=2.5)))["a"]
            assert raised.remaining.value >= 0.5
    assert cut_off == 3 * (len(last) - 1) - 2
    assert accounts_of(kept)["a"].spent.value == 0.5  # without the line it would be less
    assert accounts_of(kept + last)["a"].spent.value == 0.75


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"vote,region", "line 2: is no line of a ledger"),
        (b'{"format":"opendp-bayes release"}', "line 2: is no line of a ledger"),
        (b'{"ledger":2,"moved":true}', "line 2: is of version 2 of the format, and this package"),
        (
            b'{"ledger":0,"at":"","dataset":"a","total":{"epsilon":9.0}}',
            "line 2: is of version 0 of",
        ),
        (b'{"ledger":1,"at":"","dataset":"a"}', "line 2: must have either total or spent"),
        (line_of(total(epsilon=1.0, rho=1.0)), "line 2: must have either total or spent"),
        (line_of(total(epsilon=-1.0)), "line 2: must have either total or spent"),
        (line_of(total(epsilon=1.0, delta=1.0)), "line 2: must have either total or spent"),
        (line_of(total(rho=1.0)), "line 2: sets a total in rho on 'a', which is kept in epsilon"),
        (line_of(spent(rho=1.0)), "line 2: spends in rho on 'a', which is kept in epsilon"),
        (b'{"ledger":1,"at":"","dataset":"a","x":1}', "line 2: is no line of a ledger: Object"),
    ],
)
def test_refuses_a_line_that_this_package_does_not_write(line, message):
    with pytest.raises(LedgerError, match=message):
        accounts_of(line_of(total(epsilon=1.0)) + line)


def test_refuses_entries_of_two_units():
    text = text_of(total(epsilon=1.0), spent(epsilon=0.1), spent(unit="changes: 3", epsilon=0.1))
    with pytest.raises(LedgerError, match="line 3: goes by the unit changes: 3, after contrib"):
        accounts_of(text)


def test_a_total_may_state_the_unit_of_all_losses():
    first = Entry(1, "2026-01-02T03:04:05Z", "a", total=Loss(epsilon=1.0), unit=UNIT)
    raised = total(epsilon=2.0)
    account = accounts_of(text_of(first, raised))["a"]
    assert (account.unit, account.total.value) == (UNIT, 2.0)
    account.check(Loss(epsilon=2.0), UNIT)
    with pytest.raises(
        LedgerError, match="3 records added or removed, and one for 3 records changed cannot"
    ):
        account.check(Loss(epsilon=0.1), "changes: 3")
    for other in (spent(unit="changes: 3", epsilon=0.1), spent(unit="", epsilon=0.1)):
        with pytest.raises(
            LedgerError, match=r"line 2: goes by the unit .*, after contributions: 3"
        ):
            accounts_of(text_of(first, other))
    second = Entry(1, "2026-01-02T03:04:05Z", "a", total=Loss(epsilon=1.0), unit="changes: 3")
    with pytest.raises(LedgerError, match="line 2: goes by the unit changes: 3, after contribut"):
        accounts_of(text_of(first, second))


def test_refusals_are_counted_and_spend_nothing():
    refused = Entry(1, "2026-01-02T03:04:05Z", "a", refused=True, note="Votes")
    account = accounts_of(text_of(total(epsilon=1.0), refused, spent(epsilon=0.5), refused))["a"]
    assert (account.refusals, account.spent.value, account.unit) == (2, 0.5, UNIT)
    assert [left.value for _, left in account.entries] == [1.0, 1.0, 0.5, 0.5]
    both = Entry(1, "2026-01-02T03:04:05Z", "a", spent=Loss(epsilon=0.5), refused=True)
    with pytest.raises(LedgerError, match=r"line 2: must have either total or spent.* or else ref"):
        accounts_of(text_of(total(epsilon=1.0), both))


def test_reads_what_an_editor_leaves():
    text = text_of(total(epsilon=1.0), spent(epsilon=0.5)).replace(b"\n", b"\r\n\r\n")
    assert accounts_of(text)["a"].remaining.value == 0.5
    assert accounts_of(b"") == accounts_of(b"\n  \n") == {}


def test_names_are_one_line():
    assert as_name("Bevölkerung 2026", "dataset") == "Bevölkerung 2026"
    for name in ("", "a\nb", "x" * 201, "\x00"):
        with pytest.raises(ValueError, match=r"dataset=.*: must be one line of 1 to 200"):
            as_name(name, "dataset")
    with pytest.raises(TypeError, match="note=3: must be a str"):
        as_name(3, "note")


def test_an_account_without_entries_has_everything_left():
    account = Account("a", Loss(rho=0.5))
    assert (account.spent.rho, account.remaining.rho, account.unit) == (0.0, 0.5, None)
