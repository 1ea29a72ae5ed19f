"""Pace a release, so that the time it takes says less about the data (`docs/limits.md`, "Time")."""

from time import monotonic_ns, sleep

from opendp_bayes.framework.drawing import Drawer
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.laws import AdditiveNoise, SimplexNoise
from opendp_bayes.mechanisms.protocol import Mechanism, law_of

#: The least time of a draw in nanoseconds, 1/4 s.
LEAST = 250_000_000


def paced(draw: Drawer, mechanism: Mechanism, *, size: int | None, prior: Floats) -> Drawer:
    """The sampler `draw` of a measurement, for `size` records (None where private) and a prior of
    shape `(k,)`; it returns when 1/4 s is over, or that doubled as often as a draw takes.

    Noise on the counts is drawn as it is: its time does not depend on them.
    """
    if isinstance(law_of(mechanism, size, prior), (AdditiveNoise, SimplexNoise)):
        return draw

    def drawn_in_time(counts: Integers, number: int) -> Integers:
        start = monotonic_ns()
        drawn = draw(counts, number)
        end = LEAST
        while end < monotonic_ns() - start:
            end *= 2
        sleep(max(start + end - monotonic_ns(), 0) / 1e9)
        return drawn

    return drawn_in_time
