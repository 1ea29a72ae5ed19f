"""Merged categories: a question with fewer categories, each of which counts several."""

from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.queries.question import Question
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.merging import merged_places


def merged_cells(
    labels: tuple[Label, ...], index: Integers, question: Question
) -> tuple[tuple[Label, ...], Integers]:
    """Merged labels, and the number of the merged category for every entry of `index`, where there
    was that of one of `labels`. Every record is still in one category (`docs/research/proofs.md`,
    "Counts").

    Raises
    ------
    ValueError, TypeError
        Unless `question.merge` has every label once.
    """
    merge: Any = question.merge
    number = np.append(merged_places(merge, labels), -1)  # the last of what is left out
    if question.by:
        raise ValueError(
            f"merge={told(merge)}: is of one table; ask for the joint table of the groups' column"
            " and this one, and merge its cells."
        )
    if len(merge) < 2:
        raise ValueError(
            f"merge={told(list(merge))}: must have at least 2 labels; add another. Of a noisy total"
            " from elsewhere noisy_counts(merge=...) makes a level."
        )
    return tuple(merge), number[index]
