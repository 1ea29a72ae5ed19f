"""Command lines in which every two features of them meet, and of the files that they read: the
cases of the covering array of `command_factors`.
"""

import csv
import gzip
import io
import json
import re
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import jinja2
import openpyxl
import pandas as pd
import polars as pl
import pyreadstat
import pytest
import xlsxwriter
from typer.main import get_command
from typer.testing import CliRunner

from opendp_bayes_office.commands.app import app
from tests.helpers.covering_array import NOTHING, Case, cases_in
from tests.helpers.fingerprints import words
from tests.helpers.recorded import Answers
from tests.helpers.sources import ROOT
from tests.recorded.command_factors import ENDINGS, FACTORS, GROUPS, PUBLIC, TYPED

HEADER = ["vote", "region", "age", "person"]
#: Of each kind of column: categories, a value that is recoded, one that stands for none, and one
#: that is no category.
VALUES: dict[str, list[Any]] = {
    "text": ["yes", "no", "maybe", "sí", "NA", "?"],
    "whole": [1, 2, 3, 4, -9, 7],
    "decimal": [0.5, 1.5, 2.25, 3.5, -9.0, 7.125],
    "date": [*(date(2026, 1, day) for day in (1, 2, 3, 4)), date(1900, 1, 1), date(2025, 12, 31)],
    "Boolean": [True, False],
}
VALUES["Enum"] = VALUES["text"]
LABELS = {1: "one", 2: "two", 3: "three", 4: "four", -9: "refused"}
REGIONS = ["north", "south", "east"]
_TYPES: dict[str, Any] = {"text": pl.String, "whole": pl.Int64, "date": pl.Date}
_TYPES |= {"Boolean": pl.Boolean, "decimal": pl.Float64}
#: Which value a record has, each another number of times; after the last there is none.
_VOTES = [0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6]
_N = len(_VOTES)
_BUDGETS: dict[str, dict[str, float]] = {"epsilon": {"epsilon": 2.0}, "rho": {"rho": 0.5}}
_BUDGETS |= {f"{name}, delta": {**of, "delta": 1e-7} for name, of in _BUDGETS.items()}
_AROUND = "rows_above", "skip_rows"


# --- Files
def values_of(case: Case) -> list[Any]:
    """Those of the column, of which the third may need quotes."""
    values = list(VALUES[case["kind"]])
    return [*values[:2], 'may, "be"', *values[3:]] if case["values"] == "quotes" else values


def records(case: Case) -> list[list[Any]]:
    """Votes, regions, ages and 4 people."""
    values, regions, rows = values_of(case), [*REGIONS, "west", "NA", None], []
    for n in range(_N):
        vote = [*values, None][_VOTES[n * 5 % _N] % (len(values) + 1)]
        rows.append([vote, regions[n % 6], n * 3 % 4, f"p{n // 3}"])
    if case["values"] == "blanks":
        for row in rows[::3]:
            row[:2] = [f" {of} " if isinstance(of, str) else of for of in row[:2]]
    return rows


def _lines(case: Case) -> list[list[Any]]:
    """The rows of a sheet or a text, with those around the names."""
    has_blanks = case["file"] == "CSV" and case["values"] == "blanks" and case["trim"] == "yes"
    header = [f" {name}" for name in HEADER] if has_blanks else HEADER
    above, below = [["from", "an", "office", 1]], [["?"] * 4]
    return (
        above * int(case["rows_above"]) + [header] + below * int(case["skip_rows"]) + records(case)
    )


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _csv(case: Case, path: Path) -> None:
    lines, kind = io.StringIO(), case["lines"]
    end = {"CRLF": "\r\n", "CR": "\r"}.get(kind, "\n")
    usual = "\t" if ".tsv" in path.name else ","
    separator = {"usual": usual, "tab": "\t"}.get(case["separator"], case["separator"])
    writer = csv.writer(lines, delimiter=separator, lineterminator=end)
    for n, line in enumerate(_lines(case)):
        more = ["more", ""] if kind == "untidy" and n % 5 == 4 else []
        writer.writerow([*map(text_of, line), *more])
        lines.write(["", end, f"  {end}"][n % 3] if kind == "untidy" else "")
    encoding = {"mark": "utf-8-sig", "usual": "utf-8"}.get(case["encoding"], case["encoding"])
    raw = lines.getvalue().encode(encoding)
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _frames(case: Case, path: Path) -> None:
    kind: Any = _TYPES.get(case["kind"]) or pl.Enum(values_of(case))
    types = dict(zip(HEADER, (kind, pl.String, pl.Int64, pl.String), strict=True))
    rows = records(case)
    if case["kind"] == "Enum":  # which has no blanks
        rows = [[of if of is None else of.strip(), *more] for of, *more in rows]
    frame = pl.DataFrame(rows, types, orient="row")
    if case["file"] == "Arrow":
        frame.write_ipc(path)
    elif path.suffix:
        frame.write_parquet(path)
    else:
        path.mkdir()
        for part in range(2):
            frame[part::2].write_parquet(path / f"{part}.parquet")


