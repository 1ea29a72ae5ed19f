"""The picture of a survey: what it draws is what the posteriors say."""

import math
from dataclasses import replace

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted.thresholds import Discovery, OptimalThreshold
from tests.surveys.test_survey import GROUPS, SURVEY, TABLE, VOTE

pytestmark = pytest.mark.usefixtures("pictures", "short_chains", "computed_once")


def drawn(ax):
    """The means and the ends of the intervals of every series of a picture."""
    return [
        (
            series.lines[0].get_xdata(),
            np.array(
                [segment[:, 0] for segment in series.lines[2][0].get_segments() if len(segment)]
            ),
        )
        for series in ax.containers
        if hasattr(series, "lines")
    ]


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_every_question_has_a_picture_of_its_means_and_intervals():
    figure = SURVEY.plot(level=0.8)
    assert {ax.get_title(loc="left") for ax in figure.axes} == {"vote", "table", "groups"}
    of = {ax.get_title(loc="left"): ax for ax in figure.axes}
    assert names(of["vote"]) == ["yes", "no"]
    ((mean, ends),) = drawn(of["vote"])
    assert mean == pytest.approx(VOTE.posterior.mean())
    assert pytest.approx(np.array(VOTE.posterior.interval(0.8))) == ends.T
    assert names(of["table"]) == ["yes", "no"]
    series = drawn(of["table"])
    means = np.column_stack([mean for mean, _ in series])
    assert means.ravel() == pytest.approx(TABLE.posterior.mean())
    assert [text.get_text() for text in of["table"].get_legend().get_texts()] == ["n", "s"]
    assert names(of["groups"]) == ["n", "(null)"]
    for at, one in enumerate(GROUPS.values()):
        for category, (mean, ends) in enumerate(drawn(of["groups"])):
            assert mean[at] == pytest.approx(one.posterior.mean()[category])
            lower, upper = one.posterior.interval(0.8)
            assert ends[at] == pytest.approx([lower[category], upper[category]])
    assert "All together: ε = 0.4" in figure.get_suptitle()
    assert "80 % intervals" in figure.get_suptitle()


def test_no_dot_of_a_row_hides_another_and_long_names_break_between_values():
    cells = tuple(
        (a, b, c) for a in ("self-employed", "retired") for b in ("very low", "low") for c in "xyz"
    )
    table = ob.Release(
        tuple(range(10, 22)), cells, (1.0,) * 12, TABLE.mechanism, TABLE.guarantee, ("a", "b", "c")
    )
    (ax,) = ob.Survey(("table",), (table,)).plot().axes
    heights = np.array([series.lines[0].get_ydata() for series in ax.containers])
    assert heights.mean(axis=0) == pytest.approx(range(4))
    assert (np.diff(heights, axis=0) > 0.1).all()
    assert names(ax)[:2] == ["self-employed,\nvery low", "self-employed, low"]


def test_pictures_go_to_the_shortest_column():
    tall = replace(
        VOTE,
        drawn=tuple(range(10, 30)),
        categories=tuple(f"c{number}" for number in range(20)),
        prior=(1.0,) * 20,
    )
    figure = ob.Survey(("tall", "b", "c"), (tall, VOTE, TABLE)).plot(columns=2)
    figure.draw_without_rendering()
    left = {ax.get_title(loc="left"): ax.get_window_extent().x0 for ax in figure.axes}
    assert left["tall"] < left["b"]
    assert left["b"] == pytest.approx(left["c"], abs=60)
    assert len(ob.Survey(("a",), (VOTE,)).plot(columns=5).axes) == 1


def test_a_table_without_some_cells_leaves_gaps_and_many_categories_have_colours():
    cells = (("yes", "n"), ("yes", "s"), ("no", "n"))
    partial = replace(TABLE, drawn=(30, 30, 20), categories=cells, prior=(1.0,) * 3)
    (ax,) = ob.Survey(("partial",), (partial,)).plot().axes
    missing = [math.isnan(value) for mean, _ in drawn(ax) for value in mean]
    assert missing == [False, False, False, True]
    many = tuple((a, b) for a in "xy" for b in range(9))
    wide = replace(TABLE, drawn=(9,) * 18, categories=many, prior=(1.0,) * 18)
    (ax,) = ob.Survey(("wide",), (wide,)).plot().axes
    colours = {series.lines[0].get_color() for series in ax.containers}
    assert len(colours) == 9


def test_what_no_figure_can_have_is_refused():
    with pytest.raises(ValueError, match=r"columns=0: .*between 1 and"):
        SURVEY.plot(columns=0)
    with pytest.raises(ValueError, match=r"level=1\.5: must be"):
        SURVEY.plot(level=1.5)


def test_of_many_discovered_categories_the_most_frequent_are_drawn_and_everything_else() -> None:
    counts = {f"code {n:03}": 30 + (7 * n) % 150 for n in range(150)}
    loss = ob.PrivacyLoss(epsilon=1.0, rho=np.inf, range=np.inf, delta=1e-8)
    release = ob.DiscoveredRelease(
        column="code",
        categories=tuple(counts),
        drawn=tuple(counts.values()),
        listed=0,
        discovery=Discovery(OptimalThreshold(1.0, 1e-8, 0.75), DiscreteLaplace(5.0)),
        drawn_rest=800,
        guarantee=ob.PrivacyGuarantee(None, 1, loss, "Approximate(MaxDivergence)"),
    )
    (ax,) = ob.Survey(("code",), (release,)).plot(columns=1).axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    largest = sorted(counts, key=lambda label: -counts[label])[:99]
    assert set(labels[:-1]) == set(largest)
    assert counts[labels[0]] == max(counts.values())
    assert labels[-1] == "and everything else"
    assert "first 99 of 150 categories" in ax.get_title(loc="left").replace("\n", " ")
