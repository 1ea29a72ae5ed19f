"""The engine for counts on a tree, which is to take the place of `convolution`."""
