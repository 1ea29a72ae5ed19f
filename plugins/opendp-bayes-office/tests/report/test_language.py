"""Pages in other languages: every sentence of theirs is translated, and numbers have the mark."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest

from opendp_bayes import PrivacyGuarantee, PrivacyLoss
from opendp_bayes.display.wording import in_words
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.results.sheets import little_said
from opendp_bayes_office.report import language
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run
from tests.helpers.pages_of_reports import made, of_election, of_marriages
from tests.helpers.sources import ROOT

OTHERS = [name for name in get_args(language.Tag) if name != "en"]
ORDERED = """
title = "Ages"
joint = true
privacy = { epsilon = 2.0 }
[columns.age]
categories = ["young", "old", "oldest"]
nulls = "no answer"
[columns.town]
categories = ["a", "b"]
nulls = "none"
unknown = "none"
[[results]]
column = "age"
ordered = ["age"]
[[results]]
column = "town"
mechanism = "gaussian_parameters"
"""
GROUPED = ORDERED.replace("joint = true\n", "").replace(
    'column = "age"\nordered = ["age"]', 'column = "age"\nby = "town"\npooled = true'
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    folder = tmp_path_factory.mktemp("languages")
    ages = ["young", "old", "oldest", None, "else"] * 200
    frame = pl.DataFrame({"age": ages, "town": ["a", "b"] * 500})
    concentrated = ORDERED.replace("epsilon = 2.0", "rho = 0.5, delta = 1e-9")
    return [
        of_election(folder),
        of_marriages(folder),
        made(ORDERED.replace('mechanism = "gaussian_parameters"\n', ""), frame, folder),
        made(concentrated, frame, folder),
        made(GROUPED.replace('mechanism = "gaussian_parameters"\n', ""), frame, folder),
    ]


def untranslated(reports: list[Report], name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Sentences that stay English on the pages of reports in a language."""
    missing: set[str] = set()
    usual = language.Language.__call__

    def noted(self: language.Language, english: str, **values: object) -> object:
        missing.update({english} - set(self.sentences))
        return usual(self, english, **values)

    with monkeypatch.context() as changed:
        changed.setattr(language.Language, "__call__", noted)
        for report in reports:
            rendered(report, name)
    return missing


@pytest.mark.parametrize("name", OTHERS)
def test_every_sentence_of_the_page_is_translated(name, reports, monkeypatch):
    assert untranslated(reports, name, monkeypatch) == set()


def test_a_sentence_without_translation_is_noticed(reports, monkeypatch):
    """Negative control: what a catalogue has not stays English."""
    some = language.Language("de", ",", {"Results": "Ergebnisse"})
    monkeypatch.setattr("opendp_bayes_office.report.page.language_of", lambda _: some)
    missing = untranslated(reports[:1], "de", monkeypatch)
    assert "What it cost" in missing
    assert "Results" not in missing
    page = rendered(reports[0], "de")
    assert "<h2>Ergebnisse</h2>" in page
    assert "<h2>What it cost</h2>" in page


def test_translations_have_the_places_of_the_sentences() -> None:
    """Values in sentences, and numbers and parts in notes."""
    for name in OTHERS:
        say = language.language_of(name)
        for english, translation in (say.sentences | say.notes).items():
            places = [sorted(re.findall(r"%\(\w+\)s|#", of)) for of in (english, translation)]
            assert places[0] == places[1], translation


def test_catalogues_have_the_same_sentences_and_nothing_that_no_page_says() -> None:
    catalogues = [language.language_of(name) for name in OTHERS]
    assert [one.language for one in catalogues] == OTHERS
    for other in catalogues[1:]:
        assert set(other.sentences) == set(catalogues[0].sentences)
        assert set(other.notes) == set(catalogues[0].notes)
    folder = Path(language.__file__).parent
    sources = [folder / "page.py", folder / "statements.py", folder / "templates/page.html"]
    sources.append(folder / "specification.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    code = re.sub(r'"\s*"', "", re.sub(r"\s+", " ", text))
    assert not [sentence for sentence in catalogues[0].sentences if sentence not in code]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("little", [[True], [True, False, False]])
def test_where_noise_hides_almost_everything_is_said_in_every_language(name, little):
    (said,) = little_said(np.array(little))
    translated = language.language_of(name).note(said)
    assert translated not in (None, said)
    assert ("1" in str(translated) and "3" in str(translated)) == (len(little) > 1)


def test_texts_of_others_are_no_markup_in_any_language() -> None:
    say = language.Language(sentences={"In %(column)s.": "<b>%(column)s</b>"})
    assert say("In %(column)s.", column="<i>") == "<b>&lt;i&gt;</b>"


def test_a_language_without_a_catalogue_is_refused() -> None:
    message = run("report", "any.json", "--language", "nl", code=2)
    assert message.startswith("opendp-bayes: --language nl: ")
    assert all(repr(name) in message for name in get_args(language.Tag))


@pytest.mark.parametrize("name", OTHERS)
def test_notes_have_marked_numbers_and_parts_that_are_notes(name: str) -> None:
    say = language.language_of(name)
    assert say.number("0.5") == "0,5"
    for english, other in say.notes.items():
        if "#" in english and "%(" not in english:
            assert say.note(english.replace("#", "0.5")) == other.replace("#", "0,5")
    say = language.language_of(name)
    promise = (
        "ρ = 0.5 (zero-concentrated), δ = 1e-09 for data sets that differ by 1 record changed."
    )
    note = str(say.note(f"All groups together: {promise} The number of records, 900, is public."))
    assert "ρ = 0,5 (" in note
    assert "900" in note
    assert not re.search("together|differ|record | is ", note)
    assert say.note("a sentence of nobody's") is None


LOOK = "check the spelling, capitals and spaces of the categories"
UNMATCHED = [
    f"About 95 % of the records of vote are none of Yes, <no>: {LOOK}.",
    f"Nearly all records of vote are none of Yes, <no>: {LOOK}.",
    f"About 95 % of the records are in no group: {LOOK} of town.",
    f"Nearly all records are in no group: {LOOK} of town and age.",
    "All counts together are 3, which may be noise alone: if you expect more records,"
    f" {LOOK} of vote.",
]


def test_notes_on_labels_that_match_nothing_are_those_of_releases() -> None:
    path = ROOT / "opendp_bayes/inference/unmapped_records.py"
    text = re.sub(r'"\s*f?"', "", path.read_text(encoding="utf-8"))
    assert LOOK in text
    for piece in (
        "are none of",
        "are in no group",
        "may be noise alone: if you expect more records",
    ):
        assert piece in text


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("note", UNMATCHED)
def test_notes_on_labels_that_match_nothing_are_translated(name: str, note: str) -> None:
    translation = str(language.language_of(name).note(note))
    assert not re.search("check|records|none|town and age are", translation)
    for part in re.findall("Yes, <no>|vote|town and age|town|A |95|3,", note):
        assert part in translation


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("size", [None, 900])
@pytest.mark.parametrize("kept", ["", "rows drawn at random, once for survey 167bf822,"])
def test_the_promise_of_limited_rows_is_translated_whole(name, size, kept):
    distance, loss = Distance.limited(2, largest=1), PrivacyLoss(0.5, 0.125, 1.0)
    promise = PrivacyGuarantee(size, distance, loss, "MaxDivergence", True, kept)
    note = str(language.language_of(name).note(in_words(promise)))
    assert not re.search("with|kept|record |drawn|limited|number", note)
    assert all(
        text in note for text in ["0,5", *("900",) * (size is not None), *kept[:-1].split()[-1:]]
    )
