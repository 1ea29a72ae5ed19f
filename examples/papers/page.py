"""Write the verdicts of `docs/research/papers.csv`, and the tables among the numbers of the
figures, into `docs/research/papers.md`: `python examples/papers/page.py`.
"""

import csv
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
#: The letters of the claims, one a document; the tailoring paper has two, for text and figures.
TABLES = "NITFPS"


def rows() -> list[dict[str, str]]:
    with (DOCS / "research" / "papers.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(letter: str) -> str:
    lines = ["| claim | | what is claimed, and what was found |", "|---|---|---|"]
    for row in rows():
        if row["id"].startswith(letter):
            note = row["note"].replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
            note = note.replace("<", "&lt;")
            lines.append(f"| {row['id']} | {row['verdict']} | {note} |")
    return "\n".join(lines)


def counted(letter: str) -> str:
    verdicts = [row["verdict"] for row in rows() if row["id"].startswith(letter)]
    shown = [f"{verdicts.count(v)} {v}" for v in "TCFN" if v in verdicts]
    return f"{len(verdicts)} claims: {', '.join(shown)}."


def numbers(name: str) -> str:
    """A table of the folder of figures."""
    with (DOCS / "images" / "papers" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        head, *body = csv.reader(file)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in body])


def filled(page: str) -> str:
    """The page with its tables and counts as the files say."""
    page = re.sub(
        r"(<!-- numbers (\w+) -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{numbers(match[2])}\n\n{match[3]}",
        page,
        flags=re.DOTALL,
    )
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
    path = DOCS / "research" / "papers.md"
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
