"""Measure how often intervals of a survey's posterior hold the truth: of margins, of measured cells
and of pairs that no table has, with and without interactions; widths and errors beside those of a
point estimate of maximum entropy; and slopes and odds ratios of synthetic records. Write that
section of docs/research/coverage.md. `pip install scikit-learn`, whose data are read. An argument
is the number of seeds, by default 6, which take an hour of one core.
"""

import itertools
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from overlapping_tables import counted
from reporting import markdown, section
from rich.progress import track
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer
from statsmodels.datasets import anes96, fair, randhie

import opendp_bayes as ob
from opendp_bayes.surveys.joint_posterior import survey_posterior

ROOT = Path(__file__).parents[1]
SIZES, EPSILONS = (1000, 10_000), (0.2, 1.0)
COPIES = 20


def codes(*columns: Any) -> Any:
    """Columns of whole numbers from 0 on."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in columns], axis=1)


def fifths(column: Any, parts: int) -> Any:
    return np.digitize(column, np.quantile(column, np.arange(1, parts) / parts))


def of_fair() -> Any:
    d = fair.load_pandas().data
    jobs = [np.minimum(d[name], 5) for name in ("occupation", "occupation_husb")]
    return codes(d.affairs > 0, d.rate_marriage, d.religious, d.yrs_married, *jobs)


def of_anes() -> Any:
    d = anes96.load_pandas().data
    return codes(d.vote, d.PID, d.selfLR, d.educ, np.digitize(d.income, [8, 12, 15, 18, 21]))


def of_randhie() -> Any:
    d = randhie.load_pandas().data
    health = d.hlthg + 2 * d.hlthf + 3 * d.hlthp
    ends = {"mdvis": [1, 3, 6, 12], "lncoins": [0.1, 3.5, 4.4], "disea": [5, 8, 12, 18]}
    visits, shared, diseases = (np.digitize(d[name], of) for name, of in ends.items())
    return codes(visits, shared, d.idp, diseases, d.physlm > 0, health)


def of_penguins() -> Any:
    import palmerpenguins

    d = palmerpenguins.load_penguins().dropna()
    sizes = [fifths(d[name], 5) for name in ("bill_length_mm", "body_mass_g")]
    return codes(d.species, d.island, d.sex, *sizes)


def of_tumours() -> Any:
    d = load_breast_cancer()
    sizes = [fifths(d.data[:, at], k) for at, k in ((0, 6), (1, 5), (4, 5), (5, 6), (8, 4))]
    return codes(*sizes, d.target)


DATA = {
    "fair": of_fair,
    "anes96": of_anes,
    "randhie": of_randhie,
    "penguins": of_penguins,
    "tumours": of_tumours,
}


def tree(variables: int, rng: Any) -> list[tuple[int, int]]:
    """A random tree of pairs, and one more pair half of the time."""
    order = rng.permutation(variables)
    found = [
        tuple(sorted((int(order[at]), int(order[rng.integers(at)])))) for at in range(1, variables)
    ]
    if rng.random() < 0.5:
        others = [of for of in itertools.combinations(range(variables), 2) if of not in found]
        found.append(others[rng.integers(len(others))])
    return found


def most_even(levels: Any, scopes: Any, drawn: Any, size: int) -> Any:
    """The joint table of maximum entropy, whose tables are nearest to what was drawn: what
    private-pgm estimates.
    """
    axes = [tuple(v for v in range(len(levels)) if v not in scope) for scope in scopes]
    shapes = [[levels[v] if v in scope else 1 for v in range(len(levels))] for scope in scopes]
    ends = np.cumsum([of.size for of in drawn])

    def joint(potentials: Any) -> Any:
        parts = np.split(potentials, ends[:-1])
        logs = sum(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        return softmax(logs)

    def loss(potentials: Any) -> tuple[float, Any]:
        p, total, slope = joint(potentials), 0.0, 0.0
        for axis, shape, of in zip(axes, shapes, drawn, strict=True):
            gap = p.sum(axis=axis).reshape(-1) - of / size
            total, slope = total + 500 * gap @ gap, slope + 1000 * gap.reshape(shape)
        slope = p * (slope - (p * slope).sum())
        return total, np.concatenate([slope.sum(axis=axis).reshape(-1) for axis in axes])

    options = {"maxiter": 1500, "maxfun": 3000}
    return joint(minimize(loss, np.zeros(ends[-1]), jac=True, method="L-BFGS-B", options=options).x)


def estimates(table: Any) -> Any:
    """The slope of the first variable's levels on the second's, and the logarithm of the odds ratio
    of both cut at their middle, with variances, from counts or shares of a table.
    """
    size, p = table.sum(), table / table.sum()
    a, b = (np.arange(k) for k in p.shape)
    of_a, of_b = p.sum(axis=1), p.sum(axis=0)
    gap_a, gap_b = a - of_a @ a, b - of_b @ b
    variance = of_b @ gap_b**2
    slope = gap_a @ p @ gap_b / variance
    rest = max(of_a @ gap_a**2 - slope**2 * variance, 0) / variance / size
    low_a, low_b = (of.cumsum() <= max(of[0], 0.5) for of in (of_a, of_b))
    cut = np.array([[table[np.ix_(x, y)].sum() for y in (low_b, ~low_b)] for x in (low_a, ~low_a)])
    cut = cut + 0.5
    odds = np.log(cut[0, 0] * cut[1, 1] / cut[0, 1] / cut[1, 0])
    return (slope, odds), (rest, (1 / cut).sum())


def holds(lower: Any, upper: Any, truth: Any, size: int) -> Any:
    """A share of 0 is held below half a record."""
    return ((lower <= truth) & (truth <= upper)) | ((truth == 0) & (lower * size < 0.5))


def run(name: str, size: int, epsilon: float, seed: int) -> dict[Any, Any]:
    """For each way and kind of table, coverage, width and squared error of every cell."""
    whole, rng = DATA[name](), np.random.default_rng([seed, size, round(10 * epsilon)])
    levels = [int(k) for k in whole.max(axis=0) + 1]
    data, scopes = whole[rng.integers(len(whole), size=size)], tree(len(levels), rng)
    scale = 2**0.5 * 2 * len(scopes) / epsilon
    mechanism, loss = ob.GaussianParameters(scale), ob.PrivacyLoss(math.inf, 1.0, math.inf)
    guarantee = ob.PrivacyGuarantee(size, 1, loss, "ZeroConcentratedDivergence")
    drawn, releases = [], {}
    for scope in scopes:
        cells = list(itertools.product(*(range(levels[v]) for v in scope)))
        of = counted(data, levels, scope) + np.rint(rng.normal(0, scale, len(cells))).astype(int)
        drawn.append(of)
        axes = tuple(f"v{v}" for v in scope)
        ones = (1.0,) * len(cells)
        releases[str(scope)] = ob.Release(
            tuple(of.tolist()), tuple(cells), ones, mechanism, guarantee, axes
        )
    found: dict[Any, Any] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that have not met
        start = process_time()
        posterior = survey_posterior(releases)
        found["chains"].append(process_time() - start)
    plain = copy(posterior)
    plain._interactions = False
    found["R-hat"].append(max(posterior.r_hat.values()))
    start = process_time()
    posterior.unmeasured()
    found["interactions"].append(process_time() - start)
    points = most_even(levels, scopes, drawn, size)
    ways = (("E", posterior), ("0", plain))
    synthetic = {way: of.synthetic(COPIES, random_state=1) for way, of in ways}
    every = range(len(levels))
    for scope in (*((v,) for v in every), *itertools.combinations(every, 2)):
        kind = "margin" if len(scope) == 1 else "measured" if scope in scopes else "unmeasured"
        truth, names = counted(whole, levels, scope) / len(whole), [f"v{v}" for v in scope]
        error = points.sum(axis=tuple(v for v in every if v not in scope)).reshape(-1) - truth
        found[kind, "points"].append(np.mean((size * error) ** 2))
        for way, of in (("E", posterior), ("0", plain)):
            table = of.marginal(*names)
            lower, upper = table.interval()
            held = holds(lower, upper, truth, size)
            found[kind, way, "held"].append(held.mean())
            found[kind, way, "width"].append((upper - lower).mean() * size)
            found[kind, way, "error"].append(np.mean((size * (table.mean() - truth)) ** 2))
            found[kind, way, "rare"] += held[truth * size < 2].tolist()
            if kind == "unmeasured":
                shape = [levels[v] for v in scope]
                true = np.array(estimates(truth.reshape(shape) * len(whole))[0])
                counts = [
                    counted(frame.select(names).to_numpy(), shape, (0, 1))
                    for frame in synthetic[way]
                ]
                found_in = (estimates(x.reshape(shape)) for x in counts)
                each, own = map(np.array, zip(*found_in, strict=True))
                low, high = ob.combine_estimates(each, own, kind="population").interval()
                found["slopes", way].append(bool(low[0] <= true[0] <= high[0]))
                found["odds", way].append(bool(low[1] <= true[1] <= high[1]))
    return dict(found)


def row(runs: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
    """All runs of a setting together: means, and of errors the root mean square."""
    joined: dict[Any, list[Any]] = defaultdict(list)
    for one in runs:
        for key, values in one.items():
            joined[key] += values
    return {
        key: np.mean(values) ** (0.5 if key[-1] in ("error", "points") else 1)
        for key, values in joined.items()
        if values
    }


def text(runs: dict[tuple[str, int, float], list[dict[Any, Any]]]) -> str:
    """The section, of the runs of each setting."""
    found = {setting: row(of) for setting, of in runs.items()}
    found["all", "", ""] = row(one for of in runs.values() for one in of)
    seeds = max(map(len, runs.values()))

    def pick(one: dict[Any, Any], places: int, *keys: Any) -> list[str]:
        return [f"{one[key]:.{places}f}" if key in one else "" for key in keys]

    pairs, wide = [], [""] * 5
    for setting, of in found.items():
        held = [("unmeasured", way, what) for what in ("held", "rare") for way in "0E"]
        copies = [(what, way) for what in ("slopes", "odds") for way in "0E"]
        pairs.append([*setting, *pick(of, 3, *held[:2]), *pick(of, 2, *held[2:], *copies)])
        widths = [("unmeasured", way, what) for what in ("width", "error") for way in "0E"]
        wide = pick(of, 0, *widths, ("unmeasured", "points"))  # at last of all settings
    measured = [
        [
            name,
            *pick(of, 3, (kind, "E", "held")),
            f"{min(one[kind, 'E', 'held'] for one in found.values()):.3f}",
            *pick(of, 0, (kind, "E", "width")),
            *pick(of, 1, (kind, "E", "error"), (kind, "points")),
        ]
        for name, kind in (
            ("margins of one variable", "margin"),
            ("cells of measured pairs", "measured"),
        )
    ]
    setting = ["data", "records", "ε"]
    seconds = [of["chains"] + of.get("interactions", 0) for of in found.values()]
    least, most, r_hat = min(seconds), max(seconds), max(of["R-hat"] for of in found.values())
    return (
        f"""
