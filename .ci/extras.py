"""What the pages say of an extra, by what is installed, and nothing of the repository: the name of
an extra and an archive of files. Without them, print the extras that this Python can have.
"""
# ruff: noqa: S101, S603, T201

import gzip
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")
os.environ["MPLBACKEND"] = "agg"


def counts(data: object, column: str, categories: list[object]) -> tuple[int, ...]:
    """The counts of the labels, of nulls and of others, with hardly any noise."""
    context = ob.context(
        data,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1e5),
        split_evenly_over=1,
    )
    asked = {"categories": categories, "nulls": "none", "unknown": "rest"}
    return ob.posterior(context.query(), column, **asked).release().counts


def command(*given: object) -> str:
    """What the command prints."""
    arguments = [sys.executable, "-m", "opendp_bayes_office", *map(str, given)]
    return subprocess.check_output(arguments, text=True)


def release() -> ob.Release:
    context = ob.context(
        pl.LazyFrame({"vote": ["yes"] * 620 + ["no"] * 310 + [None] * 70}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    question = {"categories": ["yes", "no"], "nulls": "missing", "unknown": "missing"}
    return ob.posterior(context.query(), "vote", **question).release()


def csv() -> Path:
    Path("votes.csv").write_text("vote\nyes\nno\nyes\n")
    return Path("votes.csv")


def core() -> None:
    votes = pl.DataFrame({"vote": ["yes", "no", "yes"]})
    votes.write_parquet("votes.parquet")
    votes.write_ipc("votes.arrow")
    Path("folder").mkdir()
    votes.write_parquet("folder/a.parquet")
    for file in ("votes.parquet", "votes.arrow", "folder"):
        assert counts(file, "vote", ["yes", "no"]) == (2, 1, 0, 0), file
    try:
        counts(csv(), "vote", ["yes", "no"])
    except ValueError as error:
        said = str(error)
    assert "pip install opendp-bayes-office" in said
    assert release().posterior.to_frame().height == 3
    for package in (
        "typer",
        "rich",
        "jinja2",
        "fastexcel",
        "pyreadstat",
        "xlsxwriter",
        "dp_accounting",
    ):
        assert find_spec(package) is None, package


def counts_in(
    path: object, column: str, categories: list[object], **how: object
) -> tuple[int, ...]:
    """The same of a file of an office."""
    from opendp_bayes_office import read

    return counts(read(path, **how), column, categories)


def office() -> None:
    assert counts_in(csv(), "vote", ["yes", "no"]) == (2, 1, 0, 0)
    Path("votes.csv.gz").write_bytes(gzip.compress(csv().read_bytes()))
    assert counts_in("votes.csv.gz", "vote", ["yes", "no"]) == (2, 1, 0, 0)
    statistical()
    command_line()


def statistical() -> None:
    """Files of SPSS, Stata and SAS, and workbooks."""
    for extension in ("sav", "zsav", "dta", "sas7bdat", "xpt"):
        label, text = ("MYLABL", "MYCHAR") if extension == "xpt" else ("mylabl", "mychar")
        path = f"sample.{extension}"
        assert counts_in(path, text, ["a", "b"]) == (1, 1, 0, 3), path
        # Stata alone states that its numbers are whole; of others the command reads texts.
        if extension == "dta":
            assert counts_in(path, label, [1, 2]) == (3, 2, 0, 0)
        if extension in ("sav", "zsav", "dta"):
            assert counts_in(path, label, ["Male", "Female"], labels=True) == (3, 2, 0, 0)
    catalogue = {"labels": "test_formats_win.sas7bcat"}
    found = counts_in("test_data_win.sas7bdat", "SEXA", ["Male", "Female"], **catalogue)
    assert found[:2] == (2, 1)
    assert counts_in("libreoffice_1900.xlsx", "what", ["whole"])[0] == 1
    assert "pandas" not in sys.modules


def command_line() -> None:
    question = ("--column", "vote", "--categories", "yes,no", "--epsilon", "1")
    assert "yes" in command("release", csv(), *question)
    made = command("init", csv(), "--categories", "vote=yes,no")
    Path("survey.toml").write_text(made)
    command("report", "survey.toml", csv(), "-o", "survey.html")
    assert "<html" in Path("survey.html").read_text("utf-8")
    Path("votes.json").write_text(release().to_json())
    command("show", "votes.json", "-o", "table.xlsx")
    assert zipfile.is_zipfile("table.xlsx")


def demo() -> None:
    assert "ε" in command("demo")


def plot() -> None:
    release().plot().figure.savefig("votes.png")
    assert Path("votes.png").stat().st_size > 1000


def frames() -> None:
    import pyarrow as pa

    assert counts(pa.table({"vote": ["yes", "no", "yes"]}), "vote", ["yes", "no"])[:2] == (2, 1)


def research() -> None:
    from opendp_bayes_research import audit, privacy_loss_distribution

    mechanism = ob.LaplaceParameters(scale=1.0, total="private")
    assert privacy_loss_distribution(mechanism, size=None, prior=[1.0, 1.0])
    assert audit(mechanism, size=None, prior=[1.0, 1.0], draws=1000).passed


if len(sys.argv) == 1:
    extras = metadata("opendp-bayes").get_all("Provides-Extra") or []
    print(*extras)
else:
    name, archive = sys.argv[1], zipfile.ZipFile(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        archive.extractall()
        globals()[name]()  # of an extra that nothing is said of there is none
        os.chdir("/")
    print(f"{name}: does what its page says")
