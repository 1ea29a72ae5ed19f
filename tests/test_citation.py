"""The citation is of the version that is there."""

from pathlib import Path

import opendp_bayes

CITATION = Path(__file__).parent.parent / "CITATION.cff"


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {opendp_bayes.__version__}\n" in CITATION.read_text(encoding="utf-8")
