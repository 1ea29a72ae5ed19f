"""The tools for an OpenDP measurement of your own, or for data of your own, on the spaces of this
package. See `docs/extending.md`.

A door of its own, because it loads OpenDP: `opendp_bayes.extend` needs neither OpenDP nor polars.
"""

from opendp_bayes.queries.categorical_counts import counting
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.boundary import (
    ContractError,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.cells import Axis
from opendp_bayes.trusted.contexts import CheckedContext
from opendp_bayes.trusted.kinds import ColumnKind
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.trusted.spaces import PosteriorSpace
from opendp_bayes.trusted.temporary_files import TemporaryFile
from opendp_bayes.unlisted.discovered_counts import counting_values
from opendp_bayes.unlisted.trusted.keys import Keys, counted_in_parts

__all__ = [
    "Axis",
    "CheckedContext",
    "ColumnKind",
    "ContractError",
    "Keys",
    "PosteriorSpace",
    "Question",
    "TemporaryFile",
    "counted_in_parts",
    "counting",
    "counting_values",
    "descriptor_of",
    "guarded",
    "guarded_map",
    "require_features",
    "to_then",
]
