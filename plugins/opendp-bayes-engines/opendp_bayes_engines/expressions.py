"""Read narwhals expressions node by node, and build them again from parts that are known to work
row by row.

An expression of narwhals says what it is made of. Each of its steps is looked up by name in
`rules.RULES` and built anew there, for the types it has. What is not found there is refused:
nothing is accepted because it looks harmless.
"""

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from opendp_bayes.extend import told
from opendp_bayes_engines.kinds import Column, leaf
from opendp_bayes_engines.rules import ROOTS, RULES
from opendp_bayes_engines.terms import RefusedError, Term, literal


def read(given: Any, schema: Mapping[str, Column], argument: str) -> Term:
    """The term of an expression, or of the name of a column.

    Raises `ValueError`/`TypeError`, naming the argument, for one that is not accepted.
    """
    if isinstance(given, str):
        given = nw.col(given)
    if not isinstance(given, nw.Expr):
        raise TypeError(
            f"{argument}: must be a narwhals expression, such as `nw.col('age') >= 18`, or the name"
            f" of a column, not a {type(given).__name__}."
        )
    try:
        return _term(given, schema)
    except RefusedError as error:
        shown = "<narwhals expression>" if _holds_others(given) else given
        raise ValueError(f"{argument}={shown}: {error}") from None


def _holds_others(given: Any) -> bool:
    """True if any step of an expression holds a value that is neither an expression nor plain, such
    as a frame.
    """
    if isinstance(given, nw.Expr):
        return any(
            map(
                _holds_others,
                [of for node in given._nodes for of in (*node.exprs, *node.kwargs.values())],
            )
        )
    return told(given).startswith("<")


def _term(expr: nw.Expr, schema: Mapping[str, Column]) -> Term:
    first, *rest = expr._nodes
    if first.name == "col":
        term = _column(first.kwargs["names"], schema)
    elif first.name == "lit":
        term = literal(first.kwargs["value"])
        if first.kwargs["dtype"] is not None:
            raise RefusedError("lit(dtype=): a constant has the type of its value; leave it out.")
    elif first.name in ROOTS:
        term = ROOTS[first.name](*_arguments(first, schema), **first.kwargs)
    else:
        raise _unknown(first)
    for node in rest:
        if node.name not in RULES or node.kind.name != "ELEMENTWISE":
            raise _unknown(node)
        term = RULES[node.name](term, *_arguments(node, schema), **node.kwargs)
    return term


def _arguments(node: Any, schema: Mapping[str, Column]) -> list[Term]:
    terms = []
    for given in node.exprs:
        if isinstance(given, nw.Series):
            raise RefusedError("a Series carries data of its own; use a constant or a column.")
        if isinstance(given, str) and not node.str_as_lit:
            given = nw.col(given)
        terms.append(_term(given, schema) if isinstance(given, nw.Expr) else literal(given))
    return terms


def _column(names: list[str], schema: Mapping[str, Column]) -> Term:
    if len(names) != 1:
        raise RefusedError(f"{told(names)} are several columns; name one.")
    (name,) = names
    if type(name) is not str:  # numpy's are rows of an array
        raise RefusedError(f"nw.col: takes the name of a column, a str, not {type(name).__name__}.")
    if name not in schema:
        raise RefusedError(
            # Not which there are: of a file without a header, they are somebody's record.
            f"{name!r} is not a column of the frame, which has {len(schema)}; its schema names"
            " them."
        )
    return Term(leaf(name, schema[name]), schema[name], name, frozenset([name]), is_column=True)


def _unknown(node: Any) -> RefusedError:
    if node.name == "map_batches":
        return RefusedError(
            "map_batches: a function of your own cannot be a step of a plan, because narwhals"
            " applies none to lazy frames. Apply it to the frame before `engines.context`, as the"
            " engine does (PySpark's udf, DuckDB's create_function, Ibis's udf, Dask's"
            " map_partitions, polars' map_elements). OpenDP's honest-but-curious feature is then"
            " your promise that each row of its result comes from one row (docs/engines.md,"
            ' "Functions of your own").'
        )
    return RefusedError(
        f"{node.name.removeprefix('__').removesuffix('__')}: is not among the steps that are known"
        " to work row by row, without failing, and alike in every engine (docs/engines.md,"
        ' "Plans"). Compute it in the frame before `engines.context`, if each row of the result'
        " belongs to one row."
    )
