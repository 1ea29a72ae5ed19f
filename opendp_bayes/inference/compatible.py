"""Checks that releases have one posterior together: what they must have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import are_same, identity


def as_release(value: Any) -> ReleasedData:
    """Return `value` if it is the data of one release; `TypeError` otherwise."""
    if not isinstance(value, ReleasedData):
        raise TypeError(
            f"release: must be a Release, not {type(value).__name__}; of a grouped release take"
            " that of one group, grouped[key], or where its groups were drawn at once, that of"
            " all, grouped.whole."
        )
    return value


def check_releases(releases: Sequence[ReleasedData], draws_may_agree: bool) -> None:
    """Raise `ValueError` or `TypeError` unless there are at least two releases of the same
    categories and records with the same prior, and none is given twice, unless draws may agree.
    """
    if not isinstance(releases, (list, tuple)):
        raise TypeError(
            "releases: must be a list of at least two releases, not"
            f" {type(releases).__name__}; tables by name have one posterior by combine_tables."
        )
    as_choice(draws_may_agree, "draws_may_agree", (True, False))
    if len(releases) < 2:
        raise ValueError(f"releases: holds {len(releases)}; give at least two.")
    named = {f"releases[{position}]": release for position, release in enumerate(releases)}
    for argument, release in named.items():
        if not isinstance(release, ReleasedData):
            raise TypeError(
                f"{argument}: must be a Release, not {type(release).__name__}; of a grouped release"
                " combine the releases of one group."
            )
    check_together(named, draws_may_agree)
    for argument, release in named.items():
        for shared in ("categories", "prior", "learned_prior", "ordered"):
            value, of_first = getattr(release, shared), getattr(releases[0], shared)
            if not are_same(value, of_first):
                raise ValueError(
                    f"{argument}: has {shared}={value}, the first has {of_first}; release all with"
                    f" the same {shared}, or give tables of the same records by name, as in"
                    " combine_tables({'vote': one, 'vote and party': other})."
                )


def number_of_records(releases: Sequence[ReleasedData]) -> int | None:
    """The number of records that is public of one of them at least; otherwise None."""
    return next((release.size for release in releases if release.size is not None), None)


def check_together(named: Mapping[str, ReleasedData], draws_may_agree: bool) -> None:
    """Raise `ValueError` unless releases, by their names, are of whole tables and of the same
    records, and none is given twice, unless draws may agree.
    """
    for argument, release in named.items():
        if release.whole is not None:
            raise ValueError(
                f"{argument}: is one group of a table, and the noise of all groups is one draw;"
                " give the table, `grouped.whole`, and look at the cells of the group with"
                " `posterior.given(...)`."
            )
    _check_same_rows(named)
    if not draws_may_agree:
        check_given_once(named)


def _check_same_rows(named: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where releases, by their names, cannot be of the same records."""
    first = next(iter(named))
    for argument, release in named.items():
        guarantee = release.guarantee
        if guarantee.truncated and not guarantee.kept:
            raise ValueError(
                f"{argument}: is of rows that were limited for each identifier, and which of them"
                " are kept may differ from release to release, and so may the true counts; keep the"
                " first of each, with `query.truncate_per_group(..., keep='first')`, or ask all in"
                " one `ob.survey`."
            )
        if guarantee.kept != named[first].guarantee.kept:
            raise ValueError(
                f"{argument}: is of {guarantee.kept or 'all rows'}, and {first} is of"
                f" {named[first].guarantee.kept or 'all rows'}, so that their true counts differ;"
                " release all with the same limit."
            )
    sizes = {
        argument: release.size for argument, release in named.items() if release.size is not None
    }
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{argument} has {size}" for argument, size in sizes.items())
        raise ValueError(
            "releases: cannot be of the same records, because their public numbers differ:"
            f" {shown}; groups of records are estimated together by pooled()."
        )


def check_given_once(named: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where one draw is given twice, whatever is promised of it."""
    first: dict[Any, str] = {}
    for argument, release in named.items():
        columns = release.columns or release.axes
        table = columns, identity(release.categories), release.size
        before = first.setdefault((table, release.noisy_counts, release.mechanism), argument)
        if before != argument:
            raise ValueError(
                f"{argument}: is the same release as {before}, or an identical draw; using it twice"
                " would count it twice. Give it once, or where they are two draws that happen to"
                " agree, draws_may_agree=True."
            )
