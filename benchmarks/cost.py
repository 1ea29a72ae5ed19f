"""Measure what the package costs beside OpenDP alone and beside other libraries, and write that
section of RESULTS.md. `pip install python-dp pipeline-dp mbi` for Google's library, PipelineDP and
private-pgm; what is not installed has no row. `COST_PYTHON` names a Python that has them, where
they do not go together with the packages here.

Every row is a process of its own, so that imports count; the figures are processor seconds, the
least of two runs, in turns.
"""

import os
import subprocess
import sys
from pathlib import Path

from reporting import markdown, section, wrapped

ROOT = Path(__file__).parents[1]
REPEATS = 2
OTHERS = os.environ.get("COST_PYTHON", sys.executable)

DATA = """
import numpy as np
codes = np.random.default_rng(0).choice(10, {records}, p=np.arange(1, 11) / 55)
labels = [f"c{{i}}" for i in range(10)]
"""
FRAME = (
    DATA
    + """
import polars as pl
frame = pl.LazyFrame({{"code": pl.Series(np.array(labels)[codes], dtype=pl.Enum(labels))}})
"""
)
OPENDP = (
    FRAME
    + """
import opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
context = dp.Context.compositor(
    data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1)
"""
)
OURS = OPENDP.replace(
    "import opendp.prelude as dp", "import opendp.prelude as dp, opendp_bayes as ob"
)
RELEASE = OURS + 'release = ob.posterior(context.query(), "code", nulls=ob.DROP).release()\n'

COUNTS = {
    "polars, without privacy": FRAME + 'frame.group_by("code").len().collect()\n',
    "OpenDP alone": OPENDP
    + """
keys = pl.LazyFrame({{"code": pl.Series(labels, dtype=pl.Enum(labels))}})
context.query().group_by("code").agg(dp.len()).with_keys(keys).release().collect()
""",
    "opendp-bayes, released counts": RELEASE,
    "opendp-bayes, posterior and intervals": RELEASE
    + "release.posterior.mean(), release.posterior.interval(0.95)\n",
    "Google's library (PyDP)": DATA
    + """
from pydp.algorithms.laplacian import Count
for code in range(10):
    Count(epsilon=1.0, dtype="int").quick_result(codes[codes == code].tolist())
""",
    "PipelineDP, in this process": DATA
    + """
import pipeline_dp
accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-9)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
columns = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1],
    value_extractor=lambda row: 1)
wanted = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT], max_partitions_contributed=1,
    max_contributions_per_partition=1, noise_kind=pipeline_dp.NoiseKind.LAPLACE)
rows, public = list(enumerate(codes.tolist())), list(range(10))
result = engine.aggregate(rows, wanted, columns, public_partitions=public)
accountant.compute_budgets()
list(result)
""",
}
NEEDS = {"Google's library (PyDP)": "pydp", "PipelineDP, in this process": "pipeline_dp"}

TABLES = """
import itertools, json, math, sys
import numpy as np
rng = np.random.default_rng(0)
levels, size = (6, 6, 6, 6, 6), 5000
data = rng.choice(6, (size, 5), p=rng.dirichlet(np.full(6, 3.0)))
for v in range(1, 5):
    data[:, v] = np.where(rng.random(size) < .5, data[:, v - 1], data[:, v])
scopes = [(v, v + 1) for v in range(4)]
noise = np.rint(rng.normal(0, 10, (4, 36))).astype(int)
drawn = [np.bincount(data[:, a] * 6 + data[:, b], minlength=36) + of
         for (a, b), of in zip(scopes, noise)]
"""
JOINT = {
    "opendp-bayes, posterior of all tables": TABLES
    + """
import warnings
import opendp_bayes as ob
loss = ob.PrivacyLoss(math.inf, 1.0, math.inf)
promise = ob.PrivacyGuarantee(size, 1, loss, "ZeroConcentratedDivergence")
cells = tuple(itertools.product(range(6), range(6)))
law, ones = ob.GaussianParameters(10.0), (1.0,) * 36
releases = {{
    f"{{a}}": ob.Release(tuple(y.tolist()), cells, ones, law, promise, (f"v{{a}}", f"v{{b}}"))
    for (a, b), y in zip(scopes, drawn)}}
posterior = ob.combine_tables(releases)
posterior.marginal("v0", "v1").interval(), posterior.marginal("v0", "v4").interval()
""",
    "private-pgm (mbi), points alone": TABLES
    + """
import mbi
domain = mbi.Domain([f"v{{v}}" for v in range(5)], levels)
measured = [mbi.LinearMeasurement(y.astype(float), tuple(f"v{{v}}" for v in scope), 10.0)
            for scope, y in zip(scopes, drawn)]
model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=size, iters=2000)
model.project(("v0", "v1")).datavector(), model.project(("v0", "v4")).datavector()
""",
}
NEEDS["private-pgm (mbi), points alone"] = "mbi"

