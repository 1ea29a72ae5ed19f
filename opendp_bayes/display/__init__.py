"""How results are shown: sentences, tables for the terminal and for notebooks. Reads results, never
data.
"""
