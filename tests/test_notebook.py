"""The table of a notebook, read with an HTML parser."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from opendp_bayes import HellingerExponential, LaplaceParameters, PrivacyLoss, Release
from opendp_bayes.notebook import release_html

RELEASE = Release(
    counts=(12, 3, 5),
    categories=("<script>alert('a & b')</script>", True, 3),
    prior=(1.0, 0.5, 2.0),
    mechanism=LaplaceParameters(2.0),
    size=20,
    d_in=1,
    loss=PrivacyLoss(1.0, 0.5, 2.0),
    measure="MaxDivergence",
)


class Page(HTMLParser):
    """The cells of every row and the text of paragraphs; checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.rows: list[list[str]] = []
        self.paragraph = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "p" in self.open:
            self.paragraph += data
        else:
            self.rows[-1][-1] += data


def test_rows_have_what_the_posteriors_say() -> None:
    page = Page(RELEASE._repr_html_())
    assert page.rows[0] == ["Category", "Released count", "Posterior mean", "95\xa0% interval", "Plug-in 95\xa0% interval(ignores the noise)"]
    frame = RELEASE.to_frame()
    for row, (label, *shown) in zip(frame.iter_rows(named=True), page.rows[1:], strict=True):
        assert label == row["category"]
        assert shown == [
            str(row["count"]),
            f"{row['mean']:.3f}",
            f"{row['lower']:.3f}\xa0to\xa0{row['upper']:.3f}",
            f"{row['plug_in_lower']:.3f}\xa0to\xa0{row['plug_in_upper']:.3f}",
        ]


def test_the_paragraph_has_guarantee_mechanism_and_how_to_read_it() -> None:
    paragraph = Page(RELEASE._repr_html_()).paragraph
    assert paragraph.startswith("ε = 1 for data sets that differ by 1 record changed. The number of records, 20, is public. Mechanism: LaplaceP")
    assert "takes the released counts for the data" in paragraph


def test_nothing_comes_from_elsewhere_and_labels_are_text() -> None:
    text = RELEASE._repr_html_()
    page = Page(text)
    assert page.rows[1][0] == "<script>alert('a & b')</script>"
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "code", "br"}
    assert page.attributes == {"style"}
    assert "url(" not in text
    assert "http" not in text


def test_the_level_is_in_headings_and_intervals() -> None:
    text = release_html(RELEASE, level=0.5)
    lower, upper = RELEASE.posterior.interval(0.5)
    assert "50&nbsp;% interval" in text
    assert f"{lower[0]:.3f}&nbsp;to&nbsp;{upper[0]:.3f}" in text
    with pytest.raises(ValueError, match=r"level=2: must be between 0 and 1"):
        release_html(RELEASE, level=2)


def test_a_posterior_that_takes_long_is_not_waited_for() -> None:
    release = replace(RELEASE, mechanism=HellingerExponential(0.5))
    page = Page(release._repr_html_())
    assert [len(row) for row in page.rows] == [3] * 4
    assert "call release.posterior, then show the release again" in page.paragraph
    assert "posterior" not in vars(release)
    assert release.posterior is not None
    assert [len(row) for row in Page(release._repr_html_()).rows] == [5] * 4


def test_without_a_noise_aware_posterior_the_paragraph_says_why() -> None:
    page = Page(replace(RELEASE, mechanism=HellingerExponential(0.5), size=None)._repr_html_())
    assert "There is no noise-aware posterior of this release" in page.paragraph
