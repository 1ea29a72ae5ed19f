"""Results of an audit, and the tables that show them."""

import math
from dataclasses import asdict, dataclass

import msgspec

from opendp_bayes.display import notebook, plain
from opendp_bayes.display.sheet import (
    Body,
    Cell,
    Column,
    Conclusion,
    Marked,
    Row,
    Sheet,
    Table,
    columns,
)
from opendp_bayes.display.wording import at_most, described
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism

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
    delta, epsilon : the claim.
    refuted : the ε below which the draws refute every claim at that δ; 0 if they refute none.
    refutable : what `refuted` comes to for a sampler that follows the stated law; None where that
        law cannot be enumerated. It says how much the draws can tell: the further below `epsilon`
        it is, the more a sampler can lose beyond the claim without failing.
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
    first, second : the counts of the pair that attains it.
    epsilon, error : the log-ratio, which is within `error` of what exact arithmetic gives.
    pairs, complete : how many pairs were compared, and whether these were all.
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
    counts : the data set.
    p_value : of a chi-square test; 0 if an impossible outcome was drawn.
    """

    counts: Counts
    p_value: float


@dataclass(frozen=True)
class Audit:
    """Results of `audit`; plain data.

    Attributes
    ----------
    mechanism, size, prior, draws, confidence : what was audited, and how.
    epsilon : the claimed pure ε.
    nominal : the ε that the papers state for this scale; None for a mechanism that is not theirs.
    proven, exact : the closed-form bound and `exact_loss`.
    computed : the ε that the accounting finds from the probabilities alone, whatever `proven_loss`
        says; None if it cannot.
    law : the check of the stated probabilities; None where they cannot be enumerated.
    claims : for δ = 0 and each δ asked for, the claimed ε and the largest ε refuted.
    drawn : the pairs of neighbours from which draws were taken.
    fits : the tests of the draws against the stated law, one for each data set drawn from; empty
        where it cannot be enumerated.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    epsilon: float
    nominal: float | None
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
        found = {
            "accounting": (
                self.computed is not None and self.computed * (1 - LOG_ERROR) > self.epsilon
            ),
            "law": self.law is not None and self.law.epsilon - self.law.error > self.epsilon,
            "draws": any(claim.refuted > claim.epsilon for claim in self.claims),
            "fit": any(fit.p_value < self.level for fit in self.fits),
        }
        return tuple(name for name, fails in found.items() if fails)

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

    def sheet(self) -> Sheet:
        """Sheet of the audit: its losses, the profile with the ε that the draws refute, the four
        checks, and the verdict.
        """
        records = "A private number of records" if self.size is None else f"{self.size} records"
        neighbours = "added or removed" if self.size is None else "changed"
        prior = ", ".join(f"{alpha:.6g}" for alpha in self.prior)
        return Sheet(
            (_losses(self), _claims(self), _checks(self)),
            title=f"Audit of {described(self.mechanism)}",
            lead=f"{records}, prior ({prior}). Neighbours differ by one record {neighbours}.",
            conclusion=_verdict(self),
        )

    def __str__(self) -> str:
        return plain.rendered(self.sheet(), width=80)

    def _repr_html_(self) -> str:
        """The tables that notebooks show."""
        return notebook.rendered(self.sheet())

    def to_json(self) -> str:
        """The audit as a JSON object; null stands for infinity."""
        document = {
            **asdict(self),
            "mechanism": {"name": self.mechanism.name, "parameters": asdict(self.mechanism)},
            "passed": self.passed,
            "certified": self.certified,
            "failures": self.failures,
        }
        return msgspec.json.encode(document).decode()


def _losses(audit: Audit) -> Table:
    nominal = "–" if audit.nominal is None else f"{audit.nominal:.4g}"
    bounds = {"Proven, closed form": audit.proven}
    bounds[f"Exact accounting ({audit.exact.method})"] = audit.exact
    rows: list[Row] = [
        ("Nominal, the papers' calibration", nominal, "", ""),
        *(
            (name, at_most(loss.epsilon), at_most(loss.range), at_most(loss.rho))
            for name, loss in bounds.items()
        ),
        ("Claimed", at_most(audit.epsilon), "", ""),
    ]
    return Table(columns("Privacy loss", "ε", "range", "ρ (zCDP)"), (Body(tuple(rows)),))


