"""Results of an audit, and the tables that show them."""

import math
from dataclasses import dataclass

from opendp_bayes import PrivacyLoss
from opendp_bayes.display.wording import at_most, described
from opendp_bayes.mechanisms import Mechanism

Counts = tuple[int, ...]
#: Two neighbouring data sets.
Pair = tuple[Counts, Counts]

#: The relative error of a log-probability; the mechanisms' own is below 2^-42.
LOG_ERROR = 2.0**-40


@dataclass(frozen=True)
class Claim:
    """An ε claimed at one δ, with the ε that the draws refute and could refute.

    Attributes
    ----------
    delta, epsilon : float
        The claim.
    refuted : float
        The ε below which the draws refute every claim at that δ; 0 if they refute none.
    refutable : float or None
        What `refuted` comes to for a sampler that follows the stated law; None where that law
        cannot be enumerated. It says how much the draws can tell: the further below `epsilon` it
        is, the more a sampler can lose beyond the claim without failing.
    """

    delta: float
    epsilon: float
    refuted: float
    refutable: float | None


@dataclass(frozen=True)
class LawCheck:
    """The largest log-ratio of the probabilities that the mechanism states, over pairs of
    neighbours.

    Attributes
    ----------
    first, second : Counts
        The counts of the pair that attains it.
    epsilon, error : float
        The log-ratio, which is within `error` of what exact arithmetic gives.
    pairs, complete : int, bool
        How many pairs were compared, and whether these were all.
    """

    first: Counts
    second: Counts
    epsilon: float
    error: float
    pairs: int
    complete: bool


@dataclass(frozen=True)
class Fit:
    """Goodness of fit of the draws for one data set to the stated law.

    Attributes
    ----------
    counts : Counts
        The data set.
    p_value : float
        Of a chi-square test; 0 if an impossible outcome was drawn.
    """

    counts: Counts
    p_value: float


@dataclass(frozen=True)
class Audit:
    """Results of `audit`; plain data.

    Attributes
    ----------
    mechanism, size, prior, draws, confidence : Mechanism, int or None, tuple, int, float
        What was audited, and how.
    epsilon : float
        The claimed pure ε.
    proven, exact : PrivacyLoss
        The closed-form bound and `exact_loss`.
    computed : float or None
        The ε that the accounting finds from the probabilities alone, whatever `proven_loss` says;
        None if it cannot.
    law : LawCheck or None
        The check of the stated probabilities; None where they cannot be enumerated.
    claims : tuple[Claim, ...]
        For δ = 0 and each δ asked for, the claimed ε and the largest ε refuted.
    drawn : tuple[Pair, ...]
        The pairs of neighbours from which draws were taken.
    fits : tuple[Fit, ...]
        The tests of the draws against the stated law, one for each data set drawn from; empty where
        it cannot be enumerated.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    epsilon: float
    proven: PrivacyLoss
    exact: PrivacyLoss
    computed: float | None
    law: LawCheck | None
    claims: tuple[Claim, ...]
    drawn: tuple[Pair, ...]
    fits: tuple[Fit, ...]
    draws: int
    confidence: float

    @property
    def level(self) -> float:
        """The p-value below which a fit fails: half of `1 - confidence`, shared by the fits."""
        return (1 - self.confidence) / 2 / max(len(self.fits), 1)

    @property
    def failures(self) -> tuple[str, ...]:
        """Names of the checks that fail, among `"accounting"`, `"law"`, `"draws"` and `"fit"`. A
        difference that rounding explains is forgiven.
        """
        checks = {
            "accounting": (
                self.computed is not None and self.computed * (1 - LOG_ERROR) > self.epsilon
            ),
            "law": self.law is not None and self.law.epsilon - self.law.error > self.epsilon,
            "draws": any(claim.refuted > claim.epsilon for claim in self.claims),
            "fit": any(fit.p_value < self.level for fit in self.fits),
        }
        return tuple(check for check, fails in checks.items() if fails)

    @property
    def passed(self) -> bool:
        """True if no check refutes the claim."""
        return not self.failures

    @property
    def certified(self) -> bool:
        """True if a certified bound, of the exact accounting or of the mechanism's `proven_loss`,
        is within the claim.

        An audit can pass without: then nothing refutes the claim and nothing proves it.
        """
        return self.exact.epsilon <= self.epsilon

    def __str__(self) -> str:
        losses = {"proven": self.proven.epsilon, f"exact ({self.exact.method})": self.exact.epsilon}
        prior = ", ".join(f"{alpha:.6g}" for alpha in self.prior)
        size = "private" if self.size is None else self.size
        return "\n".join(
            (
                f"Audit of {described(self.mechanism)}, size {size}, prior ({prior}):"
                f" {_verdict(self)}",
                ", ".join(f"{source} ε {at_most(epsilon)}" for source, epsilon in losses.items()),
                *(_claim(claim) for claim in self.claims),
                _accounting(self),
                _law(self),
                _draws(self),
                _fit(self),
            )
        )


def _verdict(audit: Audit) -> str:
    claim = f"ε = {at_most(audit.epsilon)}"
    if math.isinf(audit.epsilon):  # as of Gaussian noise
        claim = f"ρ = {at_most(audit.exact.rho)}"
    if not audit.passed:
        return f"failed, {', '.join(audit.failures)}. The claim of {claim} does not hold as stated."
    if not audit.certified:
        return f"passed, not proven. Nothing refutes {claim}, and no certified bound is as small."
    return f"passed. {claim} is certified, and nothing refutes it."


def _claim(claim: Claim) -> str:
    refuted = f"below {claim.refuted:.4g}" if claim.refuted else "none"
    expected = "" if claim.refutable is None else f" (up to {claim.refutable:.4g} expected)"
    return f"δ {claim.delta:.4g}: claimed ε {at_most(claim.epsilon)}, refuted {refuted}{expected}"


def _accounting(audit: Audit) -> str:
    if audit.computed is None:
        return "accounting: there is none for this mechanism and size"
    return f"accounting: the largest loss from the probabilities is {_nearly(audit.computed)}"


def _law(audit: Audit) -> str:
    if audit.law is None:
        return "law: the mechanism does not list its outcomes"
    pairs = f"all {audit.law.pairs} pairs" if audit.law.complete else "the pairs drawn from"
    return (
        f"law: the largest log-ratio over {pairs} of neighbours is {_nearly(audit.law.epsilon)},"
        f" for counts {audit.law.first} and {audit.law.second}"
    )


def _draws(audit: Audit) -> str:
    pairs = " and for ".join(f"{first} and {second}" for first, second in audit.drawn)
    more = "more than" if "draws" in audit.failures else "no more than"
    return f"draws: {audit.draws} for each of {pairs} refute {more} is claimed"


def _fit(audit: Audit) -> str:
    if not audit.fits:
        return "fit: without listed probabilities there is nothing to compare the draws with"
    worst = min(audit.fits, key=lambda fit: fit.p_value)
    return (
        f"fit: the smallest p-value is {worst.p_value:.2g}, for counts {worst.counts}; it fails"
        f" below {audit.level:.2g}"
    )


def _nearly(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "∞"
