"""`opendp-bayes init`: a specification of names and types alone."""

import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from opendp_bayes_office.commands.app import app
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run


def test_init_knows_types_and_no_values(tmp_path: Path) -> None:
    columns = {"kind": ["b", "b"], "flag": [True, True], 'a "name"': ["secret", "secret"]}
    numbers = {"number": [31415926, 1], "weight": [0.5, 31415926.0]}
    kinds = {"kind": pl.Enum(["a", "b"])}
    secret = pl.DataFrame(columns | numbers, schema_overrides=kinds)
    texts = []
    for frame in (secret, secret.clear()):
        frame.write_parquet(tmp_path / "data.parquet")
        texts.append(run("init", tmp_path / "data.parquet", "--categories", "number=1,2"))
    assert texts[0] == texts[1], "the same of no rows"
    assert "secret" not in texts[0]
    assert "31415926" not in texts[0]
    found = read_specification(texts[0])
    assert [result.column for result in found.results] == ["kind", "flag", "number"]
    assert found.columns["number"].categories == ["1", "2"]
    assert "weight] has type Float64, which is not counted" in texts[0]


# --- a file without a header, and text in another encoding

#: A record, in which nothing may be told from a name, and what is typed by mistake.
RECORDS = ["Jane Doe,1960,HIV", "vote,town,age", "1,2,3", '"Doe, Jane",,HIV', "a", "é,x"]
ASKED = [(), ("--column", "absent"), ("--categories", "absent=a,b"), ("--separator", ";")]
ASKED += [("--encoding", "latin-1"), ("--epsilon", "0.5")]


@pytest.mark.parametrize("arguments", ASKED)
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("first", RECORDS)
def test_init_writes_no_name_that_may_be_a_value(first, piped, arguments, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"{first}\n{first}\n")
    place, content = ("-", path.read_bytes()) if piped else (str(path), b"")
    result = CliRunner().invoke(app, ["init", place, *arguments], input=content)
    assert result.exit_code == 2
    assert result.stdout == ""
    told = result.stderr.replace(str(path), "").replace("data.csv", "")
    assert re.search(
        r"its first line may be data, .* --column vote --column age, or say with --header"
        r"|column 'absent' is not in the first line",
        told,
    ), told
    assert not any(value in told for value in ("Jane", "1960", "HIV", "town", "é", "2,3"))
