"""Several posterior queries in one: one budget, one composition, one debit."""

import math
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl
from opendp.combinators import make_composition
from opendp.context import Query
from opendp.core import new_function
from opendp.extras.polars import LazyFrameQuery
from opendp.mod import Measurement, Transformation

from opendp_bayes.mathematics.rounding import divided
from opendp_bayes.mathematics.telling import meant, told, warn
from opendp_bayes.mathematics.validation import MOST_RESULTS, as_positive, check_cells
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries.base import Bound, Divisible, ReleasedQuery
from opendp_bayes.queries.bound_query import BoundQuery, ask
from opendp_bayes.queries.categorical_counts import CountsOfFrame
from opendp_bayes.queries.question import ARGUMENTS, Countable, LeftOut, Question
from opendp_bayes.release_format.labels import are_same, in_order, place_of
from opendp_bayes.results.release import Release
from opendp_bayes.surveys.joint_posterior import check_joint
from opendp_bayes.surveys.survey import Survey
from opendp_bayes.trusted.boundary import guarded, require_features
from opendp_bayes.trusted.budget import as_tuple, check_query_budget, shown
from opendp_bayes.trusted.opendp_internals import parts_of

_A_QUESTION = "a mapping with a column, as in dict(column='vote', categories=['yes', 'no'])"


@np.errstate(under="ignore")
def survey(
    query: Query | LazyFrameQuery | Countable,
    questions: Mapping[str, Mapping[str, Any] | Divisible],
    share: Literal["equal"] | Mapping[str, float] = "equal",
) -> "SurveyQuery":
    """Ask a Context several questions of the same records for one budget; `.release()` debits the
    Context once and returns a `Survey`, a mapping of releases.

    More than 200 questions, or 50 000 cells of all, are refused in the same way. Warns where two
    questions count the nulls or unknown values of a column in different places.

    Parameters
    ----------
    query : Query or LazyFrameQuery or Countable
        `context.query()`, with any plan of the user's own after it (filter, with_columns, casts,
        truncation by identifier); or a `Countable` of a plugin. Its budget is that of all
        questions together.
    questions : Mapping[str, Mapping[str, Any] or Divisible]
        From the name of each question to a mapping of its arguments: `column`, a column or a list
        of them, and as needed others of `posterior`. These are `categories`, `nulls`, `unknown`,
        `by`, `prior`, `ordered`, `size`, `cells`, `mechanism` and its options. `merge`, a mapping
        from each new label to the categories (of a joint table, cells) that are counted in it, each
        category once, asks for merged categories. `share` is the question's weight among equal
        ones, 1 unless given. `levels` makes questions of ordered categories and groups of them.
        Where nobody can list the categories, the question is `discover(context.query(), column,
        ...)` of the same Context, with a plan of its own; its budget is its part of the survey's,
        which needs δ.
    share : {"equal"} or Mapping[str, float], default "equal"
        `"equal"`, but for the questions' own `share`; or instead of these a positive weight for
        every question by name. The budget, and its δ, are divided in proportion; no rounding makes
        the parts exceed it.

    Raises
    ------
    ValueError, TypeError
        With the name of the question in front, for arguments that do not fit each other or the
        Context, before any data is read or budget spent.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import polars as pl
    >>> import opendp_bayes as ob
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> context = ob.context(
    ...     pl.LazyFrame({"vote": [True] * 60 + [False] * 40, "member": [True, False] * 50}),
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=1,
    ... )
    >>> both = {"categories": [True, False], "nulls": False}
    >>> query = ob.survey(
    ...     context.query(),
    ...     {"vote": {"column": "vote", **both}, "members": {"column": "member", **both}},
    ...     share={"vote": 3, "members": 1},
    ... )
    >>> answers = query.release()
    >>> {name: release.epsilon for name, release in answers.items()}, answers.loss.epsilon
    ({'vote': 0.75, 'members': 0.25}, 1.0)
    """
    require_features("survey")
    if not isinstance(questions, Mapping):
        raise TypeError(
            "questions: must be a mapping from names to arguments of `posterior`, as in"
            f" {{'vote': dict(column='vote')}}, not {type(questions).__name__}."
        )
    if not questions:
        raise ValueError("questions: must hold at least one.")
    if len(questions) > MOST_RESULTS:
        raise ValueError(
            f"questions: are {len(questions)} results; must be at most {MOST_RESULTS}. Ask for"
            " them in several queries."
        )
    bound: dict[str, Bound[Any]] = {}
    cells = 0
    for question, arguments in questions.items():
        bound[question] = _bind(query, question, arguments)
        cells += bound[question].number_listed
        check_cells("questions", cells)
    survey_query = SurveyQuery(bound, _budget_allocation(share, questions))
    warn_of_places(
        {question: bound_query.question for question, bound_query in survey_query.questions.items()}
    )
    return survey_query


