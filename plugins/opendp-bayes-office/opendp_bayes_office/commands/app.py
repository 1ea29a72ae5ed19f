"""The commands of `opendp-bayes`, one a file, and their common parts: `errors` for failures,
`output` for the places where results go.

A command imports what it needs when it runs, so that help and version need not wait for OpenDP,
polars and SciPy.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from opendp_bayes_office.commands import (
    demo,
    init,
    ledger_command as ledger,
    plan_command as plan,
    release_command as release,
    report,
    run,
    show,
)
from opendp_bayes_office.commands.errors import fail, plain_warnings
from opendp_bayes_office.commands.output import LikeStandardOutput, echo


def _arriving(format_help: Callable[..., None]) -> Callable[..., None]:
    """Help that goes to standard output as results do: rich ends the process at a closed pipe."""

    def printed(self: Any, ctx: Any, formatter: Any) -> None:
        buffer = LikeStandardOutput()
        with redirect_stdout(buffer):
            format_help(self, ctx, formatter)
        echo(buffer.getvalue(), newline=False)

    return printed


class _Commands(TyperGroup):
    """All commands."""

    format_help = _arriving(TyperGroup.format_help)


app = typer.Typer(
    cls=_Commands,
    help=(
        "Differentially private Bayesian posteriors of categorical data, as an extension of OpenDP."
    ),
    epilog=(
        "`opendp-bayes COMMAND --help` explains a command, with examples.\n\nResults go to standard"
        " output, errors and progress to standard error. Exit code: 0 for success, 1 for a release"
        " that could not be made, 2 for wrong options, 3 for a result that could not be written,"
        " 130 for Ctrl-C."
    ),
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


#: What help calls the value of an option, by its name or its type.
_VALUES = {
    "column": "COLUMN",
    "ordered": "COLUMN",
    "identifier": "COLUMN",
    "categories": "LABELS",
    "nulls": "LABEL",
    "unknown": "LABEL",
    "separator": "CHARACTER",
    "prior": "NUMBERS",
    "proportions": "NUMBERS",
}
_TYPES = {bool: "", int: "NUMBER", float: "NUMBER"}


class Command(TyperCommand):
    """A command that refuses an option given twice, of which click keeps the last."""

    format_help = _arriving(TyperCommand.format_help)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        params: Any = self.params
        for param in params:
            if param.param_type_name == "option" and param.metavar is None:
                by_type = _TYPES.get(param.type_descriptor.annotation, "NAME")
                param.metavar = _VALUES.get(param.name or "", by_type)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, rest, given = self.make_parser(ctx).parse_args(args=list(args))
        if rest:
            fail(
                f"{rest[0]}: is one argument too many; put quotes around a value with blanks in it,"
                " as in --categories 'yes, no'."
            )
        for option in given:
            twice = given.count(option) > 1
            if twice and option.param_type_name == "option" and not option.multiple:
                fail(f"{option.opts[0]}: is given more than once; give it once.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out; a file that cannot be read ends it with a message."""
        try:
            with plain_warnings():
                return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:
            from opendp_bayes_office.files.csv_text import FileError

            if not isinstance(error, FileError):
                raise
            fail(str(error))


for _command in (
    init.init,
    release.release,
    run.run,
    report.report,
    show.show,
    plan.plan,
    ledger.ledger,
    demo.demo,
):
    app.command(cls=Command)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"opendp-bayes {version('opendp-bayes')}")
        raise typer.Exit()


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options that come before a command."""
