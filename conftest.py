"""Enable the OpenDP features that every test, docstring and page needs, and collect the code of
docstrings and pages.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec
from typing import Any

# Traces of OpenDP take 60 ms for every refusal, and are read before it is loaded.
os.environ["RUST_BACKTRACE"] = "0"

import opendp.context
import opendp.extras.polars
import pytest
from hypothesis import HealthCheck, settings
from opendp.mod import binary_search_param, enable_features
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

enable_features("contrib", "honest-but-curious")

#: Fixtures of more than one folder, those of plugins among them.
pytest_plugins = ["tests.helpers.fixtures"]

# OpenDP's prelude loads it where it is there, which takes a second; no test asks anything of it.
sys.modules["sklearn"] = None  # type: ignore[assignment]

# A shell ignores Ctrl-C for what a script runs in the background, and what that starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast examples are made and run says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# What is imported and collected stays; each search for garbage would look at all of it again. The
# searches afterwards are few: tests make much that is gone at once.
gc.disable()
gc.set_threshold(50_000, 20, 20)

_flags = ELLIPSIS | NORMALIZE_WHITESPACE
_docstrings = Sybil(
    parsers=[DocTestParser(optionflags=_flags)],
    patterns=[
        f"{package}/{modules}"
        for package in ("opendp_bayes", "plugins/opendp-bayes-research/opendp_bayes_research")
        for modules in ("*.py", "**/*.py")
    ],
)


def _page_names(namespace: dict[str, Any]) -> None:
    """Give the conditions under which code of a page is skipped what they ask."""
    namespace["missing"] = lambda package: find_spec(package) is None


#: Pages show what chains find and do not measure it; `make test-slow` runs them as users do.
_chains = [] if os.environ.get("LONG_CHAINS") else ["short_chains"]
_pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=_flags), SkipParser()],
    patterns=[
        "README.md",
        "docs/*.md",
        "docs/research/*.md",
        "plugins/*/README.md",
        "plugins/*/docs/*.md",
    ],
    setup=_page_names,
    fixtures=_chains,
)
pytest_collect_file = (_docstrings + _pages).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the recorded answers anew")


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
def _opendp_searches_once() -> Iterator[None]:
    """Let OpenDP search once for the shares of each budget, and for the scale of each of its own
    queries. It composes or makes 60 measurements to find one, which is most of what a Context and
    a query cost, and tests make thousands.
    """
    found: dict[str, float] = {}

    def searched(make: Any, d_in: Any, d_out: Any, T: Any) -> Any:
        cells = [cell.cell_contents for cell in make.__closure__]
        known = dict(zip(make.__code__.co_freevars, cells, strict=True))
        of: tuple[Any, ...]
        if "query" in known:
            query = known["query"]
            of = known["input_domain"], query._output_measure, known["polars_plan"].serialize()
        else:
            of = known["output_measure"], known["weights"]
        key = str([known["input_metric"], *of, d_in, d_out, T])
        if key not in found:
            found[key] = binary_search_param(make, d_in=d_in, d_out=d_out, T=T)
        return found[key]

    def of_a_budget(make: Any, *given: Any, **named: Any) -> Any:
        of_weights = make.__name__ == "_scale_ac"
        return (searched if of_weights else binary_search_param)(make, *given, **named)

    def of_a_query(make: Any, d_in: Any, d_out: Any, T: Any) -> Any:
        return make(searched(make, d_in, d_out, T))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opendp.context, "binary_search_param", of_a_budget)
        patch.setattr(opendp.extras.polars, "binary_search_chain", of_a_query)
        yield


@pytest.fixture(scope="module")
def coarse_errors() -> Iterator[None]:
    """Coarse expected errors, for modules that use the choice among mechanisms and do not measure
    it.
    """
    from tests.helpers.coarsened import coarsen

    with pytest.MonkeyPatch.context() as patch:
        coarsen(patch.setattr)
        yield


@pytest.fixture(scope="module")
def chains_anew() -> Iterator[None]:
    """Take a tenth of the sweeps for enough, for modules that ask whether a copy or a setting of
    the process changes what is found: of each posterior anew.
    """
    from tests.helpers.shortened import shorten

    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield


@pytest.fixture(scope="module")
def short_chains() -> Iterator[None]:
    """Take a tenth of the sweeps for enough, of learned priors, pooled groups and surveys, and
    compute each posterior once a run: for modules that show and save what is found and do not
    measure it.
    """
    from tests.helpers.computed_once import SHORT, compute_once
    from tests.helpers.shortened import shorten

    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        compute_once(patch, SHORT)
        yield


@pytest.fixture(scope="module")
def computed_once() -> Iterator[None]:
    """Each posterior computed once a run, from chains of the whole length."""
    from tests.helpers.computed_once import LONG, compute_once

    with pytest.MonkeyPatch.context() as patch:
        compute_once(patch, LONG)
        yield
