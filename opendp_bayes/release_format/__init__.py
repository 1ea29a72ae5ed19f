"""Plain values that leave the privacy boundary: a promise and the data of a release, and their
JSON. Inference and reports read them.
"""
