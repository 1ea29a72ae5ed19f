"""Compare the cost and the error of every mechanism in a public setting, before any budget is
spent.
"""
