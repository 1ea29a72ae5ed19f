"""What a result says of itself is done and true, for every mechanism, measure and kind."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.display.sheet import Sheet, ShownAtOnce
from opendp_bayes.display.wording import in_plain_words
from opendp_bayes.results.pooled_release import Pooled
from tests.helpers.command_line import run
from tests.helpers.contexts import checked_context
from tests.helpers.sweeps import slow

SIZE = 8
FRAME = pl.LazyFrame({"vote": ["a", "b", "c", "a"] * 2, "town": ["x", "x", "x", "y"] * 2})
MANY = pl.LazyFrame({"vote": ["a"] * 60 + ["b"] * 50, "town": ["x", "y"] * 55})
LABELS = {"vote": ["a", "b", "c"], "town": ["x", "y"]}
MEASURES: dict[str, dict[str, float]] = {
    "ε": {"epsilon": 1.0},
    "ρ": {"rho": 0.5},
    "(ε, δ)": {"epsilon": 1.0, "delta": 1e-6},
}
MECHANISMS = ob.available_mechanisms()
#: Of every kind in every run; of a release of one column, every mechanism and measure.
FAST = ["(ε, δ)", "auto"]
#: What is given to an argument that a sentence names.
GIVEN = {"rest": 0.2}


def query(loss: dict[str, float], frame: pl.LazyFrame = FRAME, *, public: bool = True) -> Any:
    unit = {"changes": 1} if public else {"contributions": 1}
    return checked_context(frame, unit, loss).query()


def settled(*columns: str, **more: Any) -> dict[str, Any]:
    """The arguments of a question of columns, whose number of records is public."""
    labels: Any = {column: LABELS[column] for column in columns}
    missing: Any = {column: LABELS[column][0] for column in columns}
    if len(columns) == 1:
        labels, missing = labels[columns[0]], missing[columns[0]]
    return {"categories": labels, "nulls": missing, "unknown": missing, "size": SIZE, **more}


def release(loss: Any, mechanism: Any) -> Any:
    return ob.posterior(query(loss), "vote", **settled("vote"), mechanism=mechanism).release()


def learned(loss: Any, mechanism: Any) -> Any:
    more = settled("vote", prior="learned")
    return ob.posterior(query(loss), "vote", **more, mechanism=mechanism).release()


def joint(loss: Any, mechanism: Any) -> Any:
    more = settled("town", "vote")
    return ob.posterior(query(loss), ["town", "vote"], **more, mechanism=mechanism).release()


def groups(loss: Any, mechanism: Any) -> Any:
    more = settled("vote", "town")
    return ob.posterior(query(loss), "vote", by="town", **more, mechanism=mechanism).release()


def private_groups(loss: Any, mechanism: Any) -> Any:
    more = settled("vote", "town") | {"size": None}
    asked = ob.posterior(query(loss, public=False), "vote", by="town", **more, mechanism=mechanism)
    return asked.release()


def survey(loss: Any, mechanism: Any) -> Any:
    questions = {
        "votes": {"column": "vote", **settled("vote"), "mechanism": mechanism},
        "towns": {"column": "town", **settled("town")},
        "by town": {"column": "vote", "by": "town", **settled("vote", "town")},
    }
    return ob.survey(query(loss), questions).release()


def levels(loss: Any, mechanism: Any) -> Any:
    merges = {"halves": {"first": ["a", "b"], "last": ["c"]}}
    more = settled("vote", mechanism=mechanism)
    questions = ob.levels("vote", more.pop("categories"), merges=merges, **more)
    return ob.survey(query(loss), questions).release()


def discovery(loss: Any, mechanism: Any, **more: Any) -> Any:
    asked = {"nulls": ob.DROP, "mechanism": mechanism, **more}
    return ob.discover(query(loss, MANY, public=False), "vote", **asked).release()


def pooled(loss: Any, mechanism: Any) -> Any:
    return private_groups(loss, mechanism).pooled(ess=20)


def external(loss: Any, mechanism: Any) -> Any:
    noise = "laplace_parameters" if mechanism == "auto" else mechanism
    return ob.noisy_counts([5, -1, 4], LABELS["vote"], mechanism=noise, scale=2.0)


KINDS: tuple[Callable[..., Any], ...] = (
    *(release, learned, joint, groups, private_groups, survey, levels),
    *(discovery, pooled, external),
)


# --- What is said
@dataclass(frozen=True)
class Sentence:
    """A note of a sheet, and the result that it is of."""

    text: str
    of: Any


def sentences(result: Any, *, wait: bool) -> Iterator[Sentence]:
    """Everything below a sheet's tables, with the result that each note is of."""
    sheet = sheet_of(result, wait=wait)
    for text in sheet.notes:
        name, found, rest = text.partition(": ")
        inside = isinstance(result, ob.Survey) and found and name in result
        yield Sentence(rest, result[name]) if inside else Sentence(text, result)


def sheet_of(result: Any, *, wait: bool) -> Sheet:
    found: Sheet = result.sheet() if isinstance(result, Pooled) else result.sheet(wait=wait)
    return found


_CALL = r"\brelease\.(?P<member>\w+)|\b(?P<method>\w+)\(\)"
CALL = re.compile(_CALL + r"|\b(?P<argument>\w+)=|--(?P<option>\w+)")


def calls(text: str) -> list[tuple[str, str]]:
    """What a sentence tells one to call, with its kind; the mechanism is no call."""
    if text.startswith("Mechanism: "):
        return []
    return [(one.lastgroup or "", one[0]) for one in CALL.finditer(text)]


