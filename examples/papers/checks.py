"""Check claims of the papers: `python examples/papers/checks.py N12` prints the evidence, which
`docs/research/papers.csv` quotes; several claims print a line each, in the order given, none all of
them.
"""

import argparse
import re

import accuracy  # noqa: F401 (their checks register themselves)
import experiments  # noqa: F401
import icml  # noqa: F401
import notes  # noqa: F401
import smoothed  # noqa: F401
import tailoring  # noqa: F401
import within  # noqa: F401
from common import CHECKS


def in_order(claim: str) -> tuple[str, int, str]:
    """By document, number and part."""
    letter, number, part = re.fullmatch(r"([A-Z])(\d+)([a-z]?)", claim).groups()
    return letter, int(number), part


def main() -> None:
    known = ", ".join(sorted(CHECKS, key=in_order))
    parser = argparse.ArgumentParser(
        description="Check claims of the papers. docs/research/papers.md has the verdicts.",
        epilog=f"Claims: {known}.",
    )
    parser.add_argument(
        "claims", nargs="*", metavar="CLAIM", help="as in N12; all of them by default"
    )
    claims = parser.parse_args().claims
    unknown = [claim for claim in claims if claim not in CHECKS]
    if unknown:
        parser.error(f"no check of {', '.join(unknown)}; there are {known}.")
    for claim in claims or CHECKS:
        print(CHECKS[claim]())


if __name__ == "__main__":
    main()
