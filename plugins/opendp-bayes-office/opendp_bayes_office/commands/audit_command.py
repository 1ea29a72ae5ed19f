"""`opendp-bayes audit`: compare the claims of a mechanism with its losses."""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opendp_bayes_office.commands import options
from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import bar, display, echo

if TYPE_CHECKING:
    from opendp_bayes.mechanisms import Mechanism

_CLAIM, _TEST = "Claim", "Test"


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM",
            help=(
                "Name of a mechanism: laplace_parameters, knorm_parameters, gaussian_parameters,"
                " hellinger_exponential, smooth_hellinger_exponential, permute_and_flip, or one"
                " that is installed."
            ),
            show_default=False,
        ),
    ],
    prior: options.Prior,
    size: options.Size = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A parameter of the mechanism, such as gamma=0.2; may be repeated.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Its scale. Without it, the smallest scale that keeps --epsilon.",
            rich_help_panel=_CLAIM,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The ε claimed. Without it, the exact loss at --scale.", rich_help_panel=_CLAIM
        ),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            help="Show and test the profile at this δ, not at 1e-6 and 1e-3; may be repeated.",
            rich_help_panel=_TEST,
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Draws of the sampler for each data set.", rich_help_panel=_TEST)
    ] = 100_000,
    confidence: Annotated[
        float,
        typer.Option(
            help="Probability with which a mechanism that keeps its claim passes, at least.",
            rich_help_panel=_TEST,
        ),
    ] = 0.999,
    json: options.Json = False,
) -> None:
    """Check that MECHANISM loses no more than it claims. Needs no data.

    Shows the loss that the papers state for its scale, the proven bound and the exact loss, the
    profile, and the neighbours that are worst; and checks the claim in four ways: by exact
    accounting, by the probabilities that the mechanism states, by draws of a measurement's sampler
    for the worst neighbours, and by whether those follow the probabilities.

    Exit code: 0 if nothing refutes the claim, 1 if a check does, 2 for wrong options.

    Examples:

        opendp-bayes audit laplace_parameters --size 1000 --prior 1,1 --epsilon 1

        opendp-bayes audit hellinger_exponential --size 100 --prior 1,1 --scale 1

        opendp-bayes audit laplace_parameters --prior 1,1 --scale 1 --epsilon 0.9
    """
    from opendp.mod import enable_features

    from opendp_bayes import calibrate, research
    from opendp_bayes.display import terminal
    from opendp_bayes.mathematics.validation import as_prior
    from opendp_bayes.trusted.measurements import measured_sampler

    with option_errors():
        concentration = as_prior(options.prior(prior))
        audited = _mechanism(mechanism, _parameters(parameter or []), scale, epsilon, size)
    with option_errors(), bar("Accounting", quiet=json) as show:
        if scale is None:
            audited = calibrate(
                audited, size=size, prior=concentration, epsilon=epsilon, tune=False
            )
        enable_features("contrib", "honest-but-curious")
        found = research.audit(
            audited,
            sample=measured_sampler(audited, size=size, prior=concentration),
            size=size,
            prior=concentration,
            epsilon=epsilon,
            deltas=(1e-6, 1e-3) if delta is None else delta,
            draws=draws,
            confidence=confidence,
            progress=show,
        )
    if json:
        echo(found.to_json())
    else:
        display(terminal.rendered(found.sheet()))
    if not found.passed:
        raise typer.Exit(1)


def _mechanism(
    name: str,
    parameters: dict[str, Any],
    scale: float | None,
    epsilon: float | None,
    size: int | None,
) -> "Mechanism":
    """The mechanism that the options describe, at scale 1 if that is to follow from `epsilon`."""
    from opendp_bayes import load_mechanism
    from opendp_bayes.mechanisms.protocol import default_options

    if scale is None and epsilon is None:
        fail(
            "--scale, --epsilon: neither is given; give the scale to audit, or the ε that the"
            " mechanism is to keep, or both."
        )
    try:
        kind = load_mechanism(name)
    except (TypeError, ValueError) as error:
        fail(str(error).replace("mechanism=", "MECHANISM ", 1))
    accepted = [field.name for field in fields(kind) if field.name != "scale"]
    for parameter in parameters:
        if parameter not in accepted:
            remedy = f"must be one of {', '.join(accepted)}" if accepted else "it has none"
            fail(f"--parameter {parameter}: is not a parameter of {name}; {remedy}.")
    parameters = {**default_options(kind, size), **parameters}
    return kind(scale=1.0 if scale is None else scale, **parameters)


def _parameters(settings: list[str]) -> dict[str, float | str]:
    """`gamma=0.2` as a keyword argument, a number where it reads as one."""
    found: dict[str, float | str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (name.isidentifier() and equals and value):
            fail(f"--parameter {setting}: must be NAME=VALUE, such as --parameter gamma=0.2.")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found