def _sheets(case: Case, path: Path) -> None:
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        for name in ["second"] if case["sheet"] == "only" else ["first", "second"]:
            sheet, height = book.add_worksheet(name), 0
            for n, line in enumerate(_lines(case)):
                for place, value in enumerate(line[:1] if name == "first" else line):
                    sheet.write(height, place, value)
                if case["lines"] == "errors" and n % 5 == 4:
                    sheet.write_formula(height, n % 2, "=NA()", None, "#N/A")
                height += 2 if case["lines"] == "untidy" and n % 3 else 1


def _statistics(case: Case, path: Path) -> None:
    frame, more = pd.DataFrame(records(case), columns=HEADER), dict[str, Any]()
    if case["kind"] == "whole" and path.suffix != ".xpt":
        more["variable_value_labels"] = {"vote": LABELS}
        if path.suffix == ".dta":
            frame["vote"] = frame["vote"].astype("Int64")
    more |= {"compress": True} if path.suffix == ".zsav" else {}
    writers = {".dta": "write_dta", ".xpt": "write_xport"}
    getattr(pyreadstat, writers.get(path.suffix, "write_sav"))(frame, str(path), **more)


def written(case: Case) -> tuple[str, bytes]:
    """The argument that names the file, and what is on standard input."""
    if case["ending"] == "x":
        return "of/data.txt", b""
    ending = ENDINGS[case["file"]][int(case["ending"])]
    path = Path("of", "data.csv" if ending == "-" else f"data{ending}")
    writers = {"CSV": _csv, "a workbook": _sheets, **dict.fromkeys(TYPED, _frames)}
    writers.get(case["file"], _statistics)(case, path)
    return ("-", path.read_bytes()) if ending == "-" else (str(path), b"")


# --- Questions
def reading(case: Case) -> dict[str, Any]:
    """How the file is read."""
    usual = {"separator": ["usual"], "encoding": ["usual", "mark"]}
    found: dict[str, Any] = {
        name: case[name] for name, levels in usual.items() if case[name] not in (*levels, NOTHING)
    }
    if "encoding" in found and case["file"] != "CSV":
        found["encoding"] = "utf-8"
    found |= {name: int(case[name]) for name in _AROUND if case[name] not in ("0", NOTHING)}
    found |= (
        {}
        if case["sheet"] == "only"
        else {"sheet": {"another": "third"}.get(case["sheet"], "second")}
    )
    found |= {"yes": {"trim": True}, "value": {"trim": "perhaps"}}.get(case["trim"], {})
    found |= {"labels": True} if case["labels"] == "yes" else {}
    if case["null_values"] in ("file", "both"):
        found["null_values"] = ["NA", *_codes(case)]
    return found


def _codes(case: Case) -> list[Any]:
    codes = values_of(case)[4:5]
    return codes if case["kind"] == "whole" else [text_of(of) for of in codes]


