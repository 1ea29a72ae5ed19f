"""`opendp-bayes plan`: compare the cost and the error of each mechanism, before any budget is
spent.
"""

from typing import Annotated

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.output import display, waiting


def plan(
    prior: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            help="Prior concentration, a number for each category: 1,1.",
            rich_help_panel=options.MODEL,
            show_default=False,
        ),
    ],
    size: options.Size = None,
    guess_size: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="A guess of the number of records, if it is private.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    proportions: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help=(
                "A guess of the proportions of the categories, such as 0.2,0.8, at which to"
                " compare errors."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    delta: options.Delta = None,
    contributions: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="The most rows that one person has.",
            min=1,
            rich_help_panel=options.PRIVACY,
        ),
    ] = 1,
) -> None:
    """Compare the mechanisms for a number of records, a prior and a budget, and recommend one.
    Needs no data.

    For each mechanism, the table shows its scale, its loss and its expected error at balanced,
    skewed and edge proportions, and at --proportions if given; and how wide an interval will be at
    balanced ones. Everything shown depends on the
    options alone.

    Exit code: 0 if a mechanism can be used, 2 for wrong options or if none can.

    Examples:

        opendp-bayes plan --size 1000 --prior 1,1 --epsilon 1

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --proportions 0.2,0.8

        opendp-bayes plan --guess-size 5000 --prior 1,1,1 --rho 0.1
    """
    import opendp_bayes as ob

    with waiting("Planning"):
        planned = ob.plan(
            size=size,
            prior=options.numbers("--prior", prior),
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            d_in=contributions,
            proportions=options.numbers("--proportions", proportions) if proportions else None,
            guess_size=guess_size,
        )
    display(planned.sheet())
