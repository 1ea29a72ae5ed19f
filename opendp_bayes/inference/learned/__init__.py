"""A prior that is learned from the release itself: the law of the cells' intensities and effects of
their margins, by Markov chains.

`intensity_law` states the law, `margins` the effects, `noised_table` the data, `sweeps` moves the
chains, `learned_counts` answers for the counts and the probabilities.
"""