Pairs of variables that no table of a survey has, and the tables themselves, in up to {seeds} seeds
of each setting. Records are drawn from real data. The tables are a random tree of pairs and, half
of the time, one pair more, with Gaussian noise as wide as Laplace noise of scale 2 · tables/ε. The
shares are of 95 % intervals that hold a population's share; a share of 0 counts as held below half
a record. A setting took {least:.0f} to {most:.0f} s of the processor, with an R-hat of at most
{r_hat:.2f}.

"Without" takes variables for independent given those between them, and "with" draws a random
interaction of every pair that no table has. Rare cells expect fewer than two records. Slopes and
logarithms of odds ratios are of {COPIES} synthetic copies. The law of the strength of interactions
was taken from four data sets, fair and anes96 among them, and not from randhie. Penguins have
combinations that cannot occur. Written by `python benchmarks/coverage_of_surveys.py`.

{
            markdown(
                [
                    *setting,
                    "held: without",
                    "with",
                    "rare: without",
                    "with",
                    "slopes: without",
                    "with",
                    "odds: without",
                    "with",
                ],
                pairs,
            )
        }
In all settings these intervals are {wide[0]} records wide without and {wide[1]} with, and root mean
square errors of means are {wide[2]} and {wide[3]}; those of the table of maximum entropy by least
squares ("points"), which private-pgm estimates, are {wide[4]}.

{
            markdown(
                ["the tables themselves", "held", "least of a setting", "width", "error", "points"],
                measured,
            )
        }""".rstrip()
        + "\n"
    )


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    runs: dict[tuple[str, int, float], list[dict[Any, Any]]] = defaultdict(list)
    settings = list(itertools.product(DATA, SIZES, EPSILONS))
    for seed, setting in track(list(itertools.product(range(seeds), settings)), "simulating"):
        name, size, epsilon = setting
        runs[setting].append(run(name, size, epsilon, seed))
    section(ROOT / "docs" / "research" / "coverage.md", "## Surveys\n", text(runs))


if __name__ == "__main__":
    main()
