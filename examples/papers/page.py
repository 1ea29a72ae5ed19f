"""Write the verdicts of `docs/research/papers.csv` into `docs/research/papers.md` and the page of
the smoothed plugin: `python examples/papers/page.py`.
"""

import csv
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    DOCS / "research" / "papers.md",
    ROOT / "plugins" / "opendp-bayes-smoothed" / "docs" / "smoothed.md",
)
#: The fewest words that are worth a reference in place of their repetition.
_WORTH = 6
#: The letters of the claims, one a document; the tailoring paper has two, for text and figures.
TABLES = "NITFPS"


def rows() -> list[dict[str, str]]:
    with (DOCS / "research" / "papers.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(letter: str) -> str:
    """The claims that are not true as they stand, after a line that names those that are."""
    true = [row["id"] for row in rows() if row["id"].startswith(letter) and row["verdict"] == "T"]
    lines = ["| claim | | what is claimed, and what was found |", "|---|---|---|"]
    claims = [row for row in rows() if row["verdict"] != "T"]
    for row, note in zip(claims, notes(claims), strict=True):
        if row["id"].startswith(letter):
            text = note.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
            lines.append(f"| {row['id']} | {row['verdict']} | {text.replace('<', '&lt;')} |")
    named = textwrap.fill(f"True as stated: {', '.join(true)}.", 100)
    return "\n".join([named, "", *lines])


def notes(claims: list[dict[str, str]]) -> list[str]:
    """What the pages show of each note: the claim and the reason without what was computed, and
    where an earlier note ends with the same words, a reference to it.
    """
    shown, known = [], {}
    for row in claims:
        note = row["note"]
        claim, label, _ = note.partition("Computed: ")
        note = f"{claim.rstrip('.:; ')}." if label else note
        ends = [match.end() for match in re.finditer(r"[.:;] ", note)]
        parts = [at for at in (0, *ends) if len(note[at:].split()) >= _WORTH]
        first = next((at for at in parts if note[at:] in known), None)
        shown.append(note if first is None else f"{note[:first]}As {known[note[first:]]}.")
        for at in parts:
            known.setdefault(note[at:], row["id"])
    return shown


def counted(letter: str) -> str:
    verdicts = [row["verdict"] for row in rows() if row["id"].startswith(letter)]
    shown = [f"{verdicts.count(v)} {v}" for v in "TCFN" if v in verdicts]
    return f"{len(verdicts)} claims: {', '.join(shown)}."


def filled(page: str) -> str:
    """The page with its tables and counts as the file says."""
    for letter in TABLES:
        page = re.sub(
            rf"(<!-- verdicts {letter} -->\n).*?(<!-- end -->)",
            lambda match, letter=letter: (
                f"{match[1]}{counted(letter)}\n\n{table(letter)}\n\n{match[2]}"
            ),
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
