"""Let every test module `import oracles`, the independent constructions that the package is
compared with.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
