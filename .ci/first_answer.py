"""A first release by what is installed, and nothing of the repository, within ten seconds."""

import sys
import time

#: Seconds from the first import to the first answer, of the processor: others may use the machine.
MOST = 10.0

begin = time.perf_counter()

import opendp.prelude as dp  # noqa: E402 - its import is part of what is measured
import polars as pl  # noqa: E402

import opendp_bayes as ob  # noqa: E402

dp.enable_features("contrib", "honest-but-curious")
context = ob.context(
    pl.LazyFrame({"vote": ["yes"] * 620 + ["no"] * 310 + [None] * 70}),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)
question = {"categories": ["yes", "no"], "nulls": "missing", "unknown": "missing"}
release = ob.posterior(context.query(), "vote", **question).release()
lower, upper = release.posterior.interval(0.999)
seconds, processor = time.perf_counter() - begin, time.process_time()

assert ob.Release.from_json(release.to_json()) == release  # noqa: S101
assert lower[0] < 0.62 < upper[0], (lower, upper)  # noqa: S101
assert "/site-packages/" in ob.__file__.replace("\\", "/"), ob.__file__  # noqa: S101
if processor > MOST:
    sys.exit(f"{processor:.1f} s of the processor to the first answer, of {MOST:.0f} at most")
if "opendp_bayes_smoothed" in sys.argv:
    import opendp_bayes_smoothed

    assert opendp_bayes_smoothed.SamplingHistogram(rate=0.5).samples(10) == 5  # noqa: S101
if "opendp_bayes_engines" in sys.argv:
    import opendp_bayes_engines

    assert opendp_bayes_engines.context  # noqa: S101
print(f"first answer after {seconds:.1f} s, of which {processor:.1f} s of the processor")  # noqa: T201
