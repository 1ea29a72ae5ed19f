"""How an error calls a field."""

import pytest

from opendp_bayes_office.report.field_errors import FieldError


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
