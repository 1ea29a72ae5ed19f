"""Everything that touches OpenDP and polars: frames to counts to posterior spaces to measurements,
and the Context.
"""
