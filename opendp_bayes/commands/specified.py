"""Carry out a specification, for `report` and `run`, or foresee what that will cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opendp_bayes.commands.errors import fail, option_errors, release_errors, say
from opendp_bayes.commands.output import Kept
from opendp_bayes.commands.owned import (
    opened_data,
    readable,
    refusals_entered,
    specification_errors,
    text_in,
)

if TYPE_CHECKING:
    from opendp_bayes.display.sheet import Sheet
    from opendp_bayes.questions.survey_query import SurveyQuery
    from opendp_bayes.report.owner_file import OwnerFile
    from opendp_bayes.report.report_document import Report
    from opendp_bayes.report.specification import Specification
    from opendp_bayes.results.survey import Survey


@contextmanager
def carried_out(
    path: Path,
    data: Path,
    ledger: Path | None,
    dataset: str | None,
    *,
    output: Path | None,
    text_of: "Callable[[Specification, Survey], str]",
    joint: bool = False,
) -> "Iterator[tuple[Specification, Survey]]":
    """A block with the specification in a file and the releases of everything that it asks for.

    With `joint` all results are to be estimated together, whatever the specification says.
    `text_of` makes the JSON of both, which is kept in the file `output`, or is rescued where the
    block fails (`Kept`). Exits with a message, and nothing released, for what is wrong.
    """
    from opendp_bayes.commands.answers import before_reading, field_errors, survey_of
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.report.lines import located
    from opendp_bayes.trusted.files import source
    from opendp_bayes.trusted.interrupts import deferred_interrupts

    owned = opened_data(data, ledger, dataset)
    text, asked = _read(path, owned.facts, joint)
    book = owned.ledger(asked.title)
    with specification_errors(path), located(text), field_errors():
        found = source(owned.path or data, asked.separator, asked.encoding)
    with Kept(output) as kept, readable(found, book) as opened:
        with specification_errors(path), located(text), deferred_interrupts():
            query = survey_of(opened, asked, book)
        for line in before_reading(opened, query, asked):
            say(line)
        with refusals_entered(book), waiting("Reading"):
            opened.complete()
        with release_errors(), waiting("Counting"), deferred_interrupts():
            with refusals_entered(book):
                survey = query.release()
            kept.keep(text_of(asked, survey))
        yield asked, survey


def foreseen(
    path: Path,
    data: Path | None,
    ledger: Path | None,
    dataset: str | None,
    guess_size: int | None,
) -> "Sheet":
    """Foresee what the specification in a file will cost, and how wide its intervals will be.

    Reads the names and types of the columns of `data`, or takes them from the categories. Exits
    with a message for what is wrong.
    """
    from opendp_bayes.commands.answers import (
        field_errors,
        labelled,
        labelled_by_type,
        survey_of,
        survey_without_data,
    )
    from opendp_bayes.commands.progress_bar import waiting
    from opendp_bayes.report.lines import located
    from opendp_bayes.trusted.files import source
    from opendp_bayes.trusted.interrupts import deferred_interrupts

    owned = opened_data(data, ledger, dataset)
    text, asked = _read(path, owned.facts)
    book = owned.ledger(asked.title, make=False)
    with specification_errors(path), located(text), deferred_interrupts():
        if owned.path is None:
            query = survey_without_data(asked, book)
        else:
            with field_errors():
                found = source(owned.path, asked.separator, asked.encoding)
            with readable(found, book) as opened:
                query = survey_of(opened, asked, book)
                for line in labelled_by_type(opened, labelled(asked)):
                    say(line)
    with option_errors(), deferred_interrupts(), waiting("Computing the widths"):
        return _sheet(query, asked, guess_size, owned.facts)


def check_dry_run(dry_run: bool, guess_size: int | None) -> None:
    """Exit with a message for a guess that nothing would be made of."""
    if guess_size is not None and not dry_run:
        fail(f"--guess-size {guess_size}: is for --dry-run; leave it out, or add --dry-run.")


def check_data(specification: Path, data: Path | None) -> None:
    """Exit with a message for a specification without data; an earlier run's .json needs none."""
    if data is None and specification.suffix.lower() == ".toml":
        fail("DATA: is missing; name the file with the data after the specification.")


def _read(
    path: Path, owner: "OwnerFile | None", joint: bool = False
) -> "tuple[str, Specification]":
    """The specification in a file, with the facts of the owner of the data, and its text."""
    from opendp_bayes.report.specification_text import read_specification
    from opendp_bayes.trusted.files import EXTENSIONS

    if any(path.name.lower().endswith(extension) for extension in EXTENSIONS):
        fail(f"{path}: is a file with data; name the specification first, then the data.")
    text = text_in(path)
    with specification_errors(path):
        asked = read_specification(text, joint=joint, owner=owner)
    return text, asked


def report_of(asked: "Specification", survey: "Survey") -> "Report":
    """A specification and its releases as a report, with the versions that made them."""
    from importlib.metadata import version

    from opendp_bayes.report.report_document import Report

    software = {"OpenDP": version("opendp"), "opendp-bayes": version("opendp-bayes")}
    return Report(asked, survey.releases, software)


def text_of_report(asked: "Specification", survey: "Survey") -> str:
    """The JSON of a report."""
    return report_of(asked, survey).to_json()


def report_in(path: Path) -> "Report":
    """The report in a file that an earlier run wrote; exits with a message where it is none."""
    from opendp_bayes.report.report_document import Report

    try:
        return Report.from_json(text_in(path))
    except ValueError as error:
        fail(f"{path}: {error}")


def _sheet(
    query: "SurveyQuery",
    asked: "Specification",
    guess_size: int | None,
    owner: "OwnerFile | None",
) -> "Sheet":
    """Show what each result will cost, how wide its intervals will be, and which fact comes from
    whom where the data have an owner's file.
    """
    from opendp_bayes.display.sheet import Body, Column, Sheet, Table
    from opendp_bayes.display.wording import at_most, described
    from opendp_bayes.report.owner_file import facts

    privacy = asked.privacy
    name, sign = ("rho", "ρ") if privacy.rho is not None else ("epsilon", "ε")
    budget, delta = at_most(getattr(privacy, name)), privacy.delta
    guess = privacy.guess_size if guess_size is None else guess_size
    records = guess if privacy.size is None else privacy.size
    settings, rows = query.settings, []
    for row in query.summarize(guess).iter_rows(named=True):
        width = row["interval_width"]
        rows.append(
            (
                row["question"],
                described(settings[row["question"]].mechanism),
                at_most(row[name]),
                *([] if delta is None else [at_most(row["delta"])]),
                "" if width is None else f"{width:.3g}",
            )
        )
    columns = (
        Column("Result", number=False),
        Column("Mechanism", number=False),
        Column(sign),
        *([] if delta is None else [Column("δ")]),
        Column("Width of a\n95 % interval", weight="strong"),
    )
    tables = [Table(columns, (Body(tuple(rows)),))]
    if owner is not None:
        said = (Column(heading, number=False) for heading in ("Fact", "Value", "Stated by the"))
        tables.append(Table(tuple(said), (Body(tuple(facts(asked, owner))),)))
    return Sheet(
        tuple(tables),
        (
            f"All results together: {sign} = {budget}"
            + ("" if delta is None else f", δ = {at_most(delta)}")
            + f", for {privacy.unit}. No record was read and nothing was spent.",
            "Without a number of records no width is known; guess it: --guess-size 1000."
            if records is None
            else f"Widths are those to be expected of {records} records in equal numbers in every"
            " group and category, sampling and noise together.",
        ),
        title=asked.title,
    )
