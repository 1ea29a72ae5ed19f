"""What is stated of a question before and after its release, whatever it asks."""

from collections.abc import Callable
from typing import Any

from opendp_bayes.results.reader import result_from_json
from tests.helpers.fingerprints import words
from tests.helpers.recorded import Answers


def entered(ledger: Any) -> list[Any]:
    """What is entered of queries, but for the times."""
    entries = [] if ledger is None else ledger.account.entries
    return [
        [entry.state, entry.loss.epsilon, entry.loss.rho, entry.loss.delta, entry.unit, entry.note]
        for entry in entries
    ]


def answers_of(
    made: Callable[[], tuple[Any, Any, Any]], guess: dict[str, int], number: int
) -> Answers:
    """Of a Context, a question put to it, and a ledger or None, as `made` makes them. What takes
    long is asked of some numbers of cases alone.
    """
    query: list[Any] = []

    def opened() -> Any:
        found = made()
        stated = found[1].summarize(**guess)
        query.append(found)
        return stated

    yield "question", opened
    if not query:
        return
    context, question, ledger = query[0]

    def mapped() -> Any:
        d_in, measurement = context.d_in, question.resolve()
        several = [d_in] if isinstance(d_in, list) else [n * d_in for n in (1, 2, 3)]
        return [measurement.map(distance) for distance in several]

    if number % 2 == 0:
        yield "map", mapped
    results: list[Any] = []

    def released() -> Any:
        results.append(question.release())
        return [results[-1].to_json(), context.current_privacy_loss(), entered(ledger)]

    yield "release", released
    if not results:
        return
    if number % 3 == 0:
        yield "release again", released
    result = results[0]
    parts = {"": result} if hasattr(result, "guarantee") else {**result, "": result}
    for name, part in parts.items():
        if hasattr(part, "guarantee"):
            yield f"stated {name}", lambda part=part: [part.guarantee, part.loss]
        yield f"read again {name}", lambda part=part: _again(part)
    yield "loss", lambda: result.loss
    yield "words", lambda: words(f"{question!r} {result!r}")
    if number % 8 == 1:
        yield "printed", lambda: _in_numbers_and_words(result)


def _in_numbers_and_words(result: Any) -> list[Any]:
    text = str(result.sheet(0.9, wait=False))
    return [text, *words(text)]


def _again(result: Any) -> list[Any]:
    again, facts = read_again(result)
    return [*facts, words(repr(again))]


def read_again(result: Any) -> tuple[Any, list[bool]]:
    """A result as its JSON is read, and whether both are the same."""
    reader = result_from_json if hasattr(result, "guarantee") else type(result).from_json
    again = reader(result.to_json())
    return again, [again == result, again.to_json() == result.to_json()]
