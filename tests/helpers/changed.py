"""Say the tests of rooms that differ from a commit: `python -m tests.helpers.changed [COMMIT]`."""

import subprocess
import sys

from tests.helpers.sources import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Always: they look at rooms together.
TOGETHER = ["tests/hostile", *(f"tests/test_{of}.py" for of in ("imports", "tests", "classes"))]


def layers() -> list[list[str]]:
    """The rooms of the house from above, those of a floor together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["opendp_bayes"]
    )
    return [floor.split(" | ") for floor in contract["layers"]]


def places_for(changed: list[str]) -> list[str]:
    """Places with tests for changed files, all where a file belongs to no room."""
    floors = layers()
    rooms = {room for floor in floors for room in floor}
    lowest = -1
    found: dict[str, None] = {}
    for file in changed:
        folder, _, rest = file.partition("/")
        room = rest.split("/")[0].removesuffix(".py")
        if folder == "opendp_bayes" and room in rooms:
            lowest = max(lowest, *(at for at, floor in enumerate(floors) if room in floor))
        elif (
            folder == "tests" and rest.endswith(".py") and not rest.startswith("helpers/")
        ) or file.endswith(".md"):
            found[file] = None
        elif folder == "plugins":
            found[f"plugins/{room}"] = None
            # The hostile tests give the command what nobody should.
            found |= dict.fromkeys(TOGETHER if room == "opendp-bayes-office" else [])
        else:
            return ["tests", "plugins", "opendp_bayes", "README.md", "docs"]
    above = [room for floor in floors[: lowest + 1] for room in floor]
    for room in above:
        found |= {
            place: None
            for place in (f"tests/{room}", f"opendp_bayes/{room}", f"opendp_bayes/{room}.py")
            if (ROOT / place).exists()
        }
    together = [*TOGETHER, "plugins"] if above else []
    return [place for place in dict.fromkeys([*found, *together]) if (ROOT / place).exists()]


def main() -> None:
    since = sys.argv[1] if len(sys.argv) > 1 else "main"
    command = ["git", "diff", "--name-only", "--no-renames", since]
    changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    sys.stdout.write(" ".join(places_for(changed.stdout.split())))


if __name__ == "__main__":
    main()
