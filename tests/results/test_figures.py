"""Pictures of releases, by what is on them."""

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
from opendp_bayes.display.pictures import Panel, plot_panels
from tests.helpers import releases
from tests.helpers.releases import changed, guarantee

LOSS = PrivacyLoss(0.1, 0.005, 0.2)
NOISE = LaplaceParameters(10.0)
PAIR = Release((120, 80), ("$yes_$", "no"), (1.0, 1.0), NOISE, guarantee(200, LOSS))
PARTIES = changed(
    PAIR, noisy_counts=(60, 30, 80, 30), categories=("a", "$b^$", 3, "d"), prior=(1.0,) * 4
)

pytestmark = pytest.mark.usefixtures("pictures")


def texts(ax: Axes) -> str:
    legend = ax.get_legend()
    entries = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    said = [text.get_text() for text in ax.texts]
    return "\n".join([*entries, *said, ax.get_title(loc="left"), ax.get_xlabel()])


def test_it_says_what_it_shows() -> None:
    """`$b^$` as mathematics could not be drawn."""
    shown = texts(PARTIES.plot(title="$Vote_", level=0.9))
    for part in (
        "Noise-aware: mean and 90 % interval",
        "Plug-in, which ignores the noise: mean and 90 % interval",
        (
            "ε = 0.1 for data sets that differ by 1 record changed.\nThe number of records, 200, is"
            " public."
        ),
        "$Vote_",
        "Share",
    ):
        assert part in shown
    ax = PARTIES.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "$b^$", "3", "d"]
    ax.figure.canvas.draw()
    ax = changed(PARTIES, noisy_counts=(0, 30, 80, 90), mechanism=LaplaceParameters(0.1)).plot()
    assert ax.get_xlim()[0] < 0


def test_it_draws_on_the_axes_given_without_numbers_for_large_tables() -> None:
    _, (first, second) = plt.subplots(1, 2)
    assert PAIR.plot(ax=second) is second
    assert not first.lines
    assert len(plt.get_fignums()) == 1
    assert PAIR.plot() not in (first, second)
    cells = tuple((row, column) for row in range(101) for column in "ab")
    release = releases.release((5,) * 202, cells, axes=("a", "b"))
    ax = release.plot()
    assert ax.collections[0].get_array().size == 200
    assert len(ax.texts) == 1
    assert ax.get_ylabel() == "a (the first 100 of 101 rows)"


EXTREME = {
    "near 0": changed(PAIR, noisy_counts=(0, 200), prior=(0.01, 0.01)),
    "no width": changed(PAIR, noisy_counts=(500_000, 500_000), size=10**6),
    "only a prior": changed(PAIR, noisy_counts=(1, 0), size=1, mechanism=LaplaceParameters(1e6)),
    "private": changed(PAIR, size=None, mechanism=LaplaceParameters(2.0, total="private")),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_posteriors_can_be_drawn(name: str) -> None:
    ax = EXTREME[name].plot()
    ax.figure.canvas.draw()
    assert 0 < ax.get_xlim()[1] <= 1


def test_of_many_panels_the_first_are_drawn_along_rows() -> None:
    """The second is right of the first, and the third below it."""
    bounds = np.array([[0.3], [0.2], [0.4]])
    panel = Panel("p", ["a"], {"": bounds})
    wide = Panel("w", ["a"] * 150, {"": np.tile(2 * bounds, 150)})
    figure = plot_panels([panel, wide, *[panel] * 99], "Said.", 20)
    assert figure.get_suptitle().replace("\n", " ") == "Said. (the first 100 of 101 pictures)"
    assert sum(ax.axison for ax in figure.axes) == 100
    assert figure.axes[1].get_xlim()[1] == pytest.approx(1.06 * 0.8)
    assert figure.axes[0].get_xlim()[1] == pytest.approx(1.06 * 0.4)
    assert len(figure.axes[1].get_yticklabels()) == 100
    assert figure.axes[1].get_xlabel() == "Share (the first 100 of 150 rows)"
    assert figure.axes[0].get_xlabel() == "Share"
    bounds = np.array([[0.3], [0.2], [0.4]])
    figure = plot_panels([Panel(name, ["a"], {"": bounds}) for name in "pqrst"], "Said.", 2)
    places = {ax.get_title(loc="left") or ax.get_title(): ax.get_position() for ax in figure.axes}
    assert places["p"].y0 == places["q"].y0 > places["r"].y0 == places["s"].y0 > places["t"].y0
    assert places["p"].x0 == places["r"].x0 == places["t"].x0 < places["q"].x0 == places["s"].x0


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'opendp-bayes\[plot\]'"):
        PAIR.plot()


def test_a_table_of_two_variables_is_a_heat_map_in_any_order_of_its_cells() -> None:
    cells = (("x", 2), ("so$_uth$", 1), ("x", 1))  # and none of the south and 2
    drawn = (50, 20, 10)
    release = releases.release(drawn, cells, axes=("a", "b"))
    ax = release.plot(title="A table", level=0.9)
    shown = np.ma.filled(ax.collections[0].get_array().astype(float), np.nan).reshape(2, 2)
    lower, upper = release.posterior.interval(0.9)
    found = [shown[0, 0], shown[1, 1], shown[0, 1]]
    assert found == pytest.approx(release.posterior.mean())
    assert np.isnan(shown).sum() == 1
    assert len(ax.texts) == 1 + 3  # the promise, and the cells
    mean, low, high = 100 * np.array([shown[0, 0], lower[0], upper[0]])
    assert ax.texts[0].get_text() == f"{mean:.1f} %\n{low:.1f} to {high:.1f}"
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("a", "b")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "so$_uth$"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["2", "1"]
    assert any("90 % intervals" in text.get_text() for text in ax.texts)
    assert ax.get_title("left") == "A table"
    assert ax.yaxis_inverted(), "the first row is at the top"
    ax.figure.canvas.draw()  # no label is taken for a formula


@pytest.mark.parametrize("title", [0, False, [], b"", 1, b"t", ["t"]])
def test_a_title_that_is_no_text_is_refused_also_where_it_counts_as_nothing(title: Any) -> None:
    with pytest.raises(TypeError, match="title="):
        PARTIES.plot(title=title)
