"""`opendp-bayes run`: a question that somebody else wrote, answered where the data are."""

from pathlib import Path
from typing import Annotated

import typer

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail
from opendp_bayes.commands.output import display
from opendp_bayes.commands.specified import (
    asked_in,
    carried_out,
    echoed,
    foreseen,
    text_of_results,
)


def run(
    question: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTION.json",
            help="What to release and from which budget: a specification, in JSON or TOML.",
            show_default=False,
        ),
    ],
    data: options.Data = None,
    ledger: options.Ledger = None,
    dry_run: options.DryRun = False,
    output: options.Output = None,
) -> None:
    """Release what QUESTION.json asks for, where the data are.

    A question is a specification of `report`: results, their mechanisms and priors, and the budget.
    Whoever has no data writes it and sees with --dry-run what it will cost and how wide its
    intervals will be. Whoever has the data runs it and sends back the release, which is all that
    leaves. Everything that `report` refuses is refused.

    Where somebody else may ask, name the owner's data.toml in place of the data. It states what
    only the owner may: how the file is read, whom it is about, the columns and categories that may
    be asked for, the most that one run may spend, and the ledger. A question that says otherwise is
    refused before the data are opened. `opendp-bayes init --owner` writes it.

    The JSON of one result is that of a release, that of several a survey's (Survey.from_json).

    Exit code: 0 if the releases were made, 1 if they failed while data was read, 2 for a wrong
    question or wrong options. It is 3 if they were made and could not be written where they were to
    go.

    Examples, of which the first two make the files for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no --owner d.toml -o q.toml

        opendp-bayes run q.toml d.toml --dry-run

        opendp-bayes run q.toml d.toml -o released.json
    """
    from opendp_bayes.display import terminal
    from opendp_bayes.display.progress import waiting

    if dry_run and output is not None:
        fail("--dry-run: releases nothing that --output could hold; leave it out.")
    if dry_run:
        display(terminal.rendered(foreseen(asked_in(question, data, ledger))))
        return
    if data is None:
        fail("DATA: is missing; name the file with the data after the question, or add --dry-run.")
    asked = asked_in(question, data, ledger)
    with carried_out(asked, output=output, text_of=text_of_results) as released:
        if echoed(output, released):
            return
        with waiting("Computing the posteriors"):
            sheet = released.sheet()
        display(terminal.rendered(sheet))
