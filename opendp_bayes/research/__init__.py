"""Distances and sensitivities, errors and losses, audits, log-likelihoods, posteriors of what
others released, and the papers' mechanisms by their names there.
"""

from opendp_bayes import papers as papers
from opendp_bayes.accounting.composition import (
    privacy_loss_distribution as privacy_loss_distribution,
)
from opendp_bayes.auditing.audit import audit as audit
from opendp_bayes.auditing.results import Audit as Audit
from opendp_bayes.inference.log_likelihood import (
    LogLikelihood as LogLikelihood,
    log_likelihood as log_likelihood,
)
from opendp_bayes.mathematics.conjugate import (
    binomial_beta as binomial_beta,
    multinomial_dirichlet as multinomial_dirichlet,
)
from opendp_bayes.mathematics.exponential.hellinger import (
    bhattacharyya_angle as bhattacharyya_angle,
    hellinger_distance as hellinger_distance,
)
from opendp_bayes.mathematics.exponential.sensitivity import (
    global_sensitivity as global_sensitivity,
    local_sensitivity as local_sensitivity,
    smooth_sensitivity as smooth_sensitivity,
)
from opendp_bayes.mathematics.exponential.sensitivity_tables import (
    SensitivityCurves as SensitivityCurves,
    sensitivity_curves as sensitivity_curves,
)
from opendp_bayes.mechanisms.registry import available_mechanisms as available_mechanisms
from opendp_bayes.planning.error_law import ErrorLaw as ErrorLaw, error_law as error_law
from opendp_bayes.planning.least_error import LeastError as LeastError, least_error as least_error
from opendp_bayes.planning.smallest import (
    smallest_epsilon as smallest_epsilon,
    smallest_size as smallest_size,
)
from opendp_bayes.results.counts_from_elsewhere import noisy_tables as noisy_tables
from opendp_bayes.surveys.agreement_of_copies import agreement_of_copies as agreement_of_copies
from opendp_bayes.surveys.survey_tables.estimates_of_copies import (
    combine_estimates as combine_estimates,
)
