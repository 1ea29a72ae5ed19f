"""Labels that are given, of which types, and which names are spelled alike."""

import warnings
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from tests.helpers.contexts import checked_context

REST = {"nulls": "none", "unknown": "other"}


class Vote(str, Enum):
    YES = "yes"
    NO = "no"


class Code(IntEnum):
    ONE = 1
    TWO = 2


def query(frame: pl.DataFrame) -> Any:
    context = checked_context(frame, loss={"epsilon": 1e5})
    return context.query()


FRAME = pl.DataFrame(
    {"vote": ["yes", "yes", "no", None], "code": [1, 1, 2, 7], "on": [True, True, False, None]}
)


FORMS: dict[str, Any] = {
    "of numpy": lambda label: np.str_(label) if isinstance(label, str) else np.int64(label),
    "of an Enum": lambda label: Vote(label) if isinstance(label, str) else Code(label),
}
BOTH = {"categories": {"vote": ["yes", "no"], "code": [1, 2]}}
ONE: dict[str, Any] = {"column": "vote", "categories": ["yes", "no"], "unknown": "no"}
#: Every place of a question that labels are written in, but for the categories themselves.
PLACES: dict[str, Any] = {
    "nulls": lambda of: {**ONE, "nulls": of("no")},
    "unknown": lambda of: {**ONE, "nulls": "no", "unknown": of("yes")},
    "prior": lambda of: {**ONE, "nulls": "no", "prior": {of("yes"): 2.0, of("no"): 3.0}},
    "merge": lambda of: {**ONE, "nulls": "no", "merge": {"a": [of("yes")], "b": [of("no")]}},
    "groups": lambda of: {
        "column": "vote",
        "by": "code",
        **BOTH,
        "unknown": {"vote": "no", "code": of(2)},
        "nulls": {"vote": "no", "code": of(1)},
    },
    "cells": lambda of: {
        "column": ["vote", "code"],
        **BOTH,
        "nulls": {"vote": of("no"), "code": of(2)},
        "cells": [(of("yes"), of(1)), (of("no"), of(2))],
        "unknown": {"vote": of("no"), "code": of(2)},
    },
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_a_label_in_any_form_is_the_plain_one_at_every_place(form: str, place: str) -> None:
    """Of numpy and of an Enum: in every argument that has labels, the same release."""
    plain, other = (
        ob.survey(query(FRAME), {"asked": PLACES[place](of)}).release()["asked"]
        for of in (lambda label: label, FORMS[form])
    )
    assert other.to_json() == plain.to_json()


@pytest.mark.parametrize(
    ("column", "labels", "advice"),
    [
        ("code", [1.0, 2.0], "1.0 does not fit a column of type Int64; each must be int. Write"),
        ("code", ["1", "2"], r"Write labels as the data do, 1 or '1', or cast the column"),
        ("vote", [1, 2], r"must be str. .* pl.col\('vote'\).cast\(pl.Int64, strict=False"),
        ("vote", ["yes", None], "nulls have a label of their own by nulls='missing'"),
    ],
)
def test_labels_of_another_type_say_what_to_write(column: str, labels: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        ob.posterior(query(FRAME), column, categories=labels, **REST)


COMPOSED, APART = "caf\u00e9", "cafe\u0301"
SAID = "differ in nothing but blanks around them or the form of Unicode"


def asked(column: str, labels: list[str], **others: str) -> Any:
    frame = pl.LazyFrame(schema={"drink": pl.String, COMPOSED: pl.String, **others})
    context = checked_context(frame)
    return ob.posterior(context.query(), column, categories=labels, nulls="n", unknown="u")


@pytest.mark.parametrize("labels", [[COMPOSED, APART], ["tea", "tea "], ["x", " x", "y"]])
def test_labels_that_are_spelled_alike_are_said(labels: list[str]) -> None:
    with pytest.warns(UserWarning, match=f"{SAID}; they are counted apart."):
        asked("drink", labels)


def test_names_that_are_spelled_alike_are_said() -> None:
    with pytest.warns(UserWarning, match=f"it and another column of the frame {SAID}."):
        asked(COMPOSED, ["a", "b"], **{APART: pl.String})
    with pytest.warns(UserWarning, match="column='drink': it and another column"):
        asked("drink", ["a", "b"], **{"drink ": pl.String})


@pytest.mark.parametrize("labels", [["Tea", "tea"], ["ss", "\u00df"], ["a b", "ab"]])
def test_others_are_not(labels: list[str]) -> None:
    """Negative control."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked("drink", labels)


def test_a_name_with_a_blank_is_another_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("vote \nyes\n", encoding="utf-8")

    def said(column: str) -> str:
        options = ["--column", column, "--categories", "yes,no", "--epsilon", "1"]
        return " ".join(CliRunner().invoke(app, ["release", str(path), *options]).output.split())

    assert "check spelling, capitals and blanks" in said("vote")
