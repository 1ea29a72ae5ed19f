"""Let a command fail with one line on standard error. Exit code 2 means that an option is wrong, 1
that the release could not be made, 3 that it could not be written, 130 Ctrl-C.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer


def say(message: str) -> None:
    """Print `message` as one line on standard error, if that can be written to."""
    with suppress(OSError):
        typer.echo(f"opendp-bayes: {' '.join(message.split())}", err=True)


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Print `message` as one line on standard error and exit with `code`."""
    say(message)
    raise typer.Exit(code)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """A block in which what the library warns of is one line on standard error."""
    usual = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if category is UserWarning:
            say(str(message))
        else:
            usual(message, category, *rest)

    warnings.showwarning = shown  # type: ignore[assignment]  # its last four are passed on
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextmanager
def option_errors(where: str = "", advice: str = "", *, code: int = 2) -> Iterator[None]:
    """Report an error of the library, whose arguments are called as the options and the fields of a
    specification are, with what stands before and after it: one raised before data is read, or from
    what was released.
    """
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException as error:
        fail(f"{where}OpenDP refuses it: {error.message}{advice}", code=code)
    except (TypeError, ValueError) as error:
        message = str(error).replace("ob.DROP", "'DROP'")
        fail(f"{where}{message}{advice}", code=code)


@contextmanager
def release_errors() -> Iterator[None]:
    """Report a failure while data is read. Only messages that are known not to depend on the data
    are repeated.
    """
    from opendp_bayes import LedgerError, ReleaseError

    try:
        yield
    except typer.Exit:  # it was made, but could not be written
        raise
    except (LedgerError, ReleaseError) as error:
        fail(str(error), code=1)
    except Exception:  # noqa: BLE001 - a traceback may depend on the data, whatever the error
        fail(
            "the release failed; the cause is withheld, because it may depend on the data.", code=1
        )
