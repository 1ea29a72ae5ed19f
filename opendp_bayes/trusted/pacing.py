"""Pace a release, so that the time it takes says less about the data (`docs/limits.md`, "Time")."""

from time import monotonic_ns, sleep

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms.laws import AdditiveNoise, SimplexNoise
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted.drawing import Drawer

#: The least time of a draw in nanoseconds, 1/4 s.
LEAST = 250_000_000


def paced(draw: Drawer, setting: Setting) -> Drawer:
    """The sampler `draw` of a measurement, which returns when 1/4 s is over, or that doubled as
    often as a draw takes.

    Noise on the counts is drawn as it is: its time does not depend on them.
    """
    if isinstance(setting.law, (AdditiveNoise, SimplexNoise)):
        return draw

    def drawn_in_time(counts: Integers, draws: int) -> Integers:
        start = monotonic_ns()
        drawn = draw(counts, draws)
        end = LEAST
        while end < monotonic_ns() - start:
            end *= 2
        sleep(max(start + end - monotonic_ns(), 0) / 1e9)
        return drawn

    return drawn_in_time
