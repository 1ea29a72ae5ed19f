"""The probability of a release as a function of the true counts, up to a factor without them."""
