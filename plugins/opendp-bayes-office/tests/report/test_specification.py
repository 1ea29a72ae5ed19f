"""The format of specifications: its JSON Schema, and the page that documents it."""

import re

import jsonschema
import pytest

from opendp_bayes_office.report.owner_file import OwnerFile, OwnersColumn, OwnersPrivacy
from opendp_bayes_office.report.specification import Column, Privacy, Result, json_schema
from opendp_bayes_office.report.specification_text import (
    read_owner_file,
    read_specification,
    tomllib,
)
from tests.helpers.sources import ROOT


def example() -> str:
    """The specification of the page."""
    page = (ROOT / "docs" / "reports.md").read_text()
    _, found = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    return found


def test_the_files_of_the_page_and_of_the_schema_are_specifications() -> None:
    page = (ROOT / "docs" / "reports.md").read_text()
    text, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    owner = read_owner_file(text)
    assert owner.privacy.most_rows_per_identifier == 5
    for kind in (OwnerFile, OwnersPrivacy, OwnersColumn):
        for field in kind.__struct_fields__:
            assert re.search(rf"\b{field}\b", page), field
    page = (ROOT / "docs" / "reports.md").read_text()
    found = read_specification(example())
    assert [result.heading for result in found.results] == [
        "Expected vote",
        "party by vote",
        "vote × party",
    ]
    for field in ("title", "separator", *Privacy.__struct_fields__, *Column.__struct_fields__):
        assert f"`{field}`" in page, field
    for field in Result.__struct_fields__:
        assert f"`{field}`" in page, field
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(example()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(example().replace("share", "chair")), schema)
