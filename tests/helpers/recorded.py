"""Answers that are compared with what was recorded, with noise that is drawn from a seed."""

import json
import random
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opendp.mod import OpenDPException

from opendp_bayes.inference.answers import posterior as answers
from opendp_bayes.samplers import inversion
from opendp_bayes.trusted import measurements
from opendp_bayes.unlisted import thresholds
from tests.helpers.fingerprints import are_same, fingerprint
from tests.helpers.sources import PACKAGES

Rng = np.random.Generator
#: Names of answers, and how each is computed.
Answers = Iterator[tuple[str, Callable[[], Any]]]


def one(rng: Rng, values: Any) -> Any:
    return values[rng.integers(len(values))]


@cache
def caches() -> list[Any]:
    """What functions and methods of this package remember, which the tests before decide."""
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            if not path.stem.startswith("__") and path.stem != "on_spark":
                import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
    modules = [of for name, of in sys.modules.items() if name.startswith("opendp_bayes")]
    names = [value for module in modules for value in vars(module).values()]
    names += [value for kind in names if isinstance(kind, type) for value in vars(kind).values()]
    plain = [getattr(value, "__func__", value) for value in names]
    return list({id(of): of for of in plain if callable(getattr(of, "cache_clear", None))}.values())


def seed_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise from a seed, also where OpenDP draws it, few draws, and nothing remembered: nothing
    here is measured, and no test before matters.
    """
    for remembered in caches():
        remembered.cache_clear()
    source, rng = random.Random(1), np.random.default_rng(1)
    patch.setattr(secrets, "randbelow", source.randrange)
    for module in (secrets, inversion):
        patch.setattr(module, "randbits", source.getrandbits)
    patch.setattr(secrets, "token_bytes", source.randbytes)
    patch.setattr(secrets, "token_hex", lambda number: source.randbytes(number).hex())
    laws = {"laplace": rng.laplace, "gaussian": rng.normal}
    for name, noise in laws.items():
        patch.setattr(measurements, f"make_{name}", partial(_adding, noise))
    patch.setattr(measurements, "make_noisy_max", partial(_choosing, rng.gumbel))
    # Values that nobody listed come in any order.
    for law in ("OptimalThreshold", "LaplaceThreshold", "GaussianThreshold"):
        patch.setattr(f"{thresholds.__name__}.{law}.draws", lambda _, n: np.full(n, 7))
    patch.setattr(answers, "DRAWS", 400)


def _adding(law: Any, _domain: Any, _metric: Any, scale: float) -> Any:
    return lambda counts: counts + np.rint(law(0, scale, len(counts))).astype(int)


def _choosing(law: Any, _domain: Any, _metric: Any, _measure: Any, scale: float) -> Any:
    return lambda scores: int(np.argmax(scores + law(0, scale, len(scores))))


def answered(asked: Answers) -> dict[str, float | str]:
    """A number for each answer; for a refusal the name of the argument."""
    found: dict[str, float | str] = {}
    for name, ask in asked:
        try:
            found[name] = fingerprint(ask())
        except (ValueError, TypeError, KeyError, OpenDPException) as error:
            found[name] = " ".join(re.findall(r"[\w.]+", str(error))[:2])
    return found


def differences(
    path: Path, case: str, asked: Answers, config: pytest.Config
) -> dict[str, tuple[float | str | None, float | str | None]]:
    """Recorded and present answers of a case that are not the same; `--record` writes them."""
    found = answered(asked)
    wanted = as_recorded(path, case, found, config)
    pairs = {name: (wanted.get(name), found.get(name)) for name in {**wanted, **found}}
    return {name: pair for name, pair in pairs.items() if not _are_equal(*pair)}


def as_recorded(path: Path, case: str, answer: Any, config: pytest.Config) -> Any:
    """What a file has of a case; with `--record` the present answer, which is written."""
    if not config.getoption("record"):
        return _recorded(path)[case]
    cases = json.loads(path.read_text("utf-8")) if path.exists() else {}
    lines = [
        f'"{key}": {json.dumps(of, ensure_ascii=False)}'
        for key, of in (cases | {case: answer}).items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return answer


@cache
def _recorded(path: Path) -> dict[str, Any]:
    """What a file has, of all its cases."""
    cases: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return cases


def _are_equal(first: float | str | None, second: float | str | None) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return are_same(first, second)
    return first == second
