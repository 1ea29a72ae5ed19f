"""Constructors of measurements: a mechanism on a posterior, with its privacy map. As `dp.m` in
OpenDP, they are in `ob.m`.
"""

from opendp_bayes.questions.constructors import make_gaussian_parameters as make_gaussian_parameters
from opendp_bayes.questions.constructors import (
    make_hellinger_exponential as make_hellinger_exponential,
)
from opendp_bayes.questions.constructors import make_knorm_parameters as make_knorm_parameters
from opendp_bayes.questions.constructors import make_laplace_parameters as make_laplace_parameters
from opendp_bayes.questions.constructors import make_mechanism as make_mechanism
from opendp_bayes.questions.constructors import make_permute_and_flip as make_permute_and_flip
from opendp_bayes.questions.constructors import (
    make_smooth_hellinger_exponential as make_smooth_hellinger_exponential,
)
from opendp_bayes.questions.constructors import then_gaussian_parameters as then_gaussian_parameters
from opendp_bayes.questions.constructors import (
    then_hellinger_exponential as then_hellinger_exponential,
)
from opendp_bayes.questions.constructors import then_knorm_parameters as then_knorm_parameters
from opendp_bayes.questions.constructors import then_laplace_parameters as then_laplace_parameters
from opendp_bayes.questions.constructors import then_mechanism as then_mechanism
from opendp_bayes.questions.constructors import then_permute_and_flip as then_permute_and_flip
from opendp_bayes.questions.constructors import (
    then_smooth_hellinger_exponential as then_smooth_hellinger_exponential,
)
from opendp_bayes.questions.discovered_counts import make_discovery as make_discovery
from opendp_bayes.questions.discovered_counts import then_discovery as then_discovery
from opendp_bayes.trusted.measurements import measured_sampler as measured_sampler
