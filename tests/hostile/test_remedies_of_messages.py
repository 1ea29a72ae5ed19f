"""What a message of the library tells to write is written, and leads to an answer; so does every
row of the page of messages that names a remedy.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.sources import ROOT

AB = ["a", "b"]
FRAME = pl.DataFrame(
    {
        "vote": AB * 60,
        "town": ["x", "y", "z"] * 40,
        "age": [1.5, 2.0, 3.0, 4.0] * 30,
        "person": [n // 4 for n in range(120)],
    },
)
LISTED = FRAME.with_columns(pl.col("vote").cast(pl.Enum(AB)), pl.col("town").cast(pl.Enum("xyz")))
ADDED, CHANGED = dp.unit_of(contributions=1), dp.unit_of(changes=1)
PEOPLE = dp.unit_of(contributions=1, identifier="person")
LOSS = dp.loss_of(epsilon=4.0)
WITH_DELTA = dp.loss_of(epsilon=4.0, delta=1e-6)
VOTE: dict[str, Any] = {"categories": AB, "nulls": ob.DROP, "unknown": ob.DROP}


def context(frame: Any = FRAME, unit: Any = ADDED, loss: Any = LOSS, **more: Any) -> Any:
    return ob.context(frame.lazy(), privacy_unit=unit, privacy_loss=loss, **more)


def query(*given: Any, **more: Any) -> Any:
    return context(*given, **more).query(epsilon=1.0)


def discovering() -> Any:
    return context(loss=WITH_DELTA).query(epsilon=1.0, delta=1e-7)


def released(of: Any) -> Any:
    result = of.release()
    assert isinstance(result, (ob.Release, ob.Survey, ob.DiscoveredRelease)) or len(result)
    return result


# --- remedies that are arguments, by one rule

_ARGUMENT = re.compile(
    r"\b([a-z_]+)=((?:ob|pl|dp)\.[A-Z]+|'[^']*'|\d+(?:\.\d+)?(?!\w)|\{[^{}.]*\}|\[[^][.]*\])"
)


def arguments_in(message: str) -> Iterator[tuple[str, Any]]:
    """What a message says to pass: `name=value`, but for the argument and value that it is about,
    and for those of other calls.
    """
    _, _, advice = message.partition(": ")
    while (plain := re.sub(r"[\w.]+\([^()]*\)", "", advice)) != advice:
        advice = plain
    for name, value in _ARGUMENT.findall(advice):
        yield name, eval(value, {"ob": ob, "pl": pl, "dp": dp})  # noqa: S307 - of a message of ours


def follow(ask: Callable[..., Any], given: dict[str, Any], depth: int = 0) -> int:
    """Do what messages say, one after the other, whichever of several remedies one takes, up to an
    answer; returns how many remedies were tried.
    """
    assert depth < 5, given
    try:
        result = ask(**given)
    except (TypeError, ValueError) as error:
        message = str(error)
    else:
        assert result is not None
        return 0
    remedies = list(arguments_in(message))
    assert remedies, f"no remedy in: {message}"
    return sum(1 + follow(ask, {**given, name: value}, depth + 1) for name, value in remedies)


def asking(make: Callable[[], Any], column: Any = "vote") -> Callable[..., Any]:
    return lambda **given: released(ob.posterior(make(), column, **given))


#: A call, its arguments, and how many remedies its messages name at least.
FOLLOWED: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "nulls": (asking(lambda: query(LISTED)), {}, 2),
    "nulls and unknown values": (asking(query), {"categories": AB}, 4),
    "a label that reads the same": (asking(query), {**VOTE, "nulls": "A"}, 1),
    "another that reads the same": (asking(query), {**VOTE, "unknown": "B "}, 1),
    "nulls of what is discovered": (asking(discovering), {"categories": "discover"}, 1),
    "drop, as a text": (asking(query), {**VOTE, "nulls": "DROP"}, 1),
    "groups by a mechanism of public sizes": (
        asking(lambda: query(LISTED).group_by("town")),
        {"mechanism": "knorm_parameters", "nulls": {"vote": "a", "town": "x"}},
        1,
    ),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_arguments_that_a_message_names_lead_to_an_answer(case: str) -> None:
    ask, given, least = FOLLOWED[case]
    assert follow(ask, given) >= least


@pytest.mark.parametrize("advice", ["Say something else.", "Pass nulls='missing'."])
def test_a_remedy_that_leads_nowhere_is_noticed(advice: str) -> None:
    """Negative control: of a message without one, and of one that says the wrong thing."""

    def ask(**given: Any) -> Any:
        raise ValueError(f"nulls={given.get('nulls')}: must be one. {advice}")

    with pytest.raises(AssertionError):
        follow(ask, {})


# --- the page of messages

Call = Callable[[], Any]


def evenly() -> Any:
    return context(split_evenly_over=1)


def spent() -> Any:
    one = evenly()
    released(ob.posterior(one.query(), "vote", **VOTE))
    return one


def in_ledger(folder: Path, epsilon: float) -> Any:
    ledger = ob.Ledger(folder / "b.ledger", epsilon=1.0)
    return released(ob.posterior(context(ledger=ledger).query(epsilon=epsilon), "vote", **VOTE))


def collected() -> Any:
    return query().select(dp.len(signed=True)).release()


def twice(answer: Any) -> Any:
    answer.collect()
    return answer.collect()


MANY: dict[str, Any] = {"nulls": ob.DROP, "unknown": ob.DROP}
#: A row of the page, by what its message has in it: a call that gets the message, and the call with
#: what the row says to do.
ROWS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "does not say publicly which": (
        lambda _: ob.posterior(query(), "vote"),
        lambda _: released(ob.posterior(query(), "vote", **VOTE)),
    ),
    "may hold nulls": (
        lambda _: ob.posterior(query(), "vote", categories=AB, unknown="other"),
        lambda _: [
            released(ob.posterior(query(), "vote", categories=AB, unknown="other", nulls=label))
            for label in ("missing", ob.DROP)
        ],
    ),
    "may hold values outside the categories": (
        lambda _: ob.posterior(query(), "vote", categories=AB, nulls="missing"),
        lambda _: [
            released(ob.posterior(query(), "vote", categories=AB, nulls="missing", unknown=label))
            for label in ("other", ob.DROP)
        ],
    ),
    "which reads the same": (
        lambda _: ob.posterior(query(), "vote", categories=AB, nulls="A", unknown="b"),
        lambda _: released(ob.posterior(query(), "vote", categories=AB, nulls="a", unknown="b")),
    ),
    "does not fit a column of type": (
        lambda _: ob.posterior(query(), "vote", categories=[1, 2], **MANY),
        lambda _: released(ob.posterior(query(), "vote", categories=["1", "2"], **MANY)),
    ),
    "must be Enum, String, Categorical, integer or Boolean": (
        lambda _: ob.posterior(query(), "age", categories=[1, 2], **MANY),
        lambda _: [
            released(ob.posterior(query().with_columns(of), "age", **given, **MANY))
            for of, given in (
                (pl.col("age").cast(pl.Int64, strict=False), {"categories": [1, 2]}),
                (pl.col("age").cut([2.0], labels=["low", "high"]), {"categories": ["low", "high"]}),
            )
        ],
    ),
    "must be public": (
        lambda _: ob.posterior(query(), "vote", **VOTE, mechanism="hellinger_exponential"),
        lambda _: [
            released(ob.posterior(query(), "vote", **VOTE)),
            released(
                ob.posterior(
                    query(FRAME, CHANGED),
                    "vote",
                    categories=AB,
                    nulls="a",
                    unknown="b",
                    size=120,
                    mechanism="hellinger_exponential",
                )
            ),
        ],
    ),
    "the number of records is private here, so it cannot be stated": (
        lambda _: ob.posterior(query(), "vote", **VOTE, size=120),
        lambda _: [
            released(ob.posterior(query(), "vote", **VOTE)),
            released(
                ob.posterior(
                    query(FRAME, CHANGED), "vote", categories=AB, nulls="a", unknown="b", size=120
                )
            ),
        ],
    ),
    "under change-one neighbours the number of records is public": (
        lambda _: ob.posterior(
            query(FRAME, CHANGED), "vote", categories=AB, nulls="a", unknown="b"
        ),
        lambda _: released(
            ob.posterior(
                query(FRAME, CHANGED), "vote", categories=AB, nulls="a", unknown="b", size=120
            )
        ),
    ),
    "is not among the steps and expressions that look at one row alone": (
        lambda _: ob.posterior(query().explode("vote"), "vote", **VOTE),
        lambda _: released(ob.posterior(query(FRAME.rename({"age": "years"})), "vote", **VOTE)),
    ),
    "is not among the columns asked for": (
        lambda _: ob.posterior(query(LISTED), "vote", categories={"town": ["x"]}, **MANY),
        lambda _: released(
            ob.posterior(
                query(),
                "vote",
                by="town",
                nulls=ob.DROP,
                unknown=ob.DROP,
                categories={"vote": AB, "town": ["x", "y"]},
            )
        ),
    ),
    "is spent; nothing is left for another": (
        lambda _: spent().query(),
        lambda _: released(ob.posterior(context(split_evenly_over=2).query(), "vote", **VOTE)),
    ),
    "because the Context divides its budget": (
        lambda _: evenly().query(epsilon=1.0),
        lambda _: [
            released(ob.posterior(evenly().query(), "vote", **VOTE)),
            released(ob.posterior(query(), "vote", **VOTE)),
        ],
    ),
    "would exceed what the ledger has left": (
        lambda folder: in_ledger(folder, 2.0),
        lambda folder: in_ledger(folder, 1.0),
    ),
    "was made with, and stays": (
        lambda _: setattr(evenly(), "d_in", 0),
        lambda _: released(ob.posterior(evenly().query(), "vote", **VOTE)),
    ),
    "is neither an argument of a posterior nor an option of": (
        lambda _: ob.posterior(query(), "vote", **VOTE, gama=1.0),
        lambda _: ob.posterior(
            query(), "vote", **VOTE, mechanism="laplace_parameters", total="private"
        ).release(),
    ),
    "exceeds the budget of": (
        lambda _: ob.posterior(
            query(), "vote", **VOTE, mechanism=ob.LaplaceParameters(0.1, total="private")
        ).release(),
        lambda _: [
            released(ob.posterior(query(), "vote", **VOTE, mechanism=of))
            for of in (ob.LaplaceParameters(9.0, total="private"), "laplace_parameters")
        ],
    ),
    "the public number that was declared": (
        lambda _: ob.posterior(
            query(FRAME, CHANGED), "vote", categories=AB, nulls="a", unknown="b", size=9
        ).release(),
        lambda _: released(
            ob.posterior(
                query(FRAME, CHANGED), "vote", categories=AB, nulls="a", unknown="b", size=120
            )
        ),
    ),
    "lazy() would draw anew in every collect": (
        lambda _: collected().lazy(),
        lambda _: collected().collect(),
    ),
    "was collected already": (
        lambda _: twice(collected()),
        lambda _: collected().collect(),
    ),
    "is not a category": (
        lambda _: released(ob.posterior(query(), "vote", **VOTE)).posterior["c"],
        lambda _: released(ob.posterior(query(), "vote", **VOTE)).posterior["a"].mean(),
    ),
    "is a path, not JSON": (
        lambda folder: ob.Release.from_json(str(folder / "r.json")),
        lambda folder: read_back(folder / "r.json"),
    ),
}


def read_back(path: Path) -> Any:
    path.write_text(released(ob.posterior(query(), "vote", **VOTE)).to_json())
    return ob.Release.from_json(path.read_bytes())


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_says_leads_to_an_answer(row: str, tmp_path: Path) -> None:
    wrong, right = ROWS[row]
    with pytest.raises((ValueError, TypeError, AttributeError, KeyError, RuntimeError)) as caught:
        wrong(tmp_path)
    assert row in str(caught.value)
    assert right(tmp_path) is not None


_MESSAGE = re.compile(r"^\| `(.+?)` .*\|$", re.MULTILINE)


def test_the_rows_are_on_the_page() -> None:
    page = (ROOT / "docs/help.md").read_text(encoding="utf-8")
    assert set(ROWS) - {"exceeds the budget of"} <= set(_MESSAGE.findall(page))
