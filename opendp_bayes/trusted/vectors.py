"""Counts to OpenDP's own spaces, in which its measurements follow."""

from fractions import Fraction
from typing import Any

from opendp.domains import atom_domain, map_domain, vector_domain
from opendp.metrics import (
    absolute_distance,
    l01inf_distance,
    l1_distance,
    l2_distance,
    linf_distance,
)
from opendp.mod import Domain, Metric, Transformation
from opendp.transformations import make_user_transformation
from opendp.typing import RuntimeType

from opendp_bayes.mathematics.rounding import round_up, sqrt_up
from opendp_bayes.mathematics.validation import as_distance
from opendp_bayes.trusted.boundary import (
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.chaining import to_then
from opendp_bayes.trusted.spaces import CountsSpace

_METRICS = {
    "L1Distance<i64>": l1_distance(T="i64"),
    "L2Distance<f64>": l2_distance(T="f64"),
    "LInfDistance<i64>": linf_distance(T="i64"),
}


def make_count_vector(
    input_domain: Domain, input_metric: Metric, *, MO: Any = "L1Distance<i64>"
) -> Transformation:
    """Cast counts to OpenDP's own space, `vector_domain(atom_domain(T="i64"), size=k)`, so that
    OpenDP's measurements follow `make_categorical_counts`.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_categorical_counts` or
        `make_grouped_counts`.
    MO : the output metric, spelled as OpenDP does: `"L1Distance<i64>"`, which `then_laplace` needs;
        `"L2Distance<f64>"`, for `then_gaussian`; or `"LInfDistance<i64>"`, for `then_noisy_max` and
        `then_noisy_top_k`.

    The stability map is the largest distance there is (`docs/proofs.md`, "Vectors of counts"). For
    `d` records added or removed it is `d` in each metric. For `d` records changed, `d` being at
    most the number of records, it is `2 d`, `sqrt(2) d` rounded up, and `d`.

    Raises `ValueError` for another metric or input.
    """
    require_features("make_count_vector")
    space = _space(input_domain, input_metric)
    name = str(RuntimeType.parse(MO)) if isinstance(MO, (str, RuntimeType)) else repr(MO)
    if name not in _METRICS:
        raise ValueError(f"MO={name}: must be one of {', '.join(_METRICS)}.")

    def stability_map(d_in: Any) -> float:
        of_all = _distances(space, d_in)
        return dict(zip(_METRICS, of_all, strict=True))[name]

    return make_user_transformation(
        input_domain,
        input_metric,
        vector_domain(atom_domain(T="i64"), size=space.k),
        _METRICS[name],
        guarded(space.counts, "make_count_vector"),
        guarded_map(stability_map, "make_count_vector"),
    )


def make_count_map(input_domain: Domain, input_metric: Metric) -> Transformation:
    """Cast counts to a map from the labels to them, `map_domain(atom_domain(T=...),
    atom_domain(T="i64"))` under `l01inf_distance(absolute_distance(T="i64"))`.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_categorical_counts` or
        `make_grouped_counts`, with labels that are all text, all integers or all booleans.

    `then_laplace_threshold` of OpenDP follows it, which has no use for a vector. Every label is
    there, whatever its count, so that a threshold hides small counts and no key tells anything. The
    stability map gives the number of counts that `d` records move, the sum of their movements, and
    the largest of them.

    Raises `ValueError` for another input or other labels.
    """
    require_features("make_count_map")
    space = _space(input_domain, input_metric)
    kinds = {type(label) for label in space.categories}
    kind = {str: "String", int: "i64", bool: "bool"}.get(*kinds) if len(kinds) == 1 else None
    if kind is None:
        raise ValueError(
            f"input_domain={input_domain}: its labels must be all text, all integers or all"
            " booleans, to be the keys of a map; use make_count_vector."
        )

    def function(value: Any) -> dict[Any, int]:
        return dict(zip(space.categories, space.counts(value).tolist(), strict=True))

    def stability_map(d_in: Any) -> tuple[int, int, int]:
        l1, _, largest = _distances(space, d_in)
        return (min(l1, space.k), l1, largest)

    return make_user_transformation(
        input_domain,
        input_metric,
        map_domain(atom_domain(T=kind), atom_domain(T="i64")),
        l01inf_distance(absolute_distance(T="i64")),
        guarded(function, "make_count_map"),
        guarded_map(stability_map, "make_count_map"),
    )


def _space(input_domain: Domain, input_metric: Metric) -> CountsSpace:
    space = descriptor_of(input_domain, CountsSpace, "make_categorical_counts")
    space.check_metric(input_metric)
    return space


def _distances(space: CountsSpace, d_in: Any) -> tuple[int, float, int]:
    """The largest L1, L2 and L-infinity distances that `d_in` records make: all in one count, or
    all from one count to another.
    """
    records = as_distance(d_in)
    if space.size is None:
        return records, round_up(Fraction(records)), records
    records = min(records, space.size)
    return 2 * records, sqrt_up(2 * records**2), records


then_count_vector = to_then(make_count_vector)
then_count_map = to_then(make_count_map)
