"""Results in the analyst's hands: releases, their pictures and frames. Reads what was drawn, never
data.
"""
