"""Settings of a process for numpy, decimals, languages, warnings or seeds change no release."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hostile_releases import MARKED, described, releases
from tests.helpers.sources import ROOT

_ENVIRONMENT = {**os.environ, "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "1", "LC_ALL": "C"}


@pytest.mark.usefixtures("coarse_errors")
def test_releases_of_every_kind_are_made_in_a_hostile_process(tmp_path: Path) -> None:
    file = tmp_path / "released.json"
    command = [sys.executable, "-m", "tests.helpers.hostile_releases", str(file)]
    output: Any = {"text": True, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=ROOT, env=_ENVIRONMENT, **output)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        usual = described(releases())
    _, errors = process.communicate(timeout=600)
    assert MARKED not in errors
    assert process.returncode == 0, errors
    first, second = json.loads(file.read_text(encoding="utf-8"))
    assert first.keys() == second.keys() == usual.keys()
    for name, of in usual.items():
        for part in ("loss", "law", "document"):
            assert first[name][part] == second[name][part] == of[part], (name, part)
    same = [name for name in first if first[name]["noisy_counts"] == second[name]["noisy_counts"]]
    assert len(same) <= 3, "the draws are those of a seed"