class SurveyQuery(ReleasedQuery[Survey]):
    """A query made by `survey`. `resolve` gives the measurement, `release` the `Survey`."""

    def __init__(self, bound: Mapping[str, Bound[Any]], weights: Mapping[str, float]) -> None:
        base = next(iter(bound.values())).base
        super().__init__(*parts_of(base))
        self._bound, self._weights = dict(bound), dict(weights)

    @property
    def questions(self) -> dict[str, BoundQuery]:
        """The questions whose categories are listed, by name."""
        return {
            question: bound
            for question, bound in self._bound.items()
            if isinstance(bound, BoundQuery)
        }

    def _measurement(self, *, raw: bool) -> Measurement:
        """The composition of all measurements, of what users get, or `raw` of what was drawn."""
        self._settle()
        alike = self._frames
        together, counts = (
            alike[0].gate.counts([frame.cells for frame in alike]) if alike else (None, [])
        )
        starts = dict(zip(self.questions, counts, strict=False))
        parts: dict[str, Any] = {}
        for question, (bound, budget) in self._shared().items():
            start = [starts[question]] if question in starts else []
            with _about(question):
                parts[question] = bound.measurement(budget, *start, raw=raw)
        measurement = (
            make_composition(list(parts.values()))
            if together is None
            else _composed(together, list(starts), parts)
        )
        loss = as_tuple(measurement.map(parts_of(self).d_in))
        limits = as_tuple(parts_of(self).d_out)
        if any(spent > limit for spent, limit in zip(loss, limits, strict=True)):
            raise ValueError(
                f"questions: OpenDP adds their losses up to {shown(loss)}, more than the budget of"
                f" the query, {shown(limits)}. Ask fewer questions, or in several surveys."
            )
        return measurement

    @np.errstate(under="ignore")
    def summarize(self, guess_size: int | None = None) -> pl.DataFrame:
        """Describe the releases that the survey would make and their debits, as a polars frame with
        a row for each question. Reads no data and spends nothing.

        `guess_size` is a public guess of a private number of records; without it there is no
        `interval_width`. The columns are:

        * `question`, its name, with its `column`, `aggregate` and `prior`;
        * `categories`: whether they, and those of groups, were given or are those of the type of
          the column, with a reminder that an Enum must not be made from the data;
        * `nulls` and `unknown`: the label under which records without a value and with another one
          are counted, or that they are left out or cannot occur;
        * `mechanism` and its `scale`;
        * `neighbours` and `d_in`: the records that one privacy unit changes, or adds and removes;
        * `epsilon`, `delta` and `rho`: certified upper bounds of the loss for one unit;
        * `debits`: the debit of the Context, in its measure;
        * `interval_width`: the expected width of a 95 % interval for balanced proportions.

        A question whose categories are discovered has the columns of `DiscoveryQuery.summarize`
        that are not among these, such as its `threshold`, and no `scale`.

        Raises
        ------
        ValueError
            If the query has no budget, a question finds no scale within its share, or a public
            number of records is guessed.
        """
        self._settle()
        rows = [
            bound.summary(budget, guess_size).select(pl.lit(question).alias("question"), pl.all())
            for question, (bound, budget) in self._shared().items()
        ]
        return pl.concat(rows, how="diagonal")

    def __repr__(self) -> str:
        try:
            self._settle()
            lines = [
                f"{question!r}: {bound.described(budget)}"
                for question, (bound, budget) in self._shared().items()
            ]
        except ValueError as error:
            return f"SurveyQuery({error})"
        return "SurveyQuery({{{}}})".format(",\n ".join(lines))

    def _made_of(self, draws: Any) -> Survey:
        """The survey, of what was drawn for each question."""
        # Rows that no fixed rule keeps are the same in this survey, and in no other release.
        once = ""
        if self._frames:
            once = f"rows drawn at random, once for survey {secrets.token_hex(4)},"
        releases = [
            bound.restating(budget, once)(released)
            for (bound, budget), released in zip(self._shared().values(), draws, strict=True)
        ]
        return Survey(tuple(self._bound), tuple(releases))

    @property
    def share(self) -> dict[str, float]:
        """The part of the budget that each question gets, by name; they add up to 1."""
        total = math.fsum(self._weights.values())
        return {question: weight / total for question, weight in self._weights.items()}

    def _settle(self) -> None:
        """Raise `ValueError` where the budget buys a question nothing, or no posterior."""
        self.settings, self.discoveries  # noqa: B018

    @property
    def settings(self) -> dict[str, Setting]:
        """The mechanism of each question whose categories are listed, by name, with the smallest
        scale that its part of the budget buys.

        Raises
        ------
        ValueError
            Where there is none, and where its releases have no posterior.
        """
        mechanisms: dict[str, Setting] = {}
        for question, (bound, budget) in self._shared().items():
            if isinstance(bound, BoundQuery):
                with _about(question):
                    mechanisms[question] = bound.settled(budget)
        return mechanisms

    @property
    def discoveries(self) -> dict[str, Any]:
        """The law of each question whose categories are discovered, by name, that its part of the
        budget buys.

        Raises
        ------
        ValueError
            Where there is none.
        """
        laws = {}
        for question, (bound, budget) in self._shared().items():
            if not isinstance(bound, BoundQuery):
                with _about(question):
                    laws[question] = bound.settled(budget)
        return laws

    def check_joint(self) -> None:
        """Raise `ValueError` where the releases would have no posterior together, that of
        `Survey.posterior`, whatever is drawn. Each has its own all the same, so `release` does not
        ask for it.
        """
        tables, settings = {}, self.settings
        for question in (question for question in self._bound if question not in self.questions):
            raise ValueError(
                f"questions[{question!r}]: has categories that are to be discovered, which have no"
                " posterior together with others; ask for it in another survey."
            )
        for question, bound in self.questions.items():
            table = bound.foreseen(settings[question])
            if not isinstance(table, Release):
                raise ValueError(
                    f"questions[{question!r}]: is of groups, which have no posterior together with"
                    " others; ask for a joint table instead, as in column=['region', 'vote']."
                )
            tables[question] = table
        check_joint(tables)

    def check_pooled(self, name: str) -> None:
        """Raise `ValueError` where the groups of a question are counted without noise."""
        setting = self.settings[name]
        if not setting.adds_noise:
            raise ValueError(
                f"questions[{name!r}]: pooled: needs noise on the counts, not"
                f" {type(setting.mechanism).__name__}; name another, as in mechanism ="
                " 'laplace_parameters', or leave out pooled."
            )

    @cached_property
    def _frames(self) -> list[CountsOfFrame]:
        """The counts of all questions of listed categories where one pass counts for all of them;
        otherwise none.
        """
        return frames_of_the_same_rows(self.questions.values())

    def _shared(self) -> dict[str, tuple[Bound[Any], Any]]:
        """Every question with its part of the budget."""
        check_query_budget(parts_of(self).d_out)
        limits = as_tuple(parts_of(self).d_out)
        weights = [self._weights[question] for question in self._bound]
        finite = [min(limit, sys.float_info.max) for limit in limits]
        parts = list(zip(*(divided(limit, weights) for limit in finite), strict=True))
        return {
            question: (bound, budget if isinstance(parts_of(self).d_out, tuple) else budget[0])
            for (question, bound), budget in zip(self._bound.items(), parts, strict=True)
        }


