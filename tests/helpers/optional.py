"""Packages that are not there for every Python that `opendp-bayes` is promised for."""

import sys

import pytest


def arviz_or_skip() -> None:
    """Skip what follows in a test on Python 3.10, for which there is no arviz-base."""
    if sys.version_info < (3, 11):
        pytest.skip("arviz-base needs Python 3.11")
