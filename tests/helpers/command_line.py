"""The command line, in process through typer's runner."""

import re

from typer import Typer
from typer.testing import CliRunner

from opendp_bayes_office.commands.app import app


def run(*arguments: object, code: int = 0, of: Typer = app) -> str:
    """Standard output of a command that was carried out, standard error of one that was not."""
    result = CliRunner().invoke(of, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    # Typer styles help and errors in some CI systems.
    shown = result.stdout if code == 0 or result.stdout else result.stderr
    return re.sub(r"\x1b\[[\d;]*m", "", shown)
