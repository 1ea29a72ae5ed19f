"""What a message tells to write is written and leads to an answer; so are the page's rows."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.releases import guarantee
from tests.helpers.remedies_of_files import FILES, NOT_DONE
from tests.helpers.sources import ROOT

AB = ["a", "b"]
_COLUMNS = {"vote": AB * 60, "town": ["x", "y", "z"] * 40, "age": [1.5, 2.0, 3.0, 4.0] * 30}
FRAME = pl.DataFrame(_COLUMNS | {"person": [n // 4 for n in range(120)]})
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
    """What a message says to pass, but what it is about and arguments of other calls."""
    _, _, advice = message.partition(": ")
    while (plain := re.sub(r"[\w.]+\([^()]*\)", "", advice)) != advice:
        advice = plain
    for name, value in _ARGUMENT.findall(advice):
        yield name, eval(value, {"ob": ob, "pl": pl, "dp": dp})  # noqa: S307 - of a message of ours


def follow(ask: Callable[..., Any], given: dict[str, Any], depth: int = 0) -> int:
    """Do what messages say up to an answer, whichever of several; how many were tried."""
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


def answered(of: Any, column: str = "vote", **given: Any) -> Any:
    """A release of a question, by default that of the votes."""
    return released(ob.posterior(of, column, **(given or VOTE)))


#: A call, its arguments, and how many remedies its messages name at least.
OF_GROUPS = {"by": "town", "mechanism": "knorm_parameters", "nulls": {"vote": "a", "town": "x"}}
FOLLOWED: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "nulls": (asking(lambda: query(LISTED)), {}, 2),
    "nulls and unknown values": (asking(query), {"categories": AB}, 4),
    "a label that reads the same": (asking(query), {**VOTE, "nulls": "A"}, 1),
    "another that reads the same": (asking(query), {**VOTE, "unknown": "B "}, 1),
    "discovered": (lambda **of: released(ob.discover(discovering(), "vote", **of)), {}, 1),
    "drop, as a text": (asking(query), {**VOTE, "nulls": "DROP"}, 1),
    "public sizes": (asking(lambda: query(LISTED)), OF_GROUPS, 1),
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


def evenly() -> Any:
    return context(split_evenly_over=1)


def in_ledger(folder: Path, epsilon: float) -> Any:
    ledger = ob.Ledger(folder / "b.ledger", epsilon=1.0)
    return released(ob.posterior(context(ledger=ledger).query(epsilon=epsilon), "vote", **VOTE))


def collected() -> Any:
    return query().select(dp.len(signed=True)).release()


def twice(answer: Any) -> Any:
    answer.collect()
    return answer.collect()


def in_public(of: Any, mechanism: str, **options: Any) -> Any:
    given = {"categories": ["x", "y", "z"], "nulls": "x", "unknown": "y", "size": 120}
    return released(ob.posterior(of, "town", **given, mechanism=mechanism, **options))


def identified(name: str) -> Any:
    return dp.unit_of(contributions=1, identifier=name)


def of_pandas(dtype: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame({"vote": pd.Series(AB * 60, dtype=dtype)})
    return ob.context(frame, privacy_unit=ADDED, privacy_loss=LOSS, split_evenly_over=1)


def of_an_engine(data: Callable[[Any, Any], Any]) -> Any:
    columns = pytest.importorskip("opendp_bayes_engines").columns
    votes = pytest.importorskip("duckdb").sql("SELECT 'a' AS vote FROM range(60)")
    given: dict[str, Any] = {"privacy_unit": ADDED, "privacy_loss": LOSS}
    one = ob.context(data(votes, columns), **given, split_evenly_over=1)
    return released(ob.posterior(one.query(), "vote", **VOTE))


MORE = FRAME.with_columns(amount=pl.Series([1, 2] * 60).cast(pl.Decimal(9, 2)))
#: Reading it fails at a value; and what was the cause is mended.
WRONG = FRAME.lazy().with_columns(number=pl.col("vote").str.to_integer()).filter(number=1)
MENDED = FRAME.lazy()


def seen_outside() -> str:
    with pytest.raises(pl.exceptions.ComputeError) as caught:
        WRONG.collect()
    return str(caught.value)


def made(drawn: tuple[int, ...], mechanism: Any, size: int | None) -> ob.Release:
    labels = tuple("abcd"[: len(drawn)])
    return ob.Release(drawn, labels, (1.0,) * len(drawn), mechanism, guarantee(size))


def slow() -> ob.Release:
    return made((12, 3, 5), ob.mechanisms.HellingerExponential(0.5), 20)


def without_posterior() -> ob.Release:
    return made((3, 5), ob.mechanisms.HellingerExponential(0.5), None)


def shown_again(of: ob.Release) -> str:
    assert of.posterior.mean().sum() == pytest.approx(1)
    shown = str(of)
    assert "takes long" not in shown
    return shown


def after(function: Callable[[Any], Any]) -> Any:
    one = evenly()
    return one(one.query().select(dp.len(signed=True)).resolve() >> function)


MANY: dict[str, Any] = {"nulls": ob.DROP, "unknown": ob.DROP}
OF_ALL: dict[str, Any] = {"categories": AB, "nulls": "a", "unknown": "b"}
EHD, EHDS = "hellinger_exponential", "smooth_hellinger_exponential"


def laplace(scale: float) -> Any:
    return ob.LaplaceParameters(scale, total="private")


def changed() -> Any:
    return query(FRAME, CHANGED)


#: A row of the page, by what its message has in it: a call that gets the message, and the call with
#: what the row says to do.
ROWS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "does not declare its": (lambda _: ob.posterior(query(), "vote"), lambda _: answered(query())),
    "may hold nulls": (
        lambda _: ob.posterior(query(), "vote", categories=AB, unknown="other"),
        lambda _: [
            answered(query(), categories=AB, unknown="other", nulls=label)
            for label in ("missing", ob.DROP)
        ],
    ),
    "may hold values outside the categories": (
        lambda _: ob.posterior(query(), "vote", categories=AB, nulls="missing"),
        lambda _: [
            answered(query(), categories=AB, nulls="missing", unknown=label)
            for label in ("other", ob.DROP)
        ],
    ),
    "which reads the same": (
        lambda _: ob.posterior(query(), "vote", categories=AB, nulls="A", unknown="b"),
        lambda _: answered(query(), **OF_ALL),
    ),
    "does not fit a column of type": (
        lambda _: ob.posterior(query(), "vote", categories=[1, 2], **MANY),
        lambda _: answered(query(), categories=["1", "2"], **MANY),
    ),
    "must be Enum, String, Categorical, integer or Boolean": (
        lambda _: ob.posterior(query(), "age", categories=[1, 2], **MANY),
        lambda _: [
            answered(query().with_columns(of), "age", categories=categories, **MANY)
            for of, categories in (
                (pl.col("age").cast(pl.Int64, strict=False), [1, 2]),
                (pl.col("age").cut([2.0], labels=["low", "high"]), ["low", "high"]),
            )
        ],
    ),
    "must be public": (
        lambda _: ob.posterior(query(), "vote", **VOTE, mechanism=EHD),
        lambda _: [answered(query()), answered(changed(), **OF_ALL, size=120, mechanism=EHD)],
    ),
    "the number of records is private here, so it cannot be stated": (
        lambda _: ob.posterior(query(), "vote", **VOTE, size=120),
        lambda _: [answered(query()), answered(changed(), **OF_ALL, size=120)],
    ),
    "under change-one neighbours the number of records is public": (
        lambda _: ob.posterior(changed(), "vote", **OF_ALL),
        lambda _: answered(changed(), **OF_ALL, size=120),
    ),
    "is not among the steps and expressions that look at one row alone": (
        lambda _: ob.posterior(query().explode("vote"), "vote", **VOTE),
        lambda _: answered(query(FRAME.rename({"age": "years"}))),
    ),
    "is not among the columns asked for": (
        lambda _: ob.posterior(query(LISTED), "vote", categories={"town": ["x"]}, **MANY),
        lambda _: answered(query(), by="town", **MANY, categories={"vote": AB, "town": ["x", "y"]}),
    ),
    "would exceed what the ledger has left": (
        lambda folder: in_ledger(folder, 2.0),
        lambda folder: in_ledger(folder, 1.0),
    ),
    "was made with, and stays": (
        lambda _: setattr(evenly(), "d_in", 0),
        lambda _: answered(evenly().query()),
    ),
    "is neither an argument of a posterior nor an option of": (
        lambda _: ob.posterior(query(), "vote", **VOTE, gama=1.0),
        lambda _: answered(query(), **VOTE, mechanism="laplace_parameters", total="private"),
    ),
    "exceeds the budget of": (
        lambda _: answered(query(), **VOTE, mechanism=laplace(0.1)),
        lambda _: [
            answered(query(), **VOTE, mechanism=of) for of in (laplace(9.0), "laplace_parameters")
        ],
    ),
    "the public number that was declared": (
        lambda _: answered(changed(), **OF_ALL, size=9),
        lambda _: answered(changed(), **OF_ALL, size=120),
    ),
    "lazy() would draw anew in every collect": (
        lambda _: collected().lazy(),
        lambda _: collected().collect(),
    ),
    "was collected already": (lambda _: twice(collected()), lambda _: collected().collect()),
    "is not a category": (
        lambda _: answered(query()).posterior["c"],
        lambda _: answered(query()).posterior["a"].mean(),
    ),
    "is not a result in JSON": (
        lambda folder: ob.Release.from_json(str(folder / "r.json")),
        lambda folder: read_back(folder / "r.json"),
    ),
    "for which OpenDP has no domain": (
        lambda _: ob.posterior(query(MORE), "amount", categories=[1, 2], **MANY),
        lambda _: answered(
            query(MORE.with_columns(pl.col("amount").cast(pl.Int64))),
            "amount",
            categories=[1, 2],
            **MANY,
        ),
    ),
    "has the type object of pandas": (
        lambda _: ob.posterior(of_pandas(object).query(), "vote", **VOTE),
        lambda _: answered(of_pandas("string").query()),
    ),
    "of a table of an engine": (
        lambda _: of_an_engine(lambda relation, _: relation),
        lambda _: of_an_engine(lambda relation, columns: columns(relation, ["vote"])),
    ),
    "query may take; must be at most": (
        lambda _: ob.posterior(query(), "vote", categories=[*map(str, range(110_000))], **MANY),
        lambda _: [
            answered(query()),
            [answered(query(), categories=part, **MANY) for part in (AB, ["c", "d"])],
        ],
    ),
    "exceeds what is asked for at every scale": (
        lambda _: in_public(changed(), EHD, sensitivity="local"),
        lambda _: [
            in_public(changed(), EHD),
            in_public(
                context(FRAME, CHANGED, WITH_DELTA).query(epsilon=1.0, delta=1e-7), EHDS, gamma=1.0
            ),
        ],
    ),
    "differ in nothing but blanks around them": (
        lambda _: ob.posterior(query(), "vote", categories=["a", "b", "b "], **MANY),
        lambda _: answered(query()),
    ),
    "must be one column by name": (
        lambda _: context(FRAME.rename({"person": "*"}), identified("*")),
        lambda _: answered(context(FRAME, PEOPLE).query(epsilon=1.0).truncate_per_group(2)),
    ),
    "the cause is withheld": (lambda _: answered(query(WRONG)), lambda _: seen_outside()),
    "It uses its budget all the same": (
        lambda _: answered(query(WRONG)),
        lambda _: answered(query(MENDED)),
    ),
    "collecting its answer": (
        lambda _: query(WRONG).select(dp.len(signed=True)).release().collect(),
        lambda _: query(MENDED).select(dp.len(signed=True)).release().collect(),
    ),
    "The noise-aware posterior of this release takes long": (
        lambda _: str(slow()),
        lambda _: shown_again(slow()),
    ),
    "There is no noise-aware posterior of this release": (
        lambda _: str(without_posterior()),
        lambda _: (without_posterior().counts, without_posterior().plug_in.mean),
    ),
    "which draws anew in every collect": (
        lambda _: after(lambda frame: frame.lazy()),
        lambda _: after(lambda frame: frame.collect()),
    ),
    "which OpenDP has freed by now": (
        lambda _: after(lambda frame: [frame]),
        lambda _: [collected().collect(), collected().collect()],
    ),
}
ROWS |= {row: (lambda _, of=a: of(), lambda _, of=b: of()) for row, (a, b) in FILES.items()}


def read_back(path: Path) -> Any:
    path.write_text(released(ob.posterior(query(), "vote", **VOTE)).to_json())
    return ob.Release.from_json(path.read_bytes())


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_says_leads_to_an_answer(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, right = ROWS[row]
    try:
        message = wrong(tmp_path)
    except (ValueError, TypeError, AttributeError, KeyError, RuntimeError, UserWarning) as error:
        message = str(error)
    assert row.lower() in " ".join(message.split()).lower()
    assert right(tmp_path) is not None


_MESSAGE = re.compile(r"^\| (`.+?`) \| ", re.MULTILINE)


def undone(page: str) -> list[str]:
    """Rows of the page that are neither carried out nor in the list of those that cannot be."""
    rows = [set(re.findall(r"`(.+?)`", row)) for row in _MESSAGE.findall(page)]
    assert set().union(*rows) >= {*ROWS, *NOT_DONE}
    return [str(row) for row in rows if not row & {*ROWS, *NOT_DONE}]


def test_every_row_of_the_page_is_carried_out() -> None:
    page = (ROOT / "docs/help.md").read_text(encoding="utf-8")
    assert undone(page) == []
    assert not {*ROWS} & {*NOT_DONE}
    assert undone(page + "| `is on fire` | Run. |\n") == ["{'is on fire'}"]  # negative control


@pytest.mark.parametrize("row", [row for row, why in NOT_DONE.items() if ".py" in why])
def test_what_cannot_be_done_here_has_a_test_of_its_own(row: str) -> None:
    assert (ROOT / "tests" / NOT_DONE[row].partition(":")[0]).exists()