def _claims(audit: Audit) -> Table:
    def below(epsilon: float | None) -> str:
        return "–" if epsilon is None else f"below {epsilon:.4g}" if epsilon else "none"

    rows: list[Row] = [
        (
            f"{claim.delta:.4g}",
            at_most(claim.epsilon),
            Marked(below(claim.refuted), "bad")
            if claim.refuted > claim.epsilon
            else below(claim.refuted),
            below(claim.refutable),
        )
        for claim in audit.claims
    ]
    refuted = f"ε refuted\n({100 * audit.confidence:.6g} % confidence)"
    headings = columns("δ", "ε claimed", refuted, "expected to be\nrefuted")
    return Table(headings, (Body(tuple(rows)),))


def _checks(audit: Audit) -> Table:
    rows = []
    for name, done, found in (
        ("Accounting", audit.computed is not None, _found_by_accounting(audit)),
        ("Law", audit.law is not None, _found_in_law(audit)),
        ("Draws", True, _found_by_draws(audit)),
        ("Fit", bool(audit.fits), _found_by_fit(audit)),
    ):
        result: Cell = "–"
        if name.lower() in audit.failures:
            result = Marked("fails", "bad")
        elif done:
            result = Marked("passes", "good")
        rows.append((name, result, f"{found[0].upper()}{found[1:]}."))
    headings = tuple(Column(name, number=False) for name in ("Check", "Result", "Found"))
    return Table(headings, (Body(tuple(rows)),))


def _found_by_accounting(audit: Audit) -> str:
    if audit.computed is None:
        return "there is no exact accounting for this mechanism and size"
    return f"the largest loss from the probabilities is {_nearly(audit.computed)}"


def _found_in_law(audit: Audit) -> str:
    if audit.law is None:
        return "the mechanism does not list its outcomes"
    pairs = (
        f"over all {audit.law.pairs} pairs of neighbours"
        if audit.law.complete
        else "for the pairs drawn from alone"
    )
    return (
        f"the largest log-ratio {pairs} is {_nearly(audit.law.epsilon)}, for counts"
        f" {_counts(audit.law.first)} and {_counts(audit.law.second)}"
    )


def _found_by_draws(audit: Audit) -> str:
    pairs = [f"{_counts(first)} and {_counts(second)}" for first, second in audit.drawn]
    return (
        f"{audit.draws} draws for each of {' and for '.join(pairs)} refute"
        f" {'more than' if 'draws' in audit.failures else 'no more than'} is claimed"
    )


def _found_by_fit(audit: Audit) -> str:
    if not audit.fits:
        return "without listed probabilities there is nothing to compare the draws with"
    worst = min(audit.fits, key=lambda fit: fit.p_value)
    return (
        f"the smallest p-value is {worst.p_value:.2g}, for counts {_counts(worst.counts)}; it"
        f" fails below {audit.level:.2g}"
    )


def _verdict(audit: Audit) -> Conclusion:
    claim = f"ε = {at_most(audit.epsilon)}"
    if math.isinf(audit.epsilon):  # as of Gaussian noise
        claim = f"ρ = {at_most(audit.exact.rho)}"
    if not audit.passed:
        text = f"{', '.join(audit.failures)}. The claim of {claim} does not hold as stated."
        return Conclusion("Failed", text, "bad")
    if not audit.certified:
        text = f"nothing refutes {claim}, and no certified bound is as small."
        return Conclusion("Passed, but not proven", text, "doubtful")
    return Conclusion("Passed", f"{claim} is certified, and nothing refutes it.", "good")


def _counts(counts: Counts) -> str:
    return f"({','.join(map(str, counts))})"


def _nearly(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "∞"
