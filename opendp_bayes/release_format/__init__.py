"""What leaves the privacy boundary: a promise and the data of a release, and their JSON. Plain
values, which inference and reports read.
"""
