"""Every argument of every public function, given what it cannot be: our error, or an answer."""

import re
import warnings
from collections.abc import Iterator

import pytest

from opendp_bayes.inference.answers import posterior as answers
from tests.helpers.argument_rows import Row
from tests.hostile.test_arguments_of_results import WRONG
from tests.test_every_argument import ROWS

#: By argument and what it is given, a pattern of what is said of another argument that no longer
#: fits.
OF_ANOTHER = {("by", "text"): "^categories=.* grouped by", ("variances", "empty"): "^estimates"}
#: Take True or False, and nothing that Python takes for one of them.
FLAGS = {"tune", "private", "truncated", "draws_may_agree"}


@pytest.fixture(autouse=True)
def _quick(coarse_errors: None, short_chains: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)


def calls() -> dict[str, Row]:
    """A call for each argument; methods of results are in `test_arguments_of_results.py`."""
    each = {str(row): row for row in ROWS}
    return {key: row for key, row in each.items() if "." not in key or "proven_loss" in key}


def faults_of(row: Row) -> Iterator[str]:
    argument = row.argument
    for what, wrong in WRONG.items():
        pattern = OF_ANOTHER.get((argument, what), rf"\b{argument}\b.*[:=]")
        try:
            row.function(**{**row.base, argument: wrong})
        except (ValueError, TypeError) as error:
            if not re.search(pattern, str(error)):
                yield f"{row}={what}: {error!r}"
        except Exception as error:  # noqa: BLE001
            yield f"{row}={what}: {error!r}"
        else:
            if argument in FLAGS:
                yield f"{row}={what}: answers"


def test_what_an_argument_cannot_be_is_said() -> None:
    """Negative controls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        faults = [fault for row in calls().values() for fault in faults_of(row)]
    assert faults == []

    def function(x: float, tune: bool = True) -> float:
        return float(x)

    for argument, number in {"x": 4, "tune": 6}.items():
        row = Row(function, {"x": 1.0}, argument, 2.0, "larger", float)
        assert len(list(faults_of(row))) == number