def _budget_allocation(
    share: Literal["equal"] | Mapping[str, float], questions: Mapping[str, Any]
) -> dict[str, float]:
    """The weight of each question in the budget, by name, checked."""
    weights = {
        question: as_positive(
            arguments.get("share", 1) if isinstance(arguments, Mapping) else 1,
            f"questions[{question!r}]: share",
        )
        for question, arguments in questions.items()
    }
    if isinstance(share, Mapping):
        if in_order(share, list(questions)) is None:
            raise ValueError(
                f"share={dict(share)!r}: must have a weight for each of"
                f" {', '.join(map(repr, questions))}, and no other."
            )
        return {
            question: as_positive(share[question], f"share[{question!r}]") for question in questions
        }
    if share != "equal":
        raise ValueError(
            f"share={told(share)}: must be 'equal', or a mapping from every question to a weight."
        )
    return weights


def _composed(
    together: Transformation, counted: list[str], parts: Mapping[str, Measurement]
) -> Any:
    """The composition of measurements by name, some of which begin behind a transformation that
    has counted for all of them. It gives what they draw in their order.
    """
    behind: Any = together >> make_composition([parts[question] for question in counted])
    others = {
        question: measurement for question, measurement in parts.items() if question not in counted
    }
    if not others:
        return behind

    def in_order(draws: Any) -> list[Any]:
        by_name = dict(zip((*counted, *others), (*draws[0], *draws[1:]), strict=True))
        return [by_name[question] for question in parts]

    ordered = new_function(guarded(in_order, "survey"), TO="ExtrinsicObject")
    return make_composition([behind, *others.values()]) >> ordered


