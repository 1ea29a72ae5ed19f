"""Laws that answers are read from: mixtures of Betas, laws of counts, Dirichlet-multinomials."""
