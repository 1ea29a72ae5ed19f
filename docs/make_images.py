"""Make the pictures of the documentation: `make images`. They are of the releases in
`docs/images/*.json`, so they are the same every time.

A release whose file is missing is made.
"""

import io
import re
from itertools import pairwise
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import opendp.prelude as dp
import polars as pl
import pypdfium2
import weasyprint
from PIL import Image, ImageChops
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from statsmodels.datasets import anes96

import opendp_bayes as ob
from opendp_bayes_office.commands.demo import _survey

IMAGES = Path(__file__).parent / "images"
TITLES = {
    "penguins": "Species of Palmer penguins",
    "vote": "Expected vote, 1996",
    "party": "Party identification, 1996",
    "remainder": "Party identification, by laplace_parameters",
    "edges": "The same vote by smooth_hellinger_exponential",
    "table": "Vote and party, 1996",
}
#: Ends of the classes of the survey's incomes, in thousand dollars.
INCOMES = (
    0,
    3,
    5,
    7,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    17,
    20,
    22,
    25,
    30,
    35,
    40,
    45,
    50,
    60,
    75,
    90,
    105,
)
DPI = 110
# What a notebook puts around a table.
STYLE = """
@page { size: 760px 700px; margin: 12px }
body { font: 13px DejaVu Sans, sans-serif } table { border-collapse: collapse }
th, td { padding: 4px 10px }
thead { border-bottom: 1px solid #bdbdbd } tbody tr:nth-child(even) { background: #f5f5f5 }
"""


def _penguins() -> pl.DataFrame:
    from palmerpenguins import load_penguins

    species = pl.Enum(["Adelie", "Chinstrap", "Gentoo"])
    return pl.DataFrame({"species": pl.Series(list(load_penguins()["species"]), dtype=species)})


def make_releases() -> None:
    """Make the releases that are missing, those of the tutorial first."""
    penguins, survey = _penguins(), _survey()
    keep("penguins", penguins, "species", 0.2)
    keep("vote", survey, "vote", 0.1, size=survey.height)
    keep("party", survey, "party", 0.2, size=survey.height)
    keep("remainder", survey, "party", 0.2, size=survey.height, mechanism="laplace_parameters")
    keep("edges", survey, "vote", 1.0, size=survey.height, mechanism="smooth_hellinger_exponential")
    keep("table", survey, ["party", "vote"], 0.5, size=survey.height)
    keep("income", with_income(survey), ["income", "vote"], 0.5, size=survey.height)
    keep_groups("groups", survey, "party", "vote", 0.5, survey.height)


def with_income(survey: pl.DataFrame) -> pl.DataFrame:
    """Add the household's income, by class."""
    classes = [f"${low}k to {high}k" for low, high in pairwise(INCOMES)] + [f"over ${INCOMES[-1]}k"]
    codes = anes96.load_pandas().data["income"]
    names = [classes[int(code) - 1] for code in codes]
    return survey.with_columns(pl.Series("income", names, dtype=pl.Enum(classes)))


def keep(
    name: str,
    frame: pl.DataFrame,
    column: str | list[str],
    epsilon: float,
    *,
    size: int | None = None,
    mechanism: str = "auto",
) -> None:
    """Make a release, unless there is one."""
    path = IMAGES / f"{name}.json"
    if path.exists():
        return
    names = [column] if isinstance(column, str) else column
    unit = dp.unit_of(contributions=1) if size is None else dp.unit_of(changes=1)
    context = ob.context(
        frame, privacy_unit=unit, privacy_loss=dp.loss_of(epsilon=epsilon), split_evenly_over=1
    )
    query = ob.posterior(
        context.query(),
        column,
        size=size,
        nulls={name: frame[name].dtype.categories[0] for name in names},
        mechanism=mechanism,
    )
    path.write_text(query.release().to_json() + "\n", encoding="utf-8")


