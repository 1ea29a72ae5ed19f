"""Private posteriors of categorical data, as an extension of OpenDP.

The names below are loaded when first used, so the mathematics can be used without importing OpenDP
or polars. Constructors are in `t` and `m`, as OpenDP has them; exponential mechanisms, distances
and sensitivities are in `mechanisms`, and laws for values that nobody listed in `unlisted`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 10):  # noqa: UP036 - a clone is not refused by pip
    raise ImportError(
        f"opendp_bayes needs Python 3.10 or newer, and this is {sys.version.split()[0]}. Make the"
        " environment with a newer one, as in python3.13 -m venv .venv"
    )

if TYPE_CHECKING:
    from opendp_bayes import (
        measurements as m,  # noqa: F401
        mechanisms as mechanisms,
        transformations as t,  # noqa: F401
        unlisted as unlisted,
    )
    from opendp_bayes.accounting.calibration import calibrate as calibrate
    from opendp_bayes.accounting.losses import (
        exact_loss as exact_loss,
        privacy_profile as privacy_profile,
    )
    from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior as NoiseAwarePosterior
    from opendp_bayes.inference.combine import combine as combine
    from opendp_bayes.inference.log_likelihood import log_likelihood as log_likelihood
    from opendp_bayes.inference.noise_aware import noise_aware_posterior as noise_aware_posterior
    from opendp_bayes.mechanisms import (
        GaussianParameters as GaussianParameters,
        KNormParameters as KNormParameters,
        LaplaceParameters as LaplaceParameters,
        Mechanism as Mechanism,
    )
    from opendp_bayes.mechanisms.neighbours import Distance as Distance
    from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss as PrivacyLoss
    from opendp_bayes.mechanisms.registry import (
        available_mechanisms as available_mechanisms,
        load_mechanism as load_mechanism,
    )
    from opendp_bayes.planning.plan import plan as plan
    from opendp_bayes.queries.posterior_query import posterior as posterior
    from opendp_bayes.queries.question import DROP as DROP
    from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee as PrivacyGuarantee
    from opendp_bayes.results.external_counts import noisy_counts as noisy_counts
    from opendp_bayes.results.release import Release as Release
    from opendp_bayes.surveys.combined_estimate import combine_estimates as combine_estimates
    from opendp_bayes.surveys.joint_posterior import combine_tables as combine_tables
    from opendp_bayes.surveys.levels_query import levels as levels
    from opendp_bayes.surveys.measured_tables import noisy_tables as noisy_tables
    from opendp_bayes.surveys.survey import Survey as Survey
    from opendp_bayes.surveys.survey_query import survey as survey
    from opendp_bayes.trusted.account import LedgerError as LedgerError
    from opendp_bayes.trusted.boundary import ReleaseError as ReleaseError
    from opendp_bayes.trusted.contexts import context as context
    from opendp_bayes.trusted.interrupts import ReleaseInterrupted as ReleaseInterrupted
    from opendp_bayes.trusted.ledger import Ledger as Ledger
    from opendp_bayes.trusted.scanned_frames import on_disk as on_disk
    from opendp_bayes.unlisted.discovered import DiscoveredRelease as DiscoveredRelease
    from opendp_bayes.unlisted.discovery_query import discover as discover

__version__ = "1.0.0"

#: By what they are for, the names and the modules that have them.
_HOME = {
    # ask
    "context": "trusted.contexts",
    "posterior": "queries.posterior_query",
    "discover": "unlisted.discovery_query",
    "survey": "surveys.survey_query",
    "levels": "surveys.levels_query",
    "DROP": "queries.question",
    "Ledger": "trusted.ledger",
    # get
    "Release": "results.release",
    "DiscoveredRelease": "unlisted.discovered",
    "Survey": "surveys.survey",
    "PrivacyGuarantee": "release_format.privacy_guarantee",
    "Distance": "mechanisms.neighbours",
    "PrivacyLoss": "mechanisms.privacy_loss",
    "LedgerError": "trusted.account",
    "ReleaseError": "trusted.boundary",
    "ReleaseInterrupted": "trusted.interrupts",
    "on_disk": "trusted.scanned_frames",
    # infer
    "combine": "inference.combine",
    "combine_tables": "surveys.joint_posterior",
    "combine_estimates": "surveys.combined_estimate",
    "noisy_counts": "results.external_counts",
    "noisy_tables": "surveys.measured_tables",
    "log_likelihood": "inference.log_likelihood",
    "noise_aware_posterior": "inference.noise_aware",
    "NoiseAwarePosterior": "inference.answers.posterior",
    # foresee
    "plan": "planning.plan",
    "calibrate": "accounting.calibration",
    "exact_loss": "accounting.losses",
    "privacy_profile": "accounting.losses",
    "LaplaceParameters": "mechanisms",
    "KNormParameters": "mechanisms",
    "GaussianParameters": "mechanisms",
    "Mechanism": "mechanisms",
    "available_mechanisms": "mechanisms.registry",
    "load_mechanism": "mechanisms.registry",
}
#: Other doors.
_MODULES = {
    "t": "transformations",
    "m": "measurements",
    "mechanisms": "mechanisms",
    "unlisted": "unlisted",
}

__all__ = sorted({*_HOME, *_MODULES})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"opendp_bayes.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'opendp_bayes' has no attribute {name!r}")
    value = getattr(import_module(f"opendp_bayes.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
