"""Make `then_x` of a constructor `make_x`, for chains by `>>`; refuse chains in which a map would
not hold.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from opendp.extras._utilities import to_then as to_opendp_then
from opendp.mod import Transformation, _PartialConstructor


class Then(_PartialConstructor, Transformation):  # type: ignore[misc] # __call__ is of the first
    """A constructor that lacks nothing but its input space, which stands before `>>`.

    OpenDP takes whatever can be called for post-processing when it follows a measurement, and a
    partial constructor can. Of a transformation it asks for the function, so this is one in name,
    without any of its own, and says there that it does not follow.
    """

    _type_ = Transformation._type_

    def __init__(self, partial: _PartialConstructor, name: str) -> None:
        super().__init__(partial.constructor)  # type: ignore[no-untyped-call]
        self._name = name

    def __rshift__(self, other: Any) -> "Then":
        return Then(_PartialConstructor(lambda *space: self(*space) >> other), self._name)

    def __rrshift__(self, other: Any) -> Any:
        if isinstance(other, _PartialConstructor):
            return Then(_PartialConstructor(lambda *space: other(*space) >> self), self._name)
        if isinstance(other, Transformation):
            return other >> self.constructor(*other.output_space)
        return super().__rrshift__(other)  # type: ignore[no-untyped-call]

    @property
    def function(self) -> NoReturn:
        raise ValueError(
            f"{self._name}: cannot follow a measurement. It is made for the data themselves, and a"
            " measurement gives what is released, noise and all, for which its map does not hold."
            " Let it follow a transformation. A release has its posterior already:"
            " `release.posterior`."
        )

    def __repr__(self) -> str:
        return f"{self._name}(...)"

    def __del__(self) -> None:
        """There is nothing in OpenDP's core to free."""


def to_then(constructor: Callable[..., Any]) -> Callable[..., Then]:
    """The constructor without its first two arguments, `input_domain` and `input_metric`, which
    `>>` supplies.
    """
    partial = to_opendp_then(constructor)

    @wraps(partial)
    def then(*args: Any, **kwargs: Any) -> Then:
        return Then(partial(*args, **kwargs), then.__name__)

    return then
