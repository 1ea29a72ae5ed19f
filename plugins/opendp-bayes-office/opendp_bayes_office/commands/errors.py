"""Let a command fail with one line on standard error. Exit code 2 means that an option is wrong, 1
that the release could not be made, 3 that it could not be written, 130 Ctrl-C.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

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
def option_errors(where: str = "", *, code: int = 2) -> Iterator[None]:
    """Report an error of the library, whose arguments are called as the options and the fields of a
    specification are, with what stands before it: one raised before data is read, or from what was
    released. All of a command is such a block; an inner one says more.
    """
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException as error:
        fail(f"{where}OpenDP refuses it: {error.message}", code=code)
    except (TypeError, ValueError) as error:
        fail(f"{where}{str(error).replace('ob.DROP', repr('DROP'))}", code=code)


@contextmanager
def release_errors() -> Iterator[None]:
    """Report a failure while data is read. Only messages that are known not to tell anything of the
    data are repeated.
    """
    from opendp_bayes import LedgerError, ReleaseError
    from opendp_bayes_office.files.csv_text import FileError

    try:
        yield
    except FileError:
        raise
    except (LedgerError, ReleaseError) as error:
        fail(str(error), code=1)
    except Exception:  # noqa: BLE001 - a traceback may depend on the data, whatever the error
        fail(
            "the release failed; the cause is withheld, because it may depend on the data.", code=1
        )
