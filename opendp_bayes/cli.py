"""The `opendp-bayes` command. Its commands are in `opendp_bayes.commands`, which needs the optional extra `cli`."""

import signal
from typing import Any, NoReturn

#: Every Ctrl-C so far. In a callback of OpenDP it becomes an error like any other, and this tells it from one.
interrupts: list[int] = []


def main() -> None:
    """Run the command line; exits with a message saying what to install where typer or rich is missing."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)  # before polars is imported, which adds a handler of its own that stops a scan
    try:
        from opendp_bayes.commands import app

        app(prog_name="opendp-bayes")
    except KeyboardInterrupt:  # while modules are imported; later typer sees to it
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        raise SystemExit(f"opendp-bayes: the command line needs {error.name}, which is not installed: pip install 'opendp-bayes[cli]'") from None


def _interrupt(number: int, frame: Any) -> NoReturn:
    interrupts.append(number)
    raise KeyboardInterrupt
