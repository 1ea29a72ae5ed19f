"""Checks of ledgers in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.sources import ROOT


def checked_apart(
    check: str, folder: Path, number: int, *control: str
) -> "subprocess.CompletedProcess[str]":
    """Run a check of `ledger_processes` in this folder."""
    folder.chmod(0o755)
    command = [sys.executable, "-m", "tests.helpers.ledger_processes", check, str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    output = {"check": False, "capture_output": True, "text": True}
    return subprocess.run([*command, str(number), *control], cwd=ROOT, env=environment, **output)
