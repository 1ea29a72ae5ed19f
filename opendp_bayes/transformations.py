"""Constructors of transformations: data to counts, posteriors, scores and OpenDP's own spaces. As
`dp.t` in OpenDP, they are in `ob.t`.
"""

from opendp_bayes.questions.categorical_counts import (
    make_categorical_counts as make_categorical_counts,
)
from opendp_bayes.questions.categorical_counts import (
    then_categorical_counts as then_categorical_counts,
)
from opendp_bayes.questions.discovered_counts import (
    make_discovered_counts as make_discovered_counts,
)
from opendp_bayes.questions.discovered_counts import (
    then_discovered_counts as then_discovered_counts,
)
from opendp_bayes.questions.grouped_counts import grouped_release as grouped_release
from opendp_bayes.questions.grouped_counts import make_grouped_counts as make_grouped_counts
from opendp_bayes.questions.grouped_counts import then_grouped_counts as then_grouped_counts
from opendp_bayes.trusted.posteriors import make_beta_binomial as make_beta_binomial
from opendp_bayes.trusted.posteriors import make_count_map as make_count_map
from opendp_bayes.trusted.posteriors import make_count_vector as make_count_vector
from opendp_bayes.trusted.posteriors import make_dirichlet_multinomial as make_dirichlet_multinomial
from opendp_bayes.trusted.posteriors import make_hellinger_scores as make_hellinger_scores
from opendp_bayes.trusted.posteriors import selected_counts as selected_counts
from opendp_bayes.trusted.posteriors import then_beta_binomial as then_beta_binomial
from opendp_bayes.trusted.posteriors import then_count_map as then_count_map
from opendp_bayes.trusted.posteriors import then_count_vector as then_count_vector
from opendp_bayes.trusted.posteriors import then_dirichlet_multinomial as then_dirichlet_multinomial
from opendp_bayes.trusted.posteriors import then_hellinger_scores as then_hellinger_scores