def carried_out(kind: str, call: str, of: Any, again: Callable[..., Any]) -> Any:
    """Do what a sentence about a result says; `again` asks its question with other arguments."""
    if kind == "member":
        return getattr(of, call.removeprefix("release."))
    if kind == "method":
        return getattr(of, call.removesuffix("()"))()
    name = call.strip("-=")
    if kind == "argument":
        return again(**{name: GIVEN[name]})
    return run(
        *("release", "many.csv", "--discover", "vote", "--epsilon", 1, "--delta", 1e-6),
        *("--contributions", 1, call, GIVEN[name], "--output", "-"),
    )


def check_numbers(text: str, guarantee: ob.PrivacyGuarantee) -> None:
    """Every number of a sentence of the guarantee is that of its attribute."""
    bounds = {"ε": guarantee.loss.epsilon, "ρ": guarantee.loss.rho, "δ": guarantee.loss.delta}
    for name, number in re.findall(r"([ερδ]) = (∞|[\d.e+-]*\d)", text):
        stated = math.inf if number == "∞" else float(number)
        assert bounds[name] <= stated * (1 + 1e-15), text
        assert stated <= bounds[name] * 1.001, text
    if re.search(r"[ερ] = ", text):
        assert ("ρ = " in text) == guarantee.is_concentrated, text
        assert ("δ = " in text) == bool(guarantee.loss.delta), text
    if distance := re.search(r"differ by .*?(\d+) record", text):
        assert int(distance[1]) == guarantee.d_in, text
    if "The number of records" in text:
        public = re.search(r"The number of records, (\d+), is public", text)
        assert (int(public[1]) if public else None) == guarantee.size, text


def promise_of(result: Any) -> ob.PrivacyGuarantee:
    if isinstance(result, ob.Survey):  # of all its questions together
        return replace(result.releases[0].guarantee, loss=result.loss)
    found: ob.PrivacyGuarantee = result.guarantee
    return found


def check_discovery(text: str, found: ob.DiscoveredRelease) -> None:
    law = found.discovery.law
    if shown := re.search(r"shown if that was at least (\d+): with (\d+) \w+ in half", text):
        assert int(shown[1]) == law.threshold
        assert int(shown[2]) == law.least_shown(0.5)
    if rest := re.search(r"Everything else together: (-?\d+) .* (-?\d+) to (-?\d+)\.", text):
        assert found.rest is not None
        low, high = found.rest.interval(0.95)
        assert (int(rest[1]), int(rest[2]), int(rest[3])) == (found.rest.noisy_count, low, high)


def check(result: Any, again: Callable[..., Any]) -> int:
    """Carry out what a result says, before and after; return how many calls it named."""
    done = 0
    before = list(sentences(result, wait=False))
    printed = " ".join(str(result).split())
    if isinstance(result, ShownAtOnce) and not isinstance(result, ob.Survey):  # an overview
        notes = result.sheet(wait=False).notes
        assert all(" ".join(note.split()) in printed for note in notes), printed
    for one in before:
        for kind, call in calls(one.text):
            assert carried_out(kind, call, one.of, again) is not None
            done += 1
    after = list(sentences(result, wait=False))
    for one in after:  # nothing but what cannot be done to this release is said again
        assert not [call for kind, call in calls(one.text) if kind in ("member", "method")], one
    for one in (*before, *after, *sentences(result, wait=True)):
        check_numbers(one.text, promise_of(one.of))
        if isinstance(one.of, ob.DiscoveredRelease):
            check_discovery(one.text, one.of)
        if one.text.startswith("Mechanism: "):
            assert one.text == f"Mechanism: {in_plain_words(one.of.mechanism)}."
    return done


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MANY.collect().write_csv("many.csv")


def made(kind: Callable[..., Any], loss: Any, mechanism: Any, **more: Any) -> Any:
    try:
        return kind(loss, mechanism, **more)
    except ValueError:  # it has no such release, and says why
        return None


EVERY = [(kind, *of) for kind in KINDS for of in product(MEASURES, ["auto", *MECHANISMS])]
QUICK = [case for case in EVERY if [*case[1:]] == FAST or case[0] is release]
SLOW = [case for case in EVERY if case not in QUICK]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "measure", "mechanism"),
    [*QUICK, *slow(SLOW)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_result_says_is_done_and_true(kind, measure, mechanism):
    loss = MEASURES[measure]
    result = made(kind, loss, mechanism)
    if result is not None:
        check(result, lambda **more: kind(loss, mechanism, **more))


def test_what_is_not_so_is_noticed() -> None:
    """Negative controls."""
    found = release({"epsilon": 1.0}, "laplace_parameters")
    (said, *_) = sentences(found, wait=False)
    check_numbers(said.text, found.guarantee)
    for wrong in ({"size": SIZE + 1}, {"d_in": 2}, {"loss": replace(found.loss, epsilon=1.2)}):
        with pytest.raises(AssertionError):
            check_numbers(said.text, replace(found.guarantee, **wrong))
    assert calls("call release.posterior, or to_frame(); rest= or --rest") == [
        *(("member", "release.posterior"), ("method", "to_frame()")),
        *(("argument", "rest="), ("option", "--rest")),
    ]
    with pytest.raises(AttributeError):
        carried_out("member", "release.posterior", found.mechanism, release)
