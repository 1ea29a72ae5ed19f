"""`opendp-bayes plan`: what each mechanism would cost and be worth, before any budget is spent."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, option_errors
from opendp_bayes.mathematics.validation import as_prior
from opendp_bayes.planning import plan as planning
from opendp_bayes.report.terminal import plan_report

_MODEL, _PRIVACY, _OUTPUT = "Model", "Privacy", "Output"


def plan(
    prior: Annotated[
        str,
        typer.Option(
            help="Prior concentration, a number for each category: 1,1.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ],
    size: Annotated[
        int | None,
        typer.Option(help="The number of records, if it is public.", rich_help_panel=_MODEL),
    ] = None,
    guess_size: Annotated[
        int | None,
        typer.Option(
            help="A guess of the number of records, if it is private.", rich_help_panel=_MODEL
        ),
    ] = None,
    proportions: Annotated[
        str | None,
        typer.Option(
            help=(
                "A guess of the proportions of the categories, such as 0.2,0.8, to compare"
                " errors at."
            ),
            rich_help_panel=_MODEL,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Budget ε. Give either this or --rho.", rich_help_panel=_PRIVACY),
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(help="Budget ρ of zero-concentrated privacy.", rich_help_panel=_PRIVACY),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The δ that goes with ε.", rich_help_panel=_PRIVACY)
    ] = None,
    contributions: Annotated[
        int,
        typer.Option(help="The most rows that one person has.", min=1, rich_help_panel=_PRIVACY),
    ] = 1,
    error: Annotated[
        float | None,
        typer.Option(
            help=(
                "Find the smallest ε, and the smallest number of records, with at most this"
                " Hellinger error."
            ),
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the plan as a JSON object.", rich_help_panel=_OUTPUT),
    ] = False,
) -> None:
    """Compare the mechanisms for a number of records, a prior and a budget, and recommend one.
    Needs no data.

    Shows for each its scale and loss, and the error to be expected at balanced, skewed and edge
    proportions, and at --proportions if given. Everything shown depends on the options alone.

    Exit code: 0 if a mechanism can be used, 2 for wrong options or if none can.

    Examples:

        opendp-bayes plan --size 1000 --prior 1,1 --epsilon 1

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --proportions 0.2,0.8

        opendp-bayes plan --size 500 --prior 1,1 --epsilon 1 --error 0.05

        opendp-bayes plan --guess-size 5000 --prior 1,1,1 --rho 0.1 --json
    """
    if error is not None and (epsilon is None or delta is not None):
        fail(
            f"--error {error}: needs --epsilon, without --delta; the ε and the number of records"
            " found are for that."
        )
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    needed = {}
    with (
        option_errors(),
        Progress(
            *columns, console=console, transient=True, disable=json or not console.is_terminal
        ) as progress,
    ):
        concentration, shares = as_prior(options.prior(prior)), options.proportions(proportions)
        task = progress.add_task("Planning", total=None)

        def show(step: str, done: int, total: int) -> None:
            progress.update(task, description=step, completed=done, total=total)

        if error is not None and epsilon is not None:
            progress.update(task, description="Smallest ε and number of records")
            setting: dict[str, Any] = {
                "prior": concentration,
                "d_in": contributions,
                "proportions": shares,
            }
            needed = {
                "error": error,
                "smallest_epsilon": planning.smallest_epsilon(
                    error, size=size, guess_size=guess_size, **setting
                ),
                "smallest_size": planning.smallest_size(
                    error, epsilon=epsilon, private=size is None, **setting
                ),
            }
        found = planning.plan(
            size=size,
            prior=concentration,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            d_in=contributions,
            proportions=shares,
            guess_size=guess_size,
            progress=show,
        )
    if json:
        typer.echo(msgspec.json.encode({**msgspec.json.decode(found.to_json()), **needed}))
        return
    Console().print(plan_report(found))
    if needed:
        Console().print(
            Text(
                f"An error of {error:.6g} takes ε = {needed['smallest_epsilon']:.4g} with"
                f" {found.records} records, or {needed['smallest_size']} records at ε ="
                f" {epsilon:.6g}, with mechanism auto."
            )
        )
