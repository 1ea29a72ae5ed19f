"""What an error shows of a value that may be a frame by mistake."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mathematics.telling import listed_names, meant
from tests.helpers.doors import PUBLIC

VALUE = "a value of a row"


class Relation:
    """As of DuckDB 1.5: numpy takes it for a sequence, and its error shows its rows."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, at: str) -> Any:
        raise TypeError(f"{at}: {VALUE}")


FRAME = pl.DataFrame({"a": [VALUE] * 3})
ROWS: dict[str, Any] = {"frame": FRAME, "series": FRAME["a"], "pandas": FRAME.to_pandas()}
ROWS |= {"array": np.array([VALUE] * 3), "records": [{"a": VALUE}] * 3}
ROWS |= {"tuples": [(VALUE,)] * 3, "relation": Relation()}


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("Laplace", ["gaussian_parameters", "laplace_parameters"], "'laplace_parameters'"),
        ("Yes", ["no", "yes"], "'yes'"),
        ("degre", ["no degree", "degree"], "'degree'"),
        (("Bth", "no"), [("Bath", "yes"), ("Bath", "no")], "('Bath', 'no')"),
        ("1", [1, 2], "1"),
        ("", ["yes", "no"], None),
        ("zebra", ["yes", "no"], None),
        (1, [10, 11], None),  # a number that is near another is no typo of it
        ("yes", [], None),
    ],
)
def test_a_name_like_a_known_one_is_asked_about(given: Any, known: list[Any], hint: str) -> None:
    assert meant(given, known) == ("" if hint is None else f" Did you mean {hint}?")


def test_of_many_names_the_first_are_listed() -> None:
    assert listed_names(range(20)).endswith("18, 19")
    assert listed_names(range(22)).endswith("18, 19, and 2 more")


GOOD = {"k": 3, "scale": 1.0, "n": 10, "epsilon": 1.0, "categories": ["a", "b"], "prior": 1.0}
GOOD |= {"frame": pl.LazyFrame({"a": ["b"]}), "privacy_unit": dp.unit_of(contributions=1)}
GOOD |= {"privacy_loss": dp.loss_of(epsilon=1.0)}


def _calls() -> Iterator[tuple[str, Callable[..., Any], str, dict[str, Any]]]:
    """Every function of the package, each of its arguments, and plain values for the others."""
    for name, function in PUBLIC.items():
        if not callable(function) or (
            isinstance(function, type) and issubclass(function, BaseException)
        ):
            continue
        try:
            given = inspect.signature(function).parameters.values()
        except ValueError:
            continue
        named = [one for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        needed = {one.name: GOOD.get(one.name, 1) for one in named if one.default is one.empty}
        for one in named:
            yield name, function, one.name, needed


def test_no_function_shows_rows_that_it_is_given() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    tried, shown = 0, set()
    for name, function, argument, others in _calls():
        for rows in ROWS.values():
            try:
                function(**{**others, argument: rows})
            except Exception as error:  # noqa: BLE001 - whichever it is, and from whomever
                tried += 1
                if VALUE in str(error):
                    shown.add((name, argument))
    assert tried > 500
    assert shown == set()


@pytest.mark.parametrize("pair", [(ROWS["array"], [1.0]), ([1.0], ROWS["array"])])
def test_distances_of_texts_are_refused(pair: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError, match="a, b: must be numbers"):
        ob.mechanisms.hellinger_distance(*pair)
