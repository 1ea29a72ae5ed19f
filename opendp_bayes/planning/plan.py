"""Plan: compare the losses and the expected errors of every mechanism in a public setting, before
any budget is spent.

It depends on public things alone: the number of records or a guess of it, the prior, the privacy
asked for, and proportions, made up or guessed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting.calibration import (
    calibrate,
    counts_in_proportion,
    planned_distance,
    relative_loss,
)
from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, as_prior
from opendp_bayes.mechanisms import (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    Mechanism,
    PermuteAndFlip,
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.automatic import affordable
from opendp_bayes.planning.compare import Plan, PlanRow, ranked
from opendp_bayes.planning.expected_error import expected_error, proportions_of_interest, records_of


@np.errstate(under="ignore")
def plan(
    *,
    size: int | None = None,
    prior: ArrayLike,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    d_in: int | Distance = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
    mechanisms: Sequence[Mechanism] | None = None,
) -> Plan:
    """Compare the mechanisms in a public setting, by their scales, losses and expected errors, and
    recommend one.

    Errors are at balanced proportions, at skewed ones and at the edge. Skewed are 1 to 4 for two
    categories, otherwise each category twice as frequent as the one before. At the edge the first
    category has 1 % of the records, and the others are balanced.

    Source: `docs/choosing.md`.

    Parameters
    ----------
    size : int, optional
        The public number of records, or None where it is private (add/remove neighbours). Then
        `guess_size` is needed.
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    epsilon, delta, rho : float, optional
        The privacy loss: `epsilon` alone, `epsilon` with `delta`, `delta` alone (ε = 0), or `rho`
        (zero-concentrated). `epsilon` and `rho` are positive, `delta` is between 0 and 1.
    d_in : int or Distance, default 1
        Records changed, or added and removed, a whole number of at least 1; or a `Distance` of the
        counts.
    proportions : array_like, optional
        The analyst's public guess of the category proportions, shape `(k,)`. With it, errors are
        compared at these proportions.
    guess_size : int, optional
        A guess of a private number of records, public too; no loss depends on it.
    mechanisms : Sequence[Mechanism], optional
        Mechanism values to compare, whose scales do not matter; all of this package unless given.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or if no mechanism can be used.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters, KNormParameters, plan
    >>> noise = [LaplaceParameters(1.0), KNormParameters(1.0)]
    >>> found = plan(size=90, prior=[1.0, 1.0, 1.0], epsilon=1.0, mechanisms=noise)
    >>> found.recommended
    KNormParameters(scale=1.0)
    >>> [round(row.errors["balanced"].hellinger, 3) for row in found.rows]
    [0.153, 0.268]
    """
    concentration, distance = as_prior(prior), planned_distance(d_in)
    relative_loss(epsilon=epsilon, delta=delta, rho=rho)
    records = records_of(size, guess_size)
    shares = proportions_of_interest(concentration, records, proportions)
    usual = default_mechanisms(size, concentration.size, pure=delta is None and rho is None)
    wanted: Any = usual if mechanisms is None else mechanisms
    considered = list(wanted) if isinstance(wanted, Iterable) else [wanted]
    if not considered or not all(isinstance(mechanism, Mechanism) for mechanism in considered):
        raise (TypeError if considered else ValueError)(
            f"mechanisms={told(mechanisms)}: must be a list of at least one mechanism; leave it out"
            " for all of this package."
        )
    budget = {
        name: float(value)
        for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho))
        if value is not None
    }
    rows = [
        _row(template, size, concentration, budget, distance, shares, records)
        for template in considered
    ]
    prior_used = tuple(concentration.tolist())
    return Plan(size, records, prior_used, distance.stated, budget, shares, ranked(rows))


def default_mechanisms(size: int | None, k: int, *, pure: bool) -> list[Mechanism]:
    """The simplest first. K-norm noise on two categories is discrete Laplace noise; a `pure` budget
    leaves out Gaussian noise.
    """
    noise: list[Mechanism] = [
        LaplaceParameters(1.0, total="private"),
        LaplaceParameters(1.0, "floored", "private"),
        KNormParameters(1.0),
    ]
    if size is not None:
        noise = [
            LaplaceParameters(1.0),
            *([KNormParameters(1.0)] if k > 2 else []),
            LaplaceParameters(1.0, total="bounded"),
            LaplaceParameters(1.0, "floored"),
            LaplaceParameters(1.0, "floored", "bounded"),
        ]
    return [
        *noise,
        *([] if pure else [GaussianParameters(1.0)]),
        HellingerExponential(1.0),
        HellingerExponential(1.0, "local"),
        SmoothHellingerExponential(1.0),
        PermuteAndFlip(1.0),
    ]


def _row(
    template: Mechanism,
    size: int | None,
    prior: Floats,
    budget: Mapping[str, Any],
    distance: Distance,
    shares: Mapping[str, Any],
    records: int,
) -> PlanRow:
    template = replace(template, scale=1.0)
    try:
        accounting = affordable(Setting.of(template, size, prior))
        mechanism = calibrate(
            template,
            size=size,
            prior=prior,
            d_in=distance,
            accounting=accounting,
            proportions=shares.get("stated"),
            **budget,
        )
        setting = Setting.of(mechanism, size, prior)
        setting.check_informative()
    except ValueError as error:
        return PlanRow(template, None, {}, str(error))
    loss = loss_of(setting, distance, delta=budget.get("delta", 0.0), accounting=accounting)
    errors = {
        proportion: expected_error(setting, counts_in_proportion(records, prior, share))
        for proportion, share in shares.items()
    }
    return PlanRow(mechanism, loss, errors)
