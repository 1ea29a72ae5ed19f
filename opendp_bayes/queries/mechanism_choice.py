"""The mechanism of a query: a value as it is, or the one of a name and its options at the smallest
scale that fits the budget.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from opendp_bayes.accounting.calibration import counts_in_proportion, fitted, smallest_scale
from opendp_bayes.mathematics.telling import meant, told
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.protocol import default_options, noises_every_count
from opendp_bayes.mechanisms.registry import load_mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.automatic import choose, usual
from opendp_bayes.queries.question import ARGUMENTS
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace

#: A parameter of a mechanism, as a user gives it by name.
Option = float | str | None
#: The privacy loss of a mechanism in its setting, as a multiple of the budget.
Loss = Callable[[Setting], float]
#: A mechanism, or the one that fits a budget.
Fit = Mechanism | Callable[[Loss], Setting]


def fit_of(
    mechanism: str | Mechanism,
    options: dict[str, Option],
    space: PosteriorSpace,
    *,
    learned: bool = False,
) -> Fit:
    """A mechanism value as it is, or the function from a loss to the mechanism that a name and its
    options describe, at its smallest scale. For a learned prior it must add noise to the counts,
    and `"auto"` chooses among those that do.
    """
    prior = space.prior_array
    if not isinstance(mechanism, str):
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism={told(mechanism)}: must be 'auto', the name of a mechanism or a"
                " mechanism value."
            )
        if options:
            raise TypeError(
                f"{', '.join(options)}: cannot be added to a mechanism value, which has its"
                " parameters; give the mechanism by name."
            )
        setting = Setting.of(mechanism, space.size, prior)
        setting.check_informative()
        if learned:
            setting.check_learnable()
        return setting.mechanism
    template = _template(mechanism, options, space.size)
    if template is None:
        return lambda loss: choose(
            lambda setting: smallest_scale(setting, loss), space.size, prior, noise_only=learned
        )
    # The scale found is checked when the query is resolved.
    setting = Setting.of(template, space.size, prior)
    if learned:
        setting.check_learnable()
    # A smoothness that is not given is chosen for equal proportions.
    guess = None if options or space.size is None else counts_in_proportion(space.size, prior)
    return lambda loss: fitted(setting, loss, guess)


def draws_noise(mechanism: str | Mechanism, options: dict[str, Option], space: CountsSpace) -> bool:
    """True if the mechanism of `fit_of` adds noise to the counts, or is open to the choice."""
    template = _template(mechanism, options, space.size)
    # What is no mechanism `fit_of` refuses.
    return template is None or (
        isinstance(template, Mechanism)
        and Setting.of(template, space.size, np.ones(space.k)).adds_noise
    )


def _template(
    mechanism: str | Mechanism, options: dict[str, Option], size: int | None
) -> Mechanism | None:
    """A mechanism as it is, or that of a name and its options, with a scale of 1; None for
    `"auto"`.
    """
    if not isinstance(mechanism, str):
        return mechanism
    kind = named_mechanism(mechanism, options)
    if kind is None:
        return None
    parameters: dict[str, Any] = {"scale": 1.0, **default_options(kind, size), **options}
    return kind(**parameters)


def named_mechanism(mechanism: str, options: dict[str, Option]) -> type[Mechanism] | None:
    """The mechanism of a name, None for `"auto"`; raises `TypeError` for options that it has not,
    as any unknown argument of a posterior is taken for one.
    """
    kind = None if mechanism == "auto" else load_mechanism(mechanism)
    accepted = (
        [] if kind is None else [field.name for field in fields(kind) if field.name != "scale"]
    )
    for option in options:
        if option not in accepted:
            remedy = (
                "check its spelling, or name the mechanism it belongs to"
                if kind is None
                else f"its options are {', '.join(accepted)}"
            )
            raise TypeError(
                f"{option}={told(options[option])}: is neither an argument of a posterior nor an"
                f" option of mechanism={told(mechanism)}; {remedy}. The scale follows from the"
                f" budget.{meant(option, [*accepted, *ARGUMENTS, 'mechanism'])}"
            )
    return kind


def mechanism_for_groups(
    mechanism: str | Mechanism, options: dict[str, Option]
) -> tuple[str | Mechanism, dict[str, Option]]:
    """Complete the mechanism and the options of a query per group; refuse all that does not noise
    every count, such as Laplace noise with a private total and Gaussian noise.

    The other mechanisms need the public number of records of each group, which a changed record can
    change.
    """
    if mechanism == "auto" and options:
        mechanism = usual(None, 2).name
    template = _template(mechanism, options, None)
    if template is None or (isinstance(template, Mechanism) and noises_every_count(template)):
        return mechanism, options
    total = getattr(template, "total", None)
    shown = f"mechanism={told(mechanism)}" if total in (None, "private") else f"total={told(total)}"
    raise ValueError(
        f"{shown}: needs a public number of records, and those of the groups are private: a record"
        " may be in any group, and a changed one may move to another. Use mechanism='auto', or"
        " LaplaceParameters(scale, total='private')."
    )
