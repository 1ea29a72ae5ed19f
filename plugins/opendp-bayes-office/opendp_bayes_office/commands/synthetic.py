"""Draw synthetic records from a report, for `opendp-bayes report --synthetic`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opendp_bayes_office.commands.errors import fail, option_errors
from opendp_bayes_office.commands.output import NOT_WRITTEN, written

if TYPE_CHECKING:
    from opendp_bayes_office.report.report_document import Report


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """A block with a new folder, which goes if nothing is in it."""
    if os.path.lexists(path):
        fail(f"--synthetic {path}: exists already; name a new folder.")
    try:
        path.mkdir()
    except OSError as error:
        fail(f"--synthetic {path}: cannot be made ({error.strerror}); name another folder.")
    try:
        yield
    finally:
        with suppress(OSError):
            path.rmdir()


def write_copies(
    made: "Report", folder: Path, copies: int, *, advice: str = "", code: int = NOT_WRITTEN
) -> list[dict[str, Any]]:
    """Write copies of the records of a report, and return the rows of their agreement with it.

    Exits with a message, `advice` after it, and with `code` where they cannot be drawn.
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.surveys.agreement_of_copies import agreement_of_copies
    from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior

    with option_errors(advice, code=code), written(folder, advice), waiting("Drawing records"):
        posterior = made.posterior()
        if isinstance(posterior, LevelsPosterior):
            raise ValueError("results: merge categories, and synthetic records need all.")
        made_of = posterior._written(folder, copies, "population", format="csv")
        frames = (frame for _, frame in made_of)  # one at a time
        return agreement_of_copies(posterior, frames, kind="population").to_dicts()
