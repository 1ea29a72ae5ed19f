"""How a command fails: one line on standard error; exit code 2 where an option is wrong, 1 where
the release could not be made, 130 for Ctrl-C.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from opendp.mod import OpenDPException

from opendp_bayes.commands.interrupts import interrupts
from opendp_bayes.framework.boundary import ReleaseError

_ARGUMENT = re.compile(
    r"\b(categories|column|confidence|contributions|delta|draws|epsilon|error|guess_size|mechanism|nulls|prior|proportions|rho|^scale|size|unknown)="
    r"(None)?(?=(\S)?)"
)
#: A mechanism value, which no option is, and what an error starts with that is no option either: a
#: parameter of a mechanism.
_VALUE, _PARAMETER = re.compile(r"\bmechanism=(?=[A-Z])"), re.compile(r"^(?=\w+=)")


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Print `message` as one line on standard error and exit with `code`."""
    typer.echo(f"opendp-bayes: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


@contextmanager
def option_errors() -> Iterator[None]:
    """Report an error of the library, raised before data is read, in terms of the options:
    `prior=-1` is `--prior -1`.
    """
    try:
        with _interruptible():
            yield
    except OpenDPException as error:
        fail(f"OpenDP refuses these options: {error.message}")
    except (TypeError, ValueError) as error:
        fail(_in_options(str(error)))


@contextmanager
def release_errors() -> Iterator[None]:
    """Report a failure while data is read. Only messages that are known not to depend on the data
    are repeated.
    """
    try:
        with _interruptible():
            yield
    except ReleaseError as error:
        fail(_in_options(str(error)), code=1)
    except Exception:  # noqa: BLE001 - a traceback may depend on the data, whatever the error
        fail(
            "the release failed; the cause is withheld, because it may depend on the data.", code=1
        )


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a command wherever it strikes."""
    try:
        yield
    except Exception:
        if interrupts:
            raise KeyboardInterrupt from None
        raise


def _in_options(message: str) -> str:
    """Name options instead of arguments: `size=5` becomes `--size 5`; `size=None`, and `size=`
    before a space or a comma, become `--size`.
    """
    message = _ARGUMENT.sub(
        lambda match: (
            f"--{match[1].replace('_', '-')}{'' if match[2] or match[3] in (None, *',.;:)') else ' '}"
        ),
        _VALUE.sub("", message),
    )
    return _PARAMETER.sub("--parameter ", message)
