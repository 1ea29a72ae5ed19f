"""Draws that are kept beside a file: found again, equal to the digit, and by nobody else."""

import warnings
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from opendp_bayes import (
    LaplaceParameters,
    PrivacyGuarantee,
    PrivacyLoss,
    Release,
    combine,
    noise_aware_posterior,
)
from opendp_bayes.inference.answers import learned_posterior
from opendp_bayes.inference.sampling import kept_draws
from opendp_bayes.inference.sampling.kept_draws import kept_beside
from opendp_bayes.surveys import joint_posterior
from opendp_bayes.surveys.joint_posterior import survey_posterior
from opendp_bayes.surveys.survey_tables import consistent_draws

pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled")  # they are short

CELLS = tuple((a, b) for a in "xyz" for b in "pq")
PROMISE = PrivacyGuarantee(None, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
LAW = LaplaceParameters(2.0, total="private")


def tables(first: int = 30) -> dict[str, Release]:
    table = Release((first, 12, 7, 40, 22, 9), CELLS, (1.0,) * 6, LAW, PROMISE, ("a", "b"))
    return {"table": table, "b": Release((61, 60), ("p", "q"), (1.0, 1.0), LAW, PROMISE)}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_draws, "_WORTH", 0.0)
    monkeypatch.setattr(consistent_draws, "_FIRST_RUN", 8)
    monkeypatch.setattr(consistent_draws, "_DOUBLINGS", 0)
    return tmp_path / "survey.json"


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for every time that chains run."""
    found: list[int] = []

    def draw(*arguments: Any, _draw: Any = joint_posterior.draw) -> Any:
        found.append(len(found))
        return _draw(*arguments)

    monkeypatch.setattr(joint_posterior, "draw", draw)
    return found


def answers(**changed: Any) -> list[float]:
    given = {"ess": 20, **changed}
    found = survey_posterior(given.pop("tables", tables()), **given)
    shares = found.sample(3, random_state=0)[("a", "b")].ravel().tolist()
    return [*shares, *found.r_hat.values(), *found.marginal("a", "b").std().tolist()]


def test_draws_are_found_again_to_the_digit(file: Path, drawings: list[int]) -> None:
    wanted = answers()
    for times in range(3):
        with kept_beside(file):
            assert answers() == wanted
        assert len(drawings) == 2, times
    assert [path.name for path in file.parent.iterdir()] == ["survey.json.draws.npz"]


def test_other_releases_arguments_and_seeds_have_other_draws(
    file: Path, drawings: list[int]
) -> None:
    others: list[dict[str, Any]] = [
        {},
        {"tables": tables(31)},
        {"ess": 21},
        {"concentration": 2.0},
        {"random_state": 1},
        {"random_state": np.int64(2)},
    ]
    for number, other in enumerate(others, start=1):
        with kept_beside(file):
            answers(**other)
        assert len(drawings) == number, other
        with kept_beside(file):
            answers(**other)
        assert len(drawings) == number, other


def test_several_are_kept_together(
    file: Path, drawings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one block or one after the other, as by a report and then a sheet."""
    for seeds in ((0, 1), (2,), (0, 2), (1,)):
        with kept_beside(file):
            assert len({tuple(answers(random_state=seed)) for seed in seeds}) == len(seeds)
    assert len(drawings) == 3
    monkeypatch.setattr(kept_draws, "_LARGEST", 10_000)  # more than one has, and less than two
    for seed, number in ((3, 4), (3, 4), (0, 5)):
        with kept_beside(file):
            answers(random_state=seed)
        assert len(drawings) == number, "the new ones alone are kept"


def test_without_a_seed_and_outside_of_a_file_others_are_drawn(
    file: Path, drawings: list[int]
) -> None:
    with kept_beside(file):
        answers(random_state=None)
    answers()
    answers()
    assert len(drawings) == 3
    assert not list(file.parent.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        *[b"", b"no archive", b"PK\x03\x04 and nothing"],
        *["pickled", "one array", "damaged", "one missing", "a text"],
    ],
    ids=str,
)
def test_a_file_of_another_kind_is_drawn_anew(
    file: Path, drawings: list[int], content: bytes | str
) -> None:
    beside = file.with_name("survey.json.draws.npz")
    if content == "pickled":  # never read: what it holds would be carried out
        np.savez(beside, **{"key/table 0": np.array([{}], dtype=object)})
    elif content in ("damaged", "one missing"):
        with kept_beside(file):
            answers()
        drawings.clear()
        with np.load(beside) as found:
            arrays = {name: found[name] for name in found.files}
        if content == "one missing":
            np.savez_compressed(beside, **dict(list(arrays.items())[1:]))
        else:
            written = bytearray(beside.read_bytes())
            for at in range(100, len(written) - 100, 50):
                written[at] ^= 255
            beside.write_bytes(written)
    elif content == "a text":
        with ZipFile(beside, "w") as archive:
            archive.writestr("readme.txt", "none of ours")
    elif content == "one array":
        with beside.open("wb") as opened:
            np.save(opened, np.zeros(3))
    else:
        beside.write_bytes(content)  # type: ignore[arg-type]
    wanted = answers()
    for _ in range(2):
        with kept_beside(file):
            assert answers() == wanted
    assert len(drawings) == 2


def test_what_is_quick_or_large_or_has_no_place_is_not_kept(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept_beside(file.parent / "no folder" / "survey.json"):
        wanted = answers()
    monkeypatch.setattr(kept_draws, "_LARGEST", 1000)
    with kept_beside(file):
        assert answers() == wanted
    monkeypatch.setattr(kept_draws, "_LARGEST", 1 << 26)
    monkeypatch.setattr(kept_draws, "_WORTH", 600.0)
    with kept_beside(file):
        assert answers() == wanted
    assert not list(file.parent.iterdir())


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_draws_of_a_learned_prior_are_found_again_to_the_digit(
    file: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Of one release, and of two looks at the same counts."""
    for name, value in {"_STARTS": 1, "_BEFORE": 5, "_MOVES": 10, "_DOUBLINGS": 0}.items():
        monkeypatch.setattr(learned_posterior, name, value)
    number = 0

    def run(*arguments: Any, _run: Any = learned_posterior._run) -> Any:
        nonlocal number
        number += 1
        return _run(*arguments)

    monkeypatch.setattr(learned_posterior, "_run", run)
    releases = [tables(30 + at)["table"] for at in range(times)]

    def answers() -> list[float]:
        if times == 1:
            found: Any = noise_aware_posterior(releases[0], prior="learned", ordered=["b"])
        else:
            found = combine(releases, records="same", prior="learned")
        learned = [float(each.mean()) for each in found.learned.values()]
        ends = np.array(found.interval(0.9)).tolist()
        counted = found.counts.std().tolist()
        return [*found.mean(), *ends, *counted, *learned, *found.diagnostics.ess]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # chains are short
        wanted = answers()
        for _ in range(3):
            with kept_beside(file):
                assert answers() == wanted
        assert number == 2
        with kept_beside(file):
            other = noise_aware_posterior(releases[0], prior="learned", ordered=["a"])
    assert other.mean().tolist() != wanted[:6]
    assert number == 3
