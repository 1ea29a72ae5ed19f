"""A prior that is learned from the release itself: the law of the cells' intensities and effects of
their margins, by Hamiltonian chains.

`intensity_law` states the law and moves its chains, for keys that nobody listed too; `margins` has
the effects, `noised_table` the data, `cells` what is known of the law from them, `learned_counts`
the answers for the counts and the probabilities.
"""
