"""Records that are not counted."""

from enum import Enum


class LeftOut(Enum):
    """The type of `DROP`, which is no label: a category may have any name."""

    DROP = "left out"

    def __repr__(self) -> str:
        return self.name


#: For `nulls=` and `unknown=` of a posterior: leave such records out. Only where the number of
#: records is private, because that of those which are left is.
DROP = LeftOut.DROP
