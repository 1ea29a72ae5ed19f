"""The commands of `opendp-bayes`, one a file, and their common parts: `errors` for failures,
`output` for the places where results go.

A command imports what it needs when it runs, so that help and version need not wait for OpenDP,
polars and SciPy.
"""

import sys
import warnings
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
from opendp_bayes_office.commands.errors import fail, option_errors, say
from opendp_bayes_office.commands.output import NOT_WRITTEN, echo

_NAME = "opendp-bayes"
#: What typer raises for a command line that cannot be read.
_UsageError: Any = typer.BadParameter.__base__


class Commands(TyperGroup):
    """All commands, and the options before them."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line; one that cannot be read is refused in a line."""
        try:
            code = super().main(*args, **options | {"prog_name": _NAME, "standalone_mode": False})
        except _UsageError as error:
            problem, command = _problem(error), error.ctx.command_path if error.ctx else _NAME
            if problem:  # else help was shown
                say(f"{problem.rstrip('.')}; see `{command} --help`.")
            code = error.exit_code
        except OSError as error:  # of help, which has no place to go
            say(str(error))
            code = NOT_WRITTEN
        sys.exit(code)


def _problem(error: Any) -> str:
    """The problem of a command line, with the option or the argument and its value."""
    param = getattr(error, "param", None)
    if param is None:
        return str(error.format_message())
    name = param.opts[0] if param.param_type_name == "option" else param.metavar
    value = error.ctx.meta["values"].get(param.name)
    return f"{name}: is missing" if value is None else f"{name} {value}: {error.message}"


app = typer.Typer(
    cls=Commands,
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


class Command(TyperCommand):
    """A command that ends in one line where it fails, and refuses an option given twice, of which
    click keeps the last: a release cannot be undone.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["values"], rest, options = self.make_parser(ctx).parse_args(args=list(args))
        if rest:
            fail(
                f"{rest[0]}: is one argument too many; put quotes around a value with blanks in it,"
                " as in --categories 'yes, no'."
            )
        for option in options:
            takes_one = option.param_type_name == "option" and not option.multiple
            if takes_one and options.count(option) > 1:
                fail(f"{option.opts[0]}: is given more than once; give it once.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out; what the library refuses or warns of is one line."""
        with warnings.catch_warnings(), option_errors():
            warnings.showwarning = lambda message, *_: say(str(message))
            return super().invoke(ctx)


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
