"""The tools for an OpenDP measurement or transformation of your own, on the spaces of this package.
See `docs/plugins.md`.

A door of its own, because it loads OpenDP: `opendp_bayes.extend` needs neither OpenDP nor polars.
"""

from opendp_bayes.questions.cells_of import cells_of
from opendp_bayes.questions.question import Countable, Question, Variable
from opendp_bayes.trusted.boundary import (
    ContractError,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.cells import CategoricalColumn, Cells
from opendp_bayes.trusted.chaining import to_then
from opendp_bayes.trusted.counting import checked_size, counting, records_of_bounds
from opendp_bayes.trusted.interrupts import deferred_interrupts, interruptible
from opendp_bayes.trusted.opening import (
    CheckedContext,
    check_identifier,
    check_ledger,
    opening_arguments,
)
from opendp_bayes.trusted.plan_gate import check_plan
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace

__all__ = [
    "CategoricalColumn",
    "Cells",
    "CheckedContext",
    "ContractError",
    "Countable",
    "CountsSpace",
    "PosteriorSpace",
    "Question",
    "Variable",
    "cells_of",
    "check_identifier",
    "check_ledger",
    "check_plan",
    "checked_size",
    "counting",
    "deferred_interrupts",
    "descriptor_of",
    "guarded",
    "guarded_map",
    "interruptible",
    "opening_arguments",
    "records_of_bounds",
    "require_features",
    "to_then",
]
