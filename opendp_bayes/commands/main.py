"""The `opendp-bayes` command. Its commands are in `opendp_bayes.commands.app`, which needs the
optional extra `cli`.
"""

import sys


def main() -> None:
    """Run the command line; exits with a message saying what to install where typer or rich is
    missing.
    """
    if sys.stdout is None:  # closed by the caller
        raise SystemExit("opendp-bayes: standard output is closed; open it, as in `> FILE`.")
    try:
        from opendp_bayes.commands.app import app

        app(prog_name="opendp-bayes")
    except KeyboardInterrupt:  # while modules are imported; later typer sees to it
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        raise SystemExit(
            f"opendp-bayes: the command line needs {error.name}, which is not installed: pip"
            " install 'opendp-bayes[cli]'"
        ) from None
