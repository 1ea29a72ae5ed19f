"""A program that opens Contexts over frames in memory and releases from them, again and again, for
its parent to end: `python -m tests.helpers.contexts_anew`.
"""

import sys

import polars as pl
from opendp.context import loss_of, unit_of
from opendp.mod import enable_features

import opendp_bayes as ob

FRAME = pl.DataFrame({"vote": ["a", "b", "c", None] * 50_000})


def release() -> None:
    context = ob.context(
        FRAME,
        privacy_unit=unit_of(contributions=1),
        privacy_loss=loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    ob.posterior(context.query(), "vote", categories=["a", "b"], nulls="a", unknown="b").release()


if __name__ == "__main__":
    enable_features("contrib", "honest-but-curious")
    release()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        release()
