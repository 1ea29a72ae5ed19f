"""Private posteriors of categorical data, as an extension of OpenDP.

The names below are loaded when first used, so the mathematics can be used without importing OpenDP
or polars.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendp_bayes import papers as papers
    from opendp_bayes.accounting.calibration import calibrate as calibrate
    from opendp_bayes.accounting.composition import (
        privacy_loss_distribution as privacy_loss_distribution,
    )
    from opendp_bayes.accounting.exact import exact_loss as exact_loss
    from opendp_bayes.accounting.profile import PrivacyProfile as PrivacyProfile
    from opendp_bayes.accounting.profile import privacy_profile as privacy_profile
    from opendp_bayes.auditing.audit import audit as audit
    from opendp_bayes.auditing.results import Audit as Audit
    from opendp_bayes.inference import NoiseAwarePosterior as NoiseAwarePosterior
    from opendp_bayes.inference import noise_aware_posterior as noise_aware_posterior
    from opendp_bayes.inference.combine import combine as combine
    from opendp_bayes.inference.levels.levels_posterior import (
        LevelPosterior as LevelPosterior,
    )
    from opendp_bayes.inference.levels.levels_posterior import (
        LevelsPosterior as LevelsPosterior,
    )
    from opendp_bayes.inference.log_likelihood import LogLikelihood as LogLikelihood
    from opendp_bayes.inference.log_likelihood import log_likelihood as log_likelihood
    from opendp_bayes.inference.survey_tables.estimates_of_copies import (
        combine_estimates as combine_estimates,
    )
    from opendp_bayes.inference.survey_tables.posterior_of_tables import (
        survey_posterior as survey_posterior,
    )
    from opendp_bayes.inference.survey_tables.survey_posterior import (
        SurveyPosterior as SurveyPosterior,
    )
    from opendp_bayes.mathematics.conjugate import binomial_beta as binomial_beta
    from opendp_bayes.mathematics.conjugate import multinomial_dirichlet as multinomial_dirichlet
    from opendp_bayes.mathematics.exponential.hellinger import (
        bhattacharyya_angle as bhattacharyya_angle,
    )
    from opendp_bayes.mathematics.exponential.hellinger import (
        hellinger_distance as hellinger_distance,
    )
    from opendp_bayes.mathematics.exponential.sensitivity import (
        global_sensitivity as global_sensitivity,
    )
    from opendp_bayes.mathematics.exponential.sensitivity import (
        local_sensitivity as local_sensitivity,
    )
    from opendp_bayes.mathematics.exponential.sensitivity import (
        smooth_sensitivity as smooth_sensitivity,
    )
    from opendp_bayes.mathematics.exponential.sensitivity_tables import (
        SensitivityCurves as SensitivityCurves,
    )
    from opendp_bayes.mathematics.exponential.sensitivity_tables import (
        sensitivity_curves as sensitivity_curves,
    )
    from opendp_bayes.mechanisms import GaussianParameters as GaussianParameters
    from opendp_bayes.mechanisms import HellingerExponential as HellingerExponential
    from opendp_bayes.mechanisms import KNormParameters as KNormParameters
    from opendp_bayes.mechanisms import LaplaceParameters as LaplaceParameters
    from opendp_bayes.mechanisms import Mechanism as Mechanism
    from opendp_bayes.mechanisms import PermuteAndFlip as PermuteAndFlip
    from opendp_bayes.mechanisms import SmoothHellingerExponential as SmoothHellingerExponential
    from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss as PrivacyLoss
    from opendp_bayes.mechanisms.registry import available_mechanisms as available_mechanisms
    from opendp_bayes.mechanisms.registry import load_mechanism as load_mechanism
    from opendp_bayes.planning.compare import Plan as Plan
    from opendp_bayes.planning.error_law import ErrorLaw as ErrorLaw
    from opendp_bayes.planning.error_law import error_law as error_law
    from opendp_bayes.planning.least_error import LeastError as LeastError
    from opendp_bayes.planning.least_error import least_error as least_error
    from opendp_bayes.planning.plan import plan as plan
    from opendp_bayes.planning.smallest import smallest_epsilon as smallest_epsilon
    from opendp_bayes.planning.smallest import smallest_size as smallest_size
    from opendp_bayes.questions.categorical_counts import (
        make_categorical_counts as make_categorical_counts,
    )
    from opendp_bayes.questions.categorical_counts import (
        then_categorical_counts as then_categorical_counts,
    )
    from opendp_bayes.questions.constructors import (
        make_gaussian_parameters as make_gaussian_parameters,
    )
    from opendp_bayes.questions.constructors import (
        make_hellinger_exponential as make_hellinger_exponential,
    )
    from opendp_bayes.questions.constructors import (
        make_knorm_parameters as make_knorm_parameters,
    )
    from opendp_bayes.questions.constructors import (
        make_laplace_parameters as make_laplace_parameters,
    )
    from opendp_bayes.questions.constructors import make_mechanism as make_mechanism
    from opendp_bayes.questions.constructors import (
        make_permute_and_flip as make_permute_and_flip,
    )
    from opendp_bayes.questions.constructors import (
        make_smooth_hellinger_exponential as make_smooth_hellinger_exponential,
    )
    from opendp_bayes.questions.constructors import (
        then_gaussian_parameters as then_gaussian_parameters,
    )
    from opendp_bayes.questions.constructors import (
        then_hellinger_exponential as then_hellinger_exponential,
    )
    from opendp_bayes.questions.constructors import (
        then_knorm_parameters as then_knorm_parameters,
    )
    from opendp_bayes.questions.constructors import (
        then_laplace_parameters as then_laplace_parameters,
    )
    from opendp_bayes.questions.constructors import then_mechanism as then_mechanism
    from opendp_bayes.questions.constructors import (
        then_permute_and_flip as then_permute_and_flip,
    )
    from opendp_bayes.questions.constructors import (
        then_smooth_hellinger_exponential as then_smooth_hellinger_exponential,
    )
    from opendp_bayes.questions.grouped_counts import grouped_release as grouped_release
    from opendp_bayes.questions.grouped_counts import make_grouped_counts as make_grouped_counts
    from opendp_bayes.questions.grouped_counts import then_grouped_counts as then_grouped_counts
    from opendp_bayes.questions.left_out import DROP as DROP
    from opendp_bayes.questions.levels import levels as levels
    from opendp_bayes.questions.posterior_query import enable as enable
    from opendp_bayes.questions.posterior_query import posterior as posterior
    from opendp_bayes.questions.survey_query import survey as survey
    from opendp_bayes.release_format.promise import Promise as Promise
    from opendp_bayes.results.counts_from_elsewhere import noisy_counts as noisy_counts
    from opendp_bayes.results.counts_from_elsewhere import noisy_tables as noisy_tables
    from opendp_bayes.results.grouped_release import GroupedRelease as GroupedRelease
    from opendp_bayes.results.release import Release as Release
    from opendp_bayes.results.survey import Survey as Survey
    from opendp_bayes.results.tree_posterior import tree_posterior as tree_posterior
    from opendp_bayes.trusted.account import LedgerError as LedgerError
    from opendp_bayes.trusted.handed_out import ReleaseInterrupted as ReleaseInterrupted
    from opendp_bayes.trusted.ledger import Ledger as Ledger
    from opendp_bayes.trusted.measurements import measured_sampler as measured_sampler
    from opendp_bayes.trusted.opening import context as context
    from opendp_bayes.trusted.posteriors import make_beta_binomial as make_beta_binomial
    from opendp_bayes.trusted.posteriors import make_count_map as make_count_map
    from opendp_bayes.trusted.posteriors import make_count_vector as make_count_vector
    from opendp_bayes.trusted.posteriors import (
        make_dirichlet_multinomial as make_dirichlet_multinomial,
    )
    from opendp_bayes.trusted.posteriors import make_hellinger_scores as make_hellinger_scores
    from opendp_bayes.trusted.posteriors import selected_counts as selected_counts
    from opendp_bayes.trusted.posteriors import then_beta_binomial as then_beta_binomial
    from opendp_bayes.trusted.posteriors import then_count_map as then_count_map
    from opendp_bayes.trusted.posteriors import then_count_vector as then_count_vector
    from opendp_bayes.trusted.posteriors import (
        then_dirichlet_multinomial as then_dirichlet_multinomial,
    )
    from opendp_bayes.trusted.posteriors import then_hellinger_scores as then_hellinger_scores
    from opendp_bayes.trusted.scanned_frames import on_disk as on_disk

__version__ = "0.1.0"

_HOME = {
    "accounting.calibration": ("calibrate",),
    "accounting.composition": ("privacy_loss_distribution",),
    "accounting.exact": ("exact_loss",),
    "accounting.profile": (
        "PrivacyProfile",
        "privacy_profile",
    ),
    "auditing.audit": ("audit",),
    "auditing.results": ("Audit",),
    "inference": (
        "NoiseAwarePosterior",
        "noise_aware_posterior",
    ),
    "inference.combine": ("combine",),
    "inference.levels.levels_posterior": (
        "LevelPosterior",
        "LevelsPosterior",
    ),
    "inference.log_likelihood": (
        "LogLikelihood",
        "log_likelihood",
    ),
    "inference.survey_tables.estimates_of_copies": ("combine_estimates",),
    "inference.survey_tables.posterior_of_tables": ("survey_posterior",),
    "inference.survey_tables.survey_posterior": ("SurveyPosterior",),
    "mathematics.conjugate": (
        "binomial_beta",
        "multinomial_dirichlet",
    ),
    "mathematics.exponential.hellinger": (
        "bhattacharyya_angle",
        "hellinger_distance",
    ),
    "mathematics.exponential.sensitivity": (
        "global_sensitivity",
        "local_sensitivity",
        "smooth_sensitivity",
    ),
    "mathematics.exponential.sensitivity_tables": (
        "SensitivityCurves",
        "sensitivity_curves",
    ),
    "mechanisms": (
        "GaussianParameters",
        "HellingerExponential",
        "KNormParameters",
        "LaplaceParameters",
        "Mechanism",
        "PermuteAndFlip",
        "SmoothHellingerExponential",
    ),
    "mechanisms.privacy_loss": ("PrivacyLoss",),
    "mechanisms.registry": (
        "available_mechanisms",
        "load_mechanism",
    ),
    "planning.compare": ("Plan",),
    "planning.error_law": (
        "ErrorLaw",
        "error_law",
    ),
    "planning.least_error": (
        "LeastError",
        "least_error",
    ),
    "planning.plan": ("plan",),
    "planning.smallest": (
        "smallest_epsilon",
        "smallest_size",
    ),
    "questions.categorical_counts": (
        "make_categorical_counts",
        "then_categorical_counts",
    ),
    "questions.constructors": (
        "make_gaussian_parameters",
        "make_hellinger_exponential",
        "make_knorm_parameters",
        "make_laplace_parameters",
        "make_mechanism",
        "make_permute_and_flip",
        "make_smooth_hellinger_exponential",
        "then_gaussian_parameters",
        "then_hellinger_exponential",
        "then_knorm_parameters",
        "then_laplace_parameters",
        "then_mechanism",
        "then_permute_and_flip",
        "then_smooth_hellinger_exponential",
    ),
    "questions.grouped_counts": (
        "grouped_release",
        "make_grouped_counts",
        "then_grouped_counts",
    ),
    "questions.left_out": ("DROP",),
    "questions.levels": ("levels",),
    "questions.posterior_query": (
        "enable",
        "posterior",
    ),
    "questions.survey_query": ("survey",),
    "release_format.promise": ("Promise",),
    "results.counts_from_elsewhere": (
        "noisy_counts",
        "noisy_tables",
    ),
    "results.grouped_release": ("GroupedRelease",),
    "results.release": ("Release",),
    "results.survey": ("Survey",),
    "results.tree_posterior": ("tree_posterior",),
    "trusted.account": ("LedgerError",),
    "trusted.handed_out": ("ReleaseInterrupted",),
    "trusted.ledger": ("Ledger",),
    "trusted.measurements": ("measured_sampler",),
    "trusted.opening": ("context",),
    "trusted.posteriors": (
        "make_beta_binomial",
        "make_count_map",
        "make_count_vector",
        "make_dirichlet_multinomial",
        "make_hellinger_scores",
        "selected_counts",
        "then_beta_binomial",
        "then_count_map",
        "then_count_vector",
        "then_dirichlet_multinomial",
        "then_hellinger_scores",
    ),
    "trusted.scanned_frames": ("on_disk",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

#: Modules whose names are too short to stand alone.
_MODULES = {"papers"}

__all__ = sorted({*_MODULE_OF, *_MODULES})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"opendp_bayes.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'opendp_bayes' has no attribute {name!r}")
    value = getattr(import_module(f"opendp_bayes.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
