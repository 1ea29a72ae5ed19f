"""Check claims of the papers: `python examples/papers/checks.py N12` prints the evidence, which
`docs/research/papers.csv` quotes; several claims print a line each, in the order given, none all of
them.
"""

import sys

import accuracy  # noqa: F401 (their checks register themselves)
import experiments  # noqa: F401
import icml  # noqa: F401
import notes  # noqa: F401
import smoothed  # noqa: F401
import tailoring  # noqa: F401
import within  # noqa: F401
from common import CHECKS


def main(claims: list[str]) -> None:
    unknown = [claim for claim in claims if claim not in CHECKS]
    if unknown:
        raise SystemExit(f"no check of {', '.join(unknown)}; there are {', '.join(CHECKS)}.")
    for claim in claims or CHECKS:
        print(CHECKS[claim]())


if __name__ == "__main__":
    main(sys.argv[1:])
