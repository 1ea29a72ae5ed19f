"""Where mistakes are not planted, because none there changes what a caller gets: annotations,
imports for type checkers, overloads, methods of protocols, texts of exceptions, caches, `strict`
of `zip`, and which arguments may be given without their names.
"""

import ast
from collections.abc import Iterator

Range = tuple[tuple[int, int], tuple[int, int]]


class Places:
    """The places of a text where no mistake is planted."""

    def __init__(self, source: str) -> None:
        self._lines = source.split("\n")
        self._ranges = list(_ranges(ast.parse(source)))

    def __contains__(self, place: Range) -> bool:
        """Whether what begins and ends here (lines from 1, columns from 0) is in one of them."""
        start, end = place
        line = self._lines[start[0] - 1] if start[0] <= len(self._lines) else ""
        alone = line[start[1] :].startswith(("*,", "/,"))
        return alone or any(first <= start and end <= last for first, last in self._ranges)


def _ranges(tree: ast.AST) -> Iterator[Range]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            yield _range(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            if node.returns:
                yield _range(node.returns)
            if any(_name(each) == "overload" for each in node.decorator_list):
                yield (node.decorator_list[0].lineno, 0), _range(node)[1]
            for each in node.decorator_list:
                if _name(each) in ("cache", "lru_cache"):
                    yield (each.lineno, 0), (_range(each)[1][0] + 1, 0)
        elif isinstance(node, ast.ClassDef):
            if any(_name(each) == "Protocol" for each in node.bases):
                yield _range(node)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from map(_range, node.exc.args)
        elif isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            yield _range(node)
        elif isinstance(node, ast.Call) and _name(node.func) == "zip":
            yield from map(_range, node.keywords)


def _name(node: ast.expr) -> str:
    """The last part of the name of what may be called or have arguments."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _range(node: ast.AST) -> Range:
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    return start, end
