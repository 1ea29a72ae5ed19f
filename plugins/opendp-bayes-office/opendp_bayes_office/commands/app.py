"""The commands of `opendp-bayes`, one a file, and their common parts: `errors` for failures,
`output` for the places where results go.

A command imports what it needs when it runs, so that help and version need not wait for OpenDP,
polars and SciPy.
"""

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
from opendp_bayes_office.commands.output import echo


def _bare(params: list[Any]) -> list[Any]:
    """Options, of which help shows a type for those that take a value alone."""
    for flag in params:
        flag.metavar = "" if getattr(flag, "is_flag", False) else flag.metavar
    return params


class Commands(TyperGroup):
    """All commands, and the options before them."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _bare(super().get_params(ctx))


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

    def get_params(self, ctx: Any) -> list[Any]:
        return _bare(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, rest, options = self.make_parser(ctx).parse_args(args=list(args))
        if rest:
            fail(
                f"{rest[0]}: is one argument too many; put quotes around a value with blanks in it,"
                " as in --categories 'yes, no'."
            )
        for option in options:
            twice = options.count(option) > 1
            if twice and option.param_type_name == "option" and not option.multiple:
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
            "--version",
            help="Show the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """The options that come before a command."""
