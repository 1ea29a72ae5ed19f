"""What a process has set for numpy, decimals, languages, warnings and generators of random numbers
changes no release: none fails for it, no loss is another, and no seed makes the noise.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.helpers.hostile_releases import MARKED, described, releases
from tests.helpers.sources import ROOT

_ENVIRONMENT = {**os.environ, "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "1", "LC_ALL": "C"}
_IMPORTS = """
import importlib, pathlib, numpy, scipy.stats, scipy.optimize, scipy.signal, scipy.sparse
import opendp.prelude, polars, msgspec, typer, rich
numpy.seterr(all="raise")
for path in sorted(pathlib.Path("opendp_bayes").rglob("*.py")):
    if path.stem != "__main__":
        importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
"""


@pytest.mark.usefixtures("coarse_errors")
def test_releases_of_every_kind_are_made_in_a_hostile_process(tmp_path: Path) -> None:
    file = tmp_path / "released.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.hostile_releases", str(file)],
        cwd=ROOT,
        env=_ENVIRONMENT,
        text=True,
        stderr=subprocess.PIPE,
    )
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
    same = [name for name in first if first[name]["drawn"] == second[name]["drawn"]]
    assert len(same) <= 3, "the draws are those of a seed"


def test_no_module_computes_what_the_caller_makes_an_error() -> None:
    """Some are imported when they are first used, after the caller's `np.seterr`."""
    subprocess.run([sys.executable, "-c", _IMPORTS], cwd=ROOT, check=True, timeout=600)