def keep_groups(
    name: str, frame: pl.DataFrame, column: str, by: str, epsilon: float, size: int
) -> None:
    """Make a release of a posterior for each group, unless there is one."""
    path = IMAGES / f"{name}.json"
    if path.exists():
        return
    context = ob.context(
        frame,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
    )
    groups, nulls = list(frame[by].dtype.categories), frame[column].dtype.categories[0]
    query = ob.posterior(
        context.query(), column, by=by, categories={by: groups}, size=size, nulls=nulls
    )
    path.write_text(query.release().to_json() + "\n", encoding="utf-8")


def plots(releases: dict[str, ob.Release]) -> None:
    """`release.plot()` of each release."""
    for name, release in releases.items():
        save(release.plot(title=TITLES[name]).figure, name)


def reading() -> None:
    """Three releases from which more and more is known."""
    fig, axes = plt.subplots(3, 1, figsize=(6.4, 8.0), layout="constrained")
    loss = ob.PrivacyLoss(epsilon=0.1, rho=0.005, range=0.2)
    for ax, size in zip(axes, (20, 200, 20_000), strict=True):
        release = ob.Release(
            (6 * size // 10, 4 * size // 10),
            ("yes", "no"),
            (1.0, 1.0),
            ob.LaplaceParameters(10.0),
            ob.PrivacyGuarantee(size, 1, loss, "MaxDivergence"),
        )
        release.plot(ax, title=f"n = {size:,}".replace(",", " "))
        ax.set_xlim(0, 1)
    save(fig, "reading")


def save(fig: plt.Figure, name: str) -> None:
    """As a PNG with few colours, which is small."""
    file = io.BytesIO()
    fig.savefig(file, dpi=DPI)
    plt.close(fig)
    Image.open(file).convert("RGB").quantize(128).save(IMAGES / f"{name}.png", optimize=True)


def notebook(release: ob.Release, name: str) -> None:
    """The table of a notebook, cut to what is on it."""
    pdf = weasyprint.HTML(string=release._repr_html_()).write_pdf(
        stylesheets=[weasyprint.CSS(string=STYLE)]
    )
    page = pypdfium2.PdfDocument(pdf)[0].render(scale=DPI / 72).to_pil().convert("RGB")
    left, top, right, bottom = ImageChops.difference(
        page, Image.new("RGB", page.size, "white")
    ).getbbox() or (0, 0, *page.size)
    page.crop((left - 8, top - 8, right + 8, bottom + 8)).quantize(64).save(
        IMAGES / f"{name}.png", optimize=True
    )


def screen(shown: str, name: str, command: str) -> None:
    """Write what a command prints as SVG, in whatever monospaced font the reader has."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    console.print(shown, markup=False, highlight=False)
    code_format = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=command, code_format=code_format, unique_id=name)
    (IMAGES / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Every picture."""
    matplotlib.use("Agg")
    dp.enable_features("contrib", "honest-but-curious")
    make_releases()
    releases = {
        name: ob.Release.from_json((IMAGES / f"{name}.json").read_text(encoding="utf-8"))
        for name in TITLES
    }
    plots(releases)
    reading()
    by_vote = ob.Release.from_json((IMAGES / "groups.json").read_text(encoding="utf-8"))
    save(by_vote.plot().figure, "groups")
    questions = {"Vote": releases["vote"], "Party": releases["party"], "Party by vote": by_vote}
    save(ob.Survey(tuple(questions), tuple(questions.values())).plot(), "survey")
    income = ob.Release.from_json((IMAGES / "income.json").read_text(encoding="utf-8"))
    save(income.pooled(by="income").plot().figure, "pooled")
    notebook(releases["penguins"], "notebook")
    screen(
        releases["party"].sheet(title="party", percent=True).text(80),
        "terminal",
        "opendp-bayes release survey.parquet --column party ...",
    )


if __name__ == "__main__":
    main()
