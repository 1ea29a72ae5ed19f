"""In which line of a TOML text a value is."""

import pytest

from opendp_bayes_office.report.lines import FieldError, SpecificationError, line_of, located


def test_lines_of_dotted_and_quoted_keys() -> None:
    text = "a.b = 1\n'c d'.e = 2\n[x]\ny = { z = 3 }\n"
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("c d", "e")) == 2
    assert line_of(text, ("x", "y", "z")) == 4
    assert line_of(text, ("x", "absent")) == 3


def test_a_table_that_is_not_named_itself_is_where_its_first_value_is() -> None:
    text = "title = 1\na.b = 1\na.c = 2\n[d.e]\nf = 3\n"
    assert line_of(text, ("a",)) == 2
    assert line_of(text, ("d",)) == 4
    assert line_of(text, ("absent",)) == 1


@pytest.mark.parametrize(
    ("problem", "message"),
    [("must be 2.", "line 3: a[1].b: must be 2."), ("=1: must be 2.", "line 3: a[1].b=1: must be")],
)
def test_an_error_of_a_field_gets_its_line(problem: str, message: str) -> None:
    with pytest.raises(SpecificationError) as caught, located("[[a]]\n[[a]]\nb = 1"):
        raise FieldError(("a", 1, "b"), problem)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("columns", "", "nulls"), 'columns."".nulls: is wrong.'),
        (("columns", "a.b", "nulls"), 'columns."a.b".nulls: is wrong.'),
        (("results", 0, "column"), "results[0].column: is wrong."),
        ((), "the file: is wrong."),
    ],
)
def test_a_field_is_named_step_by_step(path: tuple[str | int, ...], shown: str) -> None:
    assert str(FieldError(path, "is wrong.")) == shown