def categories(case: Case) -> list[Any]:
    """Of the votes, as a specification has them."""
    values = values_of(case)
    base = (
        values[:3] if case["kind"] in ("whole", "Boolean") else [text_of(of) for of in values[:3]]
    )
    if case["categories"] == "of the file" and case["kind"] != "Boolean":
        base = [*(LABELS.values() if case["kind"] == "whole" else map(text_of, values))]
        if case["null_values"] not in ("none", NOTHING):
            base = [of for of in base if of not in ("refused", *_codes(case))]
    if case["categories"] == "by label":
        return list(LABELS.values())[:3]
    if case["labels"] == "yes" and case["categories"] != "of the file":
        base = [LABELS.get(of, of) for of in base]
    ways = {"reversed": base[::-1], "fewer": base[:-1]}
    return ways.get(case["categories"], base)


def columns(case: Case) -> dict[str, dict[str, Any]]:
    """What a specification says of them."""
    of, values = categories(case), values_of(case)
    vote: dict[str, Any] = {} if case["categories"] == "of the file" else {"categories": of}
    if case["asked"] == "discovered":
        vote["categories"] = "discover"
        vote |= {"always": [of[0], "none of them"]} if case["always"] == "some" else {}
    if case["names"] == "yes":
        vote["labels"] = [f"Name {n}" for n, _ in enumerate(of)]
    if case["null_values"] in ("column", "both"):
        vote["null_values"] = _codes(case)
    if case["recode"] not in ("none", NOTHING):
        value = values[3] if len(values) > 3 else False
        key = LABELS[4] if of[0] in LABELS.values() else text_of(value)
        vote["recode"] = {key: of[0] if case["recode"] == "a category" else "none"}
    vote |= _fates(case["nulls"], case["unknown"], of)
    region = {"categories": REGIONS, **_fates(case["others"], case["others"], REGIONS)}
    return {"vote": vote, "region": region, "age": {"categories": [0, 1, 2, 3], **_AGES}}


_AGES = {"nulls": 0, "unknown": 3}


def _fates(nulls: str, unknown: str, of: list[Any]) -> dict[str, Any]:
    """Where values are counted that are no category."""
    places = {"nulls": (nulls, of[0], "none"), "unknown": (unknown, of[-1], "rest")}
    return {
        name: {"a category": label, "new": new, "DROP": "DROP"}[level]
        for name, (level, label, new) in places.items()
        if level not in ("none", NOTHING)
    }


def _all(case: Case, column: str) -> list[Any]:
    """The labels of a result, those that are new among them."""
    stated = columns(case)[column]
    listed = categories(case) if column == "vote" else REGIONS
    new = [of for of in (stated.get("nulls"),) if of == "none"]
    is_typed = case["kind"] == "Boolean" and case["file"] in TYPED and case["recode"] == "none"
    closed = column == "vote" and (
        (is_typed and case["categories"] != "fewer")
        or (case["categories"] == "of the file" and case["kind"] != "whole")
    )
    rest = {"rest": ["rest"], None: [] if closed else ["other"]}.get(stated.get("unknown"), [])
    return [*listed, *new, *rest]


def results(case: Case) -> list[dict[str, Any]]:
    """What a specification asks for."""
    asked = case["asked"]
    first: dict[str, Any] = {"column": ["vote", "region"] if asked == "joint" else "vote"}
    others: list[dict[str, Any]] = []
    if asked == "merged":
        cells = [list(of) for of in product(*(_all(case, name) for name in HEADER[:2]))]
        first["merge"] = _merged(_all(case, "vote"))
        others = [{"column": HEADER[:2], "merge": _merged(cells)}]
        others += [{"column": "vote", "merge": 2}] if len(categories(case)) > 2 else []
    elif asked in GROUPS:
        first |= {"by": "region"} if asked != "groups" else {"column": "region", "by": "vote"}
        first |= {"pooled": True} if asked == "pooled" else {}
    elif asked == "together":
        others = [{"column": ["vote", "region"]}]
    elif asked == "survey":
        quick = {"mechanism": "laplace_parameters"}
        others = [
            {"column": "region", "by": "vote", **quick},
            {"column": "age", "merge": 2, **quick},
        ]
    elif asked == "discovered":
        first |= {"rest": 0.2} if case["rest"] == "yes" else {}
        others = [{"column": "age"}]
    number = len(_all(case, "vote"))
    prior: Any = {"list": [n + 0.5 for n in range(number)], "number": 0.5}.get(case["prior"])
    first |= {} if case["prior"] == "auto" else {"prior": prior or case["prior"]}
    first |= (
        {"ordered": HEADER[:2][: 2 if asked == "joint" else 1]} if case["ordered"] == "yes" else {}
    )
    first |= {} if case["mechanism"] == "auto" else {"mechanism": case["mechanism"]}
    first |= {"title": "Votes", "text": "A <text> & more."} if case["texts"] == "yes" else {}
    first |= {"share": 3} if case["share"] == "other" else {}
    return [first, *others]


