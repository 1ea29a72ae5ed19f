"""Values that nobody listed: laws that decide which are shown, their loss, their release, and what
follows for the counts.
"""

from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)

__all__ = ["Discovery", "GaussianThreshold", "LaplaceThreshold", "OptimalThreshold"]
