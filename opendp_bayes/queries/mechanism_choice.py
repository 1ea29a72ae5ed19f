"""The mechanism of a query: a value as it is, or the one of a name and its options at the smallest
scale that fits the budget.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from opendp_bayes.accounting.calibration import counts_in_proportion, fitted, smallest_scale
from opendp_bayes.mathematics.telling import listed_names, meant, told
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.protocol import default_options, noises_every_count
from opendp_bayes.mechanisms.registry import load_mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.automatic import choose
from opendp_bayes.queries.question import ARGUMENTS
from opendp_bayes.trusted.spaces import PosteriorSpace

#: A parameter of a mechanism, as a user gives it by name.
Option = float | str | None
#: The privacy loss of a mechanism in its setting, as a multiple of the budget.
Loss = Callable[[Setting], float]
#: A mechanism, or the one that fits a budget.
Fit = Mechanism | Callable[[Loss], Setting]


def template_of(
    mechanism: str | Mechanism, options: dict[str, Option], size: int | None
) -> Mechanism | None:
    """A mechanism as it is, or that of a name and its options, with a scale of 1; None for
    `"auto"`.
    """
    if isinstance(mechanism, str):
        kind = named_mechanism(mechanism, options)
        parameters: dict[str, Any] = {"scale": 1.0, **options}
        return None if kind is None else kind(**default_options(kind, size) | parameters)
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism={told(mechanism)}: must be 'auto', the name of a mechanism or a mechanism"
            " value."
        )
    if options:
        raise TypeError(
            f"{', '.join(options)}: cannot be added to a mechanism value, which has its parameters;"
            " give the mechanism by name."
        )
    return mechanism


def fit_of(
    template: Mechanism | None,
    space: PosteriorSpace,
    *,
    is_value: bool,
    is_tuned: bool,
    learned: bool,
) -> Fit:
    """A mechanism value as it is, or the function from a loss to the mechanism of a template at its
    smallest scale; where it `is_tuned`, with the smoothness that the template has. For a learned
    prior it must add noise to the counts, and without a template is chosen among those that do.
    """
    size, prior = space.size, space.prior_array
    if template is None:
        return lambda loss: choose(
            lambda setting: smallest_scale(setting, loss), size, prior, noise_only=learned
        )
    setting = Setting.of(template, size, prior)
    if learned:
        setting.check_learnable()
    if is_value:
        setting.check_informative()
        return setting.mechanism
    # The scale found is checked when the query is resolved. A smoothness that is not given is
    # chosen for equal proportions.
    guess = None if is_tuned or size is None else counts_in_proportion(size, prior)
    return lambda loss: fitted(setting, loss, guess)


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
            others = [name for name in (*accepted, *ARGUMENTS, "mechanism") if name != option]
            raise TypeError(
                f"{option}={told(options[option])}: is neither an argument of a posterior nor an"
                f" option of mechanism={told(mechanism)}, which has"
                f" {listed_names(accepted) or 'none'}. Check its spelling, or name the mechanism it"
                " belongs to; merge and share belong to questions of"
                f" ob.survey. The scale follows from the budget.{meant(option, others)}"
            )
    return kind


def check_for_groups(mechanism: Mechanism | None) -> None:
    """Refuse, for a query per group, all that does not noise every count, as Laplace noise with a
    private total and Gaussian noise do.

    The other mechanisms need the public number of records of each group, which a changed record can
    change.
    """
    if mechanism is not None and not noises_every_count(mechanism):
        raise ValueError(
            f"mechanism={mechanism}: needs a public number of records, and those of the groups are"
            " private: a record may be in any group, and a changed one may move to another. Use"
            " mechanism='auto', or LaplaceParameters(scale, total='private')."
        )
