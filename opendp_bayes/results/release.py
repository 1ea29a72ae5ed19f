"""What the analyst holds: a frozen release, with its JSON form and the papers' plug-in posterior."""

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from scipy import stats

from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.registry import known_mechanism

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from opendp_bayes.inference import NoiseAwarePosterior

Label = str | bool | int
Relation = Literal["change-one", "add/remove"]

_FORMAT = "opendp-bayes release"
_VERSION = 1


def relation_of(size: int | None) -> Relation:
    """The neighbour relation that goes with a public (`int`) or private (`None`) number of records."""
    return "add/remove" if size is None else "change-one"


@dataclass(frozen=True, eq=True)
class Release:
    """A private release of a posterior. Plain data: everything here may be published.

    Attributes
    ----------
    counts : released counts, one for each category, non-negative.
    categories : the category labels.
    prior : concentration of the prior, one entry for each category.
    mechanism : the mechanism that made the release, with its scale.
    size : the public number of records under change-one neighbours; None under add/remove, where it
        is private.
    d_in : the distance between neighbouring data sets that `loss` is for, in records changed, or
        added and removed.
    loss : certified upper bounds on the privacy loss (`PrivacyLoss`).
    measure : the OpenDP privacy measure the release was made under.
    """

    counts: tuple[int, ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: Mechanism
    size: int | None
    d_in: int
    loss: PrivacyLoss
    measure: str

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def relation(self) -> Relation:
        """The neighbour relation: `"change-one"` or `"add/remove"`."""
        return relation_of(self.size)

    @property
    def concentration(self) -> Floats:
        """Concentration of the released posterior, `prior + counts`, shape `(k,)`."""
        return np.array(self.prior) + np.array(self.counts)

    @property
    def epsilon(self) -> float:
        """Upper bound on ε, holding together with `delta`."""
        return self.loss.epsilon

    @property
    def delta(self) -> float:
        """The δ that goes with `epsilon`; 0 for a pure guarantee."""
        return self.loss.delta

    @property
    def rho(self) -> float:
        """Upper bound on ρ of zero-concentrated differential privacy."""
        return self.loss.rho

    @property
    def plug_in(self) -> Any:
        """The papers' posterior: the released counts taken as if they were the data.

        A frozen `scipy.stats.beta` (k = 2, probability of the first category) or
        `scipy.stats.dirichlet`. It leaves the noise out of account, so its intervals are too short
        (`docs/limits.md`); `posterior` does not.
        """
        return (
            stats.beta(*self.concentration) if self.k == 2 else stats.dirichlet(self.concentration)
        )

    @cached_property
    def posterior(self) -> "NoiseAwarePosterior":
        """The posterior of the category probabilities given the release, its noise taken into
        account (`NoiseAwarePosterior`).

        Computed when first used. `noise_aware_posterior` makes one with other than the default
        settings.
        """
        from opendp_bayes.inference import noise_aware_posterior

        return noise_aware_posterior(self)

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> "Axes":
        """Draw `posterior` beside `plug_in`, with intervals of probability `level`, on `ax` or on
        new axes; returns the axes.

        Two categories: the densities of the probability of the first. More: a bar with intervals
        for each. The guarantee stands above, and `title` above it. On axes narrower than about 5
        inches they do not fit: use `plotting.plot_posterior` with `compact=True`. Raises
        `ImportError` without matplotlib (extra `plot`), `ValueError` unless `0 < level < 1`, or
        where the posterior is refused.
        """
        from opendp_bayes.results.figures import plot_posterior

        return plot_posterior(self, ax, level=level, title=title)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each category, the results with equal-tailed intervals of
        probability `level`.

        Columns: `category` as text, `count` as released, `mean`, `std`, `lower`, `upper` of
        `posterior`, and the same of `plug_in` as `plug_in_mean`, `plug_in_std`, `plug_in_lower`,
        `plug_in_upper`. Raises `ValueError` unless `0 < level < 1`, or where the posterior is
        refused.
        """
        import polars as pl

        from opendp_bayes.inference.estimates import noise_aware_estimate, plug_in_estimate

        aware, plug_in = (
            vars(noise_aware_estimate(self, level)),
            vars(plug_in_estimate(self, level)),
        )
        labels = pl.Series(list(map(str, self.categories)), dtype=pl.String)
        taken = {f"plug_in_{name}": values for name, values in plug_in.items()}
        return pl.DataFrame(
            {
                "category": labels,
                "count": pl.Series(list(self.counts), dtype=pl.Int64),
                **aware,
                **taken,
            }
        )

    def _repr_html_(self) -> str:
        """The table that notebooks show. The noise-aware columns need `posterior` to be quick to
        compute, or computed before.
        """
        from opendp_bayes.report.notebook import release_html

        return release_html(self)

    def with_loss(self, *, d_in: int, loss: PrivacyLoss, measure: str) -> "Release":
        """The same release with its privacy loss stated for another distance or measure."""
        return replace(self, d_in=d_in, loss=loss, measure=measure)

    def to_json(self) -> str:
        """The release as JSON; `Release.from_json` reads it back."""
        document = _Document(
            format=_FORMAT,
            version=_VERSION,
            counts=list(self.counts),
            categories=list(self.categories),
            prior=list(self.prior),
            mechanism=_Mechanism(name=self.mechanism.name, parameters=asdict(self.mechanism)),
            size=self.size,
            d_in=self.d_in,
            loss=_Loss(
                **{name: _finite_or_none(value) for name, value in asdict(self.loss).items()}
            ),
            measure=self.measure,
        )
        return msgspec.json.encode(document).decode()

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of what `to_json` writes. `from_json` checks more: what
        has to agree, such as the numbers of entries.
        """
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **msgspec.json.schema(_Document),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> "Release":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        A mechanism from a plugin must have been named to `load_mechanism` before: a document does
        not choose what code is loaded. Raises `ValueError` that names the field and what is wrong
        with it.
        """
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"text: must be str or bytes, not {type(text).__name__}.")
        try:
            document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"text: is not a release in JSON: {error}") from None
        document.check()
        return cls(
            counts=tuple(document.counts),
            categories=tuple(document.categories),
            prior=tuple(document.prior),
            mechanism=document.mechanism.value(),
            size=document.size,
            d_in=document.d_in,
            loss=document.loss.value(),
            measure=document.measure,
        )

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{label!r}: {count}" for label, count in zip(self.categories, self.counts, strict=True)
        )
        size = f"size={self.size}, " if self.size is not None else ""
        return (
            f"Release({{{counts}}}, prior={list(self.prior)}, mechanism={self.mechanism},"
            f" relation={self.relation!r}, {size}d_in={self.d_in}, epsilon={self.epsilon:.6g},"
            f" delta={self.delta:.3g}, rho={self.rho:.6g}, measure={self.measure!r})"
        )


def _field(description: str, **constraints: Any) -> msgspec.Meta:
    """What the JSON schema says of a field. `_Document.check` checks the constraints, with messages
    that say what to do.
    """
    return msgspec.Meta(description=description, extra_json_schema=constraints or None)


_NUMBERS = {"minItems": 2}
_Bound = Annotated[float | None, _field("An upper bound; null is infinite.", minimum=0)]


class _Mechanism(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, _field("As `load_mechanism` knows it.")]
    parameters: Annotated[
        dict[str, float | str | None], _field("Its parameters, the scale among them.")
    ]

    def value(self) -> Mechanism:
        kind = known_mechanism(self.name)
        try:
            return kind(**self.parameters)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"mechanism: {self.name} does not accept these parameters: {error}"
            ) from None


class _Loss(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`None` stands for infinity, which JSON does not have."""

    epsilon: _Bound
    rho: _Bound
    range: _Bound
    delta: Annotated[float, _field("Goes with epsilon.", minimum=0, maximum=1)]
    method: Annotated[str, _field("How the bounds were found.")]

    def value(self) -> PrivacyLoss:
        epsilon, rho, spread = (
            math.inf if bound is None else bound for bound in (self.epsilon, self.rho, self.range)
        )
        return PrivacyLoss(
            epsilon=epsilon, rho=rho, range=spread, delta=self.delta, method=self.method
        )


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A private release of a posterior."""

    format: Annotated[str, _field("What the document is.", const=_FORMAT)]
    version: Annotated[int, _field("Of the format.", const=_VERSION)]
    counts: Annotated[
        list[Annotated[int, _field("Of one category.", minimum=0)]],
        _field("Released, one for each category.", **_NUMBERS),
    ]
    categories: Annotated[list[str | bool | int], _field("Labels.", uniqueItems=True, **_NUMBERS)]
    prior: Annotated[
        list[Annotated[float, _field("Of one category.", exclusiveMinimum=0)]],
        _field("Concentration of the prior.", **_NUMBERS),
    ]
    mechanism: Annotated[_Mechanism, _field("Made the release.")]
    size: Annotated[
        int | None, _field("The public number of records; null where it is private.", minimum=1)
    ]
    d_in: Annotated[
        int,
        _field(
            "Records changed, or added and removed, between the data sets that `loss` is for.",
            minimum=0,
        ),
    ]
    loss: Annotated[_Loss, _field("Certified upper bounds.")]
    measure: Annotated[str, _field("The OpenDP measure of the release.")]

    def check(self) -> None:
        """Raise `ValueError` for values that no release has."""
        k = len(self.categories)
        bounds = [
            bound
            for bound in (self.loss.epsilon, self.loss.rho, self.loss.range)
            if bound is not None
        ]
        rules = [
            (self.format == _FORMAT, f"format={self.format!r}: must be {_FORMAT!r}."),
            (
                self.version == _VERSION,
                (
                    f"version={self.version}: this package reads version {_VERSION}; use the"
                    " package version that wrote it."
                ),
            ),
            (
                k >= 2 and len({(type(c), c) for c in self.categories}) == k,
                f"categories={self.categories!r}: must be at least 2 different labels.",
            ),
            (
                len(self.counts) == k and all(0 <= c < 2**63 for c in self.counts),
                f"counts={self.counts!r}: must be {k} numbers from 0 to 2^63.",
            ),
            (
                len(self.prior) == k and all(0 < p < math.inf for p in self.prior),
                f"prior={self.prior!r}: must be {k} numbers greater than 0.",
            ),
            (
                self.size is None or self.size >= 1,
                f"size={self.size!r}: must be null or at least 1.",
            ),
            (self.d_in >= 0, f"d_in={self.d_in!r}: must be at least 0."),
            (
                min(bounds, default=0.0) >= 0,
                f"loss={self.loss!r}: every bound must be null or at least 0.",
            ),
            (
                0 <= self.loss.delta <= 1,
                f"loss.delta={self.loss.delta!r}: must be between 0 and 1.",
            ),
        ]
        for holds, message in rules:
            if not holds:
                raise ValueError(message)


def _finite_or_none(value: Any) -> Any:
    return None if value == math.inf else value
