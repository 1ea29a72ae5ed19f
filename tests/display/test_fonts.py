"""Labels in scripts that the usual font lacks: drawn by another font, or one sentence says so."""

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.commands.app import app
from opendp_bayes.display import fonts
from opendp_bayes.display.fonts import with_fonts
from opendp_bayes.display.graph_picture import plot_graph
from opendp_bayes.display.quantile_picture import plot_quantiles
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import changed, promise

pytestmark = pytest.mark.usefixtures("pictures")

#: Some versions of matplotlib have a font of signs, and then warn of no glyph.
HAS_SIGNS = any(one.name == fonts._LAST for one in font_manager.fontManager.ttflist)
YES_NO, ODD = ("はい", "いいえ"), ("日本", "한국", "🍎", "Ελλάδα")
PAIR = ob.Release(
    (120, 80), YES_NO, (1.0, 1.0), ob.LaplaceParameters(10.0, total="private"), promise(None)
)
BARS = changed(PAIR, drawn=(60, 30, 80, 30), categories=ODD, prior=(1.0,) * 4)
TABLE = changed(
    PAIR,
    drawn=(20,) * 6,
    categories=tuple(itertools.product(("東", "西", "x"), YES_NO)),
    prior=(1.0,) * 6,
    axes=("区", "答"),
)


@pytest.fixture(autouse=True)
def _only_own_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever the machine has, those of matplotlib alone, and no font found before."""
    manager = font_manager.fontManager
    own = [one for one in manager.ttflist if "mpl-data" in one.fname]
    monkeypatch.setattr(manager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    searches = (fonts._installed, fonts._fonts_with)
    for search in searches:
        search.cache_clear()
    yield
    for search in searches:
        search.cache_clear()


def font(path: Path, family: str, characters: str) -> str:
    """A font in which each of some characters is a square."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for place in ((0, 900), (900, 900), (900, 0)):
        pen.lineTo(place)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "square"])
    builder.setupCharacterMap({ord(one): "square" for one in characters})
    builder.setupGlyf({".notdef": pen.glyph(), "square": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "square": (1000, 0)})
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return str(path)


def install(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """Fonts that are there since matplotlib made its list."""
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: list(paths))


def drawn_again(drawn: Any) -> None:
    """Draw it into memory; warnings are errors here, those of matplotlib as well."""
    figure = drawn if hasattr(drawn, "savefig") else drawn.figure
    figure.canvas.draw()


def test_an_installed_font_that_has_the_characters_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(
        monkeypatch,
        font(tmp_path / "one.ttf", "Test Korean", "한국"),
        font(tmp_path / "two.ttf", "Test Chinese", "日本国"),
        font(tmp_path / "three.ttf", "Test Fruit", "🍎"),
        font(tmp_path / "four.ttf", "Test Nothing", "ß"),
        str(Path(__file__)),  # no font at all
    )
    ax = BARS.plot()
    for label in ax.get_yticklabels():
        families = label.get_fontfamily()
        if label.get_text() == "Ελλάδα":
            assert families == ["sans-serif"]
        else:
            assert families[0] == "sans-serif"
            assert set(families[1:]) == {"Test Chinese", "Test Fruit", "Test Korean"}
    drawn_again(ax)


def test_the_font_with_most_of_the_characters_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(
        monkeypatch,
        font(tmp_path / "a.ttf", "A Few", "日한"),
        font(tmp_path / "z.ttf", "Z All", "日本한국🍎"),
    )
    label = BARS.plot().get_yticklabels()[0]
    assert label.get_fontfamily() == ["sans-serif", "Z All"]


def test_what_no_font_has_is_one_sentence() -> None:
    message = (
        r"^labels hold 日本한국🍎 \(CJK, Hangul and symbols\), for which neither the font"
        r" DejaVu Sans nor another installed one has signs, so that boxes are drawn\. Install"
        r" Noto Sans CJK JP and Noto Emoji, found in a new process by itself\. Or choose"
        r" another font that has them, by matplotlib\.rcParams\['font\.family'\] ="
        r" \['sans-serif', 'Noto Sans CJK JP', 'Noto Emoji'\], or as font\.family: sans-serif,"
        r" Noto Sans CJK JP, Noto Emoji in a file matplotlibrc\.$"
    )
    with pytest.warns(UserWarning, match=message) as said:
        ax = BARS.plot()
    assert len(said) == 1
    assert said[0].filename == __file__
    if HAS_SIGNS:
        drawn_again(ax)


@pytest.mark.parametrize(
    "plot",
    [
        lambda: PAIR.plot(),
        lambda: PAIR.plot(title="国"),
        lambda: BARS.plot(),
        lambda: TABLE.plot(),
        lambda: ob.Survey(("問", "表", "b"), (PAIR, TABLE, BARS)).plot(),
        lambda: GroupedRelease(
            ("東", "西"), ((120, 80), (70, 90)), YES_NO, (1.0, 1.0), PAIR.mechanism, PAIR.promise
        ).plot(),
        lambda: plot_graph(["国", "b"], [("国", "b")], [("国", "b")], None),
        lambda: plot_quantiles([0.5], [0.0], ([0.0], [1.0]), YES_NO, "Says.", None),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_every_picture_says_it_once(plot: Any) -> None:
    with pytest.warns(UserWarning, match=r"labels hold .* Install Noto Sans") as said:
        drawn = plot()
    assert len(said) == 1
    if HAS_SIGNS:
        drawn_again(drawn)


def test_a_picture_without_the_search_leaves_it_to_matplotlib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: a message for every character, when it is drawn."""
    monkeypatch.setattr("opendp_bayes.results.figures.with_fonts", lambda drawn: drawn)
    ax = BARS.plot()
    with pytest.warns(UserWarning, match="missing from font") as said:
        drawn_again(ax)
    assert len({str(one.message) for one in said}) == len("日本한국🍎")


def test_labels_that_the_font_has_look_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_installed", None)
    ax = plt.figure().subplots()
    ax.set_title("naïve Ελληνικά Привет ❤️ a\u200db\u00a0ε ×")
    assert with_fonts(ax) is ax
    assert {family for text in ax.texts for family in text.get_fontfamily()} <= {"sans-serif"}


def test_old_versions_of_matplotlib_do_not_join_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    arabic = changed(PAIR, categories=("نعم", "לא"))
    monkeypatch.setattr(mpl, "__version_info__", (3, 11, 0))
    arabic.plot()
    monkeypatch.setattr(mpl, "__version_info__", (3, 9, 0))
    monkeypatch.setattr(mpl, "__version__", "3.9.0")
    message = r"labels in Arabic are drawn from left to right, letter by letter, by matplotlib 3\.9"
    with pytest.warns(UserWarning, match=message):
        arabic.plot()


def test_the_command_says_it_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text(PAIR.to_json(), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = CliRunner().invoke(app, ["show", "r.json", "--plot", "r.png"])
    assert result.exit_code == 0
    line, *others = result.stderr.splitlines()
    assert line.startswith("opendp-bayes: labels hold はい (Hiragana), for which neither the font")
    assert not others or not HAS_SIGNS
    assert Path("r.png").stat().st_size > 0
