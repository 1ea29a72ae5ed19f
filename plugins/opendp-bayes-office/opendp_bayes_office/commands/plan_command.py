"""`opendp-bayes plan`: compare the cost and the error of each mechanism, before any budget is
spent.
"""

import re
from typing import Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import bar, display, echo


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
    error: Annotated[
        float | None,
        typer.Option(
            help=(
                "Find the smallest ε, and the smallest number of records, with at most this"
                " Hellinger error."
            ),
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            help=(
                "As --error, of the width of the 95 % intervals at balanced proportions, or those"
                " of --proportions: 0.1 for ten percentage points."
            ),
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare the mechanisms for a number of records, a prior and a budget, and recommend one.
    Needs no data.

    For each mechanism, the table shows its scale, its loss and its expected error at balanced,
    skewed and edge proportions, and at --proportions if given. Everything shown depends on the
    options alone. With --error or --width, leave out --epsilon to plan for the smallest ε.

    Exit code: 0 if a mechanism can be used, 2 for wrong options or if none can.

    Examples:

        opendp-bayes plan --size 1000 --prior 1,1 --epsilon 1

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --proportions 0.2,0.8

        opendp-bayes plan --size 500 --prior 1,1 --width 0.1

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --error 0.05

        opendp-bayes plan --guess-size 5000 --prior 1,1,1 --rho 0.1 --json

        opendp-bayes plan --discover --epsilon 1 --delta 1e-8 --rest 0.2
    """
    for option, given in {"rest": rest, "categories-of-person": categories_of_person}.items():
        if given is not None and not discover:
            fail(f"--{option} {given}: goes with --discover.")
    if discover:
        of_listed = {"prior": prior, "size": size, "guess-size": guess_size}
        of_errors = {"proportions": proportions, "error": error, "width": width}
        for option, one in {**of_listed, **of_errors}.items():
            if one is not None:
                fail(f"--{option} {one}: does not go with --discover; leave it out.")
        _plan_discovery(epsilon, rho, delta, contributions, categories_of_person, rest, json)
        return
    if prior is None:
        fail("--prior: is missing; give a number for each category, such as --prior 1,1.")
    import msgspec

    from opendp_bayes import plan as planned
    from opendp_bayes.display import terminal
    from opendp_bayes.mathematics.validation import as_prior

    if "," not in prior:
        fail(f"--prior {prior}: must have a number for each category, such as --prior 1,1.")
    wanted = _wanted(error, width, {"epsilon": epsilon, "delta": delta, "rho": rho})
    with option_errors(), bar("Planning", quiet=json) as show:
        setting: dict[str, Any] = {
            "prior": as_prior(options.prior(prior)),
            "d_in": contributions,
            "proportions": options.proportions(proportions),
        }
        needed = {}
        if wanted:
            show("Smallest ε and number of records", 0, 0)
            needed = _needed(*wanted, epsilon, size, guess_size, setting)
            epsilon = needed["smallest_epsilon"] if epsilon is None else epsilon
        found = planned(
            size=size,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            guess_size=guess_size,
            progress=show,
            **setting,
        )
    if json:
        echo(msgspec.json.encode({**msgspec.json.decode(found.to_json()), **needed}).decode())
        return
    display(terminal.rendered(found.sheet()))
    if needed:
        what = f"{'An error' if width is None else 'A width'} of {error or width:.6g}"
        records = needed.get("smallest_size")
        display(
            f"{what} takes ε = {needed['smallest_epsilon']:.4g} with {found.records} records"
            f"{f', or {records} records at ε = {epsilon:.6g}' if records else ''}, with mechanism"
            " auto."
        )


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
    from opendp_bayes.display import terminal

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
        display(terminal.rendered(found.sheet()))


def _wanted(
    error: float | None, width: float | None, budget: dict[str, float | None]
) -> tuple[str, float] | None:
    """The kind of error that is to be reached, and its value; exits where the budget is not a lone
    ε, or none.
    """
    given = {name: value for name, value in budget.items() if value is not None}
    if error is not None and width is not None:
        fail(f"--error {error}, --width {width}: both are given; give one of them.")
    for option, kind, value in (
        ("error", "hellinger", error),
        ("width", "interval_width", width),
    ):
        if value is not None:
            if set(given) - {"epsilon"}:
                fail(
                    f"--{option} {value}: goes with --epsilon alone, or without a budget, and not"
                    f" with --{', --'.join(given)}."
                )
            return kind, value
    return None


def _needed(
    kind: str,
    error: float,
    epsilon: float | None,
    size: int | None,
    guess_size: int | None,
    setting: dict[str, Any],
) -> dict[str, Any]:
    """The smallest ε with that error and, for an ε that is given, the least number of records."""
    from opendp_bayes import research

    found, asked = {"error": error, "kind": kind}, {**setting, "kind": kind}
    try:
        found["smallest_epsilon"] = research.smallest_epsilon(
            error, size=size, guess_size=guess_size, **asked
        )
        if epsilon is not None:
            found["smallest_size"] = research.smallest_size(
                error, epsilon=epsilon, private=size is None, **asked
            )
    except ValueError as problem:
        option = "error" if kind == "hellinger" else "width"
        raise ValueError(re.sub(r"^error=", f"{option}=", str(problem))) from None
    return found
