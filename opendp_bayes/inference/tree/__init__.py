"""The engine for counts on a tree, which is to take the place of `convolution`.

No posterior uses it yet, because it is not exact enough in parts of the range: priors below 1
beside noise as wide as the counts, private numbers of records beside counts that are small for the
noise, and two counts of very different widths among many records. Tests compare it elsewhere.
"""
