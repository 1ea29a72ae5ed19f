"""Check the types of the code on pages, as a user's `mypy --strict` would.

`python docs/check_types.py README.md` makes one module of each page named, with every line where it
is on the page, so that an error names the line of the page.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mypy import api

#: No configuration of ours; and what some data set's package says of its types is not ours either.
OPTIONS = ("--strict", "--config-file=", "--disable-error-code=import-untyped")


def code_of(page: str) -> str:
    """The Python code of a Markdown page without prompts; everything else becomes empty lines."""
    lines: list[str] = []
    inside = prompts = False
    for line in page.splitlines():
        if line.startswith("```"):
            inside, prompts = line == "```python" and not inside, False
            lines.append("")
            continue
        prompts = prompts or line.startswith(">>> ")
        kept = inside and (not prompts or line.startswith((">>> ", "... ")))
        lines.append(line[4 if prompts else 0 :] if kept else "")
    return "\n".join(lines) + "\n"


def main(pages: list[str]) -> int:
    """Print what mypy says of the pages; 0 if it has nothing to say."""
    with TemporaryDirectory() as folder:
        modules = []
        for page in map(Path, pages):
            modules.append(Path(folder, page.stem.lower() + ".py"))
            modules[-1].write_text(code_of(page.read_text(encoding="utf-8")), encoding="utf-8")
        out, err, status = api.run([*OPTIONS, *map(str, modules)])
    sys.stderr.write(out + err)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
