"""`opendp-bayes ledger`: what was spent on which data set, and the total that may be."""

from pathlib import Path
from typing import Annotated, Any

import typer

from opendp_bayes_office.commands.output import display

_HEADINGS = "Data set", "Time (UTC)", "Entry", "For", "Spent", "Left"
#: What becomes of a release, in words.
_STATES = {"open": "no end", "spent": "release", "failed": "failed", "refused": "not spent"}


def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.", show_default=False)],
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=(
                "The name of the data set: show only this one, or set its total. In a new ledger,"
                " the first data set has the name of the file, unless one is given."
            ),
            rich_help_panel="Total",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Set the total to this ε. Give either this or --rho.",
            rich_help_panel="Total",
        ),
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Set the total to this ρ of zCDP. A release in ε then counts as ρ = ε²/2.",
            rich_help_panel="Total",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="The δ that goes with the total.", rich_help_panel="Total"
        ),
    ] = None,
) -> None:
    """Show what was spent on each data set in the ledger FILE, and what is left of its total.

    With --epsilon or --rho, first set the total of a data set. This creates the file and the data
    set if they do not exist yet. With --ledger FILE, `release` and `report` record their loss
    before they hand out a release. They refuse to exceed the total before they read any data.

    You decide what a data set is: give one name to the records of the same people, whichever file
    holds them. All its losses are for one unit of privacy, the unit of the first release.

    Exit code: 0 if the ledger was shown, 2 for wrong options or a file that is not a ledger.

    Examples. The second one makes the data of the third:

        opendp-bayes ledger b --dataset census --rho 3

        printf '%s\\n' a y n y y n > v.csv

        opendp-bayes release v.csv --column a --categories y,n --rho 1 --ledger b

        opendp-bayes ledger b
    """
    from opendp_bayes import Ledger
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.display.tables import Table
    from opendp_bayes.trusted.ledger import read_accounts

    if epsilon is not None or rho is not None or delta is not None:
        accounts = read_accounts(file) if file.exists() else {}
        if dataset in accounts or (dataset is None and accounts):
            Ledger(file, dataset=dataset).set_total(epsilon=epsilon, rho=rho, delta=delta)
        else:
            Ledger(file, dataset=dataset, epsilon=epsilon, rho=rho, delta=delta)
    shown = (
        [*read_accounts(file).values()]
        if dataset is None
        else [Ledger(file, dataset=dataset).account]
    )
    rows = [(account.dataset, *_row(*line)) for account in shown for line in account.lines()]
    notes = [str(account) for account in shown]
    notes += [
        f"{account.dataset}: releases that failed after data were read, or have not ended yet, and"
        f" used their budget: {account.failures}. A failure may tell something. Look why."
        for account in shown
        if account.failures
    ]
    display(Sheet((Table(_HEADINGS, rows, texts=4),), tuple(notes), file.name))


def _row(entry: Any, left: Any) -> tuple[str, ...]:
    """The cells of an entry: a total, or a release with its purpose and loss; and what is left."""
    time = entry.at.removesuffix("Z").replace("T", "\N{NO-BREAK SPACE}")[:16]
    if entry.state == "total":
        return time, f"total: {entry.loss}", "", "", str(left)
    return (
        time,
        _STATES[entry.state],
        entry.note,
        str(entry.loss) if entry.is_paid else "",
        str(left),
    )
