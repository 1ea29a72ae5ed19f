"""Turn the options of `opendp-bayes release` into a query in a Context of its own."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import polars as pl
from opendp.context import loss_of, unit_of
from opendp.mod import enable_features

from opendp_bayes.commands.errors import fail
from opendp_bayes.display.wording import where_counted
from opendp_bayes.mathematics.validation import as_positive
from opendp_bayes.questions.columns import covers
from opendp_bayes.questions.posterior_query import PosteriorQuery, posterior
from opendp_bayes.release_format.data import Value as Label
from opendp_bayes.release_format.labels import OTHER, spare
from opendp_bayes.report.owner_file import OwnerFile, OwnersColumn, answered
from opendp_bayes.report.specification import Unmatched
from opendp_bayes.trusted.files import Source, scan_columns
from opendp_bayes.trusted.kinds import ColumnKind, kinds_in
from opendp_bayes.trusted.ledger import Ledger
from opendp_bayes.trusted.opening import context

_MOST_CONTRIBUTIONS = 2**31 - 1  # OpenDP counts rows, two for each change, in 32 bits


@dataclass(frozen=True)
class Asked:
    """The options of `opendp-bayes release`, checked as far as that needs no file; `categories`,
    `nulls` and `unknown` by the columns for which they were given.
    """

    columns: tuple[str, ...]
    separator: str | None
    encoding: str | None
    categories: dict[str, str]
    nulls: dict[str, str]
    unknown: dict[str, str]
    unmatched: Unmatched
    group_by: str | None
    groups: str | None
    size: int | None
    contributions: int | None
    identifier: str | None
    rows_per_identifier: int | None
    loss: Any
    limits: dict[str, float | None]
    model: dict[str, Any]

    def __post_init__(self) -> None:
        for column in self.columns:
            if self.columns.count(column) > 1 or column == self.group_by:
                fail(f"--column {column}: is named twice; name each column once.")
        most = _MOST_CONTRIBUTIONS
        if self.contributions is not None and not 1 <= self.contributions <= most:
            fail(f"--contributions {self.contributions}: must be between 1 and {most} rows.")
        if self.unmatched == "drop" and (self.size is not None or self.unknown):
            other = "--size" if self.size is not None else "--unknown"
            fail(
                f"--unmatched drop: does not go with {other}, by which such rows are counted; leave"
                " it out."
            )
        if self.groups is not None and self.group_by is None:
            fail(f"--groups {self.groups}: needs --group-by, the column that holds them.")
        if (self.identifier is None) != (self.rows_per_identifier is None):
            fail(
                "--identifier, --rows-per-identifier: one needs the other; the rows of an"
                " identifier must be limited, as in --identifier person --rows-per-identifier 1."
            )
        if self.identifier is not None and self.size is not None:
            fail(
                f"--size {self.size}: does not go with --identifier; how many rows are kept of each"
                " identifier is private, and so is their number. Leave out --size."
            )
        if self.rows_per_identifier is not None and self.rows_per_identifier < 1:
            fail(f"--rows-per-identifier {self.rows_per_identifier}: must be at least 1.")

    @property
    def title(self) -> str:
        """Title of the release: its columns, and the column that it is grouped by."""
        title = " × ".join(self.columns)
        return title if self.group_by is None else f"{title} by {self.group_by}"

    @property
    def counted_by(self) -> list[str]:
        """The columns whose labels say what is counted."""
        return [*self.columns, *([] if self.group_by is None else [self.group_by])]

    @property
    def read(self) -> list[str]:
        """The columns that are read."""
        named = (*self.counted_by, self.identifier)
        return list(dict.fromkeys(column for column in named if column is not None))


def by_column(option: str, given: Sequence[str] | None, columns: Sequence[str]) -> dict[str, str]:
    """Assign the values of an option to the columns: one column takes the value as it is, several
    take COLUMN=...
    """
    if len(columns) == 1:
        if given is not None and len(given) > 1:
            fail(f"{option}: is given more than once; give it once.")
        return dict(zip(columns, given or [], strict=False))
    found: dict[str, str] = {}
    for text in given or []:
        named = [name for name in columns if text.startswith(f"{name}=")]
        if not named or named[-1] in found:
            fail(
                f"{option} {text}: must be given once for each column of the joint table, as"
                f" COLUMN=..., such as {option} {columns[0]}=..."
            )
        name = max(named, key=len)
        found[name] = text[len(name) + 1 :]
    return found


#: Options of `release` that are fields of a specification, there of its privacy.
_PRIVACY = ("size", "contributions", "identifier", "rows_per_identifier")


def answered_options(asked: Asked, owner: OwnerFile) -> Asked:
    """The options with the owner's facts in place of those that were left out.

    Raises `FieldError` for what only the owner may state, or allows nobody.
    """
    listed = dict(asked.categories)
    if asked.group_by is not None and asked.groups is not None:
        listed[asked.group_by] = asked.groups
    columns: dict[str, Any] = {name: {} for name in (*listed, *asked.nulls)}
    for name, texts in listed.items():
        own = owner.columns.get(name, OwnersColumn()).categories or []
        labels = next(csv.reader([texts], skipinitialspace=True), [])
        columns[name]["categories"] = [_bucket(label, own) for label in labels]
    for name, label in asked.nulls.items():
        null = owner.columns.get(name, OwnersColumn()).nulls
        columns[name]["nulls"] = _bucket(label, [] if null is None else [null])
    document = {
        "separator": asked.separator,
        "encoding": asked.encoding,
        "privacy": asked.limits | {name: getattr(asked, name) for name in _PRIVACY},
        "columns": columns,
        "results": [
            {
                "column": list(asked.columns),
                "by": asked.group_by,
                "mechanism": asked.model["mechanism"],
            }
        ],
    }
    made = answered(document, owner)
    written = {
        name: ",".join(map(_quoted, column["categories"]))
        for name, column in made["columns"].items()
        if column.get("categories")
    }
    nulls = {name: made["columns"][name].get("nulls") for name in asked.columns}
    return replace(
        asked,
        separator=made.get("separator"),
        encoding=made.get("encoding"),
        categories={name: written[name] for name in asked.columns if name in written},
        groups=None if asked.group_by is None else written.get(asked.group_by),
        nulls={name: _text(label) for name, label in nulls.items() if label is not None},
        **{name: made["privacy"].get(name) for name in _PRIVACY},
    )


def posterior_query(
    found: Source, asked: Asked, ledger: Ledger | None = None
) -> tuple[PosteriorQuery[Any], str]:
    """The query in a Context whose whole budget it is, and where rows of no category are counted;
    reads the names and types of the columns.
    """
    enable_features("contrib", "honest-but-curious")
    options = {asked.identifier: "--identifier", asked.group_by: "--group-by"}

    def refuse(column: str, problem: str) -> NoReturn:
        fail(f"{options.get(column, '--column')} {column!r}: {problem}")

    frame = scan_columns(found, asked.read, refuse, asked.identifier)
    kinds = kinds_in(frame)
    plan: Any = context(
        frame,
        privacy_unit=_unit(asked),
        privacy_loss=asked.loss,
        split_evenly_over=1,
        ledger=ledger,
    ).query()
    counted = [_counted(name, kinds[name], asked) for name in asked.columns]
    for one in counted:
        if asked.size is None:
            dropped = one.nulls is None, one.unknown is None
            plan = without_uncounted(plan, one.column, one.categories, *dropped)
    if asked.rows_per_identifier is not None:
        plan = plan.truncate_per_group(asked.rows_per_identifier)
    keys = None
    if asked.group_by is not None:
        keys = labels_of("--groups ", asked.groups, asked.group_by, kinds[asked.group_by])
        plan = plan.group_by(asked.group_by)
    one_column = len(asked.columns) == 1
    made = posterior(
        plan,
        asked.columns[0] if one_column else asked.columns,
        keys=keys,
        categories=(
            counted[0].categories if one_column else {one.column: one.categories for one in counted}
        ),
        size=asked.size,
        nulls={one.column: one.bucket(one.nulls) for one in counted},
        unknown={one.column: one.bucket(one.unknown) for one in counted},
        **asked.model,
    )
    return made, _where_counted(counted, asked.group_by)


@dataclass(frozen=True)
class Counted:
    """A column, its categories, and where nulls and other values are counted: None where they are
    left out, or `covered` by the categories.
    """

    column: str
    categories: list[Label]
    nulls: Label | None
    unknown: Label | None
    covered: bool

    def bucket(self, label: Label | None) -> Label:
        """Return the label of a bucket. No record is left for a bucket that was not asked for, so
        it may be any category.
        """
        return self.categories[0] if label is None else label


def _counted(name: str, known: ColumnKind, asked: Asked) -> Counted:
    """Resolve the options that concern one column of the file."""
    labels = labels_of("--categories ", asked.categories.get(name), name, known)
    nulls, unknown = (_bucket(given.get(name), labels) for given in (asked.nulls, asked.unknown))
    if asked.size is not None and nulls is None:
        fail(
            f"--nulls: is missing; with --size every row must be counted, and {name!r} may"
            " hold nulls. Name a category for them: --nulls missing."
        )
    covered = covers(known, tuple(labels))
    if unknown is None and asked.unmatched == "other" and not covered:
        unknown = spare(OTHER, labels if nulls is None else [*labels, nulls])
    return Counted(name, labels, nulls, unknown, covered)


def _where_counted(counted: Sequence[Counted], group_by: str | None) -> str:
    """A sentence on the rows that are in no category."""
    fates: dict[str, tuple[list[str], list[str]]] = {}
    for one in counted:
        for which, label in ((0, one.nulls), (1, one.unknown)):
            if which and one.covered:
                continue
            fate = "are left out" if label is None else f"are counted as {label!r}"
            fates.setdefault(fate, ([], []))[which].append(one.column)
    if group_by is not None:
        fates["are in no group"] = [group_by], [group_by]
    several = len(counted) + (group_by is not None) > 1
    return where_counted(fates, "Rows", say_columns=several)


def _unit(asked: Asked) -> Any:
    """The privacy unit in OpenDP's terms."""
    rows = 1 if asked.contributions is None else asked.contributions
    if asked.size is not None:
        return unit_of(changes=rows)
    return unit_of(contributions=rows, identifier=asked.identifier)


