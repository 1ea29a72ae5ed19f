"""Promises, mechanisms and bounds in words, for tables, pages and pictures."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

#: The last row, or bar, of values that were discovered: all that are not shown.
EVERYTHING_ELSE = "and everything else"
#: Characters of a label that are shown.
_LONGEST_LABEL = 120
_SIGNIFICANT = Context(prec=4, rounding=ROUND_CEILING)


def group_name(group: Key) -> str:
    """The label of a group as it is shown."""
    if isinstance(group, tuple):
        return ", ".join(map(group_name, group))
    return "(null)" if group is None else str(group)


def label_said(label: object) -> str:
    """A label that nobody chose, as it is shown: not too long, and in quotes and with escapes where
    it is empty, or has blanks around it or characters that cannot be seen, such as those that turn
    the direction of writing.

    Examples
    --------
    >>> label_said("a"), label_said("a\\u202eb"), label_said(" a")
    ('a', "'a\\\\u202eb'", "' a'")
    """
    text = str(label)
    if len(text) > _LONGEST_LABEL:
        text = f"{text[:_LONGEST_LABEL]} … ({len(text)} characters)"
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def listed(parts: Sequence[str], last: str) -> str:
    """Parts with commas and one word before the last."""
    *others, end = parts
    return f"{', '.join(others)} {last} {end}" if others else end


def prior_said(prior: Sequence[float], *, learned: bool, ordered: Sequence[str] = ()) -> str:
    """The concentration of a prior, or that it is learned, and along which variables smoothly."""
    if learned:
        smooth = f", smooth along {listed(list(ordered), 'and')}" if ordered else ""
        return f"learned from the release{smooth}"
    if len(set(prior)) == 1:
        return f"{prior[0]:.6g} per category"
    return f"({shortly((f'{entry:.6g}' for entry in prior), len(prior))})"


def in_words(guarantee: PrivacyGuarantee) -> str:
    """State the promise of a release in sentences: privacy loss, neighbours, whether the number of
    records is public, and where rows were limited, what it is of.

    Bounds are rounded up to four significant digits.

    Examples
    --------
    >>> from opendp_bayes import PrivacyLoss, PrivacyGuarantee
    >>> in_words(PrivacyGuarantee(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence"))
    'ε = 0.5 for data sets that differ by 1 record changed. The number of records, 8, is public.'
    """
    size = (
        "The number of records is private."
        if guarantee.size is None
        else f"The number of records, {guarantee.size}, is public."
    )
    if not guarantee.is_stated:
        return f"No privacy loss is stated here. {size}"
    if guarantee.truncated:
        rule = f" to {guarantee.kept}" if guarantee.kept else ""
        size += (
            f" The rows of each identifier were limited{rule} before they were counted: the results"
            " are about the rows kept, not about all rows."
        )
    return f"{stated_loss(guarantee)} for data sets that differ by {difference(guarantee)}. {size}"


def stated_loss(guarantee: PrivacyGuarantee) -> str:
    """The privacy loss in the measure of the release, rounded up to four significant digits."""
    loss = (
        f"ρ = {at_most(guarantee.loss.rho)} (zero-concentrated)"
        if guarantee.is_concentrated
        else f"ε = {at_most(guarantee.loss.epsilon)}"
    )
    return f"{loss}, δ = {at_most(guarantee.loss.delta)}" if guarantee.loss.delta else loss


def described(mechanism: Any) -> str:
    """The mechanism with the parameters that are set, numbers to six digits."""
    values = asdict(mechanism)
    parameters = [
        f"{parameter}={value:.6g}" if isinstance(value, float) else f"{parameter}={value!r}"
        for parameter, value in values.items()
        if value is not None
    ]
    return f"{type(mechanism).__name__}({', '.join(parameters)})"


#: What readers who do not program call a mechanism, by its class; `{noise}` is its parameter.
_NAMES = {
    "LaplaceParameters": "{noise} Laplace noise",
    "KNormParameters": "K-norm noise",
    "GaussianParameters": "discrete Gaussian noise",
    "HellingerExponential": "exponential mechanism on the Hellinger distance",
    "SmoothHellingerExponential": "smooth exponential mechanism on the Hellinger distance",
    "PermuteAndFlip": "permute-and-flip on the Hellinger distance",
    "LaplaceThreshold": "discrete Laplace noise and a threshold",
    "GaussianThreshold": "discrete Gaussian noise and a threshold",
    "OptimalThreshold": "noise of the smallest threshold",
}


def in_plain_words(mechanism: Any) -> str:
    """The mechanism and its scale in words, for those who read a release and do not program.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> in_plain_words(LaplaceParameters(scale=8.33333))
    'discrete Laplace noise, scale 8.33'
    """
    words, parameters = _NAMES.get(type(mechanism).__name__), asdict(mechanism)
    if words is None:
        return described(mechanism)
    scale = f", scale {parameters['scale']:.3g}" if "scale" in parameters else ""
    return f"{words.format_map(parameters)}{scale}"


def kind_in_words(name: str) -> str:
    """The plain name of mechanisms of a class, for readers who do not program; any other name is
    left as it is.

    Examples
    --------
    >>> kind_in_words("LaplaceParameters"), kind_in_words("vote")
    ('Laplace noise', 'vote')
    """
    return _NAMES.get(name, name).replace("{noise} ", "")


def change(distance: Distance, size: int | None) -> str:
    """Describe the difference between neighbouring data sets at a distance.

    Examples
    --------
    >>> change(Distance.of(2), None), change(Distance.of(1), 100)
    ('2 records added or removed', '1 record changed')
    >>> change(Distance.limited(10, largest=1), None)
    '10 records added or removed, at most 1 in one count'
    """
    records = f"{distance.records} record{'' if distance.records == 1 else 's'}"
    in_one = f", at most {distance.largest} in one count"
    changed = "added or removed" if size is None else "changed"
    return f"{records} {changed}{in_one if distance.largest < distance.records else ''}"


def difference(guarantee: PrivacyGuarantee) -> str:
    """Describe how the neighbouring data sets of a promise differ: by records, or by all those with
    one identifier, of which the plan keeps some.
    """
    records = change(guarantee.distance, guarantee.size)
    if guarantee.truncated:
        return f"whole identifiers, with at most {records} among the rows kept"
    return records


def at_most(bound: float) -> str:
    """Round a bound up for display, so that it still holds; the float 0.2 is 0.2, though it is
    1e-17 more in binary.
    """
    return (
        f"{float(_SIGNIFICANT.create_decimal(Decimal(repr(float(bound))))):.4g}"
        if math.isfinite(bound)
        else "∞"
    )