def _merged(labels: list[Any]) -> dict[str, list[Any]]:
    return {"first": labels[:1], "others": labels[1:]}


def unit(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {"size": _N} if case["unit"] in PUBLIC else {}
    found |= {"identifier": "person"} if "identifier" in case["unit"] else {}
    return found | ({"contributions": 2} if case["unit"] in _OF_TWO else {})


_OF_TWO = "two", "identifiers", "public, 2"


def privacy(case: Case) -> dict[str, Any]:
    found = {**_BUDGETS.get(case["budget"], {}), **unit(case)}
    found |= {"rows_per_identifier": 2} if "identifier" in found else {}
    return found | ({"guess_size": 60} if case["guess"] == "yes" else {})


def specification(case: Case) -> dict[str, Any]:
    """That of a report, or of a question."""
    found = {"title": "A title", **reading(case), "privacy": privacy(case)}
    found |= {"columns": columns(case), "results": results(case)}
    found |= {} if case["language"] == "en" else {"language": case["language"]}
    found |= {"among": "all"} if case["among"] == "all" else {}
    found |= {"joint": True} if case["asked"] == "together" else {}
    if case["texts"] == "yes":
        found |= {"text": "From an office."}
        found["privacy"]["unit"] = "one voter"
    return found


def owned(case: Case, question: dict[str, Any], path: str) -> dict[str, Any]:
    """The owner's file of a question, from which it takes facts unless they are to be repeated."""
    facts, found = unit(case), {"path": Path(path).name, **reading(case)}
    found |= {"epsilon_at_most": 2.0, "rho_at_most": 0.5, "delta_at_most": 1e-4}
    found["ledger"] = {"path": "own", "total": {"rho": 9.0, "delta": 0.01}, "dataset": "d"}
    found["privacy"] = facts | ({"most_rows_per_identifier": 3} if "identifier" in facts else {})
    if "unit" in question["privacy"]:
        found["privacy"]["unit"] = question["privacy"]["unit"]
    found["columns"] = {}
    for column, stated in question["columns"].items():
        kept = {f: stated[f] for f in ("nulls", "null_values", "recode") if f in stated}
        listed = stated.get("categories")
        whole = {**case, "categories": "listed"} if listed == "discover" else case
        if column == "vote" and case["categories"] in ("fewer", "reversed"):
            whole = {**case, "categories": "listed"}
        if listed is not None:
            kept["categories"] = categories(whole) if column == "vote" else listed
        if listed == "discover":
            kept |= {"discover": True}
            kept["categories"] += ["none of them"]
        found["columns"][column] = kept
        if case["owner"] == "in short":
            left = {"nulls", "null_values", "recode"}
            left |= {"categories"} if kept.get("categories") == listed else set()
            question["columns"][column] = {f: of for f, of in stated.items() if f not in left}
    if case["owner"] == "in short":
        for name in found.keys() & reading(case).keys():
            del question[name]
        for name in found["privacy"].keys() & question["privacy"].keys():
            del question["privacy"][name]
    return found


def toml(value: Any) -> str:
    """A value in TOML, that of a table without its braces."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def lines_of(document: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in document.items())


# --- Command lines
def options(of: dict[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in of.items()]


def _listed(labels: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(text_of, labels))
    return line.getvalue()


def release(case: Case, question: dict[str, Any]) -> list[str]:
    """The options that ask for the result of a specification."""
    (result, *_), stated = question["results"], question["columns"]
    found, name = options(question["privacy"]), result["column"]
    kept = ("separator", "encoding", "sheet", *_AROUND)
    found += options({name: question[name] for name in kept if name in question})
    found.append(f"--{'discover' if case['asked'] == 'discovered' else 'column'}={name}")
    for field in ("categories", "nulls", "unknown", "always"):
        if (value := stated[name].get(field)) not in (None, "discover"):
            text = _listed(value) if isinstance(value, list) else text_of(value)
            found.append(f"--{field}={text}")
    if "by" in result:
        listed = stated[result["by"]].get("categories")
        found.append(f"--by={result['by']}{f'={_listed(listed)}' if listed else ''}")
    for name in ("prior", "mechanism", "rest"):
        if name in result:
            value = result[name]
            text = ",".join(map(str, value)) if isinstance(value, list) else value
            found.append(f"--{name}={text}")
    return found + ["--ordered"] * ("ordered" in result)


def init(case: Case) -> list[str]:
    kept = {f: of for f, of in reading(case).items() if f != "skip_rows"}
    found = [*options(kept), "-o", "spec.toml", *(["--header"] * (case["header"] == "yes"))]
    if case["categories"] == "of the file":
        found += ["--column=vote"] * (case["header"] == "no")
    else:
        found += [f"--categories=vote={_listed(categories(case))}"]
    return found + options({"epsilon": 2.0}) + ["--owner=of/owner.toml"] * (case["owner"] != "no")


def plan(case: Case) -> list[str]:
    of: dict[str, Any] = {"number": "1,1", "list": "0.5,2,1.5"}
    found: dict[str, Any] = {"prior": of[case["prior"]], **privacy(case)}
    found |= {} if "size" in found else {"guess_size": 60}
    if case["proportions"] == "yes":
        found["proportions"] = "0.2,0.8" if case["prior"] == "number" else "0.1,0.2,0.7"
    return ["plan", *options(found)]


def asked(case: Case) -> Answers:
    """What the commands of a case print and write."""
    if case["command"] == "plan":
        yield "plan", lambda: printed(plan(case))
        return
    Path("of").mkdir()
    path, piped = written(case)
    before = {*Path().rglob("*")}
    data, command = path, case["command"]
    book = {"epsilon": {"epsilon": 5.0}, "little": {"rho": 1e-3}}.get(case["ledger"], {"rho": 5.0})
    spent: list[str] = []
    if case["ledger"] != "none":
        for name in ["c", "d"] if case["ledger"] == "of two" else ["d"]:
            yield (
                f"total {name}",
                lambda name=name: printed(
                    ["ledger", "book", f"--dataset={name}", *options(book), "--delta=0.1"]
                ),
            )
        spent = ["--ledger=book", *(["--dataset=d"] if case["ledger"] == "of two" else [])]
    if command == "init":
        yield "init", lambda: printed(["init", path, *init(case)], piped)
        main, text = ["run", "spec.toml"], piped
        data = "of/owner.toml" if case["owner"] != "no" else path
    else:
        question = specification(case)
        if case["owner"] != "no":
            data = "of/owner.toml"
            Path(data).write_text(lines_of(owned(case, question, path)))
        text = piped
        if command == "release":
            main = ["release", data, *release(case, question)]
        else:
            spec = lines_of(question) if case["written"] == "toml" else json.dumps(question)
            main = [command, f"spec.{case['written']}" if case["written"] != "stdin" else "-"]
            Path("spec.toml" if case["written"] == "toml" else "spec.json").write_text(spec)
            text = spec.encode() if main[1] == "-" else piped
    place = [] if command == "release" else [data]
    if case["foreseen"] in ("yes", "without data"):
        here = place if case["foreseen"] == "yes" else []
        yield "foreseen", lambda: printed([*main, *here, *spent, "--dry-run"], text)
    to = (
        []
        if command == "init"
        else {"file": ["-o", f"made.{'html' if command == 'report' else 'json'}"]}.get(
            case["output"], []
        )
    )
    if case["output"] == "printed":
        to = ["-o", "-"]
    if case["output"] == "synthetic":
        to = ["-o", "made.html", "--synthetic=copies", "--copies=1"]
    if case["output"] == "there":
        Path("made.json").write_text("")
        Path("made.html").write_text("")
        to = ["-o", "made.json" if command != "report" else "made.html"]
    said: list[Any] = []
    if command == "release":
        main = [item for item in main if not item.startswith("--guess-size")]

    def carried_out() -> Any:
        said.extend(printed([*main, *place, *spent, *to], text))
        return said

    yield command, carried_out
    made = [of for of in Path().rglob("*.json") if of.stat().st_size and of not in before]
    made = [of for of in made if of.name not in ("spec.json",)]
    if said[0] == 0:
        name, text = (str(made[0]), b"") if made else ("-", _RAW[-1])
        yield "show", lambda: printed(["show", name, *_shown(case)], text)
        yield "page", lambda: printed(["report", name, "-o", "again.html", *_page(case)], text)
    for name in ("book", "of/own"):
        if Path(name).exists():
            yield "ledger", lambda name=name: printed(["ledger", name])
    for file in sorted({*Path().rglob("*")} - before):
        if file.is_file() and not file.name.startswith("spec.j") and file.suffix in _READ:
            yield file.as_posix(), lambda file=file: _content(file)


_READ = ".json", ".html", ".toml", ".csv", ".xlsx"
_RAW: list[bytes] = []
_made, _KEPT, _ENVIRONMENT = cache(get_command), dict[int, Any](), jinja2.Environment


def make_quick(patch: pytest.MonkeyPatch) -> None:
    """Make the command line, and what fills templates, once for all cases, and short chains."""
    patch.setattr("opendp_bayes.inference.answers.learned_posterior._BEFORE", 3)
    patch.setattr("opendp_bayes.inference.answers.learned_posterior._MOVES", 10)
    patch.setattr("typer.testing._get_command", _made)
    patch.setattr(
        "jinja2.Environment", lambda **options: _KEPT.setdefault(0, _ENVIRONMENT(**options))
    )


def _shown(case: Case) -> list[str]:
    to = {"xlsx": ["-o", "table.xlsx"], "json": ["-o", "-"]}
    to |= {"png": ["-o", "table.png"]}
    level = [] if case["level"] == "usual" else [f"--level={case['level']}"]
    return [*to.get(case["shown"], []), *level]


def _page(case: Case) -> list[str]:
    return [] if case["page"] == "usual" else [f"--language={case['page']}"]


def _content(file: Path) -> Any:
    if file.suffix == ".xlsx":
        rows = [[*row] for row in openpyxl.load_workbook(file).active.values]
        return [[*map(_cell, row)] for row in rows]
    text = cleaned(file.read_text())  # of copies, which are drawn at random, the names
    return in_words(text.partition("\n")[0] if file.parent.name == "copies" else text)


def _cell(value: Any) -> Any:
    return words(value) if isinstance(value, str) else value


def cleaned(text: str) -> str:
    """Without moments and versions."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T\s]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "moment", text)
    return re.sub(r"\d+\.\d+\.\d+\S*", "version", text) + "\n"


def in_words(text: str) -> list[Any]:
    return [text, *words(text)]


def printed(arguments: list[str], piped: bytes = b"") -> list[Any]:
    """The exit code, and both outputs."""
    result = CliRunner().invoke(app, list(map(str, arguments)), input=piped)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    _RAW[:] = [result.stdout.encode()]
    return [result.exit_code, *map(in_words, map(cleaned, (result.stdout, result.stderr)))]


FOLDER = ROOT / "plugins" / "opendp-bayes-office" / "tests" / "recorded"


def cases(name: str) -> tuple[Case, ...]:
    """Those of a file."""
    return cases_in(FOLDER / f"{name}.txt")


if __name__ == "__main__":
    FACTORS.write(FOLDER / "commands.txt", FOLDER / "refusals.txt", "command")
