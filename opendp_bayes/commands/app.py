"""The commands of `opendp-bayes`, one a file, and what they share: `errors` for how they fail,
`opendp_bayes.report.terminal` for how they print.
"""

from typing import Annotated

import typer

from opendp_bayes import __version__
from opendp_bayes.commands import audit, demo, plan, release

app = typer.Typer(
    help=(
        "Differentially private Bayesian posteriors of categorical data, as an extension of OpenDP."
    ),
    epilog=(
        "`opendp-bayes COMMAND --help` explains a command, with examples.\n\nResults go to standard"
        " output, errors and progress to standard error, with `--json` too. Exit code: 0 for"
        " success, 1 for a release that could not be made or a claim that an audit refutes, 2 for"
        " wrong options, 130 for Ctrl-C."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(release.release)
app.command()(plan.plan)
app.command()(audit.audit)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"opendp-bayes {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options that come before a command."""
