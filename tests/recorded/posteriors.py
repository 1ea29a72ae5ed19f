"""Every method of posteriors of releases with random mechanisms, priors, labels and axes."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.unlisted import Discovery, GaussianThreshold, LaplaceThreshold, OptimalThreshold
from tests.helpers.every_result import called, methods, plausible, properties, results
from tests.helpers.recorded import Answers, Rng, one
from tests.helpers.releases import guarantee

#: Arguments that `plausible` does not try, by their names.
OTHERS: dict[str, list[Any]] = {
    "level": [0.9, 0.5],
    "kind": ["eti", "hdi", "simultaneous"],
    "among": ["answered", "all"],
    "plug_in": [False, True],
    "percent": [True, False],
    "above": [0.2, 0.6],
}
#: Of `kind`, where it is something else.
OF_COPIES = {"synthetic", "write_synthetic"}
#: Take a picture, a file or another package's objects.
LEFT_OUT = {"plot", "to_arviz", "write_synthetic", "from_json", "json_schema", "release", "pooled"}


def mechanism_of(rng: Rng, k: int) -> tuple[Any, int | None]:
    """One that serves `k` categories, and the public number of records, if it has one."""
    highest = one(rng, [2.5, 2.5, 4.5])
    scale, size = float(np.exp(rng.uniform(-1, highest))), int(np.exp(rng.uniform(1.5, 6)))
    few, exponential = min(size, 14), ob.mechanisms
    makers: list[tuple[Callable[[], Any], int | None]] = [
        (lambda: ob.LaplaceParameters(scale, total="private"), None),
        (lambda: ob.LaplaceParameters(scale, "floored", "private"), None),
        (lambda: ob.LaplaceParameters(scale, total=one(rng, ["remainder", "bounded"])), size),
        (lambda: ob.LaplaceParameters(scale, "floored", "truncated"), size),
        (lambda: ob.GaussianParameters(scale, "private"), None),
        (lambda: ob.GaussianParameters(scale), size),
        (lambda: ob.KNormParameters(scale), size),
        (lambda: exponential.HellingerExponential(scale, one(rng, ["global", "local"])), few),
        (lambda: exponential.SmoothHellingerExponential(3 * scale, gamma=1.0), few),
        (lambda: exponential.PermuteAndFlip(scale), few),
    ]
    maker, public = makers[rng.integers(10 if k < 4 else 7)]
    return maker(), public


def labels_of(rng: Rng, shape: tuple[int, ...]) -> tuple[Any, ...]:
    if len(shape) > 1:
        return tuple(product(*("abcdefgh"[:n] for n in shape)))
    of_two = [(True, False), ("b", "a")]
    of_more = ["abcdefghijklmno", "onmlkjihgfedcba", range(15), range(-3, 12)]
    return tuple(one(rng, of_more)[: shape[0]]) if shape[0] > 2 else one(rng, of_two)


def drawn_of(rng: Rng, mechanism: Any, size: int | None, prior: Any) -> tuple[int, ...]:
    records = size or int(np.exp(rng.uniform(1, one(rng, [6, 6, 10]))))
    counts = rng.multinomial(records, rng.dirichlet(np.full(len(prior), 0.7)))
    return tuple(mechanism.sample(counts, np.array(prior))[0].tolist())


def release(rng: Rng) -> ob.Release:
    """Of one column, or of two or three, with labels for what no category is."""
    shape = one(rng, [(2,), (3,), (4,), (12,), (2, 3), (3, 2), (2, 3, 2)])
    cells, names = int(np.prod(shape)), tuple("uvw"[: len(shape)])
    prior = one(rng, [(1.0,) * cells, tuple((np.arange(cells) / 2 + 0.5).tolist())])
    mechanism, size = mechanism_of(rng, cells)
    labels = labels_of(rng, shape)
    values = [tuple("abcdefgh"[:n]) for n in shape] if len(shape) > 1 else [labels]
    of: dict[str, Any] = {"columns": names, "axes": names if len(shape) > 1 else ()}
    for policy in ("nulls", "unknown"):
        if rng.random() < 0.4:
            of[policy] = tuple(one(rng, [None, one(rng, axis)]) for axis in values)
    if rng.random() < 0.2 and cells > 2 and mechanism.name in ("laplace_parameters",):
        of |= {"learned_prior": True, "ordered": one(rng, [(), names[-1:]])}
    promise = guarantee(size, d_in=int(one(rng, [1, 2])))
    return ob.Release(
        drawn_of(rng, mechanism, size, prior), labels, prior, mechanism, promise, **of
    )


def posterior(rng: Rng) -> Any:
    of = release(rng)
    options: dict[str, Any] = {}
    if of.size is None and rng.random() < 0.3:
        records = max(1, sum(of.noisy_counts))
        options["records_prior"] = one(rng, [stats.poisson(records), stats.randint(0, 2 * records)])
    if rng.random() < 0.4:
        options["prior"] = one(rng, ["learned", 2.0, [0.7] * of.k])
        if options["prior"] == "learned" and rng.random() < 0.5:
            options["ordered"] = list(of.columns[:1])
    return ob.noise_aware_posterior(of, **options, ess=400) if options else of.posterior


def combined(rng: Rng) -> Any:
    """Looks at the same records, or at different ones."""
    first, size = release(rng), int(rng.integers(10, 60))
    fixed = {name: getattr(first, name) for name in ("columns", "axes", "learned_prior", "ordered")}
    releases = [first]
    for _ in range(int(rng.integers(1, 3))):
        other, public = mechanism_of(rng, 9)
        if (public is not None and first.size is None) or rng.random() < 0.3:
            other, public = ob.LaplaceParameters(2.0, total="private"), None
        public = None if public is None else first.size
        drawn = drawn_of(rng, other, public or size, first.prior)
        of = guarantee(public)
        releases.append(ob.Release(drawn, first.categories, first.prior, other, of, **fixed))
    records = one(rng, ["same", "different"])
    prior = one(rng, [None, "learned"]) if records == "same" else None
    return ob.combine(releases, records=records, prior=prior)


def groups(rng: Rng) -> Any:
    number, k = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    mechanism, size = ob.LaplaceParameters(float(np.exp(rng.uniform(-1, 2))), total="private"), None
    if rng.random() < 0.3:
        mechanism, size = ob.GaussianParameters(2.0), int(rng.integers(40, 200))
    cells, records = number * k, size or int(rng.integers(20, 300))
    counts = rng.multinomial(records, rng.dirichlet(np.full(cells, 0.8)))
    drawn = mechanism.sample(counts, np.ones(cells))[0].reshape(number, k)
    names = one(rng, [tuple("ghijkl"[:number]), tuple(product("ghi", (True, False)))[:number]])
    by = ("one", "other") if isinstance(names[0], tuple) else ("one",)
    rows = tuple(map(tuple, drawn.tolist()))
    prior = one(rng, [(1.0,) * k, tuple((np.arange(k) + 0.5).tolist())])
    labels = labels_of(rng, (k,))
    of: dict[str, Any] = {"columns": ("v",), "grouped_by": by}
    if rng.random() < 0.4:
        of["unknown"] = (labels[-1],)
    if size is not None:
        of["rest"] = int(rng.integers(0, 9))
    found = GroupedRelease(names, rows, labels, prior, mechanism, guarantee(size), **of)
    if size is not None and rng.random() < 0.6:
        sizes = counts.reshape(number, k).sum(axis=1).tolist()
        return found.with_sizes(dict(zip(names, sizes, strict=True)))
    return found


def pooled(rng: Rng) -> Any:
    return groups(rng).pooled(ess=20)


def some_tables(rng: Rng) -> dict[str, Any]:
    """Overlapping ones of three or four variables."""
    levels = {name: int(rng.integers(2, 4)) for name in "xyzw"[: int(rng.integers(3, 5))]}
    found = {}
    for pair in zip(levels, list(levels)[1:], strict=False):
        shape = tuple(levels[name] for name in pair)
        labels = tuple(product(*("abc"[:n] for n in shape)))
        mechanism = ob.LaplaceParameters(float(np.exp(rng.uniform(0, 2))), total="private")
        of = drawn_of(rng, mechanism, 200, [1.0] * len(labels)), labels, (1.0,) * len(labels)
        found["".join(pair)] = ob.Release(*of, mechanism, guarantee(None), pair, columns=pair)
    return found


def survey(rng: Rng) -> Any:
    tables = some_tables(rng)
    return ob.Survey(tuple(tables), tuple(tables.values())).posterior


def survey_table(rng: Rng) -> Any:
    whole = survey(rng)
    return whole.marginal(*one(rng, [whole.variables[:2], (whole.variables[0], "z")]))


def levels(rng: Rng) -> Any:
    fine_labels = tuple("abcdefgh"[: int(rng.integers(4, 8))])
    cut = int(rng.integers(1, len(fine_labels)))
    counts = rng.multinomial(int(rng.integers(20, 400)), rng.dirichlet(np.ones(len(fine_labels))))
    parts = fine_labels[:cut], fine_labels[cut:]
    merged = np.array([counts[:cut].sum(), counts[cut:].sum()])
    made = []
    for labels, of, more in ((fine_labels, counts, {}), (("m", "n"), merged, {"parts": parts})):
        mechanism = one(rng, [ob.LaplaceParameters(3.0, total="private"), None])
        mechanism = mechanism or ob.GaussianParameters(4.0, "private")
        drawn = tuple(mechanism.sample(of, np.ones(len(labels)))[0].tolist())
        prior = (1.0,) * len(labels)
        made.append(
            ob.Release(drawn, labels, prior, mechanism, guarantee(None), columns=("v",), **more)
        )
    return ob.Survey(("fine", "coarse"), tuple(made)).posterior[one(rng, ["fine", "coarse"])]


def discovery(rng: Rng) -> Any:
    rest = one(rng, [None, DiscreteLaplace(3.0), DiscreteGaussian(4.0)])
    laws = [OptimalThreshold(0.5, 1e-6, 0.5), LaplaceThreshold(3.0, 40), GaussianThreshold(4.0, 30)]
    law, k = one(rng, laws), int(rng.integers(0, 12))
    drawn = (law.threshold + rng.geometric(0.05, k)).astype(int).tolist()
    promise = ob.PrivacyGuarantee(
        None, 1, ob.PrivacyLoss(2.0, 3.0, 3.0, 1e-6), "Approximate(MaxDivergence)"
    )
    labels = tuple(f"v{n:02}" for n in range(k))
    sums = None if rest is None else int(rng.integers(-5, 500))
    release = ob.DiscoveredRelease(
        "v", labels, tuple(drawn), 0, Discovery(law, rest), sums, promise
    )
    return one(rng, [release, release.posterior, *([release.rest] if rest is not None else [])])


KINDS: list[Callable[[Rng], Any]] = [
    *(posterior, release, combined, posterior, groups, posterior, combined, levels, discovery),
    *(posterior, pooled, survey_table, combined, survey, release, posterior),
]


def asked(seed: int, folder: Path) -> Answers:
    """Each property, and each method with plausible arguments and, in turn, with others; the same
    of the first answer of every kind that has methods of its own.
    """
    rng = np.random.default_rng(seed)
    maker = KINDS[seed % len(KINDS)]
    parts: list[tuple[str, Any]] = []

    def first(name: str, compute: Callable[[], Any]) -> Any:
        answer = compute()
        kinds = {type(of) for of in results().values()}
        if type(answer) in kinds - {type(part) for _, part in parts} or not parts:
            parts.append((name, answer))
        return answer

    yield maker.__name__, partial(first, "", lambda: maker(rng))
    if not parts:
        return
    result = parts[0][1]
    if isinstance(result, ob.NoiseAwarePosterior):
        yield "category", partial(first, "category", lambda: result[result.categories[-1]])
        if len(result.axes) > 1:
            yield "margin", lambda: parts.append(("margin", result.marginal(result.axes[-1])))
    for part, of in parts:  # which grow
        for name in properties(of):
            if name not in LEFT_OUT:
                yield f"{part} {name}", partial(first, name, partial(getattr, of, name))
        for name, signature in methods(of):
            if name in LEFT_OUT or (isinstance(of, Mapping) and not of):
                continue
            arguments = {
                key: plausible(of, name, key, lambda: folder / "copies")
                for key in signature.parameters
            }
            compute = partial(called, of, name, arguments)
            yield f"{part} {name}", partial(first, name, compute)
            for key in arguments:
                if key in OTHERS and name not in OF_COPIES:
                    value = OTHERS[key][seed // 3 % len(OTHERS[key])]
                    changed = partial(called, of, name, arguments | {key: value})
                    yield f"{part} {name} {key}", changed
