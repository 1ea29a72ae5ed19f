"""What commands print and write is what was recorded, for random files and options of all."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import xlsxwriter
from typer.testing import CliRunner

from opendp_bayes_office.commands.app import app
from tests.helpers.recorded import Answers, Rng, differences, one, seed_noise

_NUMBER = 66


def is_odd(rng: Rng) -> bool:
    return bool(rng.random() < 0.04)


def records(rng: Rng) -> list[list[str]]:
    """Votes with blanks around them and codes for nothing, regions, ages, and 30 people."""
    found = []
    for n in range(90):
        vote = ["yes", "no", "NA", "", "-1", "Yes", " no", "may be"][n * n % 8]
        found.append([vote, ["north", "south", "east"][n % 3], str(n * 7 % 5), f"p{n // 3}"])
    return found if rng.random() < 0.5 else found[:60]


HEADER = ["vote", "region", "age", "person"]


def written(rng: Rng, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A file with the records, and how it is read."""
    rows, how = records(rng), {}
    kind = one(rng, ["csv", "csv", "csv", "tsv", "csv.gz", "parquet", "xlsx"])
    path = folder / f"data.{kind}"
    if kind == "parquet":
        frame = pl.DataFrame(rows, schema=HEADER, orient="row")
        votes = pl.col("vote").replace("", None)
        frame.with_columns(votes, pl.col("age").cast(pl.Int64)).write_parquet(path)
        return path, how
    above = int(one(rng, [0, 0, 0, 2]))
    skipped = int(one(rng, [0, 0, 1]))
    how |= ({"rows_above": above} if above else {}) | ({"skip_rows": skipped} if skipped else {})
    lines = [["from", "an", "office", "1"]] * above + [HEADER] + [["?"] * 4] * skipped + rows
    if kind == "xlsx":
        with xlsxwriter.Workbook(path) as book:
            sheets = ["first", "second"][: int(one(rng, [1, 2]))]
            for name in sheets:
                sheet = book.add_worksheet(name)
                for place, line in enumerate(lines):
                    sheet.write_row(place, 0, line)
        return path, how | ({"sheet": "second"} if len(sheets) > 1 and not is_odd(rng) else {})
    separator = "\t" if kind == "tsv" else one(rng, [",", ",", ";", "|"])
    if separator not in (",", "\t") or is_odd(rng):
        how["separator"] = separator
    text = "".join(separator.join(line) + "\n" for line in lines)
    if rng.random() < 0.2:
        text, how = text.replace("may be", "peut-être"), how | {"encoding": "latin-1"}
    raw = text.encode(how.get("encoding", "utf-8"))
    path.write_bytes(gzip.compress(raw, mtime=0) if kind == "csv.gz" else raw)
    return path, how


