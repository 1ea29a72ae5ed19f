"""Tables of DuckDB, Dask, Ibis and Spark for `opendp_bayes`: their columns in a private file, or
counted where they are.

    import opendp_bayes as ob
    import opendp_bayes_engines as engines

    frame = engines.columns(table, ["age", "vote"])
    context = ob.context(frame, privacy_unit=..., privacy_loss=..., split_evenly_over=1)

    context = engines.context(table, privacy_unit=..., privacy_loss=..., split_evenly_over=1)
    query = context.query().filter(("age", ">=", 18))
    ob.posterior(query, "vote", categories=["no", "yes"], ...).release()
"""

from opendp_bayes_engines.query import EngineContext, EngineQuery, context
from opendp_bayes_engines.writing import columns

__all__ = ["EngineContext", "EngineQuery", "columns", "context"]
