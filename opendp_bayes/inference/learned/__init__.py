"""A prior that is learned from the release itself: the law of the cells' intensities and effects of
their margins, by Hamiltonian chains.

`intensity_law` states the law and moves its chains, for keys that nobody listed too; `noised_table`
has the data, the counts behind them and the effects of margins, `cells` what is known of the law.
"""
