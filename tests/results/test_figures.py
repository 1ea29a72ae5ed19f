"""Pictures of releases, by what is on them."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
from opendp_bayes.results.figures import plot_posterior
from tests.helpers.releases import changed, guarantee

PAIR = Release(
    (120, 80),
    ("$yes_$", "no"),
    (1.0, 1.0),
    LaplaceParameters(10.0),
    guarantee(200, PrivacyLoss(0.1, 0.005, 0.2)),
)
PARTIES = changed(PAIR, drawn=(60, 30, 80, 30), categories=("a", "$b^$", 3, "d"), prior=(1.0,) * 4)
BLUE, VERMILION = "#0072b2", "#d55e00"

pytestmark = pytest.mark.usefixtures("pictures")


def lines(ax: Axes, colour: str) -> list[Line2D]:
    return [line for line in ax.lines if to_hex(str(line.get_color())) == colour]


def curve(ax: Axes, colour: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = max((line.get_data() for line in lines(ax, colour)), key=lambda data: np.size(data[0]))
    return np.asarray(x), np.asarray(y)


def bar_below(ax: Axes, colour: str) -> np.ndarray:
    return np.asarray(
        next(line.get_xdata() for line in lines(ax, colour) if np.size(line.get_xdata()) == 2)
    )


def test_two_categories_are_two_densities_with_their_intervals() -> None:
    ax = PAIR.plot()
    for colour, density, interval in (
        (
            BLUE,
            lambda x: PAIR.posterior.pdf(x)[:, 0],
            [end[0] for end in PAIR.posterior.interval(0.95)],
        ),
        (VERMILION, PAIR.plug_in.pdf, PAIR.plug_in.interval(0.95)),
    ):
        x, y = curve(ax, colour)
        assert y == pytest.approx(density(x))
        assert np.trapezoid(y, x) == pytest.approx(1, abs=5e-3), (
            "the whole density is in the picture"
        )
        assert bar_below(ax, colour) == pytest.approx(interval)
        low, high = ax.get_xlim()
        assert low < interval[0] < interval[1] < high


def test_the_noise_aware_posterior_is_wider_than_the_plug_in() -> None:
    ax = PAIR.plot()
    assert np.ptp(bar_below(ax, BLUE)) > 2 * np.ptp(bar_below(ax, VERMILION))
    assert curve(ax, BLUE)[1].max() < curve(ax, VERMILION)[1].max()
    wide, narrow = error_bars(PARTIES.plot())
    assert (np.diff(ends(wide)) > np.diff(ends(narrow))).all()


def error_bars(ax: Axes) -> list[ErrorbarContainer]:
    return [container for container in ax.containers if isinstance(container, ErrorbarContainer)]


def ends(container: ErrorbarContainer) -> np.ndarray:
    """Ends of the error bars, shape `(k, 2)`."""
    (collection,) = container.lines[2]
    return np.array([segment[:, 0] for segment in collection.get_segments()])


def test_more_categories_are_bars_with_intervals() -> None:
    ax = PARTIES.plot(level=0.8)
    bars = [patch.get_width() for patch in ax.patches]
    assert bars == pytest.approx(PARTIES.posterior.mean())
    aware, plug_in = error_bars(ax)
    frame = PARTIES.to_frame(0.8, plug_in=True)
    assert ends(aware) == pytest.approx(frame["lower", "upper"].to_numpy())
    assert ends(plug_in) == pytest.approx(frame["plug_in_lower", "plug_in_upper"].to_numpy())
    assert plug_in.lines[0].get_xdata() == pytest.approx(PARTIES.plug_in.mean())
    bottom, top = ax.get_ylim()
    assert top < 0 < bottom, "the first category is at the top"


def texts(ax: Axes) -> str:
    legend = ax.get_legend()
    entries = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    return "\n".join(
        [
            *entries,
            *(text.get_text() for text in ax.texts),
            ax.get_title(loc="left"),
            ax.get_xlabel(),
            ax.get_ylabel(),
        ]
    )


def test_it_says_what_it_shows() -> None:
    shown = texts(PAIR.plot(title="Vote", level=0.9))
    lower, upper = PAIR.posterior.interval(0.9)
    low, high = PAIR.plug_in.interval(0.9)
    for part in (
        f"Noise-aware: mean 0.599, 90 % interval {lower[0]:.3f} to {upper[0]:.3f}",
        f"Plug-in: mean 0.599, 90 % interval {low:.3f} to {high:.3f}",
        (
            "ε = 0.1 for data sets that differ by 1 record changed.\nThe number of records, 200, is"
            " public."
        ),
        "Vote",
        "Probability of $yes_$",
        "Posterior density",
    ):
        assert part in shown
    shown = texts(PARTIES.plot())
    for part in (
        "Noise-aware: mean and 95 % interval",
        "Plug-in, which ignores the noise: mean and 95 % interval",
        "ε = 0.1",
        "Probability",
    ):
        assert part in shown


def test_labels_are_not_mathematics() -> None:
    """`$b^$` as mathematics could not be drawn."""
    ax = PARTIES.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "$b^$", "3", "d"]
    ax.figure.canvas.draw()
    PAIR.plot().figure.canvas.draw()


def test_long_labels_are_in_lines_within_the_picture() -> None:
    label = (
        "Some college or an associate degree from a community college or a vocational school, not"
        " finished"
    )
    ax = changed(PARTIES, categories=(label, "x" * 200, "b", "c")).plot()
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert (
        shown[0]
        == "Some college or an associate\ndegree from a community\ncollege or a vocational …"
    )
    assert shown[2:] == ["b", "c"]
    pair = changed(PAIR, categories=(label, "no")).plot()
    assert pair.get_xlabel().replace("\n", " ") == f"Probability of {label}"
    for drawn in (ax, pair):
        drawn.figure.canvas.draw()
        box = drawn.get_tightbbox()
        assert box is not None
        assert box.x0 >= 0
        assert box.x1 <= drawn.figure.bbox.x1


def test_a_mean_near_0_is_within_the_axes() -> None:
    ax = changed(PARTIES, drawn=(0, 30, 80, 90), mechanism=LaplaceParameters(0.1)).plot()
    assert ax.get_xlim()[0] < 0
    assert len(lines(ax, "#000000")) == 1, "a line at 0"


@pytest.mark.parametrize("release", [PAIR, PARTIES], ids=["two", "more"])
def test_it_draws_on_the_axes_given(release: Release) -> None:
    _, (first, second) = plt.subplots(1, 2)
    assert release.plot(ax=second) is second
    assert not first.lines
    assert len(plt.get_fignums()) == 1
    new = release.plot()
    assert new not in (first, second)


@pytest.mark.parametrize("release", [PAIR, PARTIES], ids=["two", "more"])
def test_a_compact_picture_has_neither_legend_nor_guarantee(release: Release) -> None:
    ax = plot_posterior(release, title="North", compact=True)
    assert ax.get_legend() is None
    assert "ε" not in texts(ax)
    assert ax.get_title(loc="left") == "North"


EXTREME = {
    "an infinite density at 0": changed(PAIR, drawn=(0, 200), prior=(0.01, 0.01)),
    "a plug-in posterior of no width": changed(
        PAIR, drawn=(500_000, 500_000), size=10**6, mechanism=LaplaceParameters(1e5)
    ),
    "only a prior": changed(PAIR, drawn=(1, 0), size=1, mechanism=LaplaceParameters(1e6)),
    "a private number of records": changed(
        PAIR, size=None, mechanism=LaplaceParameters(2.0, total="private")
    ),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_posteriors_can_be_drawn(name: str) -> None:
    ax = EXTREME[name].plot()
    ax.figure.canvas.draw()
    x, y = curve(ax, BLUE)
    assert np.isfinite(y).all()
    assert (x > 0).all()
    assert (x < 1).all()
    assert 0 < ax.get_ylim()[1] <= 5 * y.max(), "the noise-aware density is not squashed"


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'opendp-bayes\[plot\]'"):
        PAIR.plot()


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_an_impossible_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"level=.*: .*between 0 and 1"):
        PAIR.plot(level=level)
