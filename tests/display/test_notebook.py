"""The tables of a notebook, read with an HTML parser."""

from html.parser import HTMLParser

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee

LABELS = "<script>alert('a & b')</script>", True, 3
RELEASE = Release((12, 3, 5), LABELS, (1.0, 0.5, 2.0), LaplaceParameters(2.0), guarantee(20))

NOISE, LOSS = LaplaceParameters(2.0, total="private"), PrivacyLoss(0.5, 0.125, 1.0)
OF_GROUPS = ("<north>", None), ((12, 3), (0, 5)), ("a & b", 3), (1.0, 0.5)
GROUPED = GroupedRelease(*OF_GROUPS, NOISE, guarantee(None, LOSS))


class Page(HTMLParser):
    """The cells of every row and the text below; checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scopes: list[str] = []
        self.rows: list[list[str]] = []
        self.paragraph = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "th":
            self.scopes.append(dict(attrs)["scope"] or "")
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
        if "table" in self.open:
            self.rows[-1][-1] += data
        else:
            self.paragraph += data


def test_nothing_comes_from_elsewhere_and_every_header_says_what_it_heads() -> None:
    text = RELEASE._repr_html_()
    page = Page(text)
    assert page.rows[1][0] == "<script>alert('a & b')</script>"
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert page.attributes == {"style", "scope"}
    assert "url(" not in text
    assert "http" not in text
    assert Page(RELEASE._repr_html_()).scopes == ["col"] * 5 + ["row"] * 3
    assert Page(GROUPED._repr_html_()).scopes == ["col"] * 5 + ["row"] * 4
