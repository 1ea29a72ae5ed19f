"""Carry out a specification, for `release`, `report` and `run`, or foresee what it will cost."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opendp_bayes_office.commands.errors import fail, option_errors, release_errors, say
from opendp_bayes_office.commands.output import PRINTED, Kept, echo
from opendp_bayes_office.commands.owned import (
    Owned,
    opened_data,
    readable,
    reading,
    specification_errors,
    text_in,
)

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes import Survey
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.display.tables import Table
    from opendp_bayes.surveys.survey_query import SurveyQuery
    from opendp_bayes.trusted.ledger import Intent
    from opendp_bayes_office.files.files import Source
    from opendp_bayes_office.report.owner_file import OwnerFile
    from opendp_bayes_office.report.report_document import Report
    from opendp_bayes_office.report.specification import Specification

#: What nobody sees without paying.
NOT_SEEN = (
    "No record was read, so a misspelt category is not noticed here: compare your list with the"
    " description of the data, in spelling, capitals and blanks."
)


@dataclass(frozen=True)
class Specified:
    """A specification, the data that it is put to, and a block that says what is wrong with it in
    the words of whoever wrote it.
    """

    specification: "Specification"
    owned: Owned
    errors: Callable[[], AbstractContextManager[None]]

    def source(self) -> "Source":
        """The file with the data; exits with a message where it is none."""
        from opendp_bayes_office.commands.answers import cleaning_of
        from opendp_bayes_office.files.files import source

        assert self.owned.path is not None  # for somebody named it
        with self.errors():
            specification = self.specification
            return source(
                self.owned.path,
                specification.separator,
                specification.encoding,
                cleaning_of(specification),
                specification.sheet,
                glob=specification.glob,
            )

    @contextmanager
    def entered(self, *, dry: bool = False) -> "Iterator[Intent]":
        """A block with the whole budget, which is entered in the ledger, if there is one, before
        data are opened; of a `dry` run, which is to release nothing, in a ledger that is there, and
        where it fails while data are read. Exits with a message where there is no room.
        """
        from opendp_bayes.trusted.account import Loss
        from opendp_bayes.trusted.ledger import Intent
        from opendp_bayes_office.commands.answers import budget_of, field_errors

        book = self.owned.ledger(self.specification.title, make=not dry)
        loss, unit = budget_of(self.specification.privacy)
        entered = nullcontext(Intent(Loss())) if book is None else book.entered(loss, unit, dry=dry)
        with ExitStack() as opened:
            with self.errors(), field_errors("privacy"):
                intent = opened.enter_context(entered)
            yield intent

    def query(self, found: "Source | None") -> "tuple[Specification, SurveyQuery]":
        """The specification with its labels in the types of the columns of a file, or of its
        categories where there is none, and the survey that it asks. Exits with a message for what
        does not fit.
        """
        from opendp_bayes.trusted.interrupts import deferred_interrupts
        from opendp_bayes_office.commands import answers

        specification = self.specification
        with self.errors(), deferred_interrupts():
            if found is None:
                frame = answers.frame_without_data(specification)
            else:
                specification = answers.as_in(found, specification)
                frame = answers.frame_of(found, specification)
            specification = answers.typed(specification, frame)
            return specification, answers.survey_of(frame, specification)


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

    owned = opened_data(data, ledger, dataset)
    if any(path.name.lower().endswith(extension) for extension in EXTENSIONS):
        fail(f"{path}: is a file with data; name the specification first, then the data.")
    with specification_errors(path):
        asked = read_specification(text_in(path), joint=joint, owner=owned.facts)

    @contextmanager
    def errors() -> Iterator[None]:
        from opendp_bayes_office.commands.answers import field_errors

        with specification_errors(path), field_errors():
            yield

    return Specified(asked, owned, errors)


@contextmanager
def carried_out(
    asked: Specified, *, output: Path | None, as_report: bool = False
) -> "Iterator[Carried]":
    """A block with the releases of everything that a specification asks for.

    Their JSON, or with `as_report` that of the report, is kept in the file `output`, or is rescued
    where the block fails (`Kept`). Exits with a message, and nothing released, for what is wrong.
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts, interruptible
    from opendp_bayes_office.commands.answers import before_reading, loss_of_release

    found = asked.source()
    with Kept(output) as kept:
        with deferred_interrupts():
            with asked.entered() as intent, interruptible(), readable(found, intent) as opened:
                specification, query = asked.query(opened)
                said = list(before_reading(opened, query, specification))
                for line in said:
                    say(line)
                if intent.loss.is_sound:
                    intent.loss = loss_of_release(query)
                with reading(intent), waiting("Reading"):
                    opened.complete()
                with reading(intent), release_errors(), waiting("Counting"), deferred_interrupts():
                    survey = query.release()
            with release_errors():
                carried = Carried(specification, survey, tuple(said))
                kept.keep(carried.report().to_json() if as_report else carried.text())
        yield carried


