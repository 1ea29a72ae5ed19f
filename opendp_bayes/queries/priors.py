"""The prior of a question: settled when it is put to a query, from public facts alone."""

from collections.abc import Callable
from dataclasses import replace

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_names
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.spaces import CountsSpace, groups_and_labels

#: The number that `prior="auto"` stands for, and with how many categories a prior is learned
#: instead (`docs/research/priors.md` has the errors by which they were chosen).
NUMBER, LEARNED_FROM = 1.0, 10


def with_prior(question: Question, space: CountsSpace, adds_noise: Callable[[], bool]) -> Question:
    """The question with `"learned"` or numbers in place of `prior="auto"`: learned of ten or more
    categories, or of ordered ones, of one table, where the mechanism adds noise to the counts.

    Raises
    ------
    ValueError, TypeError
        For another word, for groups that are to learn a prior, and for `ordered` that is not among
        the columns or goes with numbers.
    """
    groups = groups_and_labels(space.categories)[0]
    ordered, prior = _ordered(question), question.prior
    if isinstance(prior, str) and prior not in ("auto", "learned"):
        raise ValueError(
            f"prior={told(prior)}: must be 'auto', 'learned', a positive number, or one for each"
            " category."
        )
    if isinstance(prior, str) and prior == "auto":
        many = space.k >= LEARNED_FROM and not groups
        prior = "learned" if ordered or (many and adds_noise()) else NUMBER
    found = replace(question, prior=prior, ordered=ordered)
    if groups and found.learned:
        raise ValueError(
            f"{'ordered' if ordered else 'prior'}={told(ordered or prior)}: is of one table; ask"
            " for the joint table of the groups' column and the others, whose effects are learned,"
            " and take conditional() of it."
        )
    if ordered and not found.learned:
        raise ValueError(
            f"ordered={told(list(ordered))}: goes with a learned prior; leave out"
            f" prior={told(prior)}."
        )
    return found


def _ordered(question: Question) -> tuple[str, ...]:
    """The columns whose values are in order, each once."""
    names = [] if question.ordered is None else as_names(question.ordered, "ordered")
    if set(names) - set(question.columns):
        raise ValueError(
            f"ordered={told(list(names))}: must be among the columns asked for, which are"
            f" {', '.join(map(repr, question.columns))}."
        )
    return tuple(dict.fromkeys(names))
