"""The part that touches data: it counts the records, or people, of each value, and releases the
values that are shown.
"""
