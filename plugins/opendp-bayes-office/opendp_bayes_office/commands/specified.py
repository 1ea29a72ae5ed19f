"""Carry out a specification, for `release`, `report` and `run`, or foresee what it will cost."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from opendp_bayes_office.commands.errors import fail, option_errors, release_errors, say
from opendp_bayes_office.commands.output import PRINTED, beside, display, keeping, text_in, waiting

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes_office.report.owner_file import OwnerFile
    from opendp_bayes_office.report.report_document import Report
    from opendp_bayes_office.report.specification import Specification

#: What nobody sees without paying.
NOT_SEEN = (
    "No record was read, so a misspelt category is not noticed here: check the spelling, capitals"
    " and spaces of the categories."
)
#: What the columns of a survey's summary are called.
_HEADINGS = {
    "question": "Result",
    "mechanism": "Mechanism",
    "scale": "Scale",
    "epsilon": "ε",
    "rho": "ρ",
    "delta": "δ",
    "interval_width": "Width of\n95 %\ninterval",
    "shown_half": "Shown,\nhalf",
    "shown_95": "Shown,\n95",
    "shown_99": "Shown,\n99",
}
#: Characters of a title that an entry of a ledger has.
_LONGEST = 100


def opened_data(
    data: Path | None, ledger: Path | None, dataset: str | None
) -> "tuple[Path | None, OwnerFile | None, dict[str, Any] | None]":
    """The file with data that an argument names, or none; the facts of its owner where it is an
    owner's file; and the arguments that open the ledger, or none.

    Exits with a message for a file that is none, and for options that the owner's file answers.
    """
    if dataset is not None and ledger is None:
        fail(f"--dataset {dataset}: is a data set of a ledger; name that file by --ledger.")
    if data is None or data.suffix.lower() != ".toml":
        return data, None, None if ledger is None else {"path": ledger, "dataset": dataset}
    from opendp_bayes_office.report.specification_text import read_owner_file

    if ledger is not None:
        fail(f"--ledger {ledger}: is for the owner to state, in {data}; leave it out.")
    with option_errors(f"{data}: "):
        facts = read_owner_file(text_in(data))
    folder, book, total = data.parent, facts.ledger, facts.ledger.total
    arguments: dict[str, Any] = {"path": folder / book.path, "dataset": book.dataset}
    arguments |= {"epsilon": total.epsilon, "rho": total.rho, "delta": total.delta or None}
    return folder / facts.path, facts, arguments


@dataclass(frozen=True)
class Opened:
    """A specification as it is put to data, of which no record is read yet; their source; the query
    of all results; what that will cost; and the intent that is entered in the ledger.
    """

    specification: "Specification"
    source: Any
    query: Any
    summary: "pl.DataFrame"
    intent: Any


@dataclass(frozen=True)
class Specified:
    """A specification; the file with the data that it is put to, or none; the arguments that open
    the ledger, or none; and what stands before messages about it.
    """

    specification: "Specification"
    path: Path | None
    ledger: dict[str, Any] | None
    where: str = ""

    @contextmanager
    def opened(self, *, dry: bool = False) -> Iterator[Opened]:
        """A block in which the data are open, or columns without records where there are none, and
        in which everything has been said that is to be said before records are read; `dry` where
        it is to release nothing.
        """
        from opendp_bayes_office.commands import answers
        from opendp_bayes_office.files.files import scannable, source

        specification = self.specification
        file = None if self.path is None else source(self.path, specification)
        with self._entered(dry=dry) as intent, ExitStack() as stack:
            if file is not None:
                with reading(intent):
                    file = stack.enter_context(scannable(file))
                intent.is_reading = False
            with option_errors(self.where), waiting("Computing the widths"):
                if file is not None:
                    specification = answers.as_in(file, specification)
                query = answers.survey_of(answers.frame_in(file, specification), specification)
                summary = query.summarize(specification.privacy.guess_size if dry else None)
            for line in answers.before_reading(summary, specification, file):
                say(line)
            yield Opened(specification, file, query, summary, intent)

    def _entered(self, *, dry: bool) -> AbstractContextManager[Any]:
        """A block with an intent of the whole budget, which is entered in the ledger, if there is
        one, before data are opened; of a `dry` run, in a ledger that is there, and where it fails
        while data are read.
        """
        from opendp_bayes import Ledger
        from opendp_bayes.trusted.budget import unit_in_words
        from opendp_bayes_office.commands.answers import unit

        book, privacy = self.ledger, self.specification.privacy
        if book is None or (dry and not book["path"].exists()):
            return nullcontext(SimpleNamespace(loss=None, is_reading=False))
        note = "".join(c for c in self.specification.title if c.isprintable())[:_LONGEST]
        words = unit_in_words(*unit(privacy))
        return Ledger(**book, note=note).entered(privacy.loss, words, dry=dry)


def specified_in(
    path: Path, data: Path | None, ledger: Path | None, dataset: str | None, *, joint: bool = False
) -> Specified:
    """The specification in a file, with the facts of the owner of the data, or with a ledger and a
    data set in it.

    With `joint` all results are to be estimated together, whatever the specification says. Exits
    with a message for what is wrong.
    """
    from opendp_bayes_office.files.files import EXTENSIONS
    from opendp_bayes_office.report.specification_text import read_specification

    file, facts, book = opened_data(data, ledger, dataset)
    if path.name.lower().endswith(tuple(EXTENSIONS)):
        fail(f"{path}: is a file with data; name the specification first, then the data.")
    with option_errors(f"{path}: "):
        specification = read_specification(text_in(path), joint=joint, owner=facts)
    return Specified(specification, file, book, f"{path}: ")


@contextmanager
def reading(intent: Any) -> Iterator[None]:
    """A block that reads data: where it fails, the release is spent, and a message says so."""
    intent.is_reading = True
    try:
        yield
    except typer.Exit:  # which a message went before
        raise
    except BaseException:
        if intent.loss is not None:  # which is entered in a ledger
            say(f"data may have been read, so this counts as spent: {intent.loss}.")
        raise


@contextmanager
def carried_out(specified: Specified, *, output: Path, as_report: bool) -> "Iterator[Report]":
    """A block with the report of everything that a specification asks for.

    Their JSON, or with `as_report` that of the report, is kept in the file `output` (`keeping`).
    Where no sheet is printed, messages say of which results nearly all records are in no category.
    Exits with a message, and nothing released, for what is wrong.
    """
    from importlib.metadata import version

    from msgspec import structs

    from opendp_bayes.trusted.interrupts import uninterrupted
    from opendp_bayes_office.report.report_document import Report

    with keeping(output) as keep:
        with specified.opened() as opened:
            intent = opened.intent
            if intent.loss is not None and not opened.summary["delta"].sum():  # nothing buys any
                intent.loss = structs.replace(intent.loss, delta=0.0)
            with reading(intent), release_errors(), waiting("Reading"):
                opened.source.complete()
                survey = opened.query.release()
        software = {package: version(package.lower()) for package in ("OpenDP", "opendp-bayes")}
        report = Report(opened.specification, survey, software)
        uninterrupted(lambda: keep((report if as_report else report.results).to_json()))
        if as_report or output == PRINTED:
            for line in chain.from_iterable(release.unmatched for release in survey.releases):
                say(line)
        yield report


def release_and_show(
    specified: Specified, file: Path, title: str, output: Path | None, *, dry_run: bool
) -> None:
    """Release what a specification asks for into a new file, `output` or one `beside` a file, and
    print its sheet, or its JSON alone where that is the file; or foresee what it will cost.
    """
    if dry_run and output is not None:
        fail("--dry-run: releases nothing that --output could hold; leave it out.")
    if dry_run:
        display(foreseen(specified))
        return
    path = output or beside(file, title)
    with carried_out(specified, output=path, as_report=False) as report:
        if path == PRINTED:
            return
        with waiting("Computing the posterior"):
            sheet = report.sheet()
        paths = f"{quote(str(path))} -o {quote(str(path.with_suffix('.html')))}"
        display(
            sheet,
            *(
                []
                if output
                else [
                    f"{path} keeps the release, and this makes a page:",
                    f"    opendp-bayes report {paths}",
                ]
            ),
        )


def foreseen(specified: Specified) -> "Sheet":
    """Foresee what a specification will cost, and how wide its intervals will be, from the names
    and types of the columns of the data, or from the categories. Exits with a message for what is
    wrong.
    """
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.display.tables import Table
    from opendp_bayes.display.wording import kind_in_words

    with specified.opened(dry=True) as opened:
        summary, privacy = opened.summary, opened.specification.privacy
    headings = {
        column: heading
        for column, heading in _HEADINGS.items()
        if getattr(privacy, column, heading) is not None
        and column in summary.columns
        and summary[column].count()
    }
    rows = [
        [
            f"{cell:.4g}" if isinstance(cell, float) else kind_in_words(str(cell or ""))
            for cell in row
        ]
        for row in summary.select(*headings).rows()
    ]
    records = privacy.guess_size if privacy.size is None else privacy.size
    widths = (
        "Without a number of records no width is known; guess it by guess_size = 1000 under"
        " [privacy], or by --guess-size 1000."
        if records is None
        else f"Widths are those to be expected of {records} records in equal numbers in every group"
        " and category, sampling and noise together."
    )
    return Sheet(
        (Table(tuple(headings.values()), rows, texts=2),),
        (
            f"All results together: {privacy.loss}, for {privacy.unit}. Nothing was spent.",
            NOT_SEEN,
            widths,
        ),
        title=opened.specification.title,
    )
