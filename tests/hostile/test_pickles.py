"""Results that are pickled and copied answer the same, and hold no data."""

import copy
import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference.answers import posterior as answers
from tests.helpers.every_result import called, methods, plausible, properties, results
from tests.helpers.hostile_releases import MARKED, context, frame, releases
from tests.helpers.releases import release

#: Have no text or numbers of their own, say whether what is left out of copies is known, or take
#: seconds.
SHOWN = {"plot", "plug_in", "has_posterior", "pooled"}


@pytest.fixture(autouse=True)
def _quick(chains_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)


def pickled(result: Any) -> Any:
    return pickle.loads(pickle.dumps(result))  # noqa: S301 - our own


def said(answer: Any) -> Any:
    """What can be compared of an answer: its numbers, or its text."""
    if isinstance(answer, pl.DataFrame):
        return answer.to_dict(as_series=False)
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, Mapping):
        return {key: said(value) for key, value in answer.items()}
    if isinstance(answer, (tuple, list)):
        return [said(one) for one in answer]
    if callable(getattr(answer, "sample", None)):
        numbers = said([answer.mean(), answer.std()]) if hasattr(answer, "std") else repr(answer)
        return type(answer).__name__, numbers, said(answer.sample(3, random_state=1))
    return re.sub(" at 0x[0-9a-f]+", "", repr(answer))


def answers_of(result: Any, folder: Callable[[], Path]) -> Iterator[tuple[str, Any]]:
    """Yield what every method and property of a result says."""
    for name in properties(result):
        if name not in SHOWN:
            yield name, said(getattr(result, name))
    for method, signature in methods(result):
        if method in SHOWN or "folder" in signature.parameters:
            continue
        usual = {name: plausible(result, method, name, folder) for name in signature.parameters}
        try:
            yield method, said(called(result, method, usual))
        except ValueError as error:
            yield method, str(error)


def by_every_engine() -> dict[str, Any]:
    """Posteriors that other engines find, and of some or merged categories."""
    listed, drawn = (ob.mechanisms.HellingerExponential(scale) for scale in (0.5, 0.3))
    laplace, three = ob.LaplaceParameters(1.0), ("a", "b", "c")
    private = release((60, 30, 90), three).posterior
    public = release((60, 30, 90), three, laplace, 180).posterior
    pair = [release((8, 3, 4), three), release((6, 3, 9), three)]
    return {
        "of a prior": ob.noise_aware_posterior(pair[0], records_prior=stats.poisson(20)),
        "public": public,
        "some of private": private.given(["a", "c"]),
        "some of public": public.given(["a", "c"]),
        "merged": public.merged({"m": ["a", "b"]}),
        "all sets": release((4, 3, 1), three, listed, 8).posterior,
        "flips": release((4, 4), ("a", "b"), ob.mechanisms.PermuteAndFlip(0.3), 8).posterior,
        "importance": ob.noise_aware_posterior(
            release((400, 200, 100), three, drawn, 700), ess=200
        ),
        "same": ob.combine(pair),
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_copy_of_a_result_answers_the_same(tmp_path: Path) -> None:
    """Whatever is asked of it; what other engines find has the same numbers and draws."""
    faults = []
    engines = by_every_engine()
    for key, result in (results() | engines).items():
        before = pickled(result)
        if key in engines:
            expected, found = ({"summary": said(of.summary())} for of in (result, before))
        else:
            expected, found = (dict(answers_of(of, lambda: tmp_path)) for of in (result, before))
        faults += [f"{key}: {name}" for name in expected if found[name] != expected[name]]
        for copied in (pickled(result), copy.deepcopy(result)):  # of one that has answered
            faults += [key] if said(copied) != said(result) else []
    assert faults == []


def test_another_result_is_noticed(tmp_path: Path) -> None:
    """Negative control."""
    one, other = (release((6, 3, n), ("a", "b", "c")).posterior for n in (9, 2))
    expected, wrong = (dict(answers_of(each, lambda: tmp_path)) for each in (one, other))
    same = {key for key in expected if expected[key] == wrong[key]}
    assert same <= {"conditional", "diagnostics", "learned", "marginal", "prior", "probability"}


def test_no_pickle_holds_data_or_a_budget() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for key, result in releases().items():
            assert MARKED.encode() not in pickle.dumps(result), key
            parts = result.values() if isinstance(result, Mapping) else [result]
            assert MARKED.encode() not in pickle.dumps([one.posterior for one in parts]), key
    assert MARKED.encode() in pickle.dumps(frame())  # the control
    query = context("rho")
    for one in (query, ob.posterior(query, "vote", nulls=ob.DROP)):
        with pytest.raises((ValueError, pickle.PicklingError)):
            pickle.dumps(one)
