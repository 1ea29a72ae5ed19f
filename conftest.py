"""Enable the OpenDP features that every test, docstring and page needs, and collect the code of
docstrings and pages.
"""

import gc
import signal
import sys
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec
from typing import Any

import opendp.context
import pytest
from hypothesis import HealthCheck, settings
from opendp.mod import enable_features
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

enable_features("contrib", "honest-but-curious")

# OpenDP's prelude loads it where it is there, which takes a second; no test asks anything of it.
sys.modules["sklearn"] = None  # type: ignore[assignment]

# A shell ignores Ctrl-C for what a script runs in the background, and what that starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast examples are made and run says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# What is imported and collected stays; each search for garbage would look at all of it again.
gc.disable()

_flags = ELLIPSIS | NORMALIZE_WHITESPACE
_docstrings = Sybil(
    parsers=[DocTestParser(optionflags=_flags)],
    patterns=["opendp_bayes/*.py", "opendp_bayes/**/*.py"],
)


def _page_names(namespace: dict[str, Any]) -> None:
    """Give the conditions under which code of a page is skipped what they ask."""
    namespace["missing"] = lambda package: find_spec(package) is None


_pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=_flags), SkipParser()],
    patterns=["README.md", "docs/*.md"],
    setup=_page_names,
)
pytest_collect_file = (_docstrings + _pages).pytest()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _features() -> None:
    """A test may disable a feature; the next one starts with all of them again."""
    enable_features("contrib", "honest-but-curious")


@pytest.fixture(autouse=True, scope="session")
def _no_waiting() -> Iterator[None]:
    """Let releases of exponential mechanisms return at once: tests make thousands of them.
    `tests/trusted/test_pacing.py` tests how long they wait otherwise.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opendp_bayes.trusted.measurements.sleep", lambda seconds: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _equal_budgets_are_divided_once() -> Iterator[None]:
    """Let OpenDP search once for the shares of each budget. It composes 60 times to divide one,
    which is most of what a Context costs, and tests make thousands of Contexts.
    """
    search: Any = opendp.context.binary_search_param
    scales: dict[str, float] = {}

    def searched(compose: Any, *given: Any, **named: Any) -> Any:
        if compose.__name__ != "_scale_ac":
            return search(compose, *given, **named)
        cells = [cell.cell_contents for cell in compose.__closure__]
        known = dict(zip(compose.__code__.co_freevars, cells, strict=True))
        names = ("input_metric", "output_measure", "d_in", "weights")
        key = str([[str(known[name]) for name in names], given, named])
        if key not in scales:
            scales[key] = search(compose, *given, **named)
        return scales[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opendp.context, "binary_search_param", searched)
        yield
