"""The picture of a survey: what it draws is what the posteriors say."""

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

    def ends(series):
        segments = series.lines[2][0].get_segments()
        return np.array([segment[:, 0] for segment in segments if len(segment)])

    drawn = [series for series in ax.containers if hasattr(series, "lines")]
    return [(series.lines[0].get_xdata(), ends(series)) for series in drawn]


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_every_question_has_a_picture_of_its_means_and_intervals():
    figure = SURVEY.plot(level=0.8)
    of = {ax.get_title(loc="left"): ax for ax in figure.axes if ax.axison}
    assert set(of) == {"vote", "table", "groups"}
    for name, release, rows in (
        ("vote", VOTE, ["yes", "no"]),
        ("table", TABLE, ["yes, n", "yes, s", "no, n", "no, s"]),
    ):
        assert names(of[name]) == rows
        ((mean, ends),) = drawn(of[name])
        assert mean == pytest.approx(release.posterior.mean())
        assert pytest.approx(np.array(release.posterior.interval(0.8))) == ends.T
        assert of[name].get_legend() is None
    assert names(of["groups"]) == ["n", "(null)"]
    for at, one in enumerate(GROUPS.values()):
        for category, (mean, ends) in enumerate(drawn(of["groups"])):
            assert mean[at] == pytest.approx(one.posterior.mean()[category])
            lower, upper = one.posterior.interval(0.8)
            assert ends[at] == pytest.approx([lower[category], upper[category]])
    assert "All together: ε = 0.4" in figure.get_suptitle()
    assert "80 % intervals" in figure.get_suptitle()


@pytest.mark.parametrize("number", [7, 8])
def test_no_dot_of_a_row_hides_another_and_no_colour_is_of_two(number):
    labels = tuple("abcdefgh"[:number])
    drawn = ((20,) * number,) * len(GROUPS)
    groups = replace(GROUPS, noisy_counts=drawn, categories=labels, prior=(1.0,) * number)
    (ax,) = ob.Survey(("groups",), (groups,)).plot().axes
    heights = np.array([series.lines[0].get_ydata() for series in ax.containers])
    if number == 8:
        assert names(ax) == [f"{group}: {label}" for group in ("n", "(null)") for label in labels]
        assert heights.shape == (1, 16)
        return
    assert heights.mean(axis=0) == pytest.approx(range(len(GROUPS)))
    assert (np.diff(heights, axis=0) > 0.05).all()
    assert len({str(series.lines[0].get_color()) for series in ax.containers}) == number
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(labels)


def test_pictures_stand_in_rows():
    figure = ob.Survey(("a", "b", "c"), (VOTE, VOTE, TABLE)).plot(columns=2)
    assert [ax.axison for ax in figure.axes] == [True, True, True, False]
    assert len(ob.Survey(("a",), (VOTE,)).plot(columns=5).axes) == 1


def test_what_no_figure_can_have_is_refused():
    with pytest.raises(ValueError, match=r"columns=0: .*between 1 and"):
        SURVEY.plot(columns=0)
    with pytest.raises(ValueError, match=r"level=1\.5: must be"):
        SURVEY.plot(level=1.5)


def test_of_many_discovered_categories_the_most_frequent_are_drawn() -> None:
    counts = {f"code {n:03}": 30 + (7 * n) % 150 for n in range(150)}
    loss = ob.PrivacyLoss(epsilon=1.0, rho=np.inf, range=np.inf, delta=1e-8)
    law = Discovery(OptimalThreshold(1.0, 1e-8, 0.75), DiscreteLaplace(5.0))
    guarantee = ob.PrivacyGuarantee(None, 1, loss, "Approximate(MaxDivergence)")
    drawn = tuple(counts), tuple(counts.values())
    release = ob.DiscoveredRelease("code", *drawn, 0, law, 800, guarantee)
    (ax,) = ob.Survey(("code",), (release,)).plot(columns=1).axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert set(labels) == set(sorted(counts, key=lambda label: -counts[label])[:100])
    assert counts[labels[0]] == max(counts.values())
    assert "first 100 of 151 rows" in ax.get_xlabel()
