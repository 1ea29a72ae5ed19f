"""Files of the repository that its own tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "opendp_bayes", *sorted((ROOT / "plugins").glob("*/opendp_bayes_*"))]
SOURCES = sorted(path for folder in PACKAGES for path in folder.rglob("*.py"))
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "plugins").glob("*/docs/*.md")),
]
