"""What is asked of a mechanism, of those that state their law and of those that do not."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.mathematics.simplex import check_enumerable
from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import (
    HellingerExponential,
    PermuteAndFlip,
    SmoothHellingerExponential,
    protocol,
    registry,
)
from opendp_bayes.mechanisms.exponential.posterior_exponential import public_size

PRIOR = np.ones(2)


@dataclass(frozen=True)
class Lawless:
    """Only what every mechanism must have; it releases what it is given."""

    scale: float = 1.0
    name: ClassVar[str] = "lawless"

    def check(self, *, size: int | None, prior: Any) -> None: ...

    def log_pmf(self, counts: Any, prior: Any) -> Any:
        raise ValueError

    def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
        return np.tile(counts, (size, 1))

    def proven_loss(self, d_in: int, *, size: int | None, prior: Any, delta: float = 0.0) -> Any:
        return ob.PrivacyLoss(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Lawful(Lawless):
    """It also says what it does, and moves what it draws by 1."""

    def law(self, size: int | None, prior: Any) -> Any:
        return ob.LaplaceParameters(self.scale).law(size, prior)

    def draw(self, counts: Any, prior: Any, size: int = 1) -> Any:
        return self.sample(counts, prior, size) - 1

    def log_pmf(self, counts: Any, prior: Any) -> Any:
        raise ValueError

    def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
        return super().sample(counts, prior, size)

    def project(self, drawn: Any, size: int | None) -> Any:
        return drawn + 1


@dataclass(frozen=True)
class DrawsOtherwise(Lawful):
    """A subclass whose draws the law that it inherits does not describe."""

    def draw(self, counts: Any, prior: Any, size: int = 1) -> Any:
        return self.sample(counts, prior, size) - 2


def test_a_law_is_believed_unless_a_subclass_draws_in_another_way() -> None:
    assert protocol.is_lawful(Lawful())
    assert not protocol.is_lawful(Lawless())
    assert not protocol.is_lawful(DrawsOtherwise())
    assert protocol.law_of(Lawful(2.0), 4, PRIOR) == ob.LaplaceParameters(2.0).law(4, PRIOR)
    assert protocol.law_of(Lawless(), 4, PRIOR) is None


PRIVATE, REMAINDER = (ob.LaplaceParameters(1.0, total=of) for of in ("private", "remainder"))
OTHERS = REMAINDER, ob.KNormParameters(1.0), ob.mechanisms.HellingerExponential(1.0), Lawless()


@pytest.mark.parametrize(
    ("mechanism", "does"),
    [(PRIVATE, True), (ob.GaussianParameters(1.0), True), *((of, False) for of in OTHERS)],
)
def test_which_mechanisms_noise_every_count(mechanism: Any, does: bool) -> None:
    """Only of these can tables whose numbers of records are private be released at once."""
    assert protocol.noises_every_count(mechanism) is does


def test_options_and_numbers_of_records_that_are_taken() -> None:
    assert protocol.default_options(ob.LaplaceParameters, None) == {"total": "private"}
    assert protocol.default_options(ob.LaplaceParameters, 5) == {"total": "remainder"}
    assert protocol.default_options(ob.KNormParameters, 5) == {}
    gaussian = ob.load_mechanism("gaussian_parameters")
    assert gaussian is ob.GaussianParameters
    assert protocol.default_options(gaussian, 5) == protocol.default_options(gaussian, None) == {}
    for mechanism in (*OTHERS[:2], *(LAPLACE(1.0, total=of) for of in ("truncated", "bounded"))):
        mechanism.check(size=10**9, prior=PRIOR)
    PRIVATE.check(**OF_TWO)
    assert public_size("scores", 10) == 10
    assert SmoothHellingerExponential(scale=1.0).gamma == 1.0
    assert SmoothHellingerExponential(scale=1.0, beta=0.5).gamma is None


WEIGHING = [
    *(HellingerExponential(1.0), HellingerExponential(1.0, "local"), PermuteAndFlip(1.0)),
    *(SmoothHellingerExponential(1.0, **of) for of in ({}, {"gamma": 0.1}, {"beta": 0.2})),
]


@pytest.mark.parametrize("mechanism", WEIGHING, ids=repr)
@pytest.mark.parametrize("scale", [*SCALES, 2.0, 50.0])
def test_samples_at_any_scale(mechanism: Any, scale: float) -> None:
    """Every scale gives counts, from a point to the uniform law."""
    samples = replace(mechanism, scale=scale).sample([3, 4, 5], 1.0, draws=50)
    assert np.all(samples.sum(axis=1) == 12)
    assert np.all(samples >= 0)
    if scale == SCALES[0]:
        assert np.all(samples == [3, 4, 5])


KINDS = sorted(registry.BUILT_IN, key=lambda kind: kind.name)


@pytest.mark.parametrize(
    ("refused", "error", "message"),
    [
        *(
            (lambda kind, scale=scale: kind(scale), ValueError, r"scale=.*: .*greater than 0")
            for scale in (0.0, -1.0, np.inf, np.nan)
        ),
        (lambda kind: kind(1e-20), ValueError, r"scale=1e-20: .*between .* 2\^60"),
        (lambda kind: kind("1"), TypeError, "scale='1': must be a number"),
        (lambda kind: kind(1.0).sample([-1, 2], 1.0), ValueError, "counts: .*between"),
        (lambda kind: kind(1.0).log_pmf([1, 2], [1.0] * 3), ValueError, r"\(3,\).* 2 entries"),
        (lambda kind: proven(kind, -1), ValueError, "d_in=-1: must be 0 or"),
        (lambda kind: proven(kind, 1.5), TypeError, r"d_in=1\.5: .*a whole number"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_mechanism_takes(kind: Any, refused: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        refused(kind)


def proven(kind: Any, d_in: Any) -> Any:
    return kind(1.0).proven_loss(d_in, size=10, prior=PRIOR)


LAPLACE, K_NORM = ob.LaplaceParameters, ob.KNormParameters
OF_TWO: Any = {"size": None, "prior": PRIOR}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # --- arguments
        (lambda: LAPLACE(1.0, noise="gauss"), "noise='gauss': must be one of"),
        (lambda: LAPLACE(1.0, total="public"), r"total='public': .* 'bounded', 'private'"),
        (lambda: HellingerExponential(1.0, "smooth"), "sensitivity='smooth': must be one of"),
        (
            lambda: SmoothHellingerExponential(1.0, gamma=1.0, beta=1.0),
            r"gamma=1\.0, beta=1\.0: .*at most one",
        ),
        *(
            (
                lambda name=name: SmoothHellingerExponential(1.0, **{name: -1.0}),
                rf"{name}=-1\.0: must be finite and greater than 0\.",
            )
            for name in ("gamma", "beta")
        ),
        # --- a private number of records
        *(
            (
                lambda total=total: LAPLACE(1.0, total=total).check(**OF_TWO),
                rf"total='{total}': needs a public .* be 'private'\.",
            )
            for total in ("remainder", "truncated", "bounded")
        ),
        (
            lambda: K_NORM(1.0).check(**OF_TWO),
            r"size=None: .* be public; .* LaplaceParameters\(scale, total='private'\)",
        ),
        (lambda: public_size("scores", None), r"scores: .* records must be public"),
        # --- what cannot be enumerated
        (
            lambda: LAPLACE(1.0, total="private").log_pmf([1, 1], 1.0),
            r"total='private': .* unbounded, .* cannot be enumerated",
        ),
        *(
            (lambda of=of: LAPLACE(1.0).log_pmf(of, 1.0), "takes more than 4000000 int")
            for of in ([2 * 10**6, 1], [10**6] * 100)
        ),
        (lambda: ob.GaussianParameters(1.0, "private").log_pmf([1, 2], 1.0), "are unbounded"),
        (lambda: ob.GaussianParameters(40.0).log_pmf([5] * 3, 1.0), "takes more than 4000000 int"),
        *(
            (
                lambda of=of, scale=scale: K_NORM(scale).log_pmf(of, 1.0),
                r"counts: enumerating .* 4000000 integers\. .* no such limit",
            )
            for of, scale in (
                *(([1000] * 3, 1.0), ([1, 0, 0], 1e6), ([1, 0, 0], SCALES[1])),
                *(([1] * 8, 1.0), ([1] * 10_000, 1e-3)),
            )
        ),
        (lambda: check_enumerable(1000, 4), "size=1000, 4 categories: enumerating"),
    ],
)
def test_what_one_mechanism_does_not_take(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("mechanism", WEIGHING, ids=repr)
def test_mechanisms_that_weigh_take_a_public_number_and_few_candidates(mechanism: Any) -> None:
    mechanism.check(size=100, prior=PRIOR)
    for call, message in (
        (lambda: mechanism.check(**OF_TWO), r"(Exponential|Flip): .* records must be public"),
        (lambda: mechanism.proven_loss(1, size=0, prior=PRIOR), r"size=0: .*between 1 and"),
        (lambda: mechanism.log_pmf([10**5] * 2, 1.0), r"size=200000: .* size <= 100000"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    if isinstance(mechanism, PermuteAndFlip):
        with pytest.raises(ValueError, match=r"size=200000: .* size <= 100000"):
            mechanism.sample([10**5] * 2, 1.0)
        return
    with pytest.raises(ValueError, match=r"prior: has 1001 entries; .* KNormParameters"):
        mechanism.check(size=1, prior=np.ones(1001))
    with pytest.raises(ValueError, match=r"prior: has 1001 entries; .* 1000"):
        mechanism.sample(np.ones(1001), 1.0)
    with pytest.raises(ValueError, match=r"size=2000000000000: .*between 1 and 1e\+12"):
        mechanism.sample([10**12, 10**12], 1.0)
