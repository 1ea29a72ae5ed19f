"""Mechanisms by name: the built-in ones, and those that installed packages register under an entry
point.

An entry point's code runs inside the privacy boundary, so it is loaded only when the user names it
to `load_mechanism`.
"""

import dataclasses
from importlib.metadata import entry_points
from typing import Any

from opendp_bayes.mathematics.telling import meant, told
from opendp_bayes.mathematics.validation import as_text
from opendp_bayes.mechanisms import (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    PermuteAndFlip,
    SmoothHellingerExponential,
)

#: Entry point group in which a package registers its mechanism classes, each under the class's
#: `name`.
GROUP = "opendp_bayes.mechanisms"

#: The mechanisms of this package. Exactly these are accounted for exactly from their laws: a
#: subclass, or a mechanism from elsewhere, may draw from another law than the one it states.
BUILT_IN: tuple[type[Any], ...] = (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    PermuteAndFlip,
    SmoothHellingerExponential,
)

_classes: dict[str, type[Any]] = {kind.name: kind for kind in BUILT_IN}
#: Those that only documents name.
_in_documents: dict[str, type[Any]] = {}


def available_mechanisms() -> list[str]:
    """Names of the built-in mechanisms and of those that installed packages register; loads
    nothing.

    Examples
    --------
    >>> "laplace_parameters" in available_mechanisms()
    True
    """
    return sorted({*_classes, *entry_points(group=GROUP).names})


def load_mechanism(name: str) -> type[Any]:
    """Return the mechanism class registered under a name, importing the package that provides it if
    it is not built in.

    Parameters
    ----------
    name : str
        One of `available_mechanisms()`.

    Raises
    ------
    ValueError
        For an unknown name.
    TypeError
        For an entry point that is not a mechanism.
    """
    if as_text(name, "name") not in _classes:
        registered = list(entry_points(group=GROUP, name=name))
        if len(registered) != 1:
            problem = (
                "is not an installed mechanism"
                if not registered
                else f"is registered by {len(registered)} packages"
            )
            available = available_mechanisms()
            hint = "" if registered else meant(name, available)
            raise ValueError(
                f"mechanism={told(name)}: {problem}; available: {', '.join(available)}.{hint}"
            )
        kind: Any = registered[0].load()
        required = ("check", "log_pmf", "sample", "proven_loss")
        is_mechanism: bool = (
            isinstance(kind, type)
            and dataclasses.is_dataclass(kind)
            and getattr(kind, "name", None) == name
        )
        if not (is_mechanism and all(callable(getattr(kind, method, None)) for method in required)):
            raise TypeError(
                f"mechanism={name!r}: {registered[0].value} must be a dataclass with name ="
                f" {name!r} and the methods {', '.join(required)}."
            )
        _classes[name] = kind
    return _classes[name]


def register_for_documents(kind: type[Any]) -> None:
    """Let documents name a mechanism class that has no entry point, once its module is imported: no
    query finds it by name.

    Parameters
    ----------
    kind : type[Any]
        A dataclass with a `name`; where another mechanism is loaded by that name, it is meant.
    """
    _in_documents[kind.name] = kind


def known_mechanism(name: str) -> type[Any]:
    """Return a class that is built in, loaded or registered for documents; `ValueError` otherwise,
    without importing anything.
    """
    kind = _classes.get(name) or _in_documents.get(name)
    if kind is None:
        raise ValueError(
            f"mechanism={name!r}: is not built in; if an installed package provides it, import"
            f" the package that has its constructor, or call load_mechanism({name!r}) first; on the"
            f" command line give --mechanism {name}."
        )
    return kind