def _bind(query: Any, name: str, arguments: Any) -> Bound[Any]:
    """One question, put to the query."""
    if type(name) is not str:
        raise TypeError(f"questions: the name {name!r} must be a str, not {type(name).__name__}.")
    if isinstance(arguments, Divisible):
        with _about(name):
            return arguments.within(query)
    if not isinstance(arguments, Mapping):
        raise TypeError(f"questions[{name!r}]={told(arguments)}: must be {_A_QUESTION}.")
    if "column" not in arguments:
        unknown = [key for key in arguments if key not in ARGUMENTS]
        hint = "".join(meant(key, ["column"]) for key in unknown)
        raise TypeError(
            f"questions[{name!r}]: must be {_A_QUESTION}; its keys are"
            f" {told(list(arguments))}.{hint}"
        )
    options = {key: value for key, value in arguments.items() if key != "share"}
    with _about(name):
        mechanism = options.pop("mechanism", "auto")
        question = {key: options.pop(key) for key in ARGUMENTS if key in options}
        return ask(query, Question.of(**question), mechanism, options)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """A block whose errors are about a question, and say so."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"questions[{name!r}]: {error}") from None


def frames_of_the_same_rows(questions: Iterable[BoundQuery]) -> list[CountsOfFrame]:
    """The counts of questions, if all are of one frame by the same plan, so that one pass can count
    for all of them; otherwise none.
    """
    queries = list(questions)
    frames = [bound.frame for bound in queries if bound.frame is not None]
    alike = len(frames) == len(queries) and all(
        frame.gate.plan is frames[0].gate.plan for frame in frames
    )
    return frames if alike else []


def warn_of_places(questions: Mapping[str, Question]) -> None:
    """Warn where two questions without groups count the nulls or the unknown values of a column in
    different places: their true counts do not add up, and one posterior of both would not know.
    """
    alone = {first_name: question for first_name, question in questions.items() if not question.by}
    for (first_name, first), (second_name, second) in combinations(alone.items(), 2):
        columns = {variable.column: variable for variable in second.variables}
        for variable in first.variables:
            if variable.column not in columns:
                continue
            for policy in ("nulls", "unknown"):
                places = getattr(variable, policy), getattr(columns[variable.column], policy)
                if not _is_one_place(*places, first, second):
                    warn(
                        f"questions[{first_name!r}], questions[{second_name!r}]: count {policy} of"
                        f" {variable.column!r} in different places, {told(places[0])} and"
                        f" {told(places[1])}, so that their counts do not add up; for one posterior"
                        " of both give them the same."
                    )


def _is_one_place(first: Any, second: Any, *questions: Question) -> bool:
    """True if two questions count records of a kind alike, or there are none of it."""
    if first is None or second is None or are_same(first, second):
        return True
    if isinstance(first, LeftOut) or isinstance(second, LeftOut):
        return False
    return any(
        place_of(first, labels) is not None and place_of(second, labels) is not None
        for question in questions
        for labels in question.parts
    )
