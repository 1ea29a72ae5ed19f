"""What is read of a specification, and which field of it is wrong."""

import json

import msgspec
import pytest

from opendp_bayes_office.report.field_errors import SpecificationError
from opendp_bayes_office.report.specification import Specification
from opendp_bayes_office.report.specification_text import read_specification, tomllib

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


def test_what_is_written_is_read_but_half_characters() -> None:
    """JSON can name it and no file can hold it, so that a release of it would be lost."""
    found = read_specification(TEXT)
    assert (found.title, found.privacy.epsilon, found.privacy.contributions) == ("Votes", 1.0, 1)
    assert found.columns["age group"].labels == ["young", "old"]
    assert [result.heading for result in found.results] == ["vote", "vote × age group"]
    assert [result.columns for result in found.results] == [["vote"], ["vote", "age group"]]
    text = '{"title": "Votes\\ud800", "privacy": {"epsilon": 1}, "columns": {}, "results": []}'
    with pytest.raises(SpecificationError, match=r"^'Votes\\ud800': has control characters"):
        read_specification(text)
    assert read_specification('separator = "\\u0001"\n' + TEXT).separator == "\x01"


LIMITED = 'epsilon = 1.0\nidentifier = "id"\nrows_per_identifier = 1\nsize = 9'


POOLED = 'column = "vote"\nby = "age group"\npooled = true\nprior = 2'
TWO_RESULTS = '[[results]]\ncolumn = "vote"\n\n[[results]]\ncolumn = ["vote", "age group"]'
MANY = "epsilon = 1.0\ncontributions = 2147483648"
LEARNT = r"results\[1\]\.prior='learnt': .*a number or a list or 'auto' or 'learned'"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 1.0", "epsilon = ", r"is not TOML: .*line 4"),
        ("epsilon = 1.0", "epsilon = 0", r"privacy\.epsilon=0: .*> 0"),
        ("epsilon = 1.0", "epsilon = 'x'", r"privacy\.epsilon='x': must be a number"),
        ("epsilon = 1.0", "", r"privacy: .*not both"),
        ("epsilon = 1.0", "epsilon = 1.0\nrho = 1", r"privacy: .*epsilon or rho"),
        ("epsilon = 1.0", "eps = 1.0", r"privacy\.eps: .*not a field.* Did you mean 'epsilon'"),
        ("epsilon = 1.0", "rho = 1.0\ndelta = 1", r"privacy\.delta=1: .*< 1"),
        ("epsilon = 1.0", "rho = 1.0\nsize = 0", r"privacy\.size=0: .*>= 1"),
        ("epsilon = 1.0", 'rho = 1\nidentifier = "id"', r"privacy: identifier and rows_"),
        ("epsilon = 1.0", 'rho = 1\nshare = "weights"', r"privacy\.share: is not a field"),
        ("[privacy]", 'among = "none"\n[privacy]', r"among='none': must be 'answered' or"),
        ("epsilon = 1.0", MANY, r"privacy\.contributions=2147483648: .*<= 2147483647"),
        ("[privacy]\nepsilon", "privacy.epsilom", r"privacy\.epsilom: .*not a field"),
        ("[privacy]\nepsilon = 1.0", "privacy.size = 9", r"privacy: .*epsilon or"),
        ("[privacy]\nepsilon = 1.0", "privacy = { eps = 1.0 }", r"privacy\.eps: is not a"),
        ("epsilon = 1.0", LIMITED, r"privacy\.size: .*an identifier"),
        ('["a", "b"]', '"ab"', r"columns\.vote\.categories='ab': .*'discover'"),
        ("[1, 2]", "[1, 2.5]", r"columns\.age group\.categories\[1\]=2.5: .*text"),
        ('unknown = "other"', "unknown = 1979-05-27", "must be text or a whole number or true"),
        ("[1, 2]", "[]", r"columns\.age group\.categories=\[\]: .*>= 1"),
        ('["young", "old"]', '["young"]', r".*labels: .*one for each"),
        ("categories = [1, 2]\n", "", r".*labels: .*one for each"),
        ('["young", "old"]', '["y", "y"]', r".*labels: .*all different"),
        ('column = "vote"', 'column = "vot"', r"results\[0\]\.column: 'vot' .*under"),
        ('column = "vote"', "", r"results\[0\]\.column: is missing"),
        ('column = "vote"', 'column = "vote"\nby = "town"', r".*by: 'town' .*under"),
        ("prior = 0.5", "pooled = true", r"results\[1\]\.pooled: .*for groups"),
        ('column = "vote"', POOLED, r"results\[0\]\.prior: .*with pooled"),
        ("prior = 0.5", "prior = 'learnt'", LEARNT),
        ('title = "Votes"', "", r"title: is missing"),
        (TWO_RESULTS, '[results]\ncolumn = "vote"', r"results=.*write \[\[results\]\]"),
        ("share = 2", "share = 0", r"results\[1\]\.share=0: .*> 0"),
        ("prior = 0.5", "prior = true", r".*prior=True: "),
        ('"Votes"', '""', r"title='': .*>= 1"),
        ("share = 2", 'title = "vote"', r"results\[1\]\.title='vote': .*already"),
        ("title =", "titel =", r"titel: is not a field; must be one of .*, title, text, .*'title'"),
        ("prior = 0.5", "pryor = 0.5", r"results\[1\]\.pryor: is not a field; .*column, title,"),
        ("labels = [", "label = [", r"columns\.age group\.label: is not a field; .*categories,"),
    ],
)
def test_an_error_has_its_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(SpecificationError, match=message):
        read_specification(TEXT.replace(old, new, 1))


_FIELDS = msgspec.structs.fields(Specification)
CHOICES = [field.name for field in _FIELDS if "Literal" in str(field.type)]


@pytest.mark.parametrize("name", CHOICES)
def test_a_word_that_is_no_choice_of_a_field_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(SpecificationError, match=f"{name}='none of these': must be '.*' or '"):
        read_specification(f"{name} = 'none of these'\n{TEXT}")


NESTED = ['{"a": ' * 100_000 + "1" + "}" * 100_000, "a = " + "[" * 100_000 + "]" * 100_000]


@pytest.mark.parametrize("text", NESTED)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(SpecificationError, match="objects or lists too deep"):
        read_specification(text)


@pytest.mark.parametrize("hidden", ["\\u001b[2J", "\\u000d", "\\u202e", "\\u009b", "\\u007f"])
@pytest.mark.parametrize("old", ["Votes", "young", "age group"])
def test_a_specification_cannot_write_to_the_terminal_of_who_reads_it(old, hidden):
    """Control characters would let a question of somebody else's hide the budget it asks for."""
    with pytest.raises(SpecificationError, match=r"^'.*': has control characters") as e:
        read_specification(TEXT.replace(f'"{old}"', f'"{old}{hidden}"'))
    assert str(e.value).isprintable()
    read_specification(TEXT.replace('"Votes"', '"Votes\\n\\t\u200f é"'))


@pytest.mark.parametrize("text", [TEXT, json.dumps(tomllib.loads(TEXT))], ids=["TOML", "JSON"])
def test_a_mark_before_utf_8_is_none_of_the_text(text: str) -> None:
    assert read_specification(f"\ufeff{text}") == read_specification(text)
