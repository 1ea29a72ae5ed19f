"""The command `opendp-bayes`; its commands are in `commands.app`, imported late."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.stdout is None:  # closed by the caller
        raise SystemExit("opendp-bayes: standard output is closed; open it, as in `> FILE`.")
    try:
        from opendp_bayes_office.commands.app import app

        app()
    except KeyboardInterrupt:  # while modules are imported; later typer sees to it
        raise SystemExit(130) from None
