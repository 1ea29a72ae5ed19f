"""Which category of a result is the most frequent, and how surely, as a report says it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from opendp_bayes import DiscoveredRelease, Release
from opendp_bayes.display.wording import group_name
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.statements import named, naming

#: Draws that the probability is a share of, and above which it is nearly certain.
_DRAWS, _SURE = 4000, 0.995
#: The most groups, and categories, of which it is said.
_MOST_GROUPS, _MOST_CATEGORIES = 30, 100


def most_frequent(report: Report, number: int) -> Iterator[str]:
    """Yield a sentence that names the category of a result, or of each of its groups, which is most
    probably the most frequent one, with the probability that it is, by draws.

    Nothing is said of joint tables, of pooled groups, of ordered or discovered categories, and of
    very many.
    """
    specification = report.specification
    result, release = specification.results[number], report.releases[number]
    if len(result.columns) > 1 or result.ordered or result.pooled:
        return
    if isinstance(release, DiscoveredRelease) or len(release.categories) > _MOST_CATEGORIES:
        return
    column = specification.columns[result.columns[0]]
    known = naming(column, result)
    if isinstance(release, Release):
        label, probability = _first_of(report.posterior_of(number), release.categories)
        yield f"Most frequent: {named(known, label)}, with probability {probability}."
    elif len(release) <= _MOST_GROUPS:
        own = specification.columns.get(result.by or "")
        each = []
        for group, one in release.items():
            label, probability = _first_of(one.posterior, one.categories)
            of_group = named(own, group) if own is not None else group_name(group)
            each.append(f"{of_group}: {named(known, label)} ({probability})")
        yield f"Most frequent in each group, with its probability: {'; '.join(each)}."


def _first_of(posterior: Any, categories: tuple[Any, ...]) -> tuple[Any, str]:
    """The category, and the probability in words."""
    first = posterior.sample(_DRAWS, random_state=0).argmax(axis=1)
    shares = np.bincount(first, minlength=len(categories)) / len(first)
    place = int(shares.argmax())
    share = float(shares[place])
    return categories[place], f"{share:.2f}" if share <= _SURE else "above 0.99"
