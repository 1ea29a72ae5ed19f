"""Every method of random results answers or refuses in our words, and numpy warns of nothing."""

import itertools
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.answers import posterior as answers
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.survey_tables import probabilities_of_tables
from opendp_bayes.unlisted.thresholds import Discovery, OptimalThreshold
from tests.helpers.every_result import called, methods, plausible, properties
from tests.helpers.releases import guarantee

LOSS = ob.PrivacyLoss(2.0, 3.0, 3.0, 1e-6)


def counted(rng: np.random.Generator, shape: Any, scale: float) -> tuple[int, ...]:
    """What was drawn of a table of few or many records, whose last levels are rare."""
    shares = rng.dirichlet(np.full(int(np.prod(shape)), 0.3)).reshape(shape)
    for axis in range(len(shape)):
        if rng.random() < 0.6:
            np.moveaxis(shares, axis, 0)[-1] *= 1e-9
    records = int(np.exp(rng.uniform(0, np.log(2000))))
    counts = rng.multinomial(records, (shares / shares.sum()).ravel())
    noise = rng.geometric(1 - np.exp(-1 / scale), (2, counts.size))
    return tuple((counts + noise[0] - noise[1]).tolist())


def table(rng: np.random.Generator, levels: dict[str, int], names: tuple[str, ...]) -> ob.Release:
    shape, scale = tuple(levels[name] for name in names), float(np.exp(rng.uniform(-1, 2.5)))
    labels: Any = [tuple(f"{name}{at}" for at in range(levels[name])) for name in names]
    cells = tuple(itertools.product(*labels)) if len(names) > 1 else labels[0]
    drawn, mechanism = counted(rng, shape, scale), ob.LaplaceParameters(scale, total="private")
    axes = names if len(names) > 1 else ()
    prior = (1.0,) * len(cells)
    return ob.Release(drawn, cells, prior, mechanism, guarantee(None), axes, columns=names)


def some_levels(rng: np.random.Generator, number: int) -> dict[str, int]:
    return {name: int(np.exp(rng.uniform(np.log(2), np.log(40)))) for name in "abcdefgh"[:number]}


def a_release(rng: np.random.Generator) -> Any:
    return table(rng, some_levels(rng, 2), (("a", "b"), ("a",))[rng.integers(2)])


def groups(rng: np.random.Generator) -> Any:
    number, k = (int(rng.integers(1, 8)), int(rng.integers(2, 12)))
    drawn = np.reshape(counted(rng, (number, k), 2.0), (number, k))
    names, labels = (tuple(f"{of}{at}" for at in range(n)) for of, n in (("g", number), ("x", k)))
    mechanism = ob.LaplaceParameters(2.0, total="private")
    rows = tuple(tuple(row) for row in drawn.tolist())
    return GroupedRelease(names, rows, labels, (1.0,) * k, mechanism, guarantee(None))


def a_survey(rng: np.random.Generator) -> Any:
    """Of a path of pairs, or of pairs and single variables."""
    levels = some_levels(rng, int(rng.integers(2, 9)))
    pairs: list[tuple[str, ...]] = list(itertools.pairwise(levels))
    asked = [pair for pair in pairs if rng.random() < 0.8] or pairs[:1]
    asked += [(name,) for name in levels if rng.random() < 0.3]
    named = {"×".join(names): table(rng, levels, names) for names in asked}
    return ob.Survey(tuple(named), tuple(named.values()))


def some_nested(rng: np.random.Generator) -> Any:
    labels = tuple(f"a{at}" for at in range(int(rng.integers(4, 41))))
    fine = table(rng, {"a": len(labels)}, ("a",))
    cut = int(rng.integers(1, len(labels)))
    coarse = table(rng, {"a": 2}, ("a",))
    parts = labels[:cut], labels[cut:]
    merged = ob.Release(
        coarse.noisy_counts,
        ("m0", "m1"), (1.0,) * 2, coarse.mechanism, coarse.guarantee, parts=parts,
        columns=("a",),
    )  # fmt: skip
    return ob.Survey(("fine", "coarse"), (fine, merged))


def a_discovery(rng: np.random.Generator) -> Any:
    law, k = OptimalThreshold(1.0, 1e-6, 0.5), int(rng.integers(0, 30))
    drawn = tuple((law.threshold + rng.geometric(0.05, k)).astype(int).tolist())
    promise = ob.PrivacyGuarantee(None, 1, LOSS, "Approximate(MaxDivergence)")
    of = 0, Discovery(law, DiscreteLaplace(2.0)), int(rng.integers(-5, 500)), promise
    return ob.DiscoveredRelease("v", tuple(f"v{at:02}" for at in range(k)), drawn, *of)


KINDS: list[Callable[[np.random.Generator], Any]] = [
    a_release, groups, a_survey, some_nested, a_discovery,
]  # fmt: skip


def parts_of(result: Any) -> list[tuple[str, Any]]:
    """A result, its posterior, and parts of these of other kinds."""
    found = [("", result)]
    if isinstance(result, GroupedRelease):
        return [*found, ("group", next(iter(result.values())))]
    posterior = result.posterior
    found.append(("posterior", posterior))
    if isinstance(result, ob.Survey) and hasattr(posterior, "marginal"):
        names = posterior.variables
        return [*found, ("pair", posterior.marginal(names[0], names[-1]))]
    if isinstance(result, ob.Survey):
        return [*found, ("level", posterior["fine"])]
    if isinstance(result, ob.DiscoveredRelease):
        return [*found, ("rest", result.rest), ("shares", result.among_all)]
    first = posterior.categories[0]
    return [*found, ("counts", posterior.counts), ("category", posterior[first])]


#: Take seconds, and have tests of their own; are tried with an argument that is no result's own;
#: or a table of a survey has none.
SKIPPED = {"release", "pooled", "from_json", "json_schema", "with_sizes"}


def check(seed: int, folder: Path) -> None:
    rng, number = np.random.default_rng(seed), itertools.count()
    for name, result in parts_of(KINDS[seed % len(KINDS)](rng)):
        asked = {key: partial(getattr, result, key) for key in properties(result)}
        for method, signature in methods(result):
            arguments = {
                key: plausible(result, method, key, lambda: folder / str(next(number)))
                for key in signature.parameters
                if method not in SKIPPED
            }
            asked[method] = partial(called, result, method, arguments)
        for key in [key for key in asked if key not in SKIPPED]:
            try:
                asked[key]()
            except ValueError as error:
                if not re.match(r"[\w, ]+[=:\[]", str(error)):
                    raise AssertionError(f"seed {seed}, {name}.{key}: {error!r}") from error


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, short_chains: None) -> None:
    monkeypatch.setattr(answers, "DRAWS", 400)


@pytest.fixture(autouse=True)
def _close() -> Any:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


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


#: `tests/recorded` has a hundred that take less long.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(1000))
def test_every_method_of_many_random_results_answers(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
