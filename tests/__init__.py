"""Tests of the package: a folder for each of its folders, and of the repository."""
