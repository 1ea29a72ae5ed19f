"""`opendp-bayes run`: a question that somebody else wrote, answered where the data are."""

from pathlib import Path
from typing import Annotated

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail
from opendp_bayes_office.commands.specified import release_and_show, specified_in


def run(
    question: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTION.json",
            help="The specification of what to release and its budget, in JSON or TOML.",
            show_default=False,
        ),
    ],
    data: options.Data = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    dry_run: options.DryRun = False,
    output: options.Output = None,
) -> None:
    """Release what QUESTION.json asks for, on the machine that has the data.

    A question is a specification as for `report`: results, mechanisms, priors and the budget.
    Somebody without the data writes it, and sees with --dry-run what it will cost and how wide its
    intervals will be. Somebody with the data runs it and sends back the release. Nothing else
    leaves the machine. `run` refuses everything that `report` refuses.

    If others may ask questions, name the owner's data.toml in place of the data. It states what
    only the owner may decide: how the file is read, whom it is about, which columns and categories
    may be asked for, how much one run may spend, and the ledger. A question that contradicts it is
    refused before the data are opened. `opendp-bayes init --owner` writes such a file.

    One result is written as the JSON of a release, several as the JSON of a survey
    (Survey.from_json).

    Exit code: 0 if the releases were made, 1 if they failed while data were read, 2 for a wrong
    question or wrong options, 3 if they were made but could not be written to their file.

    Examples. The first two make the files for the others:

        printf '%s\\n' vote yes no yes yes no > v.csv

        opendp-bayes init v.csv --categories vote=yes,no --owner d.toml -o q.toml

        opendp-bayes run q.toml d.toml --dry-run

        opendp-bayes run q.toml d.toml -o released.json
    """
    if data is None and not dry_run:
        fail("DATA: is missing; name the file with the data after the question, or add --dry-run.")
    specified = specified_in(question, data, ledger, dataset)
    release_and_show(specified, question, "released", output, dry_run=dry_run)
