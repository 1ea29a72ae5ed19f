"""Sheet of a ledger: a table of every data set, with what was left after each entry."""

from collections.abc import Iterable

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import Table
from opendp_bayes.trusted.account import Account, Entry, Loss, State

_HEADINGS = "Data set", "Time (UTC)", "Entry", "For", "Spent", "Left"
#: What becomes of a release, in words.
_STATES: dict[State, str] = {
    "open": "no end",
    "spent": "release",
    "failed": "failed",
    "refused": "not spent",
}


def ledger_sheet(accounts: Iterable[Account], *, title: str) -> Sheet:
    """A row for every entry, data set by data set, and a sentence on what each has left."""
    shown = list(accounts)
    rows = [(account.dataset, *_row(*line)) for account in shown for line in account.lines()]
    notes = list(map(str, shown))
    notes += [
        f"{account.dataset}: {account.failures}"
        f" release{' has' if account.failures == 1 else 's have'} failed after data were read, or"
        " not ended yet, and has used its budget. A failure may tell something. Look why."
        for account in shown
        if account.failures
    ]
    return Sheet((Table(_HEADINGS, rows, texts=4),), tuple(notes), title)


def _row(entry: Entry, left: Loss) -> tuple[str, ...]:
    time = entry.at.removesuffix("Z").replace("T", "\N{NO-BREAK SPACE}")[:16]
    if entry.state == "total":
        return time, f"total: {entry.loss}", "", "", str(left)
    spent = str(entry.loss) if entry.is_paid else ""
    return time, _STATES[entry.state], entry.note, spent, str(left)
