"""`context`: an OpenDP Context over a frame of polars, pandas or Arrow, its arguments checked."""

from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Number
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import polars as pl
from opendp.context import Context, Query
from opendp.domains import lazyframe_domain
from opendp.extras.polars import Bound, LazyFrameQuery, Margin
from opendp.mod import Domain, FrameDistance, Measure, Metric, OpenDPException

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_delta, as_loss, as_positive, as_size
from opendp_bayes.release_format.casts import how_to_cast
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.trusted.boundary import Unchanging, require_features
from opendp_bayes.trusted.budget import as_made, identifier_of, kind_of_unit, name_of
from opendp_bayes.trusted.kinds import column_named, kind_of
from opendp_bayes.trusted.ledger import Ledger
from opendp_bayes.trusted.opendp_internals import domain_of_column
from opendp_bayes.trusted.queryable_proxy import handed_out_queryable
from opendp_bayes.trusted.scanned_files import scan_files
from opendp_bayes.trusted.scanned_frames import scanned

#: OpenDP counts rows, two for each change, in 32 bits.
_MOST_ROWS = 2**31 - 1
C = TypeVar("C", bound="CheckedContext")


class CheckedContext(Unchanging, Context):
    """An OpenDP Context made by `context`. Its releases, of OpenDP's own queries too, are entered
    in its `ledger`, if any, before they are handed out, whichever of its methods makes them.

    Its attributes stay as they are. A process that is forked from the one that opened it gets no
    answer from it, because the budget is counted in one place.
    """

    ledger: Ledger | None
    #: Columns by name that were left out of the frame, and why; nobody can ask for them.
    left_out: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def opened(
        cls: type[C],
        data: Any,
        domain: Domain,
        columns: Collection[str],
        arguments: Mapping[str, Any],
        *,
        check: Callable[[Metric], object] | None = None,
        margins: Sequence[Margin] | None = None,
        ledger: Ledger | None = None,
        alive: Any = None,
        **attributes: Any,
    ) -> C:
        """Open a Context over data of your own, with the same messages as those of `context`.

        Parameters
        ----------
        data : Any
            A member of the domain.
        domain : Domain
            Of the data.
        columns : Collection[str]
            Names of the columns, of which an identifier is one.
        arguments : Mapping[str, Any]
            `privacy_unit`, `privacy_loss`, `split_evenly_over` and `split_by_weights`.
        check : Callable[[Metric], object], optional
            Called with the metric of the unit; raises `ValueError` for one that the data cannot
            have.
        margins : Sequence[Margin], optional
            What is publicly known of the data.
        ledger : Ledger, optional
            In which every release is entered.
        alive : Any, optional
            An object to keep for as long as anybody has the Context or an answer of it.
        attributes : Any
            Further attributes of the Context, by name.

        Raises
        ------
        ValueError, TypeError
            For arguments that are no unit, loss, split or ledger.
        """
        checked = cls.checked(arguments, ledger)
        metric = checked["privacy_unit"][0]
        check_identifier(metric, columns, attributes.get("left_out", {}))
        if check is not None:
            check(metric)
        plain = Context.compositor(data, **checked, domain=domain, margins=margins)
        context = cls.__new__(cls)
        queryable = handed_out_queryable(plain, ledger, alive)
        vars(context).update(vars(plain), queryable=queryable, ledger=ledger, **attributes)
        return context

    @staticmethod
    def checked(arguments: Mapping[str, Any], ledger: Ledger | None = None) -> dict[str, Any]:
        """The arguments of `opened`, checked before any data are looked at.

        Raises
        ------
        ValueError, TypeError
            For what is no unit, loss, split or ledger.
        """
        if not (ledger is None or isinstance(ledger, Ledger)):
            raise TypeError(
                f"ledger={told(ledger)}: must be a Ledger, as in"
                " ob.Ledger('budget.ledger', epsilon=3)."
            )
        unit, loss = _as_unit(arguments["privacy_unit"]), _as_loss(arguments["privacy_loss"])
        evenly, weights = arguments["split_evenly_over"], arguments["split_by_weights"]
        if evenly is not None:
            as_size(evenly, "split_evenly_over", "queries")
        _check_sequence(weights, "split_by_weights", Number, "numbers, one for each query")
        for position, weight in enumerate(weights or ()):
            as_positive(weight, f"split_by_weights[{position}]")
        return {**arguments, "privacy_unit": unit, "privacy_loss": loss}

    def query(self, **kwargs: Any) -> Query | LazyFrameQuery:
        """Return a query with the next share of the budget, or with the loss given.

        Parameters
        ----------
        kwargs : Any
            The loss of this query, by `epsilon`, `delta` and `rho`, where the Context does not
            divide its budget itself; otherwise none.

        Raises
        ------
        ValueError, TypeError
            For a loss that is no number of at least 0, and where the budget is spent.
        """
        if self.d_mids is None:
            losses = {measure: value for measure, value in kwargs.items() if value is not None}
            kwargs = {measure: as_loss(value, measure) for measure, value in losses.items()}
        return super().query(**kwargs)


