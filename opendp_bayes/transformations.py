"""Constructors of transformations: data to counts, posteriors and OpenDP's own vectors. As
`dp.t` in OpenDP, they are in `ob.t`.
"""

import importlib
import typing

from opendp_bayes.queries.categorical_counts import (
    make_categorical_counts as make_categorical_counts,
    then_categorical_counts as then_categorical_counts,
)
from opendp_bayes.trusted.posteriors import (
    make_beta_binomial as make_beta_binomial,
    make_count_vector as make_count_vector,
    make_dirichlet_multinomial as make_dirichlet_multinomial,
    then_beta_binomial as then_beta_binomial,
    then_count_vector as then_count_vector,
    then_dirichlet_multinomial as then_dirichlet_multinomial,
)

if typing.TYPE_CHECKING:
    from opendp_bayes.unlisted.discovered_counts import (
        make_discovered_counts as make_discovered_counts,
        then_discovered_counts as then_discovered_counts,
    )

#: Loaded when first used, as in the package: listed categories need none of it.
_LATE = ("make_discovered_counts", "then_discovered_counts")


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("opendp_bayes.unlisted.discovered_counts"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
