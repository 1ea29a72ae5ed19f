"""Reports of levels, and of ordered categories: one indented table that adds up, and quantiles."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.datasets import anes96

from opendp_bayes_office.commands.answers import before_reading
from opendp_bayes_office.files.files import source
from opendp_bayes_office.report.field_errors import FieldError, SpecificationError
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.asked_of_files import survey_of
from tests.helpers.pages_of_reports import Page, made

LEVELS = """
title = "Ages"
joint = true
privacy = { rho = 0.5 }
[columns.age]
categories = [0, 1, 2, 3, 4, 5, 6]
labels = ["18", "30", "40", "50", "60", "70", "80"]
nulls = 6
[[results]]
column = "age"
merge = 2
ordered = ["age"]
[[results]]
column = "age"
title = "Single"
text = "Each class."
[[results]]
column = "age"
[results.merge]
young = [0, 1, 2, 3]
old = [4, 5, 6, "other"]
"""
PARTS = {
    "young": ["18 to 30", "40 to 50"],
    "old": ["60 to 70", "80", "no listed value"],
    "18 to 30": ["18", "30"],
    "40 to 50": ["40", "50"],
    "60 to 70": ["60", "70"],
}


@pytest.fixture(scope="module")
def ages() -> pl.DataFrame:
    age = anes96.load_pandas().data["age"].to_numpy(dtype=np.int64)
    classes = np.clip((age - 20) // 10, 0, 6).tolist()
    return pl.DataFrame({"age": [*classes[:900], *[9] * 44]})


@pytest.fixture(scope="module")
def levels(ages: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return made(LEVELS, ages, tmp_path_factory.mktemp("levels"))


def test_levels_are_one_indented_table_that_adds_up_to_the_last_digit(levels: Report) -> None:
    html = rendered(levels)
    header, *rows = Page(html).tables[0]
    assert header[0] == "Category"
    names = [row[0] for row in rows]
    assert names[:4] == ["young", "18 to 30", "18", "30"]
    assert names[7:11] == ["old", "60 to 70", "60", "70"]
    assert names[11:] == ["80", "80", "no listed value", "no listed value"]
    depths = [int(at or 0) for at in re.findall(r'"row"(?: style="--depth: (\d)")?>', html)]
    assert depths[: len(rows)] == [0, 1, 2, 2, 1, 2, 2, 0, 1, 2, 2, 1, 2, 1, 2]
    shares = {row[0]: Decimal(row[2]) for row in rows}
    assert shares["young"] + shares["old"] == 1
    for name, parts in PARTS.items():
        assert sum(shares[part] for part in parts) == shares[name]
    posterior: Any = levels.posterior()
    for name in ("young", "old"):
        mean = dict(
            zip(posterior["age, merged"].categories, posterior["age, merged"].mean(), strict=True)
        )
        exponent = shares[name].as_tuple().exponent
        assert abs(float(shares[name]) - mean[name]) < 10.0 ** int(exponent)


def test_the_page_says_how_levels_were_estimated(levels: Report) -> None:
    page = Page(rendered(levels))
    text = " ".join(page.text["methods"].split())
    assert "as counts of the same records at several levels" in text
    assert re.search(r"every level: [\d.e-]+ for “age by 2”, [\d.e-]+ for “age” and [\d.e-]+", text)
    assert "age by 2, Single and age, merged Each class." in " ".join(page.text["results"].split())
    assert [row[0] for row in page.tables[-1][1:-1]] == ["age by 2", "Single", "age, merged"]
    assert [row[1] for row in page.tables[-2][1:]] == ["age by 2; Single; age, merged"]
    assert page.tables[-2][1][3].startswith("counted as “no listed value”: 0.0")


def test_quantiles_are_those_of_the_listed_categories(levels: Report) -> None:
    page = Page(rendered(levels))
    header, *rows = page.tables[1]
    assert header[0] == "Quantile"
    assert [row[0] for row in rows] == ["10 %", "25 %", "Median", "75 %", "90 %"]
    posterior: Any = levels.posterior()
    among = posterior["age by 2"].given(["18 to 30", "40 to 50", "60 to 70", "80"])
    for row, level in zip(rows, (0.1, 0.25, 0.5, 0.75, 0.9), strict=True):
        found = among.quantile(level)
        low, high = found.interval(0.95)
        assert row[2:] == [found.category, low if low == high else f"{low} – {high}"]
    place = among.categories.index(rows[2][2])
    reach, dot = page.drawn[1][3][0]
    assert float(dot["cx"][:-1]) == pytest.approx(100 * (place + 0.5) / 4)
    assert float(reach["x"][:-1]) <= 100 * place / 4


def test_a_result_of_its_own_has_quantiles_by_its_labels(
    ages: pl.DataFrame, tmp_path: Path
) -> None:
    text = LEVELS.replace("joint = true", "").split("merge = 2")[0] + 'ordered = ["age"]'
    report = made(text, ages, tmp_path)
    page = Page(rendered(report))
    release: Any = report.releases[0]
    median = release.posterior.given(list(range(7))).quantile(0.5).category
    assert page.tables[1][3][2] == ["18", "30", "40", "50", "60", "70", "80"][median]
    assert "among the categories in order" in page.text["reading"]
    assert (
        "among the categories in order"
        not in Page(rendered(made(text.split("ordered")[0], ages, tmp_path))).text["reading"]
    )


def test_quantiles_of_a_survey_are_among_the_listed_categories(
    ages: pl.DataFrame, tmp_path: Path
) -> None:
    column = LEVELS.split("merge = 2")[0]
    text = (
        column.replace("[[results]]", "[columns.even]\nnulls = true\n[[results]]")
        + 'ordered = ["age"]\n[[results]]\ncolumn = ["age", "even"]\n'
    )
    report = made(text, ages.with_columns(even=pl.col("age") % 2 == 0), tmp_path)
    posterior: Any = report.posterior()
    assert posterior.marginal("age").categories[-1] == "other"
    median = posterior.marginal("age").given(list(range(7))).quantile(0.5).category
    row = Page(rendered(report)).tables[1][3]
    assert (row[0], row[2]) == ("Median", ["18", "30", "40", "50", "60", "70", "80"][median])


def test_a_report_of_levels_is_read_again(levels: Report) -> None:
    again = Report.from_json(levels.to_json())
    assert again == levels
    assert rendered(again) == rendered(levels)


def test_where_records_of_merged_categories_are_counted(ages: pl.DataFrame, tmp_path: Path) -> None:
    ages.write_parquet(tmp_path / "data.parquet")
    asked = read_specification(LEVELS)
    found = source(tmp_path / "data.parquet", None)
    survey = survey_of(found, asked)
    assert list(before_reading(found, survey, asked)) == [
        "age by 2; Single; age, merged: Records without a value are counted as “80”; those with a"
        " value that is no category are counted as “other”."
    ]
    assert survey.questions["age by 2"].space.labels == (
        *("18 to 30", "40 to 50", "60 to 70", "80"),
        "other",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("merge = 2", "merge = 1", r"results\[0\]\.merge: .*>= 2"),
        ("merge = 2", 'merge = 2\nby = "age"', r"results\[0\]\.merge: does not go with by"),
        ('"age"\nmerge = 2', '["age", "b"]\nmerge = 2', r"results\[0\]\.merge=2: is for one col"),
    ],
)
def test_what_a_specification_may_not_merge(old: str, new: str, message: str) -> None:
    text = LEVELS.replace(old, new, 1).replace('title = "Ages"', 'title = "Ages"\ncolumns.b = {}')
    with pytest.raises(SpecificationError, match=message):
        read_specification(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("young = [0, 1, 2, 3]", "young = [0, 1, 2]", r"\.merge=.*leaves out 3"),
        (
            "young = [0, 1, 2, 3]\nold = [4, 5, 6",
            "young = [0, 1, 2]\nold = [3, 4, 5, 6",
            r"joint: tables\[.age by 2.\]: merges categories",
        ),
    ],
)
def test_merges_that_do_not_fit_are_refused_before_data_are_read(
    old: str, new: str, message: str, ages: pl.DataFrame, tmp_path: Path
) -> None:
    ages.write_parquet(tmp_path / "data.parquet")
    asked = read_specification(LEVELS.replace(old, new, 1))
    with pytest.raises(FieldError, match=message):
        survey_of(tmp_path / "data.parquet", asked)


def test_synthetic_records_need_every_category() -> None:
    with pytest.raises(SpecificationError, match=r"results\[0\]\.merge: is for reports"):
        read_specification(LEVELS, joint=True)
