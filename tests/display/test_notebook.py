"""The tables of a notebook, read with an HTML parser."""

from html.parser import HTMLParser

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release, plan
from opendp_bayes.mechanisms import HellingerExponential
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import changed, guarantee

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


def test_rows_have_what_the_posteriors_say() -> None:
    page = Page(RELEASE._repr_html_())
    heading = ["Category", "Released count", "Mean", "95\xa0% interval"]
    assert page.rows[0] == [*heading, "Plug-in 95\xa0% (ignores noise)"]
    frame = RELEASE.to_frame(plug_in=True)
    for row, (label, *shown) in zip(frame.iter_rows(named=True), page.rows[1:], strict=True):
        assert label == row["category"]
        assert shown == [
            str(row["count"]),
            f"{row['mean']:.3f}",
            f"{row['lower']:.3f} to {row['upper']:.3f}",
            f"{row['plug_in_lower']:.3f} to {row['plug_in_upper']:.3f}",
        ]


def test_the_paragraph_has_guarantee_and_mechanism() -> None:
    paragraph = Page(RELEASE._repr_html_()).paragraph
    assert paragraph.startswith(
        "ε = 1 for data sets that differ by 1 record changed. The number of records, 20, is public."
        " Mechanism: discrete Laplace noise, scale "
    )


def test_nothing_comes_from_elsewhere_and_labels_are_text() -> None:
    text = RELEASE._repr_html_()
    page = Page(text)
    assert page.rows[1][0] == "<script>alert('a & b')</script>"
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert page.attributes == {"style", "scope"}
    assert "url(" not in text
    assert "http" not in text


def test_a_posterior_that_takes_long_is_not_waited_for() -> None:
    release = changed(RELEASE, mechanism=HellingerExponential(0.5))
    page = Page(release._repr_html_())
    assert [len(row) for row in page.rows] == [2] * 4, "nor an interval that ignores the noise"
    assert "takes long, and is not waited for here: print its sheet" in page.paragraph
    assert "posterior" not in vars(release)
    assert release.posterior is not None
    assert [len(row) for row in Page(release._repr_html_()).rows] == [5] * 4


def test_without_a_noise_aware_posterior_the_paragraph_says_why() -> None:
    page = Page(changed(RELEASE, mechanism=HellingerExponential(0.5), size=None)._repr_html_())
    assert "There is no noise-aware posterior of this release" in page.paragraph


def test_every_header_says_what_it_heads() -> None:
    assert Page(RELEASE._repr_html_()).scopes == ["col"] * 5 + ["row"] * 3
    assert Page(GROUPED._repr_html_()).scopes == ["col"] * 5 + ["row"] * 4


def test_a_grouped_release_has_a_row_for_every_group_and_category() -> None:
    page = Page(GROUPED._repr_html_())
    assert page.rows[0] == ["Group", "Category", "Released count", "Mean", "95\xa0% interval"]
    assert [row[0] for row in page.rows[1:]] == ["<north>", "<north>", "(null)", "(null)"]
    for row, shown in zip(GROUPED.to_frame().iter_rows(named=True), page.rows[1:], strict=True):
        assert shown[-4:] == [
            row["category"],
            str(row["count"]),
            f"{row['mean']:.3f}",
            f"{row['lower']:.3f} to {row['upper']:.3f}",
        ]
    assert page.paragraph.startswith(
        "All groups together: ε = 0.5 for data sets that differ by 1 record added or removed."
    )


def test_posteriors_of_groups_that_take_long_together_are_not_waited_for() -> None:
    of = {"categories": tuple(range(20)), "prior": (1.0,) * 20}
    many = changed(GROUPED, groups=tuple(range(200)), noisy_counts=((50,) * 20,) * 200, **of)
    page = Page(many._repr_html_())
    assert page.rows[0] == ["Group", "Category", "Released count"]
    assert "takes long, and is not waited for here: print its sheet" in page.paragraph
    assert all("posterior" not in vars(release) for release in many.values())


def test_a_plan_has_a_row_for_every_mechanism_that_can_be_used() -> None:
    mechanisms = [LaplaceParameters(1.0, total="private"), HellingerExponential(1.0)]
    of = {"size": None, "guess_size": 90, "prior": [1.0, 1.0], "epsilon": 1.0}
    found = plan(mechanisms=mechanisms, proportions=[0.3, 0.7], **of)
    page = Page(found._repr_html_())
    errors = [f"Error, {name}" for name in found.proportions]
    heading = ["Mechanism, best first", "Scale", "ε", "ρ"]
    assert page.rows[0] == [*heading, *errors, "Width, balanced"]
    ((name, scale, epsilon, _, *errors, width),) = page.rows[1:]
    assert (name, scale, epsilon) == ("LaplaceParameters (discrete, private)", "1", "1")
    assert errors == [
        f"{error.hellinger:.4f}{'*' * (error.method == 'simulated')}"
        for error in found.rows[0].errors.values()
    ]
    planned = found.rows[0].errors["balanced"].interval_width
    assert width.rstrip("*") == f"{planned:.4f}"
    refused = f"HellingerExponential cannot be used. {found.rows[1].refused}"
    for part in (
        f"Recommended: {found.reason}",
        "Plan for ε = 1. A private number of records, guessed to be 90",
        refused,
    ):
        assert part in page.paragraph
