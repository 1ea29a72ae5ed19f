"""Carry out a specification, for `release`, `report` and `run`, or foresee what it will cost."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from opendp_bayes_office.commands.errors import fail, option_errors, release_errors, say
from opendp_bayes_office.commands.output import PRINTED, Kept, display, echo, on_a_terminal

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes import Ledger
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes_office.files.files import Source
    from opendp_bayes_office.report.owner_file import OwnerFile
    from opendp_bayes_office.report.report_document import Report
    from opendp_bayes_office.report.specification import Specification

#: What nobody sees without paying.
NOT_SEEN = (
    "No record was read, so a misspelt category is not noticed here: check the spelling, capitals"
    " and spaces of the categories."
)
#: Characters of a title that an entry of a ledger has.
_LONGEST = 100


@dataclass(frozen=True)
class Data:
    """A file with data, or none; the owner's file that leads to it, or none; and the options that
    name a ledger and a data set in it.
    """

    path: Path | None
    owner: Path | None
    facts: "OwnerFile | None"
    book: Path | None
    dataset: str | None

    def ledger(self, title: str, *, make: bool) -> "Ledger | None":
        """The ledger of the owner's file, which is made where `make` says so, or of the options;
        its entries bear a title. Exits with a message where it cannot be used.
        """
        from opendp_bayes import Ledger
        from opendp_bayes_office.commands.answers import unit

        note = "".join(c for c in title if c.isprintable())[:_LONGEST]
        if self.facts is not None and self.owner is not None:
            ledger = self.facts.ledger
            path = self.owner.parent / ledger.path
            if not (make or path.exists()):
                return None
            unit_of_owner = unit(self.facts.privacy)
            total = {ledger.total.kind: ledger.total.value, "delta": ledger.total.delta or None}
            with option_errors(f"{self.owner}: ledger: "):
                return Ledger(path, dataset=ledger.dataset, note=note, unit=unit_of_owner, **total)
        if self.book is None:
            return None
        if not self.book.exists():
            fail_missing(f"--ledger {self.book}", self.book)
        with option_errors():
            return Ledger(self.book, dataset=self.dataset, note=note)


def opened_data(data: Path | None, ledger: Path | None, dataset: str | None) -> Data:
    """The data that an argument names, with the owner's facts where it is an owner's file.

    Exits with a message for a file that is none, and for options that the owner's file answers.
    """
    if data is None or data.suffix.lower() != ".toml":
        if dataset is not None and ledger is None:
            fail(f"--dataset {dataset}: is a data set of a ledger; name that file by --ledger.")
        return Data(data, None, None, ledger, dataset)
    from opendp_bayes_office.report.specification_text import read_owner_file

    with option_errors(f"{data}: "):
        facts = read_owner_file(text_in(data))
    for option, given in (("--ledger", ledger), ("--dataset", dataset)):
        if given is not None:
            fail(f"{option} {given}: is for the owner to state, in {data}; leave it out.")
    return Data(data.parent / facts.path, data, facts, None, None)


@dataclass(frozen=True)
class Specified:
    """A specification, the data that it is put to, and what stands before messages about it."""

    specification: "Specification"
    data: Data
    where: str = ""

    def source(self) -> "Source":
        """The file with the data; exits with a message where it is none."""
        from opendp_bayes_office.files.files import source

        if self.data.path is None:
            fail("DATA: is missing; name the file with the data after the specification.")
        with option_errors(self.where):
            return source(self.data.path, self.specification)

    @contextmanager
    def entered(self, *, dry: bool = False) -> Iterator[Any]:
        """A block with an intent of the whole budget, which is entered in the ledger, if there is
        one, before data are opened; of a `dry` run, which is to release nothing, in a ledger that
        is there, and where it fails while data are read. Exits with a message where there is no
        room.
        """
        from opendp_bayes.trusted.account import Loss
        from opendp_bayes.trusted.budget import unit_in_words
        from opendp_bayes_office.commands.answers import unit

        privacy = self.specification.privacy
        book = self.data.ledger(self.specification.title, make=not dry)
        spent = Loss(epsilon=privacy.epsilon, rho=privacy.rho, delta=privacy.delta or 0.0)
        words = unit_in_words(*unit(privacy))
        entry: Any = nullcontext(SimpleNamespace(loss=None, is_reading=False))
        if book is not None:
            entry = book.entered(spent, words, dry=dry)
        with ExitStack() as opened:
            with option_errors(self.where):
                intent = opened.enter_context(entry)
            yield intent

    def query(self, source: "Source | None") -> "tuple[Specification, Any]":
        """The specification, with the categories that a file describes, and the survey that it
        asks; without a file, of columns without records. Exits with a message for what does not
        fit.
        """
        from opendp_bayes.trusted.interrupts import deferred_interrupts
        from opendp_bayes_office.commands import answers
        from opendp_bayes_office.commands.options import as_option
        from opendp_bayes_office.report.field_errors import FieldError

        specification = self.specification
        with option_errors(self.where), deferred_interrupts():
            try:
                if source is None:
                    frame = answers.frame_without_data(specification)
                else:
                    specification = answers.as_in(source, specification)
                    frame = answers.frame_in(source, specification)
                return specification, answers.survey_of(frame, specification)
            except FieldError as error:
                if self.where:
                    raise
                raise ValueError(as_option(error)) from None


def asked_in(
    path: Path,
    data: Path | None,
    ledger: Path | None,
    dataset: str | None,
    *,
    joint: bool = False,
) -> Specified:
    """The specification in a file, with the facts of the owner of the data, or with a ledger and a
    data set in it.

    With `joint` all results are to be estimated together, whatever the specification says. Exits
    with a message for what is wrong.
    """
    from opendp_bayes_office.files.files import EXTENSIONS
    from opendp_bayes_office.report.specification_text import read_specification

    opened = opened_data(data, ledger, dataset)
    if any(path.name.lower().endswith(extension) for extension in EXTENSIONS):
        fail(f"{path}: is a file with data; name the specification first, then the data.")
    where = f"{path}: "
    with option_errors(where):
        asked = read_specification(text_in(path), joint=joint, owner=opened.facts)
    return Specified(asked, opened, where)


@contextmanager
def readable(file: "Source", intent: Any) -> "Iterator[Source]":
    """A source that can be read more than once (`files.scannable`), whose first lines are read."""
    from opendp_bayes_office.files.files import scannable

    with ExitStack() as opened:
        with reading(intent):
            source = opened.enter_context(scannable(file))
        intent.is_reading = False
        yield source


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
def carried_out(
    asked: Specified, *, output: Path | None, as_report: bool = False
) -> "Iterator[tuple[Report, list[str]]]":
    """A block with the report of everything that a specification asks for, and what was said
    before records were read.

    Their JSON, or with `as_report` that of the report, is kept in the file `output`, or is rescued
    where the block fails (`Kept`). Exits with a message, and nothing released, for what is wrong.
    """
    from importlib.metadata import version

    from msgspec import structs

    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts
    from opendp_bayes_office.commands.answers import before_reading
    from opendp_bayes_office.report.report_document import Report

    source = asked.source()
    with Kept(output) as kept, ExitStack() as until_it_is_kept:
        with asked.entered() as intent, readable(source, intent) as opened:
            specification, query = asked.query(opened)
            summary = query.summarize()
            said = list(before_reading(summary, specification, opened))
            for line in said:
                say(line)
            if intent.loss is not None and not summary["delta"].sum():  # nothing buys any
                intent.loss = structs.replace(intent.loss, delta=0.0)
            with reading(intent), waiting("Reading"):
                opened.complete()
            until_it_is_kept.enter_context(deferred_interrupts())
            with reading(intent), release_errors(), waiting("Counting"):
                survey = query.release()
        with release_errors():
            software = {"OpenDP": version("opendp"), "opendp-bayes": version("opendp-bayes")}
            report = Report(specification, survey.releases, software, survey)
            kept.keep(report.to_json() if as_report else report.results.to_json())
        until_it_is_kept.close()
        yield report, said


def warn(report: "Report") -> None:
    """Say of which results nearly all records are in no category."""
    for release in report.releases:
        for line in release.unmatched:
            say(line)


def release_and_show(
    asked: Specified, path: Path, *, is_named: bool, repeats: bool = False
) -> None:
    """Release what a specification asks for into a new file, and print its sheet; or its JSON alone
    where that is the file. What was said before records were read it `repeats` on standard output,
    where that is no terminal, which shows standard error as well.
    """
    from opendp_bayes.display.progress import waiting

    with carried_out(asked, output=path) as (report, said):
        if path == PRINTED:
            echo(report.results.to_json())
            warn(report)
            return
        with waiting("Computing the posterior"):
            sheet = report.sheet()
        said = said if repeats and not on_a_terminal() else []
        page = f"{path} keeps the release; `opendp-bayes report {path}` makes a page."
        display(sheet, *said, *([] if is_named else [page]))


def foreseen(asked: Specified) -> "Sheet":
    """Foresee what a specification will cost, and how wide its intervals will be.

    Reads the names and types of the columns of the data, or takes them from the categories. Exits
    with a message for what is wrong.
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts
    from opendp_bayes_office.commands.answers import before_reading

    with asked.entered(dry=True) as intent, ExitStack() as opened:
        source = None
        if asked.data.path is not None:
            source = opened.enter_context(readable(asked.source(), intent))
        specification, query = asked.query(source)
        with option_errors(asked.where), deferred_interrupts(), waiting("Computing the widths"):
            summary = query.summarize(specification.privacy.guess_size)
        for line in before_reading(summary, specification, source):
            say(line)
    return _sheet(summary, specification)


