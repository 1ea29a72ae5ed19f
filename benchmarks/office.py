"""Time a day at the office: a survey of 8 questions, a joint table and 20 groups, from a CSV and
from a Parquet file, by the command line alone.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from reporting import table

ROWS = 200_000
ANSWERS = ["fully disagree", "disagree", "neither", "agree", "fully agree"]
QUESTIONS = {
    "vote": ["Union", "Greens", "Labour", "Liberals", "none of these"],
    "trust": ANSWERS,
    "health": ["very good", "good", "fair", "bad", "very bad"],
    "work": ["full time", "part time", "seeking", "retired", "in education", "other"],
    "education": ["primary", "secondary", "vocational", "university"],
    "housing": ["owner", "tenant", "other"],
    "age": ["18-29", "30-44", "45-59", "60-74", "75+"],
    "sex": ["female", "male", "diverse"],
}
COLUMNS = {**QUESTIONS, "county": [f"County {number:02}" for number in range(1, 21)]}
#: In place of the last result that `init` writes, the counties.
RESULTS = """
[[results]]
column = ["age", "vote"]

[[results]]
column = "vote"
by = "county"
share = 2
"""


def make_data(folder: Path) -> None:
    """Write the survey, of which one value in a hundred is missing, as CSV and as Parquet."""
    rng = np.random.default_rng(0)
    columns = {}
    for name, labels in COLUMNS.items():
        drawn = rng.choice(len(labels), ROWS, p=rng.dirichlet(np.full(len(labels), 3.0)))
        values = np.array(labels, dtype=object)[drawn]
        values[rng.random(ROWS) < 0.01] = None
        columns[name] = pl.Series(values, dtype=pl.Enum(labels))
    frame = pl.DataFrame(columns)
    frame.write_csv(folder / "survey.csv")
    frame.write_parquet(folder / "survey.parquet")


def seconds(folder: Path, *command: str) -> float:
    """Seconds of the processor that a command takes."""
    start = os.times()
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "opendp_bayes_office", *command],
        check=True,
        cwd=folder,
        capture_output=True,
    )
    end = os.times()
    spent = end.children_user + end.children_system
    return spent - start.children_user - start.children_system


def day(folder: Path, data: str) -> list[tuple[str, float]]:
    """The steps of a day with a file, each with its time."""
    kind = Path(data).suffix[1:]
    every, vote = [], []  # categories, of which Parquet has its own
    if kind == "csv":
        labels = {name: ",".join(labels) for name, labels in COLUMNS.items()}
        every = [f"--categories={name}={text}" for name, text in labels.items()]
        vote = [f"--categories={labels['vote']}"]
    spec, tables, made, book = f"{kind}.toml", f"{kind}-tables.toml", f"{kind}.json", f"{kind}.b"
    steps = [
        ("init", seconds(folder, "init", data, *every, "-o", spec)),
        ("ledger", seconds(folder, "ledger", book, "--epsilon", "100")),
    ]
    written = (folder / spec).read_text()
    asked = written[: written.rindex("\n[[results]]")] + RESULTS
    (folder / spec).write_text(asked)
    (folder / tables).write_text(tables_alone(asked))
    for name, *command in (
        ("report --dry-run", "report", spec, data, "--dry-run"),
        ("report --ledger", "report", spec, data, "--ledger", book, "-o", f"{kind}.html"),
        ("run --ledger", "run", spec, data, "--ledger", book, "-o", f"{kind}-run.json"),
        (
            "release --ledger, one column",
            *("release", data, "--column", "vote", *vote, "--epsilon", "1", "--ledger", book),
        ),
        ("report again, without data", "report", made, "-o", f"{kind}-again.html"),
        ("show", "show", made),
        ("show -o -", "show", made, "-o", "-"),
        ("show -o .xlsx", "show", made, "-o", f"{kind}.xlsx"),
        ("show --plot", "show", made, "--plot", f"{kind}.png"),
        (
            "report --synthetic, 5 copies",
            *("report", tables, data, "--copies", "5", "-o", f"{kind}-tables.html"),
            *("--synthetic", f"{kind}s"),
        ),
    ):
        steps.append((name, seconds(folder, *command)))
    return steps


def tables_alone(specification: str) -> str:
    """The specification without groups, every record of which is counted in every table."""
    specification = specification[: specification.rindex("\n[[results]]")]
    return specification.replace('# nulls = "missing"', 'nulls = "missing"')


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder)
        parts = [day(folder, f"survey.{kind}") for kind in ("csv", "parquet")]
    rows = [(f"`{step}`", csv, parquet) for (step, csv), (_, parquet) in zip(*parts, strict=True)]
    rows.append(("all", *(sum(time for _, time in part) for part in parts)))
    table(
        "A day at the office",
        ["step", "CSV", "Parquet"],
        rows,
        "Seconds of the processor, each step run once as a new process, on a machine that was busy"
        f" with other work. A survey of {ROWS:,} records with 8 questions, a joint table of two of"
        " them and one question by 20 groups. Each step from `report --ledger` on computes all"
        " posteriors anew, but `release`; that of the joint table has a learned prior. The last"
        " step releases its nine tables anew.",
    )


if __name__ == "__main__":
    main()
