"""What touches data or opens a budget is called in the trusted room alone, by syntax tree."""

import ast
from pathlib import Path

import opendp_bayes

PACKAGE = Path(opendp_bayes.__file__).parent
#: Methods and functions of polars that read a frame or the names in it, and OpenDP's way to a
#: Context.
OPENING = {"collect", "collect_async", "collect_batches", "collect_schema", "compositor", "fetch"}
PREFIXES = ("scan_", "sink_", "read_csv", "read_ipc", "read_parquet", "read_json", "read_excel")
#: Functions of our own that are named alike.
OURS = {"scan_columns"}
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if "trusted" not in path.parts)


def touches(source: str) -> set[str]:
    """Names of the attributes and functions in a module that read a frame or open a Context."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        name = getattr(node, "attr", None) if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("polars"):
            found |= {each.name for each in node.names}
        if name in OPENING or (name and name.startswith(PREFIXES) and name not in OURS):
            found.add(str(name))
    return found


def test_outside_of_the_trusted_room_no_frame_is_read() -> None:
    """Negative control, the trusted room itself among others."""
    assert len(OUTSIDE) > 100
    for path in OUTSIDE:
        assert touches(path.read_text(encoding="utf-8")) == set(), path
    inside = "".join(
        path.read_text(encoding="utf-8")
        for path in (PACKAGE / "trusted").glob("*")
        if path.suffix == ".py"
    )
    assert {"collect_schema", "scan_parquet", "sink_parquet", "compositor"} <= touches(inside)
    assert touches("frame.lazy().sink_csv('x')") == {"sink_csv"}
    assert touches("from polars import read_csv") == {"read_csv"}
