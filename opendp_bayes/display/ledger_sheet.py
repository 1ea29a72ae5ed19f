"""Sheet of a ledger: a table of every data set, with what was left after each entry."""

from collections.abc import Iterable

from opendp_bayes.display.sheet import Body, Column, Marked, Row, Sheet, Table
from opendp_bayes.trusted.account import Account, Entry, Loss

_COLUMNS = (
    *(Column(heading, number=False) for heading in ("Data set", "Time (UTC)", "Entry", "For")),
    *(Column(heading) for heading in ("Spent", "Left")),
)


def ledger_sheet(accounts: Iterable[Account], *, title: str) -> Sheet:
    """A row for every entry, data set by data set, and a sentence on what each has left."""
    shown = list(accounts)
    bodies = [Body(tuple(_row(*entry) for entry in one.entries), one.dataset) for one in shown]
    notes = list(map(str, shown))
    notes += [
        f"{one.dataset}: {one.refusals} release{' was' if one.refusals == 1 else 's were'} refused"
        " after data were read, which cost nothing and may have told something. Look why."
        for one in shown
        if one.refusals
    ]
    if any(entry is None for one in shown for entry, _ in one.entries):
        notes.append(
            "A line that a crash cut off counts as all that was left then. A higher total, once you"
            " know what the line was, makes room again."
        )
    return Sheet((Table(_COLUMNS, tuple(bodies)),), tuple(notes), title=title)


def _row(entry: Entry | None, left: Loss) -> Row:
    if entry is None:
        return "", Marked("a line cut off", "bad"), "", "all", str(left)
    if entry.total is not None:
        return _time(entry), f"total: {entry.total}", "", "", str(left)
    if entry.refused:
        return _time(entry), Marked("refused", "doubtful"), entry.note, "", str(left)
    return _time(entry), "release", entry.note, str(entry.spent), str(left)


def _time(entry: Entry) -> str:
    return entry.at.removesuffix("Z").replace("T", "\N{NO-BREAK SPACE}")[:16]
