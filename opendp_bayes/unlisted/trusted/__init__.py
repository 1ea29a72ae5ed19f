"""What touches data here: the numbers of records, or of people, of each value, and the release of
those that are shown.
"""