@dataclass(frozen=True)
class Carried:
    """A specification with its labels in the types of their columns, the releases that it asked
    for, and what was said before records were read.
    """

    specification: "Specification"
    survey: "Survey"
    said: tuple[str, ...]

    def sheet(self) -> "Sheet":
        """The sheet of the releases; computes their posteriors."""
        if len(self.survey) > 1:
            return self.survey.sheet()
        return replace(self.survey.releases[0].sheet(), title=self.specification.title)

    def text(self) -> str:
        """The JSON of one release, or of the survey of several."""
        return (self.survey.releases[0] if len(self.survey) == 1 else self.survey).to_json()

    def report(self) -> "Report":
        """The specification and its releases as a report, with the versions that made them."""
        from importlib.metadata import version

        from opendp_bayes_office.report.report_document import Report

        software = {"OpenDP": version("opendp"), "opendp-bayes": version("opendp-bayes")}
        return Report(self.specification, self.survey.releases, software)

    def unmatched(self) -> list[str]:
        """Sentences on the results nearly all of whose records are in no category."""
        alone = len(self.survey) == 1
        return [
            said if alone else f"{name}: {said}"
            for name, release in self.survey.items()
            for said in release.unmatched
        ]


def echoed(output: Path | None, released: Carried) -> bool:
    """Print the JSON of the releases where the option says so, and tell whether it does."""
    if output == PRINTED:
        echo(released.text())
        for line in released.unmatched():
            say(line)
    return output == PRINTED


def foreseen(asked: Specified) -> "Sheet":
    """Foresee what a specification will cost, and how wide its intervals will be.

    Reads the names and types of the columns of the data, or takes them from the categories. Exits
    with a message for what is wrong.
    """
    from opendp_bayes.display.progress import waiting
    from opendp_bayes.trusted.interrupts import deferred_interrupts
    from opendp_bayes_office.commands.answers import labelled_by_type

    owned = asked.owned
    with asked.entered(dry=True) as intent, ExitStack() as opened:
        found = None
        if owned.path is not None:
            found = opened.enter_context(readable(asked.source(), intent))
        specification, query = asked.query(found)
        for line in [] if found is None else labelled_by_type(found, specification):
            say(line)
    with option_errors(), deferred_interrupts(), waiting("Computing the widths"):
        return _sheet(query, specification, owned.facts)


def report_in(path: Path) -> "Report":
    """The report in a file that an earlier run wrote, or one of its releases; exits with a message
    where it is neither.
    """
    from opendp_bayes_office.report.report_document import Report

    try:
        return Report.read(text_in(path), path.stem)
    except ValueError as error:
        fail(f"{path}: {error}")


def _sheet(query: "SurveyQuery", asked: "Specification", owner: "OwnerFile | None") -> "Sheet":
    """Show what each result will cost, how wide its intervals will be, and which fact comes from
    whom where the data have an owner's file.
    """
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.display.tables import Table
    from opendp_bayes.display.wording import at_most, described
    from opendp_bayes_office.report.owner_file import facts

    privacy = asked.privacy
    name, sign = ("rho", "ρ") if privacy.rho is not None else ("epsilon", "ε")
    budget, delta = at_most(getattr(privacy, name)), privacy.delta
    records = privacy.guess_size if privacy.size is None else privacy.size
    laws: dict[str, Any] = {name: setting.mechanism for name, setting in query.settings.items()}
    laws |= {name: discovery.law for name, discovery in query.discoveries.items()}
    summary = query.summarize(privacy.guess_size)
    rows = [
        (
            row["question"],
            described(laws[row["question"]]),
            at_most(row[name]),
            *([] if delta is None else [at_most(row["delta"])]),
            "" if row["interval_width"] is None else f"{row['interval_width']:.3g}",
        )
        for row in summary.iter_rows(named=True)
    ]
    deltas = [] if delta is None else ["δ"]
    headings = "Result", "Mechanism", sign, *deltas, "Width of a\n95 % interval"
    tables = [Table(headings, rows, texts=2)]
    if query.discoveries:
        tables.append(_shown(summary))
    if owner is not None:
        tables.append(Table(("Fact", "Value", "Stated by the"), list(facts(asked, owner)), texts=3))
    return Sheet(
        tuple(tables),
        (
            f"All results together: {sign} = {budget}"
            + ("" if delta is None else f", δ = {at_most(delta)}")
            + f", for {privacy.unit}. No record was read and nothing was spent.",
            *((NOT_SEEN, _widths_of(records)) if query.questions else ()),
        ),
        title=asked.title,
    )


def _widths_of(records: int | None) -> str:
    """Say which number of records the widths are of."""
    if records is None:
        return (
            "Without a number of records no width is known; guess it under [privacy]: guess_size ="
            " 1000."
        )
    return (
        f"Widths are those to be expected of {records} records in equal numbers in every group and"
        " category, sampling and noise together."
    )


def _shown(summary: "pl.DataFrame") -> "Table":
    """Show which counts of categories to discover will be shown, of a survey's summary."""
    from opendp_bayes.display.tables import Table

    headings = (
        "Counts that are shown",
        "in half of\nreleases",
        "in 95\nof 100",
        "in 99\nof 100",
        "Std of\nnoise",
        "Std of\nthe rest's",
    )
    rows = []
    for row in summary.filter(summary["threshold"].is_not_null()).iter_rows(named=True):
        counts = [str(row[name]) for name in ("shown_half", "shown_95", "shown_99")]
        rest = "not asked" if row["rest_std"] is None else f"{row['rest_std']:.3g}"
        rows.append((row["question"], *counts, f"{row['noise_std']:.3g}", rest))
    return Table(headings, rows)
