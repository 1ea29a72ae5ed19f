"""Data that a command is given: a file that the caller owns, or the file in which its owner states
the facts of one, with the ledger that goes with either.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opendp_bayes_office.commands.errors import fail, option_errors, say

if TYPE_CHECKING:
    from opendp_bayes import Ledger
    from opendp_bayes.trusted.ledger import Intent
    from opendp_bayes_office.files.files import Source
    from opendp_bayes_office.report.owner_file import OwnerFile


@dataclass(frozen=True)
class Owned:
    """A file with data, or none; the owner's file that leads to it, or none; and the options that
    name a ledger and a data set in it.
    """

    path: Path | None
    given: Path | None
    facts: "OwnerFile | None"
    book: Path | None
    dataset: str | None

    def ledger(self, title: str, *, make: bool = True) -> "Ledger | None":
        """The ledger of the owner's file, which is made where `make` says so, or of the options;
        its entries bear a title. Exits with a message where it cannot be used.
        """
        from opendp_bayes import Ledger
        from opendp_bayes.trusted.account import LONGEST

        note = "".join(c for c in title if c.isprintable())[:LONGEST]
        if self.facts is not None and self.given is not None:
            of = self.facts.ledger
            path = self.given.parent / of.path
            if not (make or path.exists()):
                return None
            from opendp_bayes_office.commands.answers import unit

            own = unit(self.facts.privacy)
            total = {of.total.kind: of.total.value, "delta": of.total.delta or None}
            try:
                return Ledger(path, dataset=of.dataset, note=note, unit=own, **total)
            except (TypeError, ValueError) as error:
                fail(f"{self.given}: ledger: {error}")
        if self.book is None:
            return None
        if not self.book.exists():
            fail_missing(f"--ledger {self.book}", self.book)
        with option_errors():
            return Ledger(self.book, dataset=self.dataset, note=note)


def opened_data(data: Path | None, ledger: Path | None, dataset: str | None) -> Owned:
    """The data that an argument names, with the owner's facts where it is an owner's file.

    Exits with a message for a file that is none, and for options that the owner's file answers.
    """
    if data is None or data.suffix.lower() != ".toml":
        if dataset is not None and ledger is None:
            fail(f"--dataset {dataset}: is a data set of a ledger; name that file by --ledger.")
        return Owned(data, None, None, ledger, dataset)
    from opendp_bayes_office.report.specification_text import read_owner_file

    with specification_errors(data):
        facts = read_owner_file(text_in(data))
    for option, given in (("--ledger", ledger), ("--dataset", dataset)):
        if given is not None:
            fail(f"{option} {given}: is for the owner to state, in {data}; leave it out.")
    return Owned(data.parent / facts.path, data, facts, None, None)


@contextmanager
def readable(found: "Source", intent: "Intent") -> "Iterator[Source]":
    """A source that can be read more than once (`files.scannable`), whose first lines are read."""
    from opendp_bayes_office.files.files import scannable

    with ExitStack() as opened:
        with reading(intent):
            source = opened.enter_context(scannable(found))
        intent.is_reading = False
        yield source


@contextmanager
def reading(intent: "Intent") -> Iterator[None]:
    """A block that reads data: where it fails, the release is spent, and a message says so."""
    intent.is_reading = True
    try:
        yield
    except typer.Exit:  # which a message went before
        raise
    except BaseException:
        if intent.loss.is_sound:  # and so is entered in a ledger
            say(f"data may have been read, so this counts as spent: {intent.loss}.")
        raise


def text_in(path: Path) -> str:
    """The text of a file; exits with a message where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        fail(f"{path}: cannot be read ({error.strerror}).")
    except UnicodeDecodeError:
        fail(f"{path}: is not text in UTF-8; save it in that encoding.")


@contextmanager
def specification_errors(path: Path) -> Iterator[None]:
    """A block that reads a specification or an owner's file; exits with a message that names it."""
    from opendp_bayes_office.report.field_errors import SpecificationError

    try:
        yield
    except SpecificationError as error:
        fail(f"{path}: {error}")


def fail_missing(option: str, file: Path) -> None:
    """Exit with a message that says how a ledger is made."""
    fail(
        f"{option}: is not there. Make it, with a total: `opendp-bayes ledger {file} --dataset NAME"
        " --epsilon 3`."
    )
