"""Let the tests import `oracles`, the independent constructions of the core's tests, and
`definitions`, those of this package.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3] / "tests")]