def options_of(how: dict[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in how.items()]


def budget(rng: Rng) -> dict[str, float]:
    if is_odd(rng):
        return one(rng, [{}, {"epsilon": 1.0, "rho": 1.0}, {"epsilon": -1.0}])
    return one(rng, [{"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-5}, {"rho": 0.5}])


def release(rng: Rng, path: Path, how: dict[str, Any]) -> list[str]:
    found = [str(path), *options_of(how), *options_of(budget(rng))]
    if rng.random() < 0.2:
        found += ["--discover=vote", *one(rng, [[], ["--rest=0.2"], ["--always=yes,no"]])]
        return [*found, *([] if "--delta" in str(found) else ["--delta=1e-5"])]
    found += ["--column=vote"]
    labels = one(rng, ["yes,no", "no,yes,may be", "yes,no,NA"])
    joint = rng.random() < 0.25
    found += [f"--categories={'vote=' if joint else ''}{labels}"]
    found += ["--column=region", "--categories=region=north,south,east"] if joint else []
    found += ["--by=age=0,1,2,3"] if rng.random() < 0.25 else []
    for name in ("nulls", "unknown"):
        if rng.random() < 0.5:
            label = one(rng, ["yes", "new one", *(["DROP"] if name == "unknown" else [])])
            found += [f"--{name}={'vote=' if joint else ''}{label}"]
    if rng.random() < 0.3:
        found += [f"--prior={one(rng, ['2', 'learned', '1,2', 'auto'])}"]
    if rng.random() < 0.15:
        found += ["--size=90"]
    if rng.random() < 0.2:
        found += ["--identifier=person", "--rows-per-identifier=3", "--contributions=2"]
    if rng.random() < 0.2:
        found += [f"--mechanism={one(rng, ['laplace_parameters', 'gaussian_parameters', 'x'])}"]
    return found


def specification(rng: Rng, how: dict[str, Any]) -> dict[str, Any]:
    """What a report asks for."""
    vote: dict[str, Any] = {"categories": ["yes", "no"]}
    if rng.random() < 0.5:
        vote["recode"] = {"2": "maybe"} if is_odd(rng) else {"Yes": "yes", "may be": "no"}
    if rng.random() < 0.5:
        vote["null_values"] = [one(rng, ["-1", "NA", -1])]
    vote["nulls"], vote["unknown"] = one(rng, ["no", "none", "DROP"]), one(rng, ["yes", "DROP"])
    columns: dict[str, Any] = {"vote": vote, "region": {"categories": ["south", "north", "east"]}}
    columns["age"] = {"categories": ["0", "1", "2", "3", "4"], "unknown": "4", "nulls": "0"}
    results: list[dict[str, Any]] = [{"column": "vote"}]
    results += [{"column": "age", "title": "Ages", "ordered": ["age"], "prior": "learned"}]
    results += [{"column": ["vote", "region"], "share": 2.0}, {"column": "vote", "by": "region"}]
    results += [{"column": "age", "merge": {"young": ["0", "1"], "old": ["2", "3", "4"]}}]
    wanted = sorted(rng.permutation(len(results))[: int(rng.integers(1, 4))].tolist())
    found = how | {"privacy": budget(rng), "columns": columns}
    found["results"] = [results[place] for place in wanted]
    found |= {"trim": True} if rng.random() < 0.5 else {}
    found |= {"null_values": ["NA"]} if rng.random() < 0.3 else {}
    found |= {"language": one(rng, ["de", "fr", "es"])} if rng.random() < 0.3 else {}
    if rng.random() < 0.2:
        found["privacy"] |= {"identifier": "person", "rows_per_identifier": 3}
    found |= {"title": "A title"} if not is_odd(rng) else {}
    found |= {"text": "A text.", "percent": False} if rng.random() < 0.3 else {}
    return found


def asked(seed: int, folder: Path) -> Answers:
    """A command that releases, and commands on what it wrote."""
    rng = np.random.default_rng(seed)
    path, how = written(rng, folder)
    owner = ["--owner=owner.toml"] if seed % 3 == 2 and rng.random() < 0.6 else []
    budgeted = ["--ledger=book", "--dataset=d"] if rng.random() < (0.05 if owner else 0.4) else []

    def command(*arguments: object) -> Callable[[], Any]:
        return lambda: printed(list(map(str, arguments)))

    if budgeted:
        total = one(rng, ["--epsilon=5", "--rho=5", "--epsilon=0.1"])
        yield "total", command("ledger", "book", "--dataset=d", total, "--delta=0.1")
    dry = rng.random() < 0.2
    to = ["--dry-run"] if dry else ["-o", "made.json"]
    if seed % 3 == 0:
        yield "release", command("release", *release(rng, path, how), *budgeted, *to)
    elif seed % 3 == 1:
        Path("spec.json").write_text(json.dumps(specification(rng, how)))
        to = ["--dry-run"] if dry else ["-o", "made.html"]
        to += ["--synthetic=copies", "--copies=1"] if not dry and rng.random() < 0.2 else []
        yield "report", command("report", "spec.json", path, *budgeted, *to)
    else:
        labels = ["--categories=vote=yes,no", "--categories=region=north,south,east", "--header"]
        columns = ["--column=vote"] if rng.random() < 0.3 else []
        of_file = [path, *options_of({k: v for k, v in how.items() if k != "skip_rows"})]
        yield "init", command("init", *of_file, *labels, *columns, *owner, "-o", "spec.toml")
        data = ["owner.toml"] if owner else [path]
        yield "run", command("run", "spec.toml", *data, *budgeted, *to)
    made = Path("made.json")
    if made.exists():
        level = [f"--level={one(rng, [0.5, 0.9])}", *one(rng, [[], ["--no-percent"]])]
        yield "show", command("show", made, *level)
        yield "table", command("show", made, "-o", "table.csv")
        yield "page", command("report", made, "-o", "again.html")
    if budgeted:
        yield "ledger", command("ledger", "book")
    for file in sorted(Path().glob("**/*")):
        if file.suffix in (".json", ".html", ".toml") or file.name == "table.csv":
            yield file.as_posix(), lambda file=file: cleaned(file.read_text())


def cleaned(text: str) -> str:
    """Without dates, times and versions."""
    text = re.sub(r"\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?Z?", "date", text)
    return re.sub(r"\d+\.\d+\.\d+\S*", "version", text) + "\n"


def printed(arguments: list[str]) -> Any:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    return [result.exit_code, cleaned(result.stdout), cleaned(result.stderr)]


@pytest.fixture(autouse=True)
def _seeded(
    chains_anew: None, coarse_errors: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(_NUMBER))
def test_what_commands_say_is_what_was_recorded(seed: int, pytestconfig: pytest.Config) -> None:
    path = Path(__file__).parent / "commands.json"
    assert not differences(path, str(seed), asked(seed, Path()), pytestconfig)