def without_uncounted(
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


def labels_of(option: str, listed: str | None, column: str, known: ColumnKind) -> list[Label]:
    """The labels that an option lists, in the type of the column; `option` is all that stands
    before them.
    """
    grouping = option.startswith("--groups")
    what, one = ("groups", "group") if grouping else ("categories", "category")
    if listed is None:
        if known.declared is not None:
            return list(known.declared)
        if known.kind == "boolean":
            return [True, False]
        fail(
            f"{option.strip()}: is missing; column {column!r} of type {known.type} does not list"
            f" its {what}. Name all of them: {option}a,b,c."
        )
    texts = next(csv.reader([listed], skipinitialspace=True), [])
    if not texts or "" in texts:
        fail(
            f"{option}{listed!r}: must be labels separated by commas, none of them empty, such as"
            f" {option}a,b,c."
        )
    if len(texts) == 1 and any(mark in listed for mark in ";|") and not listed.startswith('"'):
        fail(
            f"{option}{listed!r}: is one label, because labels are separated by commas, such as"
            f" {option}a,b,c. Quote a label that holds a ';' or '|': {option}'\"{listed}\"'."
        )
    labels: list[Label] = [*texts]
    if known.kind == "boolean":
        if not set(texts) <= {"true", "false"}:
            fail(
                f"{option}{listed}: column {column!r} is Boolean, so its {what} must be true,false."
            )
        labels = [text == "true" for text in texts]
    elif known.kind == "integer":
        try:
            labels = [int(text) for text in texts]
        except ValueError:
            fail(
                f"{option}{listed}: column {column!r} holds integers, so every {one} must be one,"
                f" such as {option}0,1."
            )
    if len(set(labels)) < len(labels):
        fail(f"{option}{listed}: must not repeat a label.")
    return labels


def _bucket(name: str | None, labels: list[Label]) -> Label | None:
    """The category called `name`, or, if there is none, `name` itself."""
    return next((label for label in labels if _text(label) == name), name)


def _quoted(label: Label) -> str:
    """A label as an option of several lists it."""
    return '"' + _text(label).replace('"', '""') + '"'


def _text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def budget(epsilon: float | None, rho: float | None, delta: float | None) -> Any:
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
    return loss_of(**limits, delta=delta)