def context(
    data: Any,
    *,
    privacy_unit: tuple[Metric, Any],
    privacy_loss: tuple[Measure, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    margins: Sequence[Margin] | None = None,
    ledger: Ledger | None = None,
) -> CheckedContext:
    """An OpenDP Context, as `dp.Context.compositor` makes it, with every argument checked first.

    Reads no rows of a LazyFrame.

    Parameters
    ----------
    data : Any
        A polars LazyFrame, which is read when something is released; the path of a file of Parquet
        or Arrow, or of a folder of Parquet (`docs/files.md`, "Files"); or data in memory, a polars
        DataFrame, or, with the extra `frames`, a frame of pandas, a table of pyarrow or what else
        narwhals reads, its own frames too. Other files are for `opendp_bayes_office.read`, and
        tables of DuckDB, Spark, Dask and Ibis for `opendp_bayes_engines.columns`. Data in memory
        are written to a private temporary file (`on_disk`, which may be given itself), which is
        there for as long as the Context. Integers of 8 and 16 bits are widened, and what pandas and
        Arrow take for categories becomes text, because it may be read off the data. Columns of
        types that OpenDP does not know are left out; `left_out` of the Context has their names, and
        why.
    privacy_unit : tuple[Metric, Any]
        `dp.unit_of(contributions=)` or `dp.unit_of(changes=)`, at least 1, with `identifier=` where
        people own several rows.
    privacy_loss : tuple[Measure, Any]
        `dp.loss_of(epsilon=)` or `dp.loss_of(rho=)`, finite and greater than 0, with or without
        `delta=`, at least 0 and below 1.
    split_evenly_over : int, optional
        The number of queries that share the budget equally.
    split_by_weights : Sequence[float], optional
        A positive weight for each query, in their order. Without either, each query says what it
        spends, `context.query(epsilon=0.5)`.
    margins : Sequence[Margin], optional
        What is publicly known of the data, as in OpenDP (`docs/guarantee.md`, "Margins and
        invariants").
    ledger : Ledger, optional
        A `Ledger`, in which every release of the Context, also of OpenDP's own queries, is entered
        before it is handed out, and every one that fails while data are read. It refuses, before
        data are read, what it has no room for.

    Raises
    ------
    ValueError, TypeError
        For anything else, `ImportError` where narwhals is missing, and `RuntimeError`, without a
        cause, for a frame that cannot be read.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import polars as pl
    >>> import opendp_bayes as ob
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> votes = pl.DataFrame({"vote": [True] * 60 + [False] * 40})
    >>> context = ob.context(
    ...     votes,
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=2,
    ... )
    >>> ob.posterior(context.query(), "vote", nulls=False).release().epsilon
    0.5
    """
    require_features("context")
    arguments = {
        "privacy_unit": privacy_unit,
        "privacy_loss": privacy_loss,
        "split_evenly_over": split_evenly_over,
        "split_by_weights": split_by_weights,
    }
    CheckedContext.checked(arguments, ledger)  # before the frame is looked at
    _check_sequence(margins or None, "margins", Margin, "dp.polars.Margin")
    is_path = isinstance(data, (str, PathLike))
    frame, file, left_out = scanned(scan_files(Path(data)) if is_path else data)
    domains = {}
    for column, dtype in frame.collect_schema().items():
        try:
            domains[column] = domain_of_column(column, dtype)
        except (OpenDPException, ValueError):
            kind = kind_of(dtype).type
            left_out[column] = (
                f"has type {kind}, for which OpenDP has no domain, so it is left out of the"
                f" Context. {how_to_cast(kind, column, 'in the frame')}"
            )
    return CheckedContext.opened(
        frame.select(map(column_named, domains)),
        lazyframe_domain(list(domains.values())),
        domains,
        arguments,
        margins=margins,
        ledger=ledger,
        alive=file,
        left_out=MappingProxyType(left_out),
    )


def _check_sequence(values: Any, argument: str, kind: type, of: str) -> None:
    """Raise `TypeError` for what is not None and no sequence of at least one value of a kind."""
    is_sequence = isinstance(values, Sequence) and all(isinstance(value, kind) for value in values)
    if values is not None and not (is_sequence and values):
        raise TypeError(f"{argument}={told(values)}: must be a sequence of {of}.")


def check_identifier(
    metric: Metric, columns: Collection[str], left_out: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `ValueError` where the identifier of a privacy unit is not among the columns, with the
    reason for one that was left out.
    """
    identifier = identifier_of(metric)
    if identifier is None:
        return
    _check_by_name(identifier, "privacy_unit: identifier")
    column = identifier.meta.output_name()
    if column in left_out:
        raise ValueError(f"privacy_unit: identifier={column!r}: {left_out[column]}")
    if column not in columns:
        raise ValueError(
            # Not which there are: of a file without a header, they are somebody's record.
            f"privacy_unit: identifier={column!r} is not a column of the frame, which has"
            f" {len(columns)}; its schema names them."
        )


def _check_by_name(key: Any, argument: str) -> None:
    """Raise `ValueError` for what polars computes, or takes for a pattern: OpenDP cannot mean the
    column.
    """
    if not (pl.col(key) if isinstance(key, str) else key).meta.is_column():
        raise ValueError(
            f"{argument}={key}: must be one column by name, and polars takes '*' and '^...$' for"
            " patterns. Rename a column that is called so, and compute others in the frame before"
            " the Context."
        )


def _as_unit(unit: Any) -> tuple[Metric, Any]:
    """The unit, if it is at least one row or identifier."""
    metric, distance = as_made(unit, "privacy_unit", "dp.unit_of(contributions=1)", Metric)
    kind = kind_of_unit(metric)
    if kind is None:
        raise ValueError(
            f"privacy_unit={metric}: must be dp.unit_of(contributions=...) or"
            " dp.unit_of(changes=...)."
        )
    if kind == "changes" or not isinstance(metric, FrameDistance):
        return metric, _as_rows(distance, kind)
    for bound in distance:
        if not isinstance(bound, Bound):
            raise TypeError(f"contributions: {told(bound)} must be a number or a dp.polars.Bound.")
        for key in bound.by:
            _check_by_name(key, "contributions: Bound.by")
        for limit in ("per_group", "num_groups"):
            if getattr(bound, limit) is not None:
                _as_rows(getattr(bound, limit), f"contributions: Bound.{limit}")
    return metric, distance


def _as_rows(value: Any, argument: str) -> int:
    if (isinstance(value, int) and value < 1) or not as_size(value, argument) <= _MOST_ROWS:
        raise ValueError(f"{argument}={value!r}: must be between 1 and {_MOST_ROWS}.")
    return int(value)


def _as_loss(stated: Any) -> tuple[Measure, Any]:
    """The loss, if it is one that can be spent."""
    measure, loss = as_made(stated, "privacy_loss", "dp.loss_of(epsilon=1.0)", Measure)
    measure_name = name_of(measure)
    if measure_name.startswith("Approximate"):
        return measure, (as_positive(loss[0], MEASURES[measure_name]), as_delta(loss[1]))
    if measure_name in MEASURES:
        return measure, as_positive(loss, MEASURES[measure_name])
    raise ValueError(
        f"privacy_loss={measure}: must be dp.loss_of(epsilon=...) or dp.loss_of(rho=...), each with"
        " or without delta=."
    )
