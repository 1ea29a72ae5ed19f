"""`opendp-bayes plan`: compare the cost and the error of each mechanism, before any budget is
spent.
"""

from typing import Annotated

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import display, echo


def plan(
    prior: Annotated[
        str | None,
        typer.Option(
            help="Prior concentration, a number for each category: 1,1.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    discover: Annotated[
        bool,
        typer.Option(
            "--discover",
            help=(
                "For categories that nobody listed, say which counts each noise law shows. Needs"
                " --delta, and neither a prior nor a number of records."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    rest: options.Rest = None,
    size: options.Size = None,
    guess_size: Annotated[
        int | None,
        typer.Option(
            help="A guess of the number of records, if it is private.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    proportions: Annotated[
        str | None,
        typer.Option(
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
            help="The most rows that one person has.", min=1, rich_help_panel=options.PRIVACY
        ),
    ] = 1,
    categories_of_person: Annotated[
        int | None,
        typer.Option(
            help=(
                "With --discover, the most categories that one person is in. People are then"
                " counted by their identifier, and not rows."
            ),
            min=1,
            rich_help_panel=options.PRIVACY,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare the mechanisms for a number of records, a prior and a budget, and recommend one.
    Needs no data.

    For each mechanism, the table shows its scale, its loss and its expected error at balanced,
    skewed and edge proportions, and at --proportions if given. Everything shown depends on the
    options alone.

    Exit code: 0 if a mechanism can be used, 2 for wrong options or if none can.

    Examples:

        opendp-bayes plan --size 1000 --prior 1,1 --epsilon 1

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --proportions 0.2,0.8

        opendp-bayes plan --guess-size 5000 --prior 1,1,1 --rho 0.1 --json

        opendp-bayes plan --discover --epsilon 1 --delta 1e-8 --rest 0.2
    """
    for option, given in {"rest": rest, "categories-of-person": categories_of_person}.items():
        if given is not None and not discover:
            fail(f"--{option} {given}: goes with --discover.")
    if discover:
        of_listed = {"prior": prior, "size": size, "guess-size": guess_size}
        for option, one in {**of_listed, "proportions": proportions}.items():
            if one is not None:
                fail(f"--{option} {one}: does not go with --discover; leave it out.")
        _plan_discovery(epsilon, rho, delta, contributions, categories_of_person, rest, json)
        return
    if prior is None:
        fail("--prior: is missing; give a number for each category, such as --prior 1,1.")
    from opendp_bayes import plan as planned
    from opendp_bayes.display.progress import waiting

    if "," not in prior:
        fail(f"--prior {prior}: must have a number for each category, such as --prior 1,1.")
    with option_errors(), waiting("Planning"):
        found = planned(
            size=size,
            prior=options.numbers("--prior", prior),
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            d_in=contributions,
            proportions=options.numbers("--proportions", proportions) if proportions else None,
            guess_size=guess_size,
        )
    if json:
        echo(found.to_json())
    else:
        display(found.sheet())


def _plan_discovery(
    epsilon: float | None,
    rho: float | None,
    delta: float | None,
    contributions: int,
    categories_of_person: int | None,
    rest: float | None,
    json: bool,
) -> None:
    """Show which counts of categories each law shows that nobody listed."""
    from opendp_bayes import Distance, plan_discovery

    if delta is None:
        fail("--delta: is missing; categories are discovered with one alone, such as --delta 1e-8.")
    if categories_of_person is not None and contributions != 1:
        fail(f"--contributions {contributions}: does not go with --categories-of-person.")
    with option_errors():
        distance = Distance.of(contributions)
        if categories_of_person is not None:
            distance = Distance.limited(categories_of_person, largest=1)
        found = plan_discovery(
            epsilon=epsilon,
            rho=rho,
            delta=delta,
            d_in=distance,
            rest=rest or 0.0,
        )
    if json:
        echo(found.to_json())
    else:
        display(found.sheet())
