"""The commands of `opendp-bayes`, one a file."""
