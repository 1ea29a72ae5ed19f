"""Answers to questions and of results are those that were recorded, door by door, option by option.

Other tests say what is right, of one thing at a time. Here a mistake in any combination of kinds,
options and doors changes a number that was right before. Who changes an answer on purpose runs
`pytest tests/recorded plugins/*/tests/recorded --record` and reads the difference.
"""

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from tests.helpers.covering_array import pairs_of
from tests.helpers.fingerprints import are_same, fingerprint
from tests.helpers.recorded import Answers, differences, seed_noise
from tests.recorded import answers, factors, factors_of_answers, mechanisms, pairs
from tests.test_every_argument import ROWS


def apart(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of arguments that can be copied, for which nothing is computed yet or later."""
    copies = {}
    for name, value in arguments.items():
        try:
            copies[name] = deepcopy(value)
        except (TypeError, ValueError):  # of OpenDP, and locks
            copies[name] = value
    return copies


#: Rows of `test_every_argument` in one case, and all as they are before anything is computed.
_ROWS, _PRISTINE = 10, [(row.function, apart(row.base), row) for row in ROWS]


def calls(seed: int, _folder: Path) -> Answers:
    """Of every public function, with each argument at two values."""
    for function, pristine, row in _PRISTINE[seed * _ROWS : (seed + 1) * _ROWS]:
        # Axes of a picture are drawn on again.
        if function.__name__ != "pooled" and row.argument != "ax":
            yield f"{row} before", partial(function, **apart(pristine))
            changed = apart(pristine | {row.argument: row.other})
            yield f"{row} changed", partial(function, **changed)


#: By the names of the files: what is asked, and of how many seeds.
ASKED: dict[str, tuple[Callable[[int, Path], Answers], int]] = {
    "pairs": (pairs.asked, len(pairs.cases("pairs"))),
    "refusals": (pairs.asked_in_vain, len(pairs.cases("refusals"))),
    "mechanisms": (mechanisms.asked, 90),
    "answers": (answers.asked, len(pairs.cases("answers"))),
    "arguments": (calls, -(-len(ROWS) // _ROWS)),
}
CASES = [(room, seed) for room, (_, number) in ASKED.items() for seed in range(number)]


@pytest.fixture(autouse=True)
def _seeded(chains_anew: None, coarse_errors: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("room", "seed"), CASES)
def test_answers_are_those_recorded(
    room: str, seed: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    path = Path(__file__).parent / f"{room}.json"
    asked = ASKED[room][0](seed, tmp_path)
    assert not differences(path, str(seed), asked, pytestconfig)


@pytest.mark.parametrize(
    ("room", "of", "fewest"), [("pairs", factors, 6500), ("answers", factors_of_answers, 9000)]
)
def test_every_two_features_that_may_meet_are_asked_together(
    room: str, of: Any, fewest: int
) -> None:
    covered = {pair for case in pairs.cases(room) for pair in pairs_of(case)}
    missing = [pair for pair in of.FACTORS.pairs() if pair not in covered]
    assert not [pair for pair in missing if of.FACTORS.completed(dict(pair), lambda *_: 0)]
    assert len(covered) > fewest


@pytest.mark.parametrize(
    ("door", "others"),
    [
        (ob.posterior, {"query": "source", "column": "kind", "by": "second", "size": "records"}),
        (ob.discover, {"query": "source", "column": "kind", "mechanism": "law"}),
        (ob.survey, {"query": "source", "questions": "second"}),
        (ob.levels, dict.fromkeys(("branching", "merges", "budget"), "tree") | {"column": "kind"}),
        (ob.t.make_categorical_counts, {"column": "kind", "by": "second", "size": "records"}),
        (ob.m.make_mechanism, {"delta": "loss", "output_measure": "loss"}),
        (
            ob.context,
            dict.fromkeys(("split_evenly_over", "split_by_weights"), "split")
            | {"data": "source", "privacy_unit": "unit", "privacy_loss": "loss"}
            | {"margins": "margin"},
        ),
    ],
)
def test_every_option_of_a_door_is_a_factor(door: Any, others: dict[str, str]) -> None:
    options = set(inspect.signature(door).parameters)
    options -= {"options", "question", "input_domain", "input_metric", "cells"}
    assert not {others.get(option, option) for option in options} - factors.FACTORS.levels.keys()


def test_every_mechanism_and_law_is_a_level() -> None:
    named = {name for name in ob.available_mechanisms() if name != "hamming_exponential"}
    assert named <= set(factors.FACTORS.levels["mechanism"])


@pytest.mark.parametrize("row", range(3))
def test_notices_an_answer_that_changed(row: int) -> None:
    """Negative control: another third digit, another order, another number of entries."""
    answer = {"mean": [0.25, 0.75], "of": ("a", "b")}
    other: Any = [answer | {"mean": [0.251, 0.749]}, {**answer, "of": ("b", "a")}, {"mean": [1]}]
    assert are_same(fingerprint(answer), fingerprint(dict(answer)))
    assert not are_same(fingerprint(answer), fingerprint(other[row]))
