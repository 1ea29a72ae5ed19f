"""Frames of Spark, DuckDB, Dask, Ibis and SQLFrame for `opendp_bayes`: records are counted where
they are, and no more than the counts leaves the engine.

    import opendp_bayes as ob
    import opendp_bayes_engines as engines

    context = engines.context(frame, privacy_unit=..., privacy_loss=..., split_evenly_over=1)
    query = context.query().filter(nw.col("age") >= 18)
    ob.posterior(query, "vote", categories=["no", "yes"], ...).release()
"""

from opendp_bayes_engines.query import EngineContext, EngineQuery, context

__all__ = ["EngineContext", "EngineQuery", "context"]
