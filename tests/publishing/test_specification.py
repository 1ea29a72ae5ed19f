"""Specifications: what is read, and in which line something is wrong."""

import re
from pathlib import Path

import jsonschema
import pytest

from opendp_bayes.publishing.lines import line_of
from opendp_bayes.publishing.specification import (
    Column,
    Privacy,
    Result,
    SpecificationError,
    json_schema,
    read_specification,
    tomllib,
)

TEXT = """\
title = "Votes"  # a comment

[privacy]
epsilon = 1.0

[columns.vote]
categories = ["a", "b"]

[columns."age group"]
categories = [1, 2]
labels = ["young", "old"]
unknown = "other"

[[results]]
column = "vote"

[[results]]
column = ["vote", "age group"]
share = 2
prior = 0.5
"""


def test_what_is_written_is_read() -> None:
    found = read_specification(TEXT)
    assert (found.title, found.privacy.epsilon, found.privacy.contributions) == ("Votes", 1.0, 1)
    assert found.columns["age group"].labels == ["young", "old"]
    assert [result.heading for result in found.results] == ["vote", "vote × age group"]
    assert [result.columns for result in found.results] == [["vote"], ["vote", "age group"]]


LIMITED = 'epsilon = 1.0\nidentifier = "id"\nrows_per_identifier = 1\nsize = 9'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 1.0", "epsilon = ", r"is not TOML: .*line 4"),
        ("epsilon = 1.0", "epsilon = 0", r"line 4: privacy\.epsilon: Expected `float` > 0\.0"),
        ("epsilon = 1.0", "epsilon = 'x'", r"line 4: privacy\.epsilon: Expected `float"),
        ("epsilon = 1.0", "", r"line 3: privacy: must have epsilon or rho, and not both"),
        ("epsilon = 1.0", "epsilon = 1.0\nrho = 1", r"line 3: privacy: must have epsilon or rho"),
        ("epsilon = 1.0", "eps = 1.0", r"line 3: privacy: Object contains unknown field `eps`"),
        ("epsilon = 1.0", "rho = 1.0\ndelta = 1", r"line 5: privacy\.delta: Expected `float` < 1"),
        ("epsilon = 1.0", "rho = 1.0\nsize = 0", r"line 5: privacy\.size: Expected `int` >= 1"),
        ("epsilon = 1.0", 'rho = 1\nidentifier = "id"', r"line 3: privacy: identifier and rows_"),
        ("epsilon = 1.0", 'rho = 1\nshares = "equal"', r"line 5: privacy\.shares: Invalid enum"),
        ("epsilon = 1.0", 'rho = 1\nshares = "equal_errors"', r"line 3: privacy: guess_size goes"),
        ("epsilon = 1.0", "rho = 1\nguess_size = 9", r"line 3: privacy: guess_size goes with"),
        (
            "epsilon = 1.0",
            'rho = 1\nshares = "smallest_error"\nguess_size = 9',
            r"line 5: privacy\.shares: finds the shares; leave out share",
        ),
        ("epsilon = 1.0", LIMITED, r"line 7: privacy\.size: does not go with an identifier"),
        ('["a", "b"]', '"ab"', r"line 7: columns\.vote\.categories: Expected `array | null`"),
        ("[1, 2]", "[1, 2.5]", r"line 10: columns\.age group\.categories: Expected"),
        ("[1, 2]", "[]", r"line 10: columns\.age group\.categories: .*length >= 1"),
        ('["young", "old"]', '["young"]', r"line 11: .*labels: must be one for each of categor"),
        ("categories = [1, 2]\n", "", r"line 10: .*labels: needs categories, of which each has"),
        ('["young", "old"]', '["y", "y"]', r"line 11: .*labels: must all be different"),
        ('column = "vote"', 'column = "vot"', r"line 15: results\[0\]\.column: 'vot' is not under"),
        ('column = "vote"', "", r"line 14: results\[0\]: .*missing required field `column`"),
        ('column = "vote"', 'column = "vote"\nby = "town"', r"line 16: .*by: 'town' is not under"),
        ('column = "vote"', 'column = "vote"\nby = "vote"', r"line 16: .*by: must be another"),
        ("share = 2", "share = 0", r"line 19: results\[1\]\.share: Expected `float` > 0"),
        ("share = 2", 'title = "vote"', r"line 17: results\[1\]: 'vote' is there already"),
        ('["vote", "age group"]', '["vote", "vote"]', r"line 18: .*column: must name at least"),
        ("title =", "titel =", r"line 1: the file: Object contains unknown field `titel`"),
    ],
)
def test_an_error_has_its_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(SpecificationError, match=message):
        read_specification(TEXT.replace(old, new, 1))


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(SpecificationError, match="must have at least one"):
        read_specification("results = []\n" + TEXT[: TEXT.index("[[results]]")])


def test_the_schema_accepts_what_is_read_and_refuses_what_is_not() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(TEXT), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(TEXT.replace("share", "chair")), schema)


def test_the_example_of_the_page_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    found = read_specification(example)
    assert [result.heading for result in found.results] == [
        "Expected vote",
        "party by vote",
        "vote × party",
    ]
    for field in ("title", "separator", *Privacy.__struct_fields__, *Column.__struct_fields__):
        assert f"`{field}`" in page, field
    for field in Result.__struct_fields__:
        assert f"`{field}`" in page, field


def test_lines_of_dotted_and_quoted_keys() -> None:
    text = "a.b = 1\n'c d'.e = 2\n[x]\ny = { z = 3 }\n"
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("c d", "e")) == 2
    assert line_of(text, ("x", "y", "z")) == 4
    assert line_of(text, ("x", "absent")) == 3
