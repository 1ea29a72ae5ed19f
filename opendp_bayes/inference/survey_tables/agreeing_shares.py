"""Means of tables, rounded so that any two agree on what they share to the last digit shown."""

import numpy as np

from opendp_bayes.inference.survey_tables.junction_tree import Scope
from opendp_bayes.inference.survey_tables.tables import Model
from opendp_bayes.mathematics.validation import Floats, Integers


def rounded_tables(model: Model, means: dict[Scope, Floats], units: int) -> dict[Scope, Integers]:
    """Whole numbers of `units` for the cells of every clique, which add up to all of them and agree
    on what two cliques share.

    `means` are probabilities of the cliques' cells that agree, shape `(cells,)`. Down the tree, the
    partial sums of cells that share a level of the separator are rounded, so that none of them is
    off by more than one unit beyond what the separator is.
    """
    found: dict[Scope, Integers] = {}
    for clique, separator in model.tree.downwards():
        places = model.places(clique, separator)
        totals = model.margin_of(found, separator) if found else np.array([units])
        rounded = np.zeros(means[clique].size, dtype=np.int64)
        for cell, total in enumerate(totals):
            inside = np.flatnonzero(places == cell)
            sums = means[clique][inside].cumsum()
            ends = np.rint(total * sums / sums[-1]).astype(np.int64)
            rounded[inside] = np.diff(ends, prepend=0)
        found[clique] = rounded
    return found
