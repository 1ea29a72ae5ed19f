"""Let the tests import `definitions` and `paper`, what its examples compute beside it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
