"""Every method of random results answers or refuses in our words, and numpy warns of nothing."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.answers import posterior as answers
from opendp_bayes.surveys.survey_tables import probabilities_of_tables
from tests.helpers.releases import guarantee
from tests.recorded import answers as asked
from tests.recorded.factors_of_answers import FACTORS


def table(rng: np.random.Generator, levels: dict[str, int], names: tuple[str, ...]) -> ob.Release:
    """A table of few or many records, whose last levels are rare."""
    shape, scale = tuple(levels[name] for name in names), float(np.exp(rng.uniform(-1, 2.5)))
    shares = rng.dirichlet(np.full(int(np.prod(shape)), 0.3)).reshape(shape)
    for axis in range(len(shape)):
        if rng.random() < 0.6:
            np.moveaxis(shares, axis, 0)[-1] *= 1e-9
    records = int(np.exp(rng.uniform(0, np.log(2000))))
    counts = rng.multinomial(records, (shares / shares.sum()).ravel())
    noise = rng.geometric(1 - np.exp(-1 / scale), (2, counts.size))
    drawn = tuple((counts + noise[0] - noise[1]).tolist())
    cells = tuple(
        itertools.product(*([f"{name}{at}" for at in range(levels[name])] for name in names))
    )
    mechanism, prior = ob.LaplaceParameters(scale, total="private"), (1.0,) * len(cells)
    return ob.Release(drawn, cells, prior, mechanism, guarantee(None), names, columns=names)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, short_chains: None) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_pair_of_a_large_survey_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more cells together than are listed, whose last ones hardly any combination has."""
    monkeypatch.setattr(probabilities_of_tables, "LARGEST_JOINT", 500)
    monkeypatch.setattr(probabilities_of_tables, "_DRAWN", 1024)
    rng, levels = np.random.default_rng(0), {"a": 5, "b": 5, "c": 5, "d": 16}
    tables = {"×".join(pair): table(rng, levels, pair) for pair in itertools.pairwise(levels)}
    posterior: Any = ob.Survey(tuple(tables), tuple(tables.values())).posterior
    pairs = list(itertools.combinations(levels, 2))
    for pair in pairs:
        found = posterior.marginal(*pair)
        assert found.mean().size == levels[pair[0]] * levels[pair[1]]
        assert found.mean().sum() == pytest.approx(1)
        assert found.measured == ("×".join(pair) in tables)
    implied = [tuple(pair) for pair in posterior.unmeasured()["pair"].to_list()]
    assert sorted(implied) == [pair for pair in pairs if "×".join(pair) not in tables]


#: In `tests/recorded` are answers of few of all results and of all ways to ask.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(1000))
def test_every_method_of_many_random_results_answers(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    case = FACTORS.completed({}, lambda *_: rng.random())
    assert case is not None
    for name, ask in asked.answers_of(case, seed, tmp_path):
        try:
            ask()
        except ValueError as error:
            assert re.match(r"[\w, ]+[=:\[]", str(error)), (name, error)  # noqa: PT017
