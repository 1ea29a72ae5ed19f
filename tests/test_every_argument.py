"""Every argument matters: two values of each, whose results differ, and which of them is larger.

A row changes one argument of a call that is otherwise the same. A result that stays the same is
stated too, with its reason. A public function or an argument without a row fails.
"""

import inspect

import pytest

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.accounting.losses import PrivacyProfile
from opendp_bayes.inference.answers import posterior as answers
from opendp_bayes.inference.answers.ordered import QuantilePosterior
from opendp_bayes.inference.answers.quantities import Quantity
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior, NumberPosterior
from opendp_bayes.results.pooled_release import Pooled
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.table_posterior import TablePosterior
from tests.helpers.argument_rows import DIFFERENT, LARGER, REFUSED, SMALLER, Row, check
from tests.helpers.argument_rows_of_constructors import CONSTRUCTORS, QUERIES
from tests.helpers.argument_rows_of_losses import LOSSES
from tests.helpers.argument_rows_of_papers import PAPERS, PRESETS
from tests.helpers.argument_rows_of_posteriors import POSTERIORS, SHEETS
from tests.helpers.argument_rows_of_surveys import SURVEYS
from tests.helpers.doors import PUBLIC, names_of

ROWS = [*LOSSES, *PAPERS, *POSTERIORS, *SURVEYS, *CONSTRUCTORS, *QUERIES, *SHEETS]


@pytest.fixture(autouse=True)
def _quick(coarse_errors: None, short_chains: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less: no direction here depends on the last per cent."""
    monkeypatch.setattr(answers, "DRAWS", 4000)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_argument_matters(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("then", [LARGER, SMALLER, DIFFERENT, REFUSED])
def test_notices_an_argument_that_is_ignored(then: str) -> None:
    """Negative control; and a reason to be the same does not excuse a difference."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_an_argument_matters(
            Row(lambda ignored: 0.0, {"ignored": 1}, "ignored", 2, then, float)
        )
    with pytest.raises(AssertionError):
        test_an_argument_matters(Row(lambda x: x, {"x": 1}, "x", 2, "the same", float))


#: Not called with what a loss, a plan or a posterior depends on.
WITHOUT_ROWS = {"available_mechanisms", "load_mechanism", "on_disk"}
#: Give or compare draws, which differ from call to call; the tests of audits and
#: `tests/trusted/test_drawing.py` vary their arguments.
DRAWS = {"audit", "measured_sampler"}


def every_argument() -> set[tuple[str, str]]:
    """Of all public functions, mechanisms and their losses, profiles and posteriors."""
    everything = {**PUBLIC, **names_of(research)}
    public = [value for name, value in everything.items() if name not in WITHOUT_ROWS | DRAWS]
    mechanisms = [kind for kind in public if hasattr(kind, "proven_loss")]
    mechanisms.remove(ob.Mechanism)
    functions = [*filter(inspect.isfunction, public), *mechanisms, *PRESETS]
    functions.append(PrivacyProfile.__call__)
    functions += [kind.proven_loss for kind in mechanisms]
    functions += [ob.Release.pooled, GroupedRelease.pooled]
    answers: tuple[type, ...] = (CountsPosterior, NumberPosterior)
    answers += (Quantity, QuantilePosterior, Pooled, SurveyPosterior, TablePosterior)
    for kind in (PrivacyProfile, ob.NoiseAwarePosterior, *answers):
        methods = [method for _, method in inspect.getmembers(kind, inspect.isfunction)]
        ours = [method for method in methods if method.__module__.startswith("opendp_bayes")]
        functions += [method for method in ours if not method.__name__.startswith("_")]
    return {
        (function.__qualname__, parameter.name)
        for function in functions
        if not function.__name__.startswith("then_")
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }


def test_every_argument_has_a_row() -> None:
    stated = {(row.function.__qualname__, row.argument) for row in ROWS}
    options = {("posterior", "gamma")}  # of the mechanism named
    assert every_argument() == stated - options
