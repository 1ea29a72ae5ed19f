"""Research on mechanisms: audits, the papers' mechanisms by their names there, laws of errors and
the least of them, the smallest budgets and sizes, thorough calibration, and loss distributions.
"""

from opendp_bayes_research import papers
from opendp_bayes_research.auditing.audit import audit
from opendp_bayes_research.auditing.results import Audit
from opendp_bayes_research.composition import privacy_loss_distribution
from opendp_bayes_research.error_law import ErrorLaw, error_law
from opendp_bayes_research.least_error import LeastError, least_error
from opendp_bayes_research.smallest import smallest_epsilon, smallest_size
from opendp_bayes_research.thorough import calibrate_thoroughly

__all__ = [
    "Audit",
    "ErrorLaw",
    "LeastError",
    "audit",
    "calibrate_thoroughly",
    "error_law",
    "least_error",
    "papers",
    "privacy_loss_distribution",
    "smallest_epsilon",
    "smallest_size",
]