def _sheet(summary: "pl.DataFrame", asked: "Specification") -> "Sheet":
    """Show what each result will cost, and how wide its intervals will be."""
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.display.tables import Table

    privacy, measure = asked.privacy, "epsilon" if asked.privacy.rho is None else "rho"
    shown = {"question": "Result", "mechanism": "Mechanism", "scale": "Scale"}
    shown[measure] = "ε" if privacy.rho is None else "ρ"
    shown |= {} if privacy.delta is None else {"delta": "δ"}
    shown["interval_width"] = "Width of a\n95 % interval"
    if "threshold" in summary.columns:
        shown |= {f"shown_{part}": f"Shown,\n{part}" for part in ("half", "95", "99")}
    rows = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell or "") for cell in row]
        for row in summary.select(*shown).rows()
    ]
    records = privacy.guess_size if privacy.size is None else privacy.size
    widths = (
        "Without a number of records no width is known; guess it by --guess-size 1000, or in a"
        " specification under [privacy]: guess_size = 1000."
        if records is None
        else f"Widths are those to be expected of {records} records in equal numbers in every group"
        " and category, sampling and noise together."
    )
    delta = "" if privacy.delta is None else f", δ = {privacy.delta:.4g}"
    budget = f"All results together: {shown[measure]} = {getattr(privacy, measure):.4g}{delta}, for"
    spent = f"{budget} {privacy.unit}. No record was read and nothing was spent."
    shown_table = Table(tuple(shown.values()), rows, texts=2)
    return Sheet((shown_table,), (spent, NOT_SEEN, widths), title=asked.title)


def report_in(path: Path) -> "Report":
    """The report in a file that an earlier run wrote, or one of its releases; exits with a message
    where it is neither.
    """
    from opendp_bayes_office.report.report_document import Report

    with option_errors(f"{path}: "):
        return Report.read(text_in(path), path.stem)


def text_in(path: Path) -> str:
    """The text of a file; exits with a message where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        fail(f"{path}: cannot be read ({error.strerror}).")
    except UnicodeDecodeError:
        fail(f"{path}: is not text in UTF-8; save it in that encoding.")


def fail_missing(option: str, file: Path) -> None:
    """Exit with a message that says how a ledger is made."""
    fail(
        f"{option}: does not exist. Create it with a total: `opendp-bayes ledger {file} --dataset"
        " NAME --epsilon 3`."
    )
