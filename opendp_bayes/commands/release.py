"""`opendp-bayes release`: one column of a file, through an OpenDP Context, to a release."""

import csv
from pathlib import Path
from typing import Annotated, Any

import opendp.prelude as dp
import polars as pl
import typer
from rich.console import Console

from opendp_bayes.commands import options
from opendp_bayes.commands.errors import fail, option_errors, release_errors
from opendp_bayes.commands.files import scan_column
from opendp_bayes.framework.context import PosteriorQuery, posterior
from opendp_bayes.framework.interrupts import deferred_interrupts
from opendp_bayes.mathematics.validation import as_positive
from opendp_bayes.released.data import Label
from opendp_bayes.report import terminal
from opendp_bayes.results.release import Release

_MOST_CONTRIBUTIONS = 2**31 - 1  # OpenDP counts rows, two for each change, in 32 bits
_DATA = "Data"


def release(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .parquet, .ipc, .arrow or .feather file.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str,
        typer.Option(help="The column of categories.", rich_help_panel=_DATA, show_default=False),
    ],
    categories: Annotated[
        str | None,
        typer.Option(
            help=(
                "All categories, separated by commas, in the order of the output. An Enum column"
                " has its own."
            ),
            rich_help_panel=_DATA,
        ),
    ] = None,
    nulls: Annotated[
        str | None,
        typer.Option(
            help="Count rows without a value as this category, which may be a new one.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            help="Count rows with any other value as this category, which may be a new one.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            help="Prior concentration: one number, or one for each category, new ones included.",
            rich_help_panel=options.MODEL,
        ),
    ] = "1",
    mechanism: Annotated[
        str,
        typer.Option(
            help=(
                "auto (`opendp-bayes plan` explains the choice), laplace_parameters, the name of an"
                " installed mechanism, or, with --size, "
                "knorm_parameters, permute_and_flip, hellinger_exponential or"
                " smooth_hellinger_exponential. Its scale follows from the budget."
            ),
            rich_help_panel=options.MODEL,
        ),
    ] = "auto",
    parameter: options.Parameter = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    delta: Annotated[
        float | None,
        typer.Option(help="The δ that goes with ε or ρ.", rich_help_panel=options.PRIVACY),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="The number of rows, if it is public.", rich_help_panel=options.PRIVACY),
    ] = None,
    contributions: Annotated[
        int,
        typer.Option(
            help="The most rows that one person has. A promise: it is not enforced.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = 1,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the release as JSON, for Release.from_json.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
) -> None:
    """Release the posterior of the category probabilities of one column of FILE.

    Without --size the number of rows is private, and the privacy unit is the presence of a person's
    rows. Rows without a value, or with a value that is not a category, are left out, unless --nulls
    or --unknown says where to count them.

    With --size the number of rows is public, and the privacy unit is a change of a person's rows.
    Every row must be counted, so --nulls is needed, and --unknown too, unless the type of the
    column excludes other values: `--size 944 --nulls NA --unknown NA`.

    The first line of a CSV file names the columns. All its values are text, empty ones are nulls.

    To limit the rows of a person by an identifier, use the Python interface (docs: The guarantee).

    Each run spends its own budget: what several runs reveal about the same people adds up.

    Exit code: 0 if the release was made, 1 if it failed when the data was read, 2 for wrong
    options.

    Examples, of which the first makes the file for the others:

        printf '%s\\n' vote yes no yes yes no > votes.csv

        opendp-bayes release votes.csv --column vote --categories yes,no --epsilon 1

        opendp-bayes release votes.csv --column vote --categories yes,no --rho 0.1
    """
    with option_errors(), deferred_interrupts():
        loss, model = (
            _budget(epsilon, rho, delta),
            {
                "prior": options.prior(prior),
                "mechanism": mechanism,
                **options.parameters(parameter or []),
            },
        )
        query = _query(file, column, categories, nulls, unknown, size, contributions, loss, model)
        query.resolve()
    with release_errors(), Console(stderr=True).status("Counting"):
        released = query.release()
    if json:
        typer.echo(released.to_json())
    else:
        with Console(stderr=True).status("Computing the posterior"):
            report = terminal.rendered(released.sheet(title=column))
        Console().print(report)
        if size is None and (nulls is None or unknown is None):
            left_out = " and ".join(
                name
                for name, label in (
                    ("without a value", nulls),
                    ("with a value that is not a category", unknown),
                )
                if label is None
            )
            typer.echo(f"Rows {left_out} were left out.")


def _query(
    file: Path,
    column: str,
    categories: str | None,
    nulls: str | None,
    unknown: str | None,
    size: int | None,
    contributions: int,
    loss: Any,
    model: dict[str, Any],
) -> PosteriorQuery[Release]:
    """The query for the posterior in a Context of its own, whose whole budget is `loss`."""
    dp.enable_features("contrib", "honest-but-curious")
    frame, dtype = scan_column(file, column)
    labels = _labels(categories, column, dtype)
    null_label, other_label = _bucket(nulls, labels), _bucket(unknown, labels)
    if not 1 <= contributions <= _MOST_CONTRIBUTIONS:
        fail(f"--contributions {contributions}: must be between 1 and {_MOST_CONTRIBUTIONS} rows.")
    unit = (
        dp.unit_of(contributions=contributions)
        if size is None
        else dp.unit_of(changes=contributions)
    )
    plan: Any = dp.Context.compositor(
        data=frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1
    ).query()
    if size is None:
        plan = _without_uncounted(plan, column, labels, nulls is None, unknown is None)
        # Nothing is left for a bucket that was not asked for, so it may be any category.
        null_label = labels[0] if null_label is None else null_label
        other_label = labels[0] if other_label is None else other_label
    elif nulls is None:
        fail(
            f"--nulls: is missing; with --size every row must be counted, and {column!r} may hold"
            " nulls. Name a category for them: --nulls missing."
        )
    return posterior(
        plan, column, categories=labels, size=size, nulls=null_label, unknown=other_label, **model
    )


def _without_uncounted(
    plan: Any, column: str, labels: list[Label], drop_nulls: bool, drop_unknown: bool
) -> Any:
    """Filter out the rows that are not to be counted, which brings no two data sets further
    apart.
    """
    value = pl.col(column)
    known = (
        value.cast(pl.String)
        .cast(pl.Enum([_text(label) for label in labels]), strict=False)
        .is_not_null()
    )
    if drop_unknown:
        return plan.filter(known if drop_nulls else known | value.is_null())
    return plan.filter(value.is_not_null()) if drop_nulls else plan


def _labels(categories: str | None, column: str, dtype: pl.DataType) -> list[Label]:
    """The categories in the type of the column."""
    if categories is None:
        if isinstance(dtype, pl.Enum):
            return list(dtype.categories)
        fail(
            f"--categories: is missing; column {column!r} of type {dtype} does not list its"
            " categories. Name all of them: --categories a,b,c."
        )
    texts = next(csv.reader([categories], skipinitialspace=True), [])
    if not texts or "" in texts:
        fail(
            f"--categories {categories!r}: must be labels separated by commas, none of them empty,"
            " such as --categories a,b,c."
        )
    labels: list[Label] = [*texts]
    if dtype == pl.Boolean:
        if not set(texts) <= {"true", "false"}:
            fail(
                f"--categories {categories}: column {column!r} is Boolean, so its categories must"
                " be true,false."
            )
        labels = [text == "true" for text in texts]
    elif dtype == pl.Int64:
        try:
            labels = [int(text) for text in texts]
        except ValueError:
            fail(
                f"--categories {categories}: column {column!r} holds integers, so every category"
                " must be one, such as --categories 0,1."
            )
    if len(set(labels)) < len(labels):
        fail(f"--categories {categories}: must not repeat a label.")
    return labels


def _bucket(name: str | None, labels: list[Label]) -> Label | None:
    """The category called `name`, or, if there is none, `name` itself."""
    return next((label for label in labels if _text(label) == name), name)


def _text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _budget(epsilon: float | None, rho: float | None, delta: float | None) -> Any:
    """The privacy loss in OpenDP's terms."""
    if (epsilon is None) == (rho is None):
        fail(
            f"--epsilon, --rho: {'neither is' if epsilon is None else 'both are'} given; give"
            " exactly one, such as --epsilon 1."
        )
    if delta is not None and not 0 < delta < 1:
        fail(f"--delta {delta}: must be greater than 0 and less than 1; leave it out for 0.")
    limits = {
        name: as_positive(value, name)
        for name, value in (("epsilon", epsilon), ("rho", rho))
        if value is not None
    }
    return dp.loss_of(**limits, delta=delta)
