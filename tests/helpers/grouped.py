"""Arguments of a question by groups."""

from collections.abc import Mapping
from typing import Any


def with_groups(asked: Any, groups: Mapping[Any, Any], column: str = "vote") -> dict[str, Any]:
    """The arguments of a question, with the public values of columns that make groups."""
    own = {asked.get("column", column): asked.get("categories")}
    return {**asked, "categories": {**own, **groups}}