START = {
    "python -c pass": "pass",
    "import opendp_bayes": "import opendp_bayes",
    "import opendp.prelude": "import opendp.prelude",
    "import opendp.prelude, scipy.stats": "import opendp.prelude, scipy.stats",
    "from a frame of 1000 rows to the first posterior with intervals": COUNTS[
        "opendp-bayes, posterior and intervals"
    ],
}


def seconds(python: str, code: str) -> float:
    """Processor seconds of a process that runs the code."""
    before = os.times()
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each run compiles every package anew
    subprocess.run([python, "-c", code], check=True, capture_output=True, env=environment)  # noqa: S603
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def has(python: str, module: str) -> bool:
    return not subprocess.run(  # noqa: S603
        [python, "-c", f"import {module}"], capture_output=True, check=False
    ).returncode


def measured(codes: dict[str, str], **numbers: int) -> list[tuple[str, float]]:
    """The least of several runs of each that can be run, in turns."""
    runs = {}
    for name, code in codes.items():
        python = OTHERS if name in NEEDS else sys.executable
        if name not in NEEDS or has(python, NEEDS[name]):
            runs[name] = python, code.format(**numbers)
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(REPEATS):
        for name, (python, code) in runs.items():
            found[name].append(seconds(python, code))
    return [(name, min(of)) for name, of in found.items()]


def rows(found: list[tuple[str, float]], reference: str) -> str:
    base = dict(found)[reference]
    lines = [(name, f"{took:.2f}", f"{took / base:.2f}") for name, took in found]
    return markdown(("", "s", "ratio"), lines) + "\n"


def main() -> None:
    page = ROOT / "benchmarks" / "RESULTS.md"
    text = "\n" + wrapped(
        "Processor seconds of whole processes, imports included, in one run on one machine; each is"
        f" the least of {REPEATS}. Ratios are to the row that each section names. Written by"
        " `python benchmarks/cost.py`; what was not installed there has no row."
    )
    text += "\n\n### Start\n\nRatios to the import of OpenDP.\n\n" + rows(
        measured(START, records=1000), "import opendp.prelude"
    )
    for records in (1000, 100_000):
        text += f"### Counts of ten categories among {records:,} records\n\n"
        text += wrapped(
            "Ratios to OpenDP alone, whose noisy counts have no posterior. All at ε = 1."
        )
        text += "\n\n" + rows(measured(COUNTS, records=records), "OpenDP alone")
    text += "### One estimate from four overlapping tables\n\n"
    text += wrapped(
        "Five variables of six levels, 5000 records, four tables of neighbours with Gaussian noise"
        " of scale 10. The posterior gives intervals, of an unmeasured pair too; private-pgm gives"
        " points, by 2000 steps of mirror descent, its compilation included."
    )
    found = measured(JOINT)
    text += "\n\n" + rows(found, found[0][0])
    section(page, "## Beside OpenDP and other libraries\n", text.rstrip() + "\n")


if __name__ == "__main__":
    main()
