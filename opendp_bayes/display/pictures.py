"""Parts that all pictures share: colours, labels in lines, and matplotlib (extra `plot`), imported
when a picture is made.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opendp_bayes.display.sheet import CONTROLS
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Blue of Okabe and Ito, which colour-blind readers tell from the vermilion.
NOISE_AWARE = "#0072B2"
#: Vermilion of Okabe and Ito; the plug-in posterior is dashed as well, for print without colours.
PLUG_IN = "#D55E00"
GREY = "#595959"
#: Characters of a line of a category's label, and how many more a word may have.
LINE, _LONGER = 30, 2
#: Bars, rows or small pictures of one kind that a picture has at most; the first are drawn.
MOST_DRAWN = 100
#: Lines of a category's label; the rest is left out.
_LINES = 3


def pyplot(ax: Any = None, title: Any = None) -> Any:
    """Import `matplotlib.pyplot`.

    Raises
    ------
    ImportError
        With the extra to install.
    TypeError
        For axes and a title that are none.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'opendp-bayes[plot]'.") from None
    if not isinstance(ax, Axes | None):
        raise TypeError(f"ax={told(ax)}: must be axes of matplotlib, or None for new ones.")
    if title is not None:
        as_text(title, "title")
    return plt


def first_of(number: int, what: str) -> str:
    """Say in brackets that a picture shows the first of so many; empty where it shows all."""
    return f" (the first {MOST_DRAWN} of {number} {what})" if number > MOST_DRAWN else ""


def with_grid(ax: "Axes", *, frame: Sequence[str] = ("top", "right")) -> None:
    """Draw lines upwards from the ticks below, behind everything, in place of some of the frame."""
    ax.spines[[*frame]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis="x", color="#e6e6e6")


def write_above(ax: "Axes", sentences: str) -> None:
    """Lines in small print between the title and the axes."""
    ax.annotate(
        sentences,
        (0, 1),
        (0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize="small",
        color=GREY,
        va="bottom",
    )


def wrapped(label: object, width: int = LINE) -> str:
    """A label in lines of that width, of which the third may end in an ellipsis; a word that is a
    little longer stays whole.
    """
    text = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(label))
    longest = max(map(len, text.split()), default=0)
    width = longest if width < longest <= width + _LONGER else width
    return textwrap.fill(text, width, max_lines=_LINES, placeholder=" …") or text
