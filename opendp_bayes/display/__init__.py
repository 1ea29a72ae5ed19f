"""Display results: sentences, and tables for the terminal and for notebooks. Reads results, never
data.
"""
