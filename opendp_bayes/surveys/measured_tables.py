"""Noisy tables that another program has drawn, as releases: of OpenDP's own measurements, and of
the measurements of mbi (private-pgm).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import Value
from opendp_bayes.results.external_counts import Named, Noise, as_labels, noisy_counts
from opendp_bayes.results.release import Release


def noisy_tables(
    measured: Any,
    *,
    mechanism: Named,
    noise: Noise = "discrete",
    keys: Mapping[str, Sequence[Value | None]] | None = None,
    size: int | None = None,
) -> dict[str, Release]:
    """Noisy marginals of OpenDP's `ContingencyTable`, or of mbi, as releases by name, which
    `combine(..., records="same")` makes one posterior of.

    A table is called by its columns, as in `"vote × party"`, and a second one of them `"vote (2)"`.
    Totals alone are left out.

    Source: `docs/budgets.md`, "From OpenDP's own noisy counts to a posterior".

    Parameters
    ----------
    measured : Any
        A `ContingencyTable`, or a list of mbi's `LinearMeasurement`s. Each states the standard
        deviation of its noise; the scale follows from that.
    mechanism : Named
        `"laplace_parameters"` where OpenDP's table was made under pure differential privacy, and
        `"gaussian_parameters"` under zero-concentrated.
    noise : Noise, default "discrete"
        `"discrete"`, as OpenDP's; for measurements of mbi with noise on floats `"floored"` of
        Laplace noise, and `"rounded"` of Gaussian.
    keys : Mapping[str, Sequence[str or int or bool or None]], optional
        The labels of each column, in the order of the cells; None takes those of the
        `ContingencyTable`. The key of nulls is called `"(null)"`.
    size : int, optional
        The public number of records; None where it is private.

    Raises
    ------
    ValueError, TypeError
        For a measurement that is not of all cells of its columns, as where keys were found in the
        data, for columns without keys, and where nothing is left.
    """
    as_choice(mechanism, "mechanism", get_args(Named))
    known = getattr(measured, "keys", None) if keys is None else keys
    if not isinstance(known, Mapping):
        raise TypeError(
            f"keys={told(known)}: must be a mapping from columns to labels; a list of measurements"
            " does not hold them."
        )
    labels = {column: as_labels(column, values) for column, values in known.items()}
    marginals = getattr(measured, "marginals", measured)
    each = marginals.flatten() if hasattr(marginals, "flatten") else marginals
    each = list(each) if isinstance(each, Iterable) else [each]
    if not all(hasattr(one, "clique") for one in each):
        raise TypeError(
            f"measured={told(measured)}: must be measurements of private-pgm, or a table of them."
        )
    found: dict[str, Release] = {}
    for place, one in enumerate(each):
        columns = tuple(one.clique)
        if not columns:
            continue
        _check_whole(place, one, columns, labels)
        name, number = " × ".join(columns), 1
        while name in found:
            number += 1
            name = f"{' × '.join(columns)} ({number})"
        found[name] = noisy_counts(
            np.asarray(one.noisy_measurement, dtype=np.float64),
            labels[name] if name in columns else {column: labels[column] for column in columns},
            mechanism=mechanism,
            noise=noise,
            scale=float(one.stddev) / (math.sqrt(2) if "laplace" in mechanism else 1.0),
            size=size,
        )
    if not found:
        raise ValueError("measured: holds no marginal of a column.")
    return found


def _check_whole(
    place: int, one: Any, columns: tuple[str, ...], labels: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raise `ValueError` for what is not a measurement of all cells of known columns."""
    missing = [column for column in columns if column not in labels]
    if missing:
        raise ValueError(f"keys: have no labels of {missing[0]!r}; give those of every column.")
    cells = math.prod(len(labels[column]) for column in columns)
    query = getattr(one.query, "__name__", type(one.query).__name__)
    if query != "datavector" or np.size(one.noisy_measurement) != cells:
        raise ValueError(
            f"measured[{place}]: of {' × '.join(columns)} has {np.size(one.noisy_measurement)}"
            f" numbers of the query {query!r}; must be the counts of all {cells} cells. Give keys"
            " or cuts of every column to OpenDP, so that none are found in the data."
        )
