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
    `combine(...)` makes one posterior of.

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
    listed = getattr(measured, "keys", None) if keys is None else keys
    if not isinstance(listed, Mapping):
        raise TypeError(
            f"keys={told(listed)}: must be a mapping from columns to labels; a list of measurements"
            " does not hold them."
        )
    labels = {column: as_labels(column, values) for column, values in listed.items()}
    marginals = getattr(measured, "marginals", measured)
    measurements = marginals.flatten() if hasattr(marginals, "flatten") else marginals
    measurements = list(measurements) if isinstance(measurements, Iterable) else [measurements]
    if not all(hasattr(measurement, "clique") for measurement in measurements):
        raise TypeError(
            f"measured={told(measured)}: must be measurements of private-pgm, or a table of them."
        )
    releases: dict[str, Release] = {}
    for position, measurement in enumerate(measurements):
        columns = tuple(measurement.clique)
        if not columns:
            continue
        _check_whole(position, measurement, columns, labels)
        title, number = " × ".join(columns), 1
        while title in releases:
            number += 1
            title = f"{' × '.join(columns)} ({number})"
        releases[title] = noisy_counts(
            np.asarray(measurement.noisy_measurement, dtype=np.float64),
            labels[title] if title in columns else {column: labels[column] for column in columns},
            mechanism=mechanism,
            noise=noise,
            scale=float(measurement.stddev) / (math.sqrt(2) if "laplace" in mechanism else 1.0),
            size=size,
        )
    if not releases:
        raise ValueError("measured: holds no marginal of a column.")
    return releases


def _check_whole(
    position: int, measurement: Any, columns: tuple[str, ...], labels: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raise `ValueError` for what is not a measurement of all cells of known columns."""
    missing = [column for column in columns if column not in labels]
    if missing:
        raise ValueError(f"keys: have no labels of {missing[0]!r}; give those of every column.")
    cells = math.prod(len(labels[column]) for column in columns)
    query = getattr(measurement.query, "__name__", type(measurement.query).__name__)
    if query != "datavector" or np.size(measurement.noisy_measurement) != cells:
        raise ValueError(
            f"measured[{position}]: of {' × '.join(columns)} has"
            f" {np.size(measurement.noisy_measurement)} numbers of the query {query!r}; must be the"
            f" counts of all {cells} cells. Give keys or cuts of every column to OpenDP, so that"
            " none are found in the data."
        )
