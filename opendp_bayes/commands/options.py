"""Options that several commands have, and how they are read."""

from pathlib import Path
from typing import Annotated

import typer

from opendp_bayes.commands.errors import fail

MODEL, PRIVACY, OUTPUT = "Model", "Privacy", "Output"
#: By how much proportions of two decimals may miss 1.
_ROUNDING = 0.01 + 1e-9

Prior = Annotated[
    str,
    typer.Option(
        help="Prior concentration, a number for each category: 1,1.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
Size = Annotated[
    int | None,
    typer.Option(help="The number of records, if it is public.", rich_help_panel=MODEL),
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A parameter of the mechanism, such as gamma=0.2; may be repeated.",
        rich_help_panel=MODEL,
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Budget ε. Give either this or --rho.", rich_help_panel=PRIVACY),
]
Rho = Annotated[
    float | None,
    typer.Option(help="Budget ρ of zero-concentrated privacy.", rich_help_panel=PRIVACY),
]
Data = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]",
        help=(
            "The file with the data, as for `release`, or the owner's data.toml; - is standard"
            " input."
        ),
        show_default=False,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print what was released as JSON, for `opendp-bayes show` and `from_json`.",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the JSON to this file too, which must not exist yet.",
        rich_help_panel=OUTPUT,
    ),
]
Ledger = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=(
            "Enter what is spent in this ledger, and refuse what it has no room for (`opendp-bayes"
            " ledger` makes one)."
        ),
        rich_help_panel=PRIVACY,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The name of the data in the ledger; not needed where it has only one.",
        rich_help_panel=PRIVACY,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help=(
            "Show what each result will cost and how wide its intervals will be, and exit: no"
            " record is read."
        ),
        rich_help_panel=PRIVACY,
    ),
]
GuessSize = Annotated[
    int | None,
    typer.Option(
        help="For --dry-run, a public guess of a private number of records.",
        min=1,
        rich_help_panel=PRIVACY,
    ),
]


def parameters(settings: list[str]) -> dict[str, float | str]:
    """`gamma=0.2` as a keyword argument, a number where it reads as one."""
    found: dict[str, float | str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (name.isidentifier() and equals and value):
            fail(f"--parameter {setting}: must be NAME=VALUE, such as --parameter gamma=0.2.")
        if name == "scale":
            fail(f"--parameter {setting}: the scale follows from the budget; leave it out.")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def prior(text: str) -> list[float] | float:
    """One number, or numbers separated by commas."""
    try:
        numbers = _numbers(text)
    except ValueError:
        fail(
            f"--prior {text}: must be one number, or numbers separated by commas, such as --prior"
            " 0.5 or --prior 1,2,1."
        )
    return numbers[0] if len(numbers) == 1 else numbers


def prior_or_learned(text: str) -> list[float] | float | str:
    """The prior of a release, which may be learned."""
    return text if text in ("auto", "learned") else prior(text)


def proportions(text: str | None) -> list[float] | None:
    """Numbers separated by commas, where there are some, that add up to 1 but for rounding."""
    if text is None:
        return None
    try:
        numbers = _numbers(text)
    except ValueError:
        fail(
            f"--proportions {text}: must be numbers separated by commas, such as --proportions"
            " 0.2,0.8."
        )
    total = sum(numbers)
    if not abs(total - 1) <= _ROUNDING:
        shares = ",".join(f"{number / total:.4g}" for number in numbers) if total > 0 else "0.2,0.8"
        fail(
            f"--proportions {text}: add up to {total:.6g}; must add up to 1, such as --proportions"
            f" {shares}."
        )
    return numbers


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]
