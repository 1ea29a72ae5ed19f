"""Definitions and closed forms: distances, sensitivities, simplices, directed rounding. Knows no
mechanism.
"""
