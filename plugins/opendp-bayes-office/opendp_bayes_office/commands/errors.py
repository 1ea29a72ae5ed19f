"""Let a command fail with one line on standard error. Exit code 2 means that an option is wrong, 1
that the release could not be made, 3 that it could not be written, 130 Ctrl-C.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer

_ARGUMENT = re.compile(
    r"\b(always|categories|column|confidence|contributions|copies|dataset|delta|draws|encoding|epsilon|error"
    r"|guess_size|level|mechanism|nulls|ordered|prior|proportions|rest|rho|^scale|separator"
    r"|sheet|size|unknown|width)="
    r"(None)?(?=(\S)?)"
)
#: A mechanism value, which no option is, and what an error starts with that is no option either: a
#: parameter of a mechanism.
_VALUE, _PARAMETER = re.compile(r"\bmechanism=(?=[A-Z])"), re.compile(r"^(?=\w+=)")
#: How a message of the library says that records are left out, which an option does by its absence.
_DROP = re.compile(r"\bor \w+=ob\.DROP to leave them out")


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
def option_errors(advice: str = "", *, code: int = 2) -> Iterator[None]:
    """Report an error of the library in terms of the options, `prior=-1` as `--prior -1`, with
    `advice` after it: one raised before data is read, or from what was released.
    """
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException as error:
        fail(f"OpenDP refuses these options: {error.message}{advice}", code=code)
    except (TypeError, ValueError) as error:
        fail(f"{in_options(str(error))}{advice}", code=code)


@contextmanager
def release_errors() -> Iterator[None]:
    """Report a failure while data is read. Only messages that are known not to depend on the data
    are repeated.
    """
    from opendp_bayes.trusted.account import LedgerError
    from opendp_bayes.trusted.boundary import ReleaseError

    try:
        yield
    except typer.Exit:  # it was made, but could not be written
        raise
    except (LedgerError, ReleaseError) as error:
        fail(in_options(str(error)), code=1)
    except Exception:  # noqa: BLE001 - a traceback may depend on the data, whatever the error
        fail(
            "the release failed; the cause is withheld, because it may depend on the data.", code=1
        )


def in_options(message: str) -> str:
    """Name options instead of arguments: `size=5` becomes `--size 5`; `size=None`, and `size=`
    before a space or a comma, become `--size`.
    """

    def option(match: re.Match[str]) -> str:
        stands_alone = match[2] or match[3] in (None, *",.;:)")
        return f"--{match[1].replace('_', '-')}{'' if stands_alone else ' '}"

    message = _DROP.sub("without it they are left out", message)
    return _PARAMETER.sub("--parameter ", _ARGUMENT.sub(option, _VALUE.sub("", message)))
