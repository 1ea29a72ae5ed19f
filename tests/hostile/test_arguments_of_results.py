"""Every argument of every method of every result, given what it cannot be: never numpy's words."""

import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from opendp_bayes.inference.answers import posterior as answers
from tests.helpers.every_result import called, methods, plausible, properties, results

WRONG: dict[str, Any] = {"None": None, "text": "a", "-1": -1, "nan": float("nan")}
WRONG |= {"empty": [], "twice": ["a", "a"]}
#: Of parameters by name, what is none of `WRONG` to them but has a right answer. Labels and names
#: of variables are "a" and "x".
_NONE = "random_state draws records edges ax kappa_prior size"
ANSWERED: dict[str, set[str]] = {name: {"None"} for name in _NONE.split()}
ANSWERED |= {name: {"empty"} for name in ("epsilon", "variables", "sets", "columns")}
ANSWERED |= {name: {"text"} for name in ("first", "second", "given", "folder")}
ANSWERED |= {name: {"None", "text"} for name in ("title", "category")}
ANSWERED |= {"values": {"-1", "nan", "empty"}, "above": {"None", "-1"}, "label": {"text", "-1"}}


@pytest.fixture(autouse=True)
def _quick(chains_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)
    monkeypatch.chdir(tmp_path)


def of_kind(parameter: inspect.Parameter, wrong: Any, usual: Any) -> Any:
    """What is wrong as a parameter that takes several takes it."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return wrong if isinstance(wrong, list) else [wrong]
    if parameter.kind is parameter.VAR_KEYWORD:
        return {} if wrong == [] else {next(iter(usual)): wrong}
    return wrong


def named(error: BaseException, parameter: inspect.Parameter, usual: Any) -> bool:
    """Whether a message names the parameter, or one of those that `**` takes, or a mapping's."""
    names = [parameter.name, *(usual if parameter.kind is parameter.VAR_KEYWORD else ())]
    message = str(error)
    if isinstance(error, KeyError):
        return ": is not a " in message
    if not isinstance(error, (ValueError, TypeError)):
        return False
    return any(re.search(rf"\b{name}\b.*[:=]|^{name}:", message) for name in names)


def answer(result: Any, method: str, arguments: dict[str, Any]) -> BaseException | None:
    """What a call raises, warnings of numpy and of Python included; None where it answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", DeprecationWarning)
        try:
            called(result, method, arguments)
        except Exception as error:  # noqa: BLE001
            return error
        finally:
            plt.close("all")
    return None


def faults_of(result: Any, folder: Callable[[], Path]) -> Iterator[str]:
    """Yield what is wrong with the methods of a result."""
    for method, signature in methods(result):
        usual = {name: plausible(result, method, name, folder) for name in signature.parameters}
        refused = answer(result, method, usual)
        if refused is not None:  # it has no such answer, and says why
            if type(refused) is not ValueError or not re.match(r"[\w, ]+[=:]", str(refused)):
                yield f"{method}: {refused!r}"
            continue
        every = itertools.product(signature.parameters.items(), WRONG.items())
        for (name, parameter), (what, wrong) in every:
            anew = {"folder": folder()} if "folder" in usual else {}
            given = of_kind(parameter, wrong, usual[name])
            error = answer(result, method, {**usual, **anew, name: given})
            if error is None and what not in ANSWERED.get(name, ()):
                yield f"{method}({name}={what}): answers"
            if error is not None and not named(error, parameter, usual[name]):
                yield f"{method}({name}={what}): {error!r}"


def test_what_an_argument_cannot_be_is_said(tmp_path: Path) -> None:
    number = itertools.count()
    faults = [
        f"{key}: {fault}"
        for key, result in results().items()
        for fault in faults_of(result, lambda: tmp_path / f"copies {next(number)}")
    ]
    assert faults == []


def test_a_result_is_read_and_is_itself() -> None:
    for key, result in results().items():
        assert result == result, key
        for name in properties(result):
            if (name, key) != ("release", "table posterior"):
                getattr(result, name)


def test_notices_words_of_others() -> None:
    """Negative controls."""

    def parameter(**given: Any) -> inspect.Parameter:
        return inspect.Parameter("random_state", inspect.Parameter.KEYWORD_ONLY, **given)

    assert named(ValueError("random_state=-1: must be at least 0."), parameter(), 1)
    assert not named(ValueError("expected non-negative integer"), parameter(), 1)
    assert not named(TypeError("'float' object is not iterable"), parameter(), 1)
    assert not named(KeyError("random_state"), parameter(), 1)
